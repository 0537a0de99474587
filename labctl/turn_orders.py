"""What labsite answers to the runner of a loop, read as it comes over the wire. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

LONGEST_WAIT = 86_400.0


class Unusable(ValueError):
    """The answer is none that the runner knows."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Run one agent process. `argv` has the prompt already, unless it goes to standard input.

    `notes` are those of the loop that this one goes on with, for the first turn of a runner, and
    whenever `notes_number` has grown.
    """

    generation: int
    number: int
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    prompt: str = ""
    has_stdin: bool = False
    role: str = ""
    output: str = ""
    limit_seconds: float | None = None
    wait_seconds: float = 0.0
    why: str = ""
    notes: str = field(default="", repr=False)
    notes_number: int = 0


@dataclass(frozen=True, slots=True)
class Wait:
    """Run nothing, and ask again after a while."""

    seconds: float
    why: str


@dataclass(frozen=True, slots=True)
class Restart:
    """Begin again as a new process, with the state of a new generation."""

    generation: int


@dataclass(frozen=True, slots=True)
class End:
    """The loop has ended."""

    code: int
    reason: str


Step = Turn | Wait | Restart | End


def read(answer: Mapping[str, Any]) -> Step:
    """The step that an answer asks for. Raises Unusable."""
    reader = _READERS.get(_text(answer, "do"))
    if reader is None:
        raise Unusable("it names no step")
    return reader(answer)


def _turn(answer: Mapping[str, Any]) -> Turn:
    argv, env = answer.get("argv"), answer.get("env") or {}
    if not isinstance(argv, list) or not argv or not all(isinstance(word, str) for word in argv):
        raise Unusable("argv is no list of words")
    if not isinstance(env, dict) or not all(isinstance(value, str) for value in env.values()):
        raise Unusable("env holds something else than texts")
    limit = answer.get("limit_seconds")
    return Turn(
        generation=_count(answer, "generation"),
        number=_count(answer, "number"),
        argv=tuple(argv),
        env=env,
        prompt=_text(answer, "prompt"),
        has_stdin=answer.get("has_stdin") is True,
        role=_text(answer, "role"),
        output=_text(answer, "output"),
        limit_seconds=None if limit is None else _seconds(answer, "limit_seconds"),
        wait_seconds=_seconds(answer, "wait_seconds"),
        why=_text(answer, "why"),
        notes=_text(answer, "notes"),
        notes_number=_count(answer, "notes_number", least=0),
    )


def _wait(answer: Mapping[str, Any]) -> Wait:
    return Wait(min(_seconds(answer, "seconds"), LONGEST_WAIT), _text(answer, "why"))


def _restart(answer: Mapping[str, Any]) -> Restart:
    return Restart(_count(answer, "generation"))


def _end(answer: Mapping[str, Any]) -> End:
    code = answer.get("code")
    if type(code) is not int or not 0 <= code <= 255:
        raise Unusable("code is no exit status")
    return End(code, _text(answer, "reason"))


_READERS: Mapping[str, Callable[[Mapping[str, Any]], Step]] = {
    "turn": _turn,
    "wait": _wait,
    "restart": _restart,
    "end": _end,
}


def _text(answer: Mapping[str, Any], name: str) -> str:
    value = answer.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Unusable(f"{name} is no text")
    return value


def _count(answer: Mapping[str, Any], name: str, least: int = 1) -> int:
    value = answer.get(name, 0)
    if type(value) is not int or value < least:
        raise Unusable(f"{name} is no number from {least}")
    return value


def _seconds(answer: Mapping[str, Any], name: str) -> float:
    value = answer.get(name, 0.0)
    if type(value) not in (int, float) or not math.isfinite(value) or value < 0:
        raise Unusable(f"{name} is no number of seconds")
    return float(value)
