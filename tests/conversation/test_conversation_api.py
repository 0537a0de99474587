"""A conversation over the API: pieces of a record by their places."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.api.program import Program, denied
from tests.conversation import long_talk
from tests.conversation.conftest import TREE
from tests.world import agent_homes as homes

pytestmark = pytest.mark.django_db


def words(answer: Any) -> list[str]:
    return [one["text"] for one in answer["items"]]


def test_it_is_read_from_its_beginning_to_its_end_and_what_comes_later(looking, home, claude_run):
    talk = long_talk.Claude(TREE)
    lines = [talk.says(f"N{n}.") for n in range(120)]
    path = homes.write(homes.claude_path(home, TREE), lines)
    address = f"/runs/{claude_run.pk}/conversation"
    found, cursor = [], 0
    while cursor is not None:
        answer = looking.get(f"{address}?cursor={cursor}").json()
        found += words(answer)
        cursor = answer["next"]
    assert found == [f"N{n}." for n in range(120)]
    end = answer["end"]
    assert end == answer["size"] == path.stat().st_size
    homes.write(path, [*lines, talk.says("Later.")])
    assert words(looking.get(f"{address}?cursor={end}").json()) == ["Later."]


def test_it_goes_back_from_a_place(looking, home, claude_run):
    talk = long_talk.Claude(TREE)
    homes.write(homes.claude_path(home, TREE), [talk.says(f"N{n}.") for n in range(9)])
    address = f"/runs/{claude_run.pk}/conversation"
    end = looking.get(f"{address}?limit=9").json()["end"]
    first = looking.get(f"{address}?before={end}&limit=4").json()
    assert words(first) == ["N5.", "N6.", "N7.", "N8."]
    second = looking.get(f"{address}?before={first['start']}&limit=4").json()
    assert words(second) == ["N1.", "N2.", "N3.", "N4."]


def test_each_kind_has_its_fields(looking, home, claude_run):
    long_talk.write_claude(home, TREE, turns=1)
    address = f"/runs/{claude_run.pk}/conversation?limit=200"
    answer = looking.get(address).json()
    by_kind = {one["kind"]: one for one in answer["items"]}
    edit = next(one for one in answer["items"] if one["kind"] == "result" and one["edits"])
    assert edit["edits"][0]["path"] == f"{TREE}/parse.py"
    assert by_kind["words"]["tokens"] == {"in": 88652, "cached": 88400, "out": 412}
    ran = next(one for one in answer["items"] if one["exit_code"] == 1)
    assert ran["is_failed"] is True
    agent = next(one for one in answer["records"] if one["agent"])
    own = looking.get(f"{address}&record={agent['name']}").json()
    assert "Find callers." in words(own)
    assert {one["parent"] for one in own["items"]} == {"toolu_agent"}


def test_there_is_none_of_another_program_and_no_other_record(
    looking: Program,
    home: Any,
    claude_run: Any,
) -> None:
    denied(looking.get(f"/runs/{claude_run.pk}/conversation"), 404, "not_found")
    homes.write(homes.claude_path(home, TREE), [homes.said(TREE)])
    assert looking.get(f"/runs/{claude_run.pk}/conversation").status_code == 200
    other = looking.get(f"/runs/{claude_run.pk}/conversation?record=other")
    denied(other, 404, "not_found")


def test_what_no_answer_can_carry_is_left_out(looking, home, claude_run):
    raw = (
        b'{"type": "assistant", "sessionId": "%s", "message": {"content": [{"type": "tool_use",'
        b' "id": "toolu_1", "name": "Odd", "input": {"a\\ud800": "\\udfff", "n": 1e999, "m": NaN}}]}}\n'
    ) % homes.SESSION.encode()
    homes.write(homes.claude_path(home, TREE), [raw])
    [one] = looking.get(f"/runs/{claude_run.pk}/conversation").json()["items"]
    assert one["input"] == {"a?": "?", "n": None, "m": None}


def test_neither_is_it_in_what_codex_has_as_a_text(anna, looking, home, codex_run):
    arguments = '{"command": "x \\ud800", "n": NaN, "m": 1e999}'
    called = {"type": "function_call", "name": "shell", "call_id": "c1", "arguments": arguments}
    line = {"type": "response_item", "payload": called}
    homes.write(homes.codex_path(home), [homes.codex_meta(TREE), line])
    given = {"command": "x ?", "n": None, "m": None}
    *_, one = looking.get(f"/runs/{codex_run.pk}/conversation").json()["items"]
    assert one["input"] == given
    answer = anna.get(f"/runs/{codex_run.pk}/conversation/conversation.json")
    assert json.loads(b"".join(answer.streaming_content))["messages"][-1]["input"] == given


def test_nor_where_half_a_letter_comes_to_light_only_in_the_text(anna, looking, home, codex_run):
    called = b'"type":"function_call","call_id":"c1","arguments":"{\\"k\\":\\"\\u005cudfff\\"}"'
    raw = b'{"type":"response_item","payload":{%s}}\n' % called.replace(b"\\\\u", b"\\u")
    homes.write(homes.codex_path(home), [homes.codex_meta(TREE), raw])
    *_, one = looking.get(f"/runs/{codex_run.pk}/conversation").json()["items"]
    assert one["input"] == {"k": "?"}
    answer = anna.get(f"/runs/{codex_run.pk}/conversation/conversation.json")
    sent = b"".join(piece.encode() if isinstance(piece, str) else piece for piece in answer)
    assert json.loads(sent)["messages"][-1]["input"] == {"k": "?"}


@pytest.mark.parametrize("is_ascii", [True, False])
@pytest.mark.parametrize("mark", ["\u202e", "\u2066", "\u061c", "\ufff9", "\U000e0041"])
def test_no_mark_that_turns_text_is_in_any_answer(anna, looking, home, claude_run, mark, is_ascii):
    talk = long_talk.Claude(TREE)
    line = talk.does("toolu_1", "Bash", command=f"echo {mark}txt.exe", **{f"a{mark}": [mark]})
    raw = json.dumps(line, ensure_ascii=is_ascii).encode() + b"\n"
    homes.write(homes.claude_path(home, TREE), [raw])
    [one] = looking.get(f"/runs/{claude_run.pk}/conversation").json()["items"]
    assert one["input"] == {"command": "echo txt.exe", "a": [""]}
    answer = anna.get(f"/runs/{claude_run.pk}/conversation/conversation.json")
    assert mark.encode() not in b"".join(answer.streaming_content)
