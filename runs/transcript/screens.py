"""What the screen of a session says: plain text, its last line about the work, a digest of it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from runs.core import lenient_json

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
    r"|[·✢✳✶✻✽✺∗*] (?:\w+(?:….*| for (?:\d+[hms] ?)+(?:· .*)?)|Waiting for \d+ background .*)|(?:[•◦] )?Work(?:ing \(|ed for <?\d).*|⎿\s+(?:Running|Waiting)….*"
    r"|(?:… )?\+ ?\d+ lines \(.*|Press Ctrl-C again to exit|[●◐◑◒◓○◯] \w+ · /effort|.*⚠ \d+ warnings?"
    r"|Resume this session with:|claude --resume \S+|(?:.* )?codex resume \S+|To reconnect, run:"
    r"|Disconnected from this task\..*|Stop the current turn: .*|Token usage(?: so far)?: .*"
    r"|tmux focus-events off .*|Context left until auto-compact: .*|.*/model to .*"
)
_BLOCK = re.compile(r"[●•⎿└■] *(?P<text>.*)")
_FAILS = re.compile(r"(?:API )?Error\b.*", re.IGNORECASE)
_DEAD_PANE = "Pane is dead"


def tidy(screen: str) -> str:
    """A screen without tmux's own "Pane is dead" line, the empty end, letters 0, which no database
    keeps, and marks that turn or hide the text around them."""
    text = screen.rstrip()
    at = text.rfind(_DEAD_PANE)
    if at >= 0 and "\n" not in text[at:]:
        text = text[:at]
    return lenient_json.without_marks(text.replace("\0", "")).rstrip()


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
