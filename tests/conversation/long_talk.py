"""A long conversation of Claude Code and one of Codex, as their records hold them, made by a script."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.fakes import START
from tests.world import agent_homes as homes
from tests.world.agent_homes import SESSION, THREAD, Line

__all__ = ["SESSION", "THREAD"]

MODULE = '''def parse(line):
    """One line of the log as its parts."""
    stamp, _, rest = line.partition(" ")
    level, _, text = rest.partition(": ")
    return {"at": stamp, "level": level, "text": text}


def parse_all(lines):
    return [parse(line) for line in lines if line.strip()]
'''
PLAN = "I'll read the parser first, then write a failing test for the empty line, then mend it."
DONE = """The parser now skips lines without a level.

- `parse` returns `None` for a line that has none
- `parse_all` leaves those out
- two tests cover it: `test_a_line_without_a_level` and `test_an_empty_file`

```python
assert parse("2026-11-21") is None
```

The pull request is open."""
PYTEST = """============================= test session starts ==============================
collected 42 items

tests/test_parse.py .......F..................................           [100%]

=================================== FAILURES ===================================
_________________________ test_a_line_without_a_level __________________________

    def test_a_line_without_a_level():
>       assert parse("2026-11-21") is None
E       AssertionError: assert {'at': '2026-11-21', 'level': '', 'text': ''} is None

tests/test_parse.py:12: AssertionError
========================= 1 failed, 41 passed in 0.31s ========================="""
SAID = "the parser reads one line of a log and gives back its parts as they stand there"


class Claude:
    """Lines in the order in which the program writes them; each is some seconds after the last."""

    def __init__(self, worktree: str, session: str = SESSION, **frame: Any) -> None:
        self._tree, self._session, self._frame = worktree, session, frame
        self._numbers = itertools.count(1)
        self._now = START

    def line(self, kind: str, **fields: Any) -> Line:
        self._now += timedelta(seconds=4)
        number = next(self._numbers)
        told = {"sessionId": self._session, "cwd": self._tree, "uuid": f"u-{number}"}
        stamp = self._now.isoformat().replace("+00:00", "Z")
        return {"type": kind, "timestamp": stamp, **told, **self._frame, **fields}

    def prompt(self, text: str) -> Line:
        return self.line("user", message={"role": "user", "content": text})

    def answer(self, *parts: Line, into: int = 1200, out: int = 85) -> Line:
        usage = {
            "input_tokens": 12,
            "cache_read_input_tokens": into,
            "cache_creation_input_tokens": 240,
            "output_tokens": out,
        }
        ident = f"msg_{next(self._numbers):06}"
        message = {"id": ident, "role": "assistant", "content": list(parts), "usage": usage}
        return self.line("assistant", message=message)

    def says(self, text: str, **usage: int) -> Line:
        return self.answer({"type": "text", "text": text}, **usage)

    def thinks(self, text: str) -> Line:
        return self.answer({"type": "thinking", "thinking": text, "signature": "x"})

    def does(self, call: str, tool: str, **given: Any) -> Line:
        return self.answer({"type": "tool_use", "id": call, "name": tool, "input": given})

    def gets(self, call: str, text: Any, told: Any = None, is_error: bool = False) -> Line:
        part = {"type": "tool_result", "tool_use_id": call, "content": text, "is_error": is_error}
        more = {"toolUseResult": told} if told is not None else {}
        return self.line("user", message={"role": "user", "content": [part]}, **more)

    def edits(self, call: str, path: str) -> list[Line]:
        old, new = (
            '    return {"at": stamp, "level": level}',
            "    if not level:\n        return None",
        )
        lines = ["-" + old, *(f"+{one}" for one in new.split("\n")), " ", " "]
        hunk = {"oldStart": 5, "oldLines": 3, "newStart": 5, "newLines": 4, "lines": lines}
        done = {"filePath": path, "structuredPatch": [hunk]}
        asked = self.does(call, "Edit", file_path=path, old_string=old, new_string=new)
        return [asked, self.gets(call, f"The file {path} has been updated.", done)]


def claude(worktree: str, turns: int = 6) -> Iterator[Line]:
    """A session: task, list, reading, a failing test, an edit, a subagent, an error, an end."""
    talk = Claude(worktree)
    path = f"{worktree}/parse.py"
    yield {"type": "permission-mode", "permissionMode": "bypassPermissions", "sessionId": SESSION}
    yield talk.prompt(
        "You work unattended on issue 7 of this repository.\n\n1. Read issue 7.\n2. Mend it."
    )
    yield talk.line("attachment", attachment={"type": "skill_listing", "content": "- verify: …"})
    yield talk.thinks("The issue says that a line without a level breaks the page. Let me look.")
    yield talk.says(PLAN)
    todos = ["Read the parser", "Write a failing test", "Mend it", "Open the pull request"]
    states = ["completed", "completed", "in_progress", "pending"]
    listed = [
        {"content": t, "status": s, "activeForm": t} for t, s in zip(todos, states, strict=True)
    ]
    yield talk.does("toolu_todo", "TodoWrite", todos=listed)
    yield talk.gets("toolu_todo", "Todos have been modified successfully.")
    for turn in range(turns):
        call = f"toolu_{turn:04}"
        yield talk.does(f"{call}a", "Read", file_path=path)
        yield talk.gets(
            f"{call}a", "\n".join(f"{n}\t{t}" for n, t in enumerate(MODULE.split("\n"), 1))
        )
        yield talk.does(
            f"{call}b", "Bash", command="python -m pytest -q tests/", description="Run the tests"
        )
        yield talk.gets(f"{call}b", f"Exit code 1\n{PYTEST}", is_error=True)
        yield from talk.edits(f"{call}c", path)
        yield talk.says(f"Turn {turn + 1}: " + SAID + ".")
    yield talk.does(
        "toolu_agent", "Agent", description="Look for other callers", prompt="Find callers."
    )
    done = {"agentId": homes.AGENT, "content": [{"type": "text", "text": "Two callers."}]}
    yield talk.gets("toolu_agent", [{"type": "text", "text": "Two callers."}], done)
    yield talk.line("system", subtype="api_error", error={"message": "529 Overloaded"}, content="")
    meta = {"trigger": "auto", "preTokens": 168_000}
    yield talk.line("system", subtype="compact_boundary", content="Compacted", compactMetadata=meta)
    yield talk.says(DONE, into=88_400, out=412)


def claude_agent(worktree: str) -> Iterator[Line]:
    """What the subagent of that session did."""
    talk = Claude(worktree, isSidechain=True, agentId=homes.AGENT)
    yield talk.prompt("Find callers.")
    yield talk.does("toolu_sub", "Bash", command="grep -rn parse_all .", description="Search")
    yield talk.gets("toolu_sub", "./page.py:8: parse_all(log)\n./cli.py:3: parse_all(sys.stdin)")
    yield talk.says("Two callers.")


def write_claude(home: Path, worktree: str, turns: int = 6) -> Path:
    """That session, with its subagent, where Claude Code would keep it."""
    main = homes.write(homes.claude_path(home, worktree), claude(worktree, turns))
    agent = homes.write(homes.agent_path(main), claude_agent(worktree))
    meta = {"toolUseId": "toolu_agent", "agentType": "Explore", "description": "Look"}
    homes.write(agent.with_name(f"agent-{homes.AGENT}.meta.json"), [meta])
    return main


def codex(worktree: str, turns: int = 6) -> Iterator[Line]:
    """The same kind of work as Codex writes it."""
    moments = itertools.count(1)

    def line(kind: str, **payload: Any) -> Line:
        stamp = (START + timedelta(seconds=3 * next(moments))).isoformat()
        return {"timestamp": stamp, "type": kind, "payload": payload}

    def item(kind: str, **payload: Any) -> Line:
        return line("response_item", type=kind, **payload)

    def text(role: str, words: str) -> Line:
        part = "output_text" if role == "assistant" else "input_text"
        return item("message", role=role, content=[{"type": part, "text": words}])

    used = {"input_tokens": 8_120, "cached_input_tokens": 6_400, "output_tokens": 96}
    yield homes.codex_meta(worktree)
    yield line("turn_context", cwd=worktree, model="gpt-6.1-sol")
    yield text("user", "<environment_context>\n  <cwd>here</cwd>\n</environment_context>")
    yield text("user", "You work unattended on issue 7 of this repository.")
    yield item("reasoning", summary=[{"type": "summary_text", "text": "**Reading** the parser"}])
    yield text("assistant", PLAN)
    plan = [
        {"step": "Read the parser", "status": "completed"},
        {"step": "Mend it", "status": "in_progress"},
    ]
    yield item(
        "function_call", name="update_plan", call_id="plan_1", arguments=json.dumps({"plan": plan})
    )
    yield item("function_call_output", call_id="plan_1", output="Plan updated")
    for turn in range(turns):
        call = f"call_{turn}"
        given = json.dumps({"cmd": "python -m pytest -q", "yield_time_ms": 30000})
        yield item("function_call", name="exec_command", call_id=f"{call}a", arguments=given)
        yield line("token_usage_record", usage=used)
        ran = {
            "type": "CommandExecution",
            "id": f"{call}a",
            "aggregated_output": PYTEST,
            "exit_code": 1,
        }
        yield line("event_msg", type="item_completed", item=ran)
        out = f"Wall time: 0.3 seconds\nProcess exited with code 1\nOutput:\n{PYTEST}"
        yield item("function_call_output", call_id=f"{call}a", output=out)
        patch = "*** Begin Patch\n*** Update File: parse.py\n@@\n-old\n+new\n*** End Patch"
        yield item("custom_tool_call", name="apply_patch", call_id=f"{call}b", input=patch)
        change = {
            f"{worktree}/parse.py": {"type": "update", "unified_diff": "@@ -5 +5 @@\n-old\n+new\n"}
        }
        done = {"type": "FileChange", "id": f"{call}b", "changes": change, "status": "completed"}
        yield line("event_msg", type="item_completed", item=done)
        yield item("custom_tool_call_output", call_id=f"{call}b", output="Success.")
    yield line("compacted", message="We mended the parser so far.", replacement_history=[])
    yield text("assistant", DONE)
    yield line("token_usage_record", usage=used)


def write_codex(home: Path, worktree: str, turns: int = 6) -> Path:
    """That session where Codex would keep it."""
    return homes.write(homes.codex_path(home, THREAD), codex(worktree, turns))


def write_large(path: Path, worktree: str, size: int) -> None:
    """A record of Claude Code of about this size: what tools gave back is most of it."""
    talk, words = Claude(worktree), SAID.split()
    path.parent.mkdir(parents=True, exist_ok=True)
    block = b""
    for number in range(40):
        output = " ".join(words[(n * n + number) % len(words)] for n in range(1500))
        lines = [
            talk.says(f"Step {number}: {SAID}."),
            talk.does(f"toolu_{number}", "Bash", command=f"cat part-{number}.log"),
            talk.gets(f"toolu_{number}", output),
        ]
        block += b"".join(json.dumps(one).encode() + b"\n" for one in lines)
    with path.open("wb") as file:
        file.write(json.dumps(talk.prompt("Begin.")).encode() + b"\n")
        while file.tell() < size:
            file.write(block)
        file.write(json.dumps(talk.says("The very last words.")).encode() + b"\n")
