"""Asks the outside what it shows now. Errors become "could not tell"; nothing is changed here."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from runs.core.history_ports import Change
from runs.core.ports import Lab, SeamError
from runs.models import Run

SCROLLBACK_LINES = 1000
PATCH_BYTES = 400_000
INPUT_BOX_LINES = 12
LOOKED_AT = 200

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_FRAME = " \t│┃|"
_RULE = re.compile(r"[╭╰]?[─━═-]{20,}[╮╯]?")
# The prompt of Codex, and how far above the end of its screen that stands at most.
_PROMPT, _PROMPT_LINES = "›", 6
# What Claude Code and Codex draw around what the agent does: modes, keys, spinners, counters, how
# much is folded away, and how to come back after they have ended.
_FOOTER = re.compile(
    r"⏵⏵ .*|.*\(shift\+tab to cycle\).*|.*\besc to interrupt\b.*|[?] for shortcuts.*|← for agents.*"
    r"|[·✢✳✶✻✽✺∗*] \w+(?:….*| for (?:\d+[hms] ?)+)|(?:[•◦] )?Work(?:ing \(|ed for <?\d).*|⎿\s+(?:Running|Waiting)….*"
    r"|(?:… )?\+ ?\d+ lines \(.*|Press Ctrl-C again to exit|● \w+ · /effort|.*⚠ \d+ warnings?"
    r"|Resume this session with:|claude --resume \S+|(?:.* )?codex resume \S+|To reconnect, run:"
    r"|Disconnected from this task\..*|Stop the current turn: .*|Token usage(?: so far)?: .*"
    r"|tmux focus-events off .*|Context left until auto-compact: .*|.*/model to .*"
)
_BLOCK = re.compile(r"[●•⎿└■] *(?P<text>.*)")
_FAILS = re.compile(r"(?:API )?Error\b.*", re.IGNORECASE)
_DEAD_PANE = "Pane is dead"


@dataclass(frozen=True, slots=True)
class Screen:
    """A session's screen with its colours, and when it was seen. `live`: it is being read from tmux."""

    text: str
    as_of: datetime | None
    live: bool
    error: str = ""


@dataclass(frozen=True, slots=True)
class Changes:
    """What a run changed since its fork point. `error` says why that could not be told."""

    files: Sequence[Change] = ()
    patch: str = ""
    is_cut: bool = False
    error: str = ""

    @property
    def added(self) -> int:
        return sum(change.added or 0 for change in self.files)

    @property
    def uncommitted(self) -> int:
        """How many of the files are not committed, at least not all of them."""
        return sum(change.is_open for change in self.files)

    @property
    def removed(self) -> int:
        return sum(change.removed or 0 for change in self.files)


def terminal(lab: Lab, run: Run) -> Screen:
    """The agent's output: live while the session exists, else the last words that were kept."""
    if run.settled_at is not None or not run.did_start:
        words = run.last_words or run.last_line  # a session killed from outside leaves no screen
        return Screen(words, run.exited_at or run.ended_at, live=False)
    try:
        text = lab.sessions.screens([run.session], SCROLLBACK_LINES).get(run.session)
    except SeamError as error:
        return Screen(run.last_words, run.last_output_at, live=False, error=str(error))
    if text is None:
        return Screen(run.last_words, run.exited_at, live=False)
    return Screen(tidy(text), lab.now(), live=run.is_active)


def changes(lab: Lab, run: Run) -> Changes:
    """What the run changed: its worktree, or once that is gone the commits of its branch."""
    if not run.fork_point:
        return Changes()
    path, head = Path(run.worktree), ""
    if not run.worktree or not path.is_dir():
        path, head = run.project.repo(lab.paths), run.head
        if not head or head == run.fork_point:
            return Changes()
    try:
        files = lab.repos.changes(path, run.fork_point, head)
        patch = lab.repos.patch(path, run.fork_point, PATCH_BYTES, head)
    except SeamError as error:
        return Changes(error=str(error))
    return Changes(files, patch, is_cut=_is_cut(files, patch))


def _is_cut(files: Sequence[Change], patch: str) -> bool:
    """Whether tracked files are missing from the patch because it was too long."""
    return patch.count("\ndiff --git ") + patch.startswith("diff --git ") < sum(
        f.kind != "?" for f in files
    )


def tidy(screen: str) -> str:
    """A screen without tmux's own "Pane is dead" line, the empty end, and letters 0, which no
    database keeps."""
    text = screen.rstrip()
    at = text.rfind(_DEAD_PANE)
    if at >= 0 and "\n" not in text[at:]:
        text = text[:at]
    return text.replace("\0", "").rstrip()


def plain(screen: str) -> str:
    """A screen without colours and other control sequences."""
    return _ESCAPES.sub("", screen)


def mark(screen: str) -> str:
    """A digest of what a screen shows, in 16 letters."""
    return hashlib.sha256(plain(tidy(screen)).encode("utf-8", "replace")).hexdigest()[:16]


def last_line(screen: str) -> str:
    """The last line that says something about the work.

    Not the input box that agents draw at the end, nor what they put around it. A block that begins
    with an error is told by that line and not by the end of what follows.
    """
    end = tidy(screen).rsplit("\n", LOOKED_AT)[-LOOKED_AT:]
    shown = [line.strip(_FRAME) for line in plain("\n".join(end)).splitlines()]
    lines = _above_input([line for line in shown if line])
    found = next((number for number in reversed(range(len(lines))) if _tells(lines[number])), None)
    if found is None:
        return ""
    for line in reversed(lines[: found + 1]):
        head = _BLOCK.fullmatch(line)
        if head is not None and not _FOOTER.fullmatch(line):
            fails = _FAILS.fullmatch(head["text"])
            return (fails[0] if fails else lines[found])[:300]
    return lines[found][:300]


def _tells(line: str) -> bool:
    return any(map(str.isalnum, line)) and not _FOOTER.fullmatch(line)


def _above_input(lines: Sequence[str]) -> Sequence[str]:
    """The lines above the box or the prompt in which a person would write."""
    rules = [number for number, line in enumerate(lines) if _RULE.fullmatch(line)]
    if len(rules) >= 2 and rules[-2] >= len(lines) - INPUT_BOX_LINES:
        return lines[: rules[-2]]
    last = range(max(1, len(lines) - _PROMPT_LINES), len(lines))
    prompt = next((number for number in reversed(last) if lines[number].startswith(_PROMPT)), None)
    return lines if prompt is None else lines[:prompt]
