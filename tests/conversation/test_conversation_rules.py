"""Lines of Claude Code and Codex as messages, calls with their results, and nothing lost or raised."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.conversation import claude_messages, codex_messages, items, rules
from runs.conversation.items import Item
from runs.conversation.reading import Line
from runs.conversation.rules import Kind, Message, Todo
from runs.core import masking
from runs.transcript.token_usage import Tokens
from tests.conversation import long_talk

TREE = "/srv/trees/demo-7"
READERS = [claude_messages.messages, codex_messages.messages, codex_messages.printed]


def messages(lines: Any, of: rules.Reader = claude_messages.messages) -> list[Line]:
    found, at = [], 0
    for line in lines:
        raw = json.dumps(line).encode() + b"\n"
        found.append(Line(at, len(raw), rules.read(raw, of, str)))
        at += len(raw)
    return found


def shown(lines: Any, of: rules.Reader = claude_messages.messages) -> list[Item]:
    return items.of(messages(lines, of))


def read(line: Any, of: rules.Reader = claude_messages.messages) -> Message:
    [message] = rules.read(json.dumps(line).encode(), of, str)
    return message


def test_a_conversation_of_claude_code_is_words_tools_and_one_line_for_what_is_its_own() -> None:
    kinds = [one.kind for one in shown(long_talk.claude(TREE, turns=1))]
    said = ["note", "prompt", "note", "thought", "words", "tool", "tool", "tool", "tool", "words"]
    assert kinds == [*said, "tool", "error", "break", "words"]


def test_a_conversation_of_codex_is_told_once_although_its_record_tells_things_twice() -> None:
    kinds = [one.kind for one in shown(long_talk.codex(TREE, turns=1), codex_messages.messages)]
    assert kinds == ["note", "prompt", "thought", "words", "tool", "tool", "tool", "break", "words"]


@pytest.mark.parametrize(
    ("lines", "of"),
    [
        (long_talk.claude(TREE, 1), claude_messages.messages),
        (long_talk.codex(TREE, 1), codex_messages.messages),
    ],
    ids=["claude", "codex"],
)
def test_a_command_has_its_output_and_status_and_an_edit_its_diff(lines: Any, of: Any) -> None:
    tools = [one.tool for one in shown(lines, of) if one.tool]
    ran = next(one for one in tools if rules.headline(one.call, TREE).startswith("python -m"))
    assert ran.result is not None
    assert (ran.result.exit_code, ran.result.is_failed) == (1, True)
    assert "1 failed, 41 passed" in ran.result.text
    [edit] = next(one.edits for one in tools if one.edits)
    assert edit.path.endswith("/parse.py")
    assert edit.hunks.startswith("@@ -5")


def test_the_words_of_an_edit_are_shown_until_its_result_comes_and_not_when_it_failed() -> None:
    talk = long_talk.Claude(TREE)
    asked, done = talk.edits("toolu_1", f"{TREE}/parse.py")
    refused = talk.gets("toolu_1", "String to replace not found", is_error=True)
    edits = [
        [len(one.tool.edits) for one in shown(lines) if one.tool]
        for lines in ([asked], [asked, done], [asked, refused])
    ]
    assert edits == [[1], [1], [0]]


def test_each_answer_tells_its_tokens_once() -> None:
    talk = long_talk.Claude(TREE)
    answer = talk.answer({"type": "text", "text": "One."}, {"type": "text", "text": "Two."})
    assert [one.tokens for one in shown([answer, {**answer}])] == [
        Tokens(1452, 1200, 85),
        None,
        None,
        None,
    ]


def test_tokens_that_codex_tells_afterwards_stand_at_what_they_paid_for() -> None:
    found = shown(long_talk.codex(TREE, turns=1), codex_messages.messages)
    assert found[-1].tokens == Tokens(8120, 6400, 96)


def test_what_a_subagent_printed_stands_under_its_call() -> None:
    talk = long_talk.Claude(TREE)
    lines = [
        talk.does("toolu_1", "Task", description="part"),
        {**talk.says("Inside."), "parent_tool_use_id": "toolu_1"},
        talk.gets("toolu_1", "Done."),
        talk.says("Outside."),
    ]
    [call, words] = shown(lines)
    assert [one.message.text for one in call.inner] == ["Inside."]
    assert words.message.text == "Outside."


def test_a_list_of_things_to_do_is_the_newest_one() -> None:
    talk = long_talk.Claude(TREE)

    def todo(state: str) -> Any:
        listed = [{"content": "Read", "status": state, "activeForm": "Reading"}]
        return talk.does("toolu_x", "TodoWrite", todos=listed)

    lines = messages([todo("pending"), todo("completed"), talk.says("Done.")])
    assert items.todos(lines) == (Todo("Read", "completed"),)
    assert items.todos(lines[2:]) is None


def test_a_list_is_also_kept_entry_by_entry() -> None:
    """As Claude Code 2.1.197 does: made, then changed under a number that the result told."""
    talk = long_talk.Claude(TREE)
    lines = [
        talk.does("toolu_1", "TaskCreate", subject="Read it"),
        talk.gets("toolu_1", "Task #1 created successfully: Read it"),
        talk.does("toolu_2", "TaskCreate", subject="Mend it"),
        talk.gets("toolu_2", "Task #2 created successfully: Mend it"),
        talk.does("toolu_3", "TaskUpdate", taskId="1", status="completed"),
    ]
    assert items.todos(messages(lines)) == (
        Todo("Read it", "completed"),
        Todo("Mend it", "pending"),
    )
    whole = talk.gets("toolu_4", "#1 [completed] Read it\n#2 [in_progress] Mend it")
    assert items.todos(messages([whole])) == (
        Todo("Read it", "completed"),
        Todo("Mend it", "in_progress"),
    )


def recorded() -> list[Any]:
    """What Claude Code 2.1.332 wrote of two pieces of work in the background, cut by hand."""
    path = Path(__file__).with_name("claude_background.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_what_the_newest_claude_code_keeps_for_itself_is_folded() -> None:
    found = shown(recorded())
    assert "unknown" not in {one.kind for one in found}
    kinds = [one.kind for one in found if one.kind != "note"]
    began = ["prompt", *["tool"] * 5, "words"]
    assert kinds == [*began, "finished", "words", "finished", "tool", "words"]
    of_requests = found[2]
    titles = {message.tool for _, _, message in of_requests.notes}
    assert titles >= {"atis-latch", "tools-used", "api-request", "api-request-blob"}


def test_it_says_when_each_piece_of_work_in_the_background_came_back() -> None:
    agent, command = [one.message for one in shown(recorded()) if one.kind == "finished"]
    assert (agent.tool, agent.text, agent.is_failed) == (
        'Agent "Look around" finished',
        "The part is done.",
        False,
    )
    assert f"{agent.at:%H:%M:%S}" == "13:47:43"
    assert command.tool == 'Background command "Wait there" completed (exit code 0)'
    assert (command.text, command.call) == ("", "toolu_000000000000000000000005")


@pytest.mark.parametrize(
    ("inside", "told"),
    [
        ("", ("", "", None)),
        ("<status>failed</status><summary>x", ("x", "", True)),
        ("<result>a <b>b</b>\nc</result><status>completed</status>", ("", "a <b>b</b>\nc", False)),
    ],
)
def test_a_notification_in_another_form_is_read_as_far_as_it_goes(inside: str, told: Any) -> None:
    message = read({"type": "user", "message": {"content": f"<task-notification>{inside}"}})
    assert (message.kind, message.tool, message.text, message.is_failed) == (Kind.FINISHED, *told)


def test_what_stands_beside_notifications_is_told_as_ever() -> None:
    def done(name: str) -> str:
        return f"<task-notification><summary>{name} is back</summary></task-notification>"

    text = f"{done('One')}\nGo on with it.\n{done('Two')} And then stop."
    line = {"type": "user", "message": {"content": text}}
    found = rules.read(json.dumps(line).encode(), claude_messages.messages, str)
    assert [(one.kind, one.text or one.tool) for one in found] == [
        (Kind.FINISHED, "One is back"),
        (Kind.PROMPT, "Go on with it."),
        (Kind.FINISHED, "Two is back"),
        (Kind.PROMPT, "And then stop."),
    ]


def test_the_summary_of_what_came_back_can_be_searched() -> None:
    message = read(
        {"type": "user", "message": {"content": "<task-notification><summary>It is back"}}
    )
    assert "It is back" in rules.plain([message])


def test_a_notification_that_is_printed_is_the_same() -> None:
    """As 2.1.332 prints them: an agent's summary is its report, a command's is about it."""
    line = {"type": "system", "subtype": "task_notification", "tool_use_id": "toolu_2"}
    done = {"status": "completed", "summary": "The part is done.", "summary_is_report": True}
    failed = {"status": "failed", "summary": "Background command failed (exit code 2)"}
    agent, command = read({**line, **done}), read({**line, **failed})
    assert (agent.kind, agent.text, agent.is_failed) == (Kind.FINISHED, "The part is done.", False)
    assert (command.tool, command.text, command.is_failed) == (failed["summary"], "", True)


def test_many_notifications_on_one_line_take_no_time() -> None:
    text = "<task-notification><result><summary>" * 40_000
    line = json.dumps({"type": "user", "message": {"content": text}}).encode()
    began = time.monotonic()
    assert len(rules.read(line, claude_messages.messages, str)) == rules.MESSAGES + 1
    assert time.monotonic() - began < 2


def test_a_change_of_the_list_that_was_refused_changes_nothing() -> None:
    """Claude Code 2.1.332 has no such list for its newest models, and refuses the tools."""
    assert items.todos(messages(recorded())) is None


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ({"type": "hologram", "x": 1}, Kind.NOTE),
        ({"type": "assistant", "message": {"content": [{"type": "smell"}]}}, Kind.UNKNOWN),
        ({"no": "type"}, Kind.UNKNOWN),
        ({"type": ["x"]}, Kind.UNKNOWN),
        ({"type": "assistant", "message": "x"}, Kind.UNKNOWN),
        ({"type": "api-request-shape"}, Kind.NOTE),
        ({"type": "system", "subtype": "never_heard_of"}, Kind.NOTE),
        ({"type": "system", "subtype": "compact_boundary"}, Kind.BREAK),
        ({"type": "user", "isMeta": True, "message": {"content": "x"}}, Kind.NOTE),
        ({"type": "user", "isCompactSummary": True, "message": {"content": "x"}}, Kind.BREAK),
    ],
)
def test_an_entry_of_another_version_is_shown_as_it_is(line: Any, kind: Kind) -> None:
    assert read(line).kind == kind


def test_a_line_that_is_no_json_is_shown_as_it_is() -> None:
    [message] = rules.read(b"\xff\xfe not \x1b[31mJSON\x1b[0m", claude_messages.messages, str)
    assert (message.kind, message.text) == (Kind.UNKNOWN, "\ufffd\ufffd not JSON")
    assert rules.read(b"\n", claude_messages.messages, str) == []


def test_a_secret_is_hidden_wherever_it_stands() -> None:
    secret = "sk-ant-Qw3rTy-0123456789"
    talk = long_talk.Claude(TREE)
    lines = [
        talk.says(f"It is {secret}."),
        talk.does("toolu_1", "Bash", command=f"echo {secret}", **{secret: [{"deep": secret}]}),
        {"type": "hologram", secret: secret},
    ]
    mask = masking.mask([secret])
    for line in lines:
        for message in rules.read(json.dumps(line).encode(), claude_messages.messages, mask):
            assert secret not in repr(message)
            assert "[hidden]" in repr(message)


def output(text: str) -> Message:
    """What one of Codex's tools gave back."""
    payload = {"type": "function_call_output", "call_id": "c1", "output": text}
    return read({"type": "response_item", "payload": payload}, codex_messages.messages)


def test_an_output_is_all_behind_its_head_also_where_it_looks_like_one() -> None:
    message = output("Exit code: 0\nWall time: 0.1 seconds\nOutput:\nExpected: 3\nOutput:\n4")
    assert (message.text, message.exit_code) == ("Expected: 3\nOutput:\n4", 0)


def test_an_output_with_many_lines_like_those_of_its_head_is_read_at_once() -> None:
    text = "Process exited: no\n" + "Warning: file has no header\n" * 60
    began = time.process_time()
    assert output(f"Exit code: 0\nOutput:\n{text}").text == text
    assert output(text).text == text
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("old", "new", "hunks"),
    [
        ("a\nb\nc\nd\ne", "a\nb\nC\nd\ne", "@@ -1,5 +1,5 @@\n a\n b\n-c\n+C\n d\n e\n"),
        ("a\nb\nc\nd", "a\nb\nc\nX\nd", "@@ -2,3 +2,4 @@\n b\n c\n+X\n d\n"),
        ("a\na\na", "a\na", "@@ -1,3 +1,2 @@\n a\n a\n-a\n"),
        ("", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"),
        ("a\nb\n", "", "@@ -1,2 +0,0 @@\n-a\n-b\n"),
    ],
)
def test_an_edit_is_all_between_the_same_beginning_and_end(old: str, new: str, hunks: str) -> None:
    assert rules.edit_of("a.py", old, new) == rules.Edit("a.py", hunks)
    assert rules.edit_of("a.py", old, old) is None


def test_a_long_edit_of_lines_that_are_much_alike_is_read_at_once() -> None:
    old, new = ("\n".join(f"{n % 100}\n{name}{n}" for n in range(2000)) for name in "ab")
    began = time.process_time()
    edit = rules.edit_of("a.py", old, new)
    assert time.process_time() - began < 5
    assert edit is not None
    assert (edit.removed, edit.added) == (3999, 3999)


def test_a_secret_is_hidden_that_only_stands_there_without_colours() -> None:
    talk, mask = long_talk.Claude(TREE), masking.mask(["sk-ant-Qw3rTy-0123456789"])
    for sign in ("\x1bM", "\x1b[31m", "\x1b]0;x\x07"):
        broken = f"sk-ant-{sign}Qw3rTy-0123456789"
        arguments = json.dumps({"command": broken})
        called = {"type": "function_call", "call_id": "c1", "arguments": arguments}
        for line, of in (
            (talk.says(broken), claude_messages.messages),
            (talk.does("toolu_1", "Bash", command=broken), claude_messages.messages),
            ({"type": "response_item", "payload": called}, codex_messages.messages),
        ):
            [message] = rules.read(json.dumps(line).encode(), of, mask)
            assert "Qw3rTy" not in repr(message), line
        [message] = rules.read(f"odd {broken}\n".encode(), claude_messages.messages, mask)
        assert "Qw3rTy" not in repr(message)


def test_two_calls_with_one_id_are_two_each_with_its_own_output() -> None:
    talk = long_talk.Claude(TREE)
    lines = []
    for number in (1, 2):
        lines += [
            talk.does("call_0", "Bash", command=f"echo {number}")
        ] * 2  # the second: told again
        lines += [talk.gets("call_0", f"out {number}")]
    tools = [one.tool for one in shown(lines) if one.tool]
    told = [(one.call.given["command"], one.result and one.result.text) for one in tools]
    assert told == [("echo 1", "out 1"), ("echo 2", "out 2")]


def test_searches_without_an_id_are_all_there_and_done() -> None:
    searches = [
        {"type": "web_search_call", "action": {"type": "search", "query": f"q{n}"}} for n in (1, 2)
    ]
    lines = [{"type": "response_item", "payload": one} for one in searches]
    found = shown(lines, codex_messages.messages)
    assert [one.message.given["query"] for one in found] == ["q1", "q2"]
    assert not any(one.is_running for one in found)


def under(line: Any, parent: str) -> Any:
    """The same as an agent's that this call started."""
    return {**line, "parent_tool_use_id": parent}


def test_what_the_agent_of_an_agent_did_stands_under_the_outermost_call() -> None:
    talk = long_talk.Claude(TREE)
    lines = [
        talk.does("toolu_1", "Task"),
        under(talk.does("toolu_2", "Task"), "toolu_1"),
        under(talk.says("Deep."), "toolu_2"),
        talk.gets("toolu_2", "two"),
        talk.gets("toolu_1", "one"),
    ]
    [outer] = shown(lines)
    assert [one.message.text or one.message.call for one in outer.inner] == ["toolu_2", "Deep."]
    assert not any(one.is_running for one in (outer, *outer.inner))


def test_calls_that_stand_under_each_other_are_shown_on_their_own() -> None:
    talk = long_talk.Claude(TREE)
    lines = [
        under(talk.does("toolu_1", "Task"), "toolu_1"),
        under(talk.does("toolu_2", "Task"), "toolu_3"),
        under(talk.does("toolu_3", "Task"), "toolu_2"),
        under(talk.says("Round."), "toolu_3"),
    ]
    assert [one.message.call or one.message.text for one in shown(lines)] == [
        *("toolu_1", "toolu_2", "toolu_3"),
        "Round.",
    ]


IDS = st.sampled_from(["", "a", "b", "c"])
KINDS = st.sampled_from([Kind.WORDS, Kind.CALL, Kind.CALL, Kind.RESULT, Kind.NOTE])


def told(found: list[Item]) -> list[str]:
    """The texts of all messages that these entries show."""
    texts: list[str] = []
    for one in found:
        texts += [note.text for _, _, note in one.notes] or [one.message.text]
        texts += [one.tool.result.text] if one.tool and one.tool.result else []
        texts += told(list(one.inner))
    return texts


@given(st.lists(st.tuples(KINDS, IDS, IDS), max_size=12))
def test_each_message_is_shown_once_whatever_the_ids_say(drawn: Any) -> None:
    made = [
        Message(kind, str(n), call=call, parent=parent, given={"n": n})
        for n, (kind, call, parent) in enumerate(drawn)
    ]
    texts = told(items.of([Line(n, 1, [one]) for n, one in enumerate(made)]))
    assert len(texts) == len(set(texts))
    missing = [one for one in made if one.text not in texts]
    # Of several results of one call, one is shown.
    assert {one.kind for one in missing} <= {Kind.RESULT}
    shown_results = {one.call for one in made if one.kind is Kind.RESULT and one.text in texts}
    assert {one.call for one in missing} <= shown_results


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "message",
                    "content",
                    "payload",
                    "item",
                    "input",
                    "text",
                    "usage",
                    "changes",
                    "toolUseResult",
                    "structuredPatch",
                    "lines",
                    "todos",
                    "arguments",
                    "id",
                    "name",
                ]
            )
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
TYPES = [
    "assistant",
    "user",
    "system",
    "result",
    "tool_use",
    "tool_result",
    "text",
    "response_item",
    "event_msg",
    "item_completed",
    "function_call",
    "function_call_output",
    "FileChange",
    "CommandExecution",
    "message",
    "item.completed",
    "command_execution",
    "todo_list",
    "compacted",
]


@pytest.mark.long
@given(JSON, st.sampled_from(TYPES), st.sampled_from(TYPES), st.sampled_from(READERS))
def test_nothing_that_an_agent_writes_raises_or_gets_lost(
    inner: Any, one: str, two: str, of: Any
) -> None:
    part = {"type": two, "content": inner, "input": inner, "changes": inner, "items": inner}
    entry = {
        "type": one,
        "message": {"content": [part, inner]},
        "payload": {**part, "item": part},
        "item": part,
        "toolUseResult": inner,
    }
    for line in (entry, inner):
        raw = json.dumps(line).encode()
        found = rules.read(raw, of, str)
        assert found or not raw.strip()
        lines = [Line(0, len(raw), found)]
        for item in items.of(lines):
            rules.headline(item.message, TREE)
            items.input_of(item.message)
        list(rules.plain(found))
        items.todos(lines)
