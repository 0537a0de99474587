"""The page of a conversation: the end first, every other piece by its place, the whole of long texts."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import re
import tracemalloc
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import AsyncClient, Client
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from runs.conversation import export, reading, rules
from runs.models import Run
from runs.secrets import masked
from runs.secrets.known import Known
from tests import make
from tests.conversation import long_talk
from tests.conversation.conftest import TREE
from tests.world import agent_homes as homes

pytestmark = pytest.mark.django_db


def address(run: Run, rest: str = "") -> str:
    return f"/runs/{run.pk}/conversation/{rest}"


def text(client: Client, run: Run, rest: str = "") -> str:
    answer = client.get(address(run, rest))
    assert answer.status_code == 200
    return answer.content.decode()


def link(html: str, words: str) -> str:
    """Where the link with these words leads, below the conversation's own address."""
    found = re.search(rf'href="([^"]*)"[^>]*>\s*{words}', html)
    assert found is not None, words
    return unescape(found[1]).rpartition("/conversation/")[2]


def streamed(client: Client, run: Run, rest: str) -> str:
    answer = client.get(address(run, rest))
    return b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]


def talk_of(home: Any, number: int) -> None:
    """So many messages, each with its number."""
    talk = long_talk.Claude(TREE)
    homes.write(homes.claude_path(home, TREE), [talk.says(f"Word {n}.") for n in range(number)])


@pytest.mark.parametrize("write", ["write_claude", "write_codex"])
def test_it_says_what_was_said_and_done(anna, home, claude_run, codex_run, write):
    getattr(long_talk, write)(home, TREE)
    html = text(anna, claude_run if write == "write_claude" else codex_run)
    assert "I'll read the parser first" in html
    assert "python -m pytest -q" in html
    assert "1 failed, 41 passed" in html
    assert "exit 1" in html
    assert 'class="diff code' in html
    assert "<li>two tests cover it" in html
    assert "Context compacted" in html
    assert "To-do list of the agent" in html


def test_it_opens_at_its_end_and_leads_back_to_its_beginning(anna, home, claude_run):
    talk_of(home, 200)
    html = text(anna, claude_run)
    seen = [int(n) for n in re.findall(r"Word (\d+)\.", html)]
    assert seen[-1] == 199
    while 'rel="prev"' in html:
        html = text(anna, claude_run, link(html, "Earlier"))
        seen = [int(n) for n in re.findall(r"Word (\d+)\.", html)] + seen
    assert seen == list(range(200))


def test_from_its_beginning_it_leads_to_its_end(anna, home, claude_run):
    talk_of(home, 200)
    html = text(anna, claude_run, link(text(anna, claude_run), "Beginning"))
    seen = [int(n) for n in re.findall(r"Word (\d+)\.", html)]
    while 'rel="next"' in html:
        html = text(anna, claude_run, link(html, "Later"))
        seen += [int(n) for n in re.findall(r"Word (\d+)\.", html)]
    assert seen == list(range(200))


def test_a_link_to_one_message_shows_it_first(anna, home, claude_run):
    talk_of(home, 200)
    [*_, url] = re.findall(r'class="when" href="([^"]*)"', text(anna, claude_run))
    place, _, ident = unescape(url).rpartition("/conversation/")[2].partition("#")
    html = text(anna, claude_run, place)
    assert html.index(f'id="{ident}"') < html.index("Word 199.")
    assert "Word 198." not in html


def test_a_page_begins_with_no_result_whose_call_stands_on_the_page_before(anna, home, claude_run):
    talk = long_talk.Claude(TREE)
    lines = []
    for number in range(100):
        lines += [talk.does(f"toolu_{number}", "Bash", command=f"echo {number}")]
        lines += [talk.gets(f"toolu_{number}", f"out {number}")]
    homes.write(homes.claude_path(home, TREE), [lines[0], *lines[:-1]])
    html = text(anna, claude_run)
    assert "Result of an earlier call" not in html
    assert "Result of an earlier call" not in text(anna, claude_run, link(html, "Earlier"))


def test_a_call_has_its_result_although_a_page_ends_between_them(anna, home, claude_run):
    talk = long_talk.Claude(TREE)
    said = [talk.says(f"N{n}.") for n in range(79)]
    asked, got = talk.does("call_0", "Bash", command="make"), talk.gets("call_0", "made it")
    again = [talk.does("call_0", "Bash", command="true"), talk.gets("call_0", "another")]
    homes.write(homes.claude_path(home, TREE), [*said, asked, got, *again])
    html = text(anna, claude_run, "?start=0")
    assert 'rel="next"' in html
    assert "made it" in html
    assert "no result" not in html
    assert "another" not in html


def test_a_call_of_a_run_that_is_over_waits_for_no_result(anna, home, claude_run):
    talk = long_talk.Claude(TREE)
    homes.write(homes.claude_path(home, TREE), [talk.does("toolu_1", "Bash", command="make")])
    assert "no result yet" in text(anna, claude_run)
    ended(claude_run)
    html = text(anna, claude_run)
    assert ("no result" in html, "no result yet" in html) == (True, False)


def test_a_long_output_is_cut_and_its_whole_has_an_address(anna, home, claude_run):
    talk = long_talk.Claude(TREE)
    output = "\n".join(f"line {n} <b>" for n in range(3000))
    asked = talk.does("toolu_1", "Bash", command="seq")
    homes.write(homes.claude_path(home, TREE), [asked, talk.gets("toolu_1", output)])
    html = text(anna, claude_run)
    assert "line 1500 " not in html
    assert "line 2999 &lt;b&gt;" in html
    answer = anna.get(address(claude_run, link(html, "Show the whole text")))
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.content.decode() == output


def test_a_subagent_stands_folded_under_its_call_and_has_a_page_of_its_own(anna, home, claude_run):
    long_talk.write_claude(home, TREE)
    html = text(anna, claude_run)
    assert "grep -rn parse_all" in html[html.index("Look for other callers") :]
    own = text(anna, claude_run, link(html, "Open its conversation"))
    assert "grep -rn parse_all" in own
    assert "I'll read the parser" not in own


def test_a_subagents_own_list_of_things_to_do_stands_on_its_own_page_alone(anna, home, claude_run):
    main = long_talk.write_claude(home, TREE)
    talk = long_talk.Claude(TREE, isSidechain=True, agentId=homes.AGENT)
    entry = {"content": "Grep for it", "status": "pending", "activeForm": "Grepping"}
    homes.write(homes.agent_path(main), [talk.does("toolu_1", "TodoWrite", todos=[entry])])
    html = text(anna, claude_run)
    listed = re.findall(r'id="talk-todos".*?</div>', html, re.DOTALL)
    assert "Grep for it" not in listed[0]
    html = text(anna, claude_run, link(html, "Open its conversation"))
    listed = re.findall(r'id="talk-todos".*?</div>', html, re.DOTALL)
    assert "Grep for it" in listed[0]


def test_what_a_subagent_said_is_marked_where_its_call_is_not_told(anna, home, claude_run):
    talk = long_talk.Claude(TREE)
    aside = {**talk.says("Beside."), "isSidechain": True}
    homes.write(homes.claude_path(home, TREE), [talk.says("Own."), aside])
    html = text(anna, claude_run)
    assert html.count(">subagent<") == 1
    assert html.index("Own.") < html.index(">subagent<") < html.index("Beside.")


def test_two_sessions_of_one_run_are_both_there(anna, home, world, claude_run):
    for session, said in ((homes.SESSION, "First."), (homes.OTHER, "Second.")):
        homes.write(homes.claude_path(home, TREE, session), [homes.said(TREE, said, session)])
    events = [json.dumps({"event": "SessionStart", "session": homes.OTHER}).encode() + b"\n"]
    world.sessions.events[world.lab.paths.run_folder(claude_run.pk)] = b"".join(events)
    html = text(anna, claude_run)
    assert ("Second." in html, "First." in html) == (True, False)
    assert "First." in text(anna, claude_run, f"?record={homes.SESSION}")


def test_what_an_agent_wrote_is_text_and_nothing_else(anna, home, claude_run):
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    talk = long_talk.Claude(TREE)
    lines = [
        talk.prompt(evil),
        talk.says(f"{evil}\n\n[x](javascript:alert(1))"),
        talk.does(f"{evil}", evil, command=evil, description=evil),
        {"type": evil, "sessionId": homes.SESSION},
        *talk.edits("toolu_2", evil),
        evil.encode() + b"\n",
    ]
    homes.write(homes.claude_path(home, TREE), lines)
    html = text(anna, claude_run)
    assert "<script>alert" not in html
    assert "<img" not in html
    assert 'href="javascript' not in html
    assert "<script>alert" not in text(anna, claude_run, "search?q=alert")


def test_an_unknown_record_is_not_found(anna, home, claude_run):
    talk_of(home, 1)
    assert anna.get(address(claude_run, "?record=../../etc")).status_code == 404
    assert anna.get(address(claude_run, "text?at=99999999")).status_code == 404
    assert anna.get(address(claude_run, "text?at=0&part=7")).status_code == 404


@pytest.mark.parametrize(
    "query", ["?before=x", "?start=-1", f"?start={10**30}", "?record=" + "x" * 900]
)
def test_a_place_that_cannot_be_meant_shows_the_end(anna, home, claude_run, query):
    talk_of(home, 3)
    assert "Word 2." in text(anna, claude_run, query)


def test_a_run_without_a_record_says_so_and_shows_what_is_left(anna, world):
    run = make.a_run(make.a_project(), outcome="died", last_words="\x1b[31mthe last screen\x1b[0m")
    html = text(anna, run)
    assert "own record is not there" in html
    assert "the last screen" in html


def test_of_a_run_of_another_host_it_says_where_the_record_is(anna, claude_run):
    Run.objects.filter(pk=claude_run.pk).update(host="elsewhere")
    html = text(anna, claude_run)
    assert "The agent ran on <code>elsewhere</code>" in html
    ended(claude_run)
    html = text(anna, claude_run)
    assert "The agent ran on <code>elsewhere</code>" in html
    assert "it was removed" not in html


def test_a_program_without_a_record_teaches_what_there_is(anna, world):
    html = text(anna, make.a_run(make.a_project()))
    assert "Claude Code and Codex keep one" in html


def test_whoever_may_look_reads_it_and_a_stranger_does_not(vera, home, claude_run):
    talk_of(home, 1)
    assert "Word 0." in text(vera, claude_run)
    for rest in ("", "live", "search?q=x", "text?at=0", "conversation.json", "conversation.md"):
        answer = Client().get(address(claude_run, rest))
        assert (answer.status_code, "login" in answer["Location"]) == (302, True)


class TestSearch:
    def test_it_finds_words_in_any_case_and_leads_to_their_message(self, anna, home, claude_run):
        long_talk.write_claude(home, TREE)
        html = text(anna, claude_run, "search?q=SKIPS+lines")
        assert "1 message with" in html
        assert "<mark>skips lines</mark>" in html
        assert "The parser now skips" in text(
            anna,
            claude_run,
            re.findall(r'href="[^"]*/conversation/(\?[^"#]*)#m', html)[-1].replace("&amp;", "&"),
        )

    def test_it_finds_letters_that_are_no_ascii_and_signs_that_json_escapes(
        self, anna, home, claude_run
    ):
        talk = long_talk.Claude(TREE)
        raw = json.dumps(talk.says('Grüße an "alle"'), ensure_ascii=False).encode() + b"\n"
        homes.write(homes.claude_path(home, TREE), [raw, talk.says("Grüße noch einmal")])
        assert "2 messages" in text(anna, claude_run, "search?q=Grüße")
        assert "1 message " in text(anna, claude_run, "search?q=%22alle%22")

    def test_it_finds_words_in_any_case_across_lines_and_in_quotes(
        self, anna, home, claude_run, codex_run
    ):
        talk = long_talk.Claude(TREE)
        said = talk.says("Über den Code\nund mehr. ÄÖÜ")
        raw = json.dumps(said, ensure_ascii=False).encode() + b"\n"
        homes.write(homes.claude_path(home, TREE), [raw, said])
        for words in ("über", "code und", "äöü", "ÜBER DEN"):
            assert "2 messages" in text(anna, claude_run, f"search?q={words}"), words
        given = json.dumps({"command": 'grep "needle here" x'})
        called = {"type": "function_call", "name": "shell", "call_id": "c1", "arguments": given}
        line = {"type": "response_item", "payload": called}
        homes.write(homes.codex_path(home), [homes.codex_meta(TREE), line])
        assert "1 message " in text(anna, codex_run, "search?q=grep+%22needle+here%22")

    def test_what_is_no_word_of_the_conversation_is_not_found(self, anna, home, claude_run):
        talk_of(home, 3)
        assert "Nothing was found" in text(anna, claude_run, "search?q=sessionId")

    def test_without_a_word_it_asks_for_one(self, anna, home, claude_run):
        talk_of(home, 3)
        shown = text(anna, claude_run, "search?q=")
        assert "Search this conversation" in shown
        assert "0 messages" not in shown
        assert "Nothing was found" not in shown

    def test_a_secret_is_found_and_shown_by_nobody(self, anna, home, world, claude_run):
        world.lab = masked.lab(world.lab, Known({}))
        key = "sk-ant-Qw3rTy-0123456789"
        profile = claude_run.profile
        profile.env = {"ANTHROPIC_API_KEY": key}
        profile.save()
        talk = long_talk.Claude(TREE)
        homes.write(homes.claude_path(home, TREE), [talk.says(f"key {key}")])
        assert "Nothing was found" in text(anna, claude_run, f"search?q={key[:12]}")
        everything = (
            text(anna, claude_run),
            text(anna, claude_run, "text?at=0"),
            *(streamed(anna, claude_run, f"conversation.{kind}") for kind in ("json", "md")),
        )
        assert all(key not in one and "[hidden]" in one for one in everything)

    def test_nor_letter_by_letter_from_how_far_a_search_came(self, anna, home, world, claude_run):
        key = "sk-ant-Qw3rTy-0123456789"
        claude_run.profile.env = {"ANTHROPIC_API_KEY": key}
        claude_run.profile.save()
        world.lab = masked.lab(world.lab, Known({}))
        talk = long_talk.Claude(TREE)
        homes.write(homes.claude_path(home, TREE), [talk.says(f"key {key}") for _ in range(120)])
        right, wrong = (
            text(anna, claude_run, f"search?q={words}").partition("<main")[2].replace(words, "")
            for words in (key[:11], "sk-ant-Qw9r")
        )
        assert "Nothing was found" in right
        assert right == wrong

    def test_more_hits_than_one_page_holds_are_all_there(self, anna, home, claude_run):
        talk_of(home, 120)
        html = text(anna, claude_run, "search?q=word")
        seen = html.count("<mark>")
        while "Search on" in html:
            html = text(anna, claude_run, link(html, "Search on"))
            seen += html.count("<mark>")
        assert seen == 120

    def test_a_piece_of_very_many_lines_is_not_searched_whole(self, anna, home, claude_run):
        talk = long_talk.Claude(TREE)
        note = {"type": "tag", "sessionId": homes.SESSION, "tag": "needle"}
        lines = [talk.says("The needle."), *[note] * (reading.MOST_SEARCHED + 5)]
        homes.write(homes.claude_path(home, TREE), lines)
        html = text(anna, claude_run, "search?q=needle")
        assert "<mark>" not in html
        assert "1 message " in text(anna, claude_run, link(html, "Search on"))

    def test_lines_that_match_are_looked_at_one_after_the_other(self):
        data = b"a\nb\n" * 100_000
        tracemalloc.start()
        try:
            found = list(itertools.islice(reading.matching(data, 2, [b"b", b"a"]), 3))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        end = len(data)
        assert found == [(end - 2, b"b\n"), (end - 4, b"a\n"), (end - 6, b"b\n")]
        assert list(reading.matching(b"a\nb\na", 2, [b"a", b"b"])) == [(4, b"a"), (2, b"b\n")]
        assert peak < 3 * len(data)


class TestDownload:
    @pytest.mark.parametrize("write", ["write_claude", "write_codex"])
    def test_json_holds_every_message(self, anna, home, claude_run, codex_run, write):
        main = getattr(long_talk, write)(home, TREE)
        run = claude_run if write == "write_claude" else codex_run
        found = json.loads(streamed(anna, run, "conversation.json"))
        files = [one for one in (main, homes.agent_path(main)) if one.exists()]
        written = sum(one.read_bytes().count(b"\n") for one in files)
        assert len({(one["record"], one["at"]) for one in found["messages"]}) == written
        kinds = {one["kind"] for one in found["messages"]}
        assert found["run"] == run.pk
        assert {"prompt", "words", "call", "result", "break", "note"} <= kinds
        assert any("The pull request is open." in one["text"] for one in found["messages"])
        ended(run)
        assert json.loads(streamed(anna, run, "conversation.json")) == found

    def test_markdown_reads_as_the_conversation(self, anna, home, claude_run):
        long_talk.write_claude(home, TREE)
        found = streamed(anna, claude_run, "conversation.md")
        assert "### Prompt" in found
        assert "```sh\npython -m pytest -q tests/\n```" in found
        assert "```diff\n--- /srv/trees/demo-7/parse.py" in found
        assert "- [x] Read the parser" in found
        assert "### Error" in found

    def test_markdown_of_the_newest_claude_code_is_the_conversation_alone(
        self, anna, home, claude_run
    ):
        """Recorded of 2.1.332: what works in the background and comes back, and its own requests."""
        path = Path(__file__).with_name("claude_background.jsonl")
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        homes.write(homes.claude_path(home, TREE), [homes.said(TREE), *lines])
        found = streamed(anna, claude_run, "conversation.md")
        assert "Unknown entry" not in found
        assert "api-request" not in found
        assert '### Finished in the background: Agent "Look around" finished · 2026' in found
        assert "\n\nThe part is done.\n" in found
        html = text(anna, claude_run)
        assert re.search(r'Finished in the background</b>\s*<span>Agent "Look', unescape(html))
        assert "Unknown entry" not in html

    def test_a_fence_in_a_text_ends_no_block(self, anna, home, claude_run):
        talk = long_talk.Claude(TREE)
        asked = talk.does("toolu_1", "Bash", command="cat README")
        homes.write(homes.claude_path(home, TREE), [asked, talk.gets("toolu_1", "```\nx\n```")])
        assert "\n````\n```\nx\n```\n````\n" in streamed(anna, claude_run, "conversation.md")

    @pytest.mark.parametrize("inside", ["  ```\nx\n  ```", "    ````` x", "1. ```\n   x"])
    def test_nor_does_one_at_any_indent(self, anna, home, claude_run, inside):
        talk = long_talk.Claude(TREE)
        asked = talk.does("toolu_1", "Bash", command="cat README")
        result = talk.gets("toolu_1", f"before\n{inside}\n<b>after</b>")
        homes.write(homes.claude_path(home, TREE), [asked, result, talk.says("Done.")])
        found = streamed(anna, claude_run, "conversation.md")
        blocks = [one for one in MarkdownIt().parse(found) if one.type == "fence"]
        assert [one.content for one in blocks][1] == f"before\n{inside}\n<b>after</b>\n"
        assert len(blocks) == 2

    def test_no_markup_stands_raw_outside_of_code(self, anna, home, claude_run):
        talk = long_talk.Claude(TREE)
        evil = "<img src=x onerror=alert(1)>"
        said = f"{evil}\n\n- a <b>x</b>\n\n```html\n<p>code</p>\n```\n\n`\n\n<i>`\n\n```\n<u>open"
        asked = talk.does("toolu_1", f"Evil{evil}", command="x")
        lines = [asked, talk.says(said), talk.says("The end.")]
        homes.write(homes.claude_path(home, TREE), lines)
        found = streamed(anna, claude_run, "conversation.md")
        tokens = MarkdownIt("commonmark").parse(found)
        inner = [child for one in tokens for child in one.children or ()]
        assert not [one for one in (*tokens, *inner) if one.type in ("html_block", "html_inline")]
        assert "```html\n<p>code</p>\n```" in found
        heads = [b.content for a, b in pairwise(tokens) if a.type == "heading_open"]
        assert len([one for one in heads if one.startswith("Agent")]) == 2


PIECES = [
    "`",
    "``",
    "<b>",
    "<!-- ",
    "<div>",
    " ",
    "\n",
    "\n\n",
    "\\",
    "- ",
    "> ",
    "    ",
    "a",
    "```\n",
    "1. ",
]


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_whatever_an_agent_says_no_html_begins_in_the_download(said: str) -> None:
    tokens = MarkdownIt("commonmark").parse(export._prose(said))
    inner = [child for one in tokens for child in one.children or ()]
    assert not [one for one in (*tokens, *inner) if one.type in ("html_block", "html_inline")]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        pytest.param("a `List<T>` is <b>", "a `List<T>` is &lt;b>", id="a span of code"),
        pytest.param("``a ` <b>`` <i>", "``a ` <b>`` &lt;i>", id="with a tick in it"),
        pytest.param("\\`<b>`", "\\`&lt;b>`", id="a tick behind a backslash"),
        pytest.param("`a\n<b>` x", "`a\n&lt;b>` x", id="of several lines"),
        pytest.param("`a\n\n<b>`", "`a\n\n&lt;b>`", id="a paragraph ends it"),
    ],
)
def test_code_in_what_an_agent_says_stays_as_it_is(said: str, shown: str) -> None:
    assert export._prose(said) == f"{shown}\n"


@pytest.mark.django_db(transaction=True)
def test_the_web_process_sends_a_download_while_it_is_made(operator, home, claude_run):
    """Pages are served without threads of their own, where a file is read in pieces beside them."""
    talk_of(home, 500)

    async def asked() -> list[bytes]:
        client = AsyncClient()
        await client.aforce_login(operator)
        answer = await client.get(address(claude_run, "conversation.json"))
        assert answer["Content-Disposition"] == f'attachment; filename="run-{claude_run.pk}.json"'
        return [piece async for piece in answer]

    pieces = async_to_sync(asked)()
    assert len(pieces) > 3
    assert len(json.loads(b"".join(pieces))["messages"]) == 500


class Counting:
    """The records of a world, and how many bytes of them were read."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.read_bytes = 0

    def find(self, wanted: Any) -> Any:
        return self._inner.find(wanted)

    def read(self, record: Any, start: int, limit: int) -> Any:
        found = self._inner.read(record, start, limit)
        self.read_bytes += len(found.data) if found else 0
        return found


class TestAHundredMegabytes:
    @pytest.mark.parametrize(
        ("query", "most"),
        [
            ("", 8_000_000),
            ("?start=50000000", 8_000_000),
            ("?before=50000000", 8_000_000),
            ("search?q=nowhere+at+all", 22_000_000),
            ("search?q=nowhere+at+all&before=60000000", 22_000_000),
            ("text?at=0", 1_000_000),
        ],
    )
    def test_are_never_read_whole(self, anna, home, world, claude_run, query, most):
        path = homes.claude_path(home, TREE)
        long_talk.write_large(path, TREE, 100_000_000)
        counting = Counting(world.lab.records)
        world.lab = dataclasses.replace(world.lab, records=counting)
        html = text(anna, claude_run, query)
        assert 0 < counting.read_bytes < most
        assert len(html) < 1_000_000
        assert ("The very last words." in html) == (query == "")

    def test_are_searched_piece_by_piece_to_the_beginning(self, anna, home, world, claude_run):
        path = homes.claude_path(home, TREE)
        long_talk.write_large(path, TREE, 40_000_000)
        html, asked = text(anna, claude_run, "search?q=Begin."), 1
        while "Search on" in html:
            html, asked = text(anna, claude_run, link(html, "Search on")), asked + 1
        assert "1 message " in html
        assert asked == 3


def ended(run: Run) -> None:
    """The run is settled."""
    now = run.started_at
    told = {"state": "ended", "outcome": "died", "ended_at": now, "settled_at": now}
    Run.objects.filter(pk=run.pk).update(**told)


class TestBadDays:
    @pytest.mark.long
    def test_of_a_settled_run_every_message_is_there_however_long(
        self, anna, home, looking, claude_run
    ):
        talk = long_talk.Claude(TREE)
        said = [talk.says(f"N{n}. " + "x" * 60_000) for n in range(85)]
        homes.write(homes.claude_path(home, TREE), said)
        ended(claude_run)
        every = [str(n) for n in range(85)]
        found = json.loads(streamed(anna, claude_run, "conversation.json"))["messages"]
        assert re.findall(r"N(\d+)\. ", "".join(one["text"] for one in found)) == every
        html = text(anna, claude_run, "?start=0")
        seen = re.findall(r"N(\d+)\. ", html)
        while 'rel="next"' in html:
            html = text(anna, claude_run, link(html, "Later"))
            seen += re.findall(r"N(\d+)\. ", html)
        assert seen == every
        seen, cursor = [], 0
        while cursor is not None:
            piece = looking.get(f"/runs/{claude_run.pk}/conversation?cursor={cursor}").json()
            seen += [one["text"].partition(".")[0] for one in piece["items"]]
            cursor = piece["next"]
        assert seen == [f"N{n}" for n in every]

    @pytest.mark.long
    def test_a_live_record_goes_on_behind_a_line_of_a_hundred_megabytes(
        self, anna, home, claude_run
    ):
        talk = long_talk.Claude(TREE)
        huge = b'{"type": "user", "x": "' + b"x" * 100_000_000 + b'"}\n'
        lines = [talk.says("Before."), huge, talk.says("After.")]
        homes.write(homes.claude_path(home, TREE), lines)
        html = text(anna, claude_run, "?start=0")
        while 'rel="next"' in html:
            html = text(anna, claude_run, link(html, "Later"))
        assert "After." in html

    def test_markdown_that_takes_long_is_shown_as_it_is(self, anna, home, claude_run):
        talk = long_talk.Claude(TREE)
        lines = [talk.says("Fine *words*."), *(talk.says("[" * 20_000) for _ in range(60))]
        homes.write(homes.claude_path(home, TREE), lines)
        html = text(anna, claude_run)
        assert "Fine <em>words</em>." in html
        assert html.count('<pre class="text"') == 60

    def test_so_is_markdown_of_underscores(self, anna, home, claude_run):
        talk = long_talk.Claude(TREE)
        homes.write(homes.claude_path(home, TREE), [talk.says("_a " * 6600) for _ in range(20)])
        assert text(anna, claude_run).count('<pre class="text"') == 17

    def test_a_line_of_very_many_calls_shows_some_and_counts_the_rest(
        self, anna, home, looking, claude_run
    ):
        talk = long_talk.Claude(TREE)
        line = talk.does("toolu_1", "Bash", command="x")
        [call] = line["message"]["content"]
        line["message"]["content"] = [{**call, "id": f"toolu_{n}"} for n in range(5000)]
        homes.write(homes.claude_path(home, TREE), [line] * 4)
        html = text(anna, claude_run)
        assert html.count('id="m') <= reading.MOST_MESSAGES
        assert f"{5000 - rules.MESSAGES:,} more" in html
        seen, cursor = [], 0
        while cursor is not None:
            piece = looking.get(f"/runs/{claude_run.pk}/conversation?cursor={cursor}").json()
            assert len(piece["items"]) <= reading.MOST_MESSAGES
            seen += [one["at"] for one in piece["items"]]
            cursor = piece["next"]
        assert len(set(seen)) == 4
        assert len(seen) == 4 * (rules.MESSAGES + 1)

    def test_a_line_that_is_still_written_is_shown_once_it_is_whole(self, anna, home, claude_run):
        path = homes.claude_path(home, TREE)
        talk = long_talk.Claude(TREE)
        homes.write(path, [talk.says("Whole."), json.dumps(talk.says("Half.")).encode()[:-9]])
        html = text(anna, claude_run)
        assert ("Whole." in html, "Half." in html) == (True, False)

    def test_a_record_that_ends_in_the_middle_of_a_line_shows_it_as_it_is(
        self, anna, home, claude_run
    ):
        talk = long_talk.Claude(TREE)
        raw = json.dumps(talk.says("Half.")).encode()[:-9]
        homes.write(homes.claude_path(home, TREE), [talk.says("Whole."), raw])
        ended(claude_run)
        html = text(anna, claude_run)
        assert "Whole." in html
        assert "Half." in html

    def test_a_record_that_was_rewritten_shorter_is_shown_at_its_end(self, anna, home, claude_run):
        talk_of(home, 200)
        before = link(text(anna, claude_run), "Earlier")
        talk_of(home, 2)
        html = text(anna, claude_run, before)
        assert "Word 1." in html
        assert "was rewritten" in html

    def test_a_place_inside_of_a_line_is_said_to_be_another(self, anna, home, claude_run):
        talk_of(home, 3)
        html = text(anna, claude_run, "?start=20")
        assert "was rewritten" in html
        assert "Word 0." in html

    def test_a_line_of_fifty_megabytes_is_named_and_not_read(self, anna, home, claude_run):
        talk = long_talk.Claude(TREE)
        part = {"type": "image", "source": {"media_type": "image/png", "data": "x" * 50_000_000}}
        lines = [talk.says("Before."), talk.gets("toolu_1", [part]), talk.says("After.")]
        homes.write(homes.claude_path(home, TREE), lines)
        html = text(anna, claude_run)
        assert "Before." in html
        assert "a line of 50.0 MB" in html
        assert "After." in html
        assert len(html) < 100_000
        assert "After." in text(anna, claude_run, "?start=0")

    def test_bytes_that_are_no_text_are_shown_as_far_as_they_are(self, anna, home, claude_run):
        raw = b'{"type": "user", "message": {"content": "odd \xff\xfe bytes"}}\n'
        homes.write(homes.claude_path(home, TREE), [homes.said(TREE), raw, b"\x00\x01\xff\n"])
        assert "odd \ufffd\ufffd bytes" in text(anna, claude_run)

    def test_an_entry_of_a_newer_version_is_a_folded_line(self, anna, home, claude_run):
        line = {"type": "hologram", "sessionId": homes.SESSION, "words": "so bright"}
        homes.write(homes.claude_path(home, TREE), [homes.said(TREE), line])
        html = text(anna, claude_run)
        assert "1 internal entry" in html
        assert "Unknown entry" not in html
        assert "hologram" in html
        assert "so bright" in html

    def test_a_pipe_in_its_place_holds_nobody_up(self, anna, home, claude_run):
        path = homes.claude_path(home, TREE)
        path.parent.mkdir(parents=True)
        os.mkfifo(path)
        assert "No record of a conversation yet" in text(anna, claude_run)
