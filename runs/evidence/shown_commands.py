"""What an agent's own record shows of the commands it ran, and its words about its issue. Pure.

Lines come one after the other, as the program wrote them. A command counts with the status that its
own result tells; the prompt, the issue and what tools printed are never words of the agent.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote, urlsplit

from runs.conversation import claude_messages, codex_messages, rules
from runs.conversation.rules import Kind, Message
from runs.core import lenient_json
from runs.core.lenient_json import Entry
from runs.core.states import Claim
from runs.transcript.record_rules import Form

NO_END = "no end of it is told"
LINE_BYTES = rules.LINE_BYTES
MOST_OPEN = 32  # commands without a result that are remembered
MOST_SHOWN = 20_000
_READERS: Mapping[Form, Callable[[Entry], Sequence[Message]]] = {
    Form.CLAUDE: claude_messages.messages,
    Form.CODEX: codex_messages.messages,
    Form.CODEX_PRINTED: codex_messages.printed,
}
_MARK = re.compile(rb"ISSUE_(?:NO_CHANGE|OBSOLETE)")
# All of one of these stand in a line that begins a command. A record is long, and few lines do.
_CALLS: Mapping[Form, Sequence[Sequence[bytes]]] = {
    Form.CLAUDE: [(b'"tool_use"', b'"command"')],
    Form.CODEX: [(b'"function_call"',), (b'"local_shell_call"',)],
    Form.CODEX_PRINTED: [(b'"command_execution"',)],
}
RATIONALE = 2000
MARKERS = {"ISSUE_NO_CHANGE": Claim.NO_CHANGE, "ISSUE_OBSOLETE": Claim.OBSOLETE}
_MARKER = re.compile(r" {0,3}(ISSUE_NO_CHANGE|ISSUE_OBSOLETE)\b[ \t]*(?::[ \t]*(.*))?$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_PLAIN = re.compile(r"[A-Za-z0-9_.-]+", re.ASCII)
_TOOLS = frozenset(
    ("Bash", "shell", "local_shell", "exec_command", "shell_command", "container.exec")
)


@dataclass(frozen=True, slots=True)
class Shown:
    """A line that the agent ran, as its record shows it.

    `folder` is where it began, empty for the worktree; `status` None and `hidden` say that its end
    is not known. `at` is when, as its record says it.
    """

    line: str
    status: int | None
    folder: str = ""
    at: str = ""
    hidden: str = ""


@dataclass(frozen=True, slots=True)
class Marker:
    """What an agent said of its issue on a line of its own."""

    claim: Claim
    rationale: str


@dataclass(frozen=True, slots=True)
class _Call:
    """A command that was begun."""

    line: str
    folder: str
    at: float
    hidden: str = ""


@dataclass(slots=True)
class Reader:
    """Reads one record. Of lines that were written at `after` or before nothing counts.

    `is_main`: it is of the agent itself, whose words count; else of one that it started. `last` is
    the newest time that was seen. With `words` only commands that hold one of them are shown.
    """

    form: Form
    is_main: bool = True
    after: float = 0.0
    last: float = 0.0
    words: tuple[str, ...] | None = None
    marker: Marker | None = None
    marked_at: float = 0.0
    shown: list[tuple[float, Shown]] = field(default_factory=list)
    _open: dict[str, _Call] = field(default_factory=dict)
    _plain: tuple[bytes, ...] | None = None

    def __post_init__(self) -> None:
        """Words that JSON writes as they are can be looked for before a line is read."""
        if self.words is not None and all(_PLAIN.fullmatch(word) for word in self.words):
            self._plain = tuple(word.encode() for word in self.words)

    def read(self, line: bytes) -> None:
        """One line, without its end; never raises, whatever it is."""
        if not self._may_tell(line):
            return
        entry = rules.parsed(line, _as_it_is)
        if entry is None:
            return
        at = _time(entry)
        if self.after and (at is None or at <= self.after):
            return
        at = max(self.last, at or 0.0)
        self.last = at
        try:
            for message in _READERS[self.form](entry):
                self._take(message, entry, at)
        except (RecursionError, ValueError, TypeError, OverflowError):
            return

    def ended(self) -> list[tuple[float, Shown]]:
        """All commands that were shown, those that have no result yet too."""
        open_ = [(one.at, _shown(one, None, NO_END)) for one in self._open.values()]
        return [*self.shown, *open_]

    def _may_tell(self, line: bytes) -> bool:
        if len(line) > LINE_BYTES:
            return False
        is_call = any(all(word in line for word in words) for words in _CALLS[self.form])
        if is_call and (self._plain is None or any(word in line for word in self._plain)):
            return True
        if self.is_main and _MARK.search(line):
            return True
        return any(call.encode() in line for call in self._open)

    def _take(self, message: Message, entry: Entry, at: float) -> None:
        if message.kind is Kind.CALL:
            self._begin(message, entry, at)
        elif message.kind is Kind.RESULT and message.call:
            self._end(message, entry, at)
        elif message.kind is Kind.WORDS and self.is_main and not message.parent:
            found = marker(message.text)
            if found is not None:
                self.marker, self.marked_at = found, at

    def _begin(self, message: Message, entry: Entry, at: float) -> None:
        line = _line(message.given)
        if message.tool not in _TOOLS or not line or not message.call:
            return
        if self.words is not None and not any(word in line for word in self.words):
            return
        hidden = ""
        if message.given.get("run_in_background") is True:
            hidden = "it was left running in the background"
        self._open[message.call] = _Call(line, _folder(message.given, entry), at, hidden)
        if len(self._open) > MOST_OPEN:
            oldest = self._open.pop(next(iter(self._open)))
            self._keep(oldest, None, NO_END)

    def _end(self, message: Message, entry: Entry, at: float) -> None:
        """The result of a command. One that says it goes on is no end."""
        call = self._open.get(message.call)
        if call is None or (self.form is Form.CODEX and message.exit_code is None):
            return
        del self._open[message.call]
        folder = local_path(lenient_json.at(entry, "payload", "item", "cwd"))
        call = replace(call, folder=folder or call.folder)
        status = _status(message)
        hidden = _hidden(entry) or ("its exit status is not told" if status is None else "")
        self._keep(call, None if call.hidden or hidden else status, hidden)

    def _keep(self, call: _Call, status: int | None, hidden: str) -> None:
        if len(self.shown) < MOST_SHOWN:
            self.shown.append((call.at, _shown(call, status, hidden)))


def marker(text: str) -> Marker | None:
    """The last marker on a line of its own in an agent's words; not in a quotation or a code block."""
    found, fence = None, ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        said = None if fence or mark else _MARKER.match(line.rstrip())
        if said:
            found = Marker(MARKERS[said[1]], (said[2] or "").strip()[:RATIONALE])
    return found


def _as_it_is(text: str) -> str:
    """What is stored of it is masked by whoever stores it."""
    return text


def _shown(call: _Call, status: int | None, hidden: str) -> Shown:
    at = datetime.fromtimestamp(call.at, UTC).isoformat() if call.at else ""
    return Shown(call.line, status, call.folder, at, call.hidden or hidden)


def _line(given: Mapping[str, Any]) -> str:
    """The line of a shell that a call asks for."""
    for name in ("command", "cmd"):
        found = given.get(name)
        if isinstance(found, str):
            return found
        if isinstance(found, list):
            return shlex.join(str(word) for word in found)
    return ""


def _folder(given: Mapping[str, Any], entry: Entry) -> str:
    """Where a command begins, as its call or its line says; empty for where the program began."""
    for found in (given.get("workdir"), given.get("working_directory"), entry.get("cwd")):
        if isinstance(found, str) and found not in ("", "."):
            return found
    return ""


def _status(message: Message) -> int | None:
    if message.exit_code is not None:
        return message.exit_code
    return 0 if message.is_failed is False else None


def _hidden(entry: Entry) -> str:
    """Why a result of Claude Code that is no error is not the end of a command that passed."""
    told = entry.get("toolUseResult", entry.get("tool_use_result"))
    if lenient_json.at(told, "backgroundTaskId"):
        return "it was left running in the background"
    if lenient_json.at(told, "interrupted") is True:
        return "it was interrupted"
    if lenient_json.at(told, "returnCodeInterpretation"):
        return "its exit status is not told"
    return ""


def _time(entry: Entry) -> float | None:
    found = rules.moment(entry.get("timestamp"))
    return found.timestamp() if found else None


def local_path(address: object) -> str:
    """The path in a file's address, as Codex tells folders; empty for anything else."""
    if not isinstance(address, str) or not address.startswith("file://"):
        return ""
    return unquote(urlsplit(address).path)
