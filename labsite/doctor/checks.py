"""Runs checks side by side, each kept apart from the others and bounded in time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from labsite.doctor.lines import Line, wrong
from labsite.redact import hide_secrets

Look = Callable[[], Iterable[Line]]


@dataclass(frozen=True, slots=True)
class Check:
    """A named look at one part of the product or its machine."""

    name: str
    look: Look


def run(checks: Sequence[Check], seconds: float) -> list[Line]:
    """The lines of all checks, in their order, after at most `seconds`.

    A check that raises, or that is not done in time, becomes one line that says so; it never
    keeps the others from being told. Credentials in URLs are hidden in every line.
    """
    answers: list[list[Line] | None] = [None] * len(checks)
    threads = [
        threading.Thread(target=_answer, args=(check, answers, place), daemon=True)
        for place, check in enumerate(checks)
    ]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return [
        _without_secrets(line)
        for check, lines in zip(checks, answers, strict=True)
        for line in (lines if lines is not None else [_late(check, seconds)])
    ]


def _answer(check: Check, answers: list[list[Line] | None], place: int) -> None:
    """Whatever a broken product makes a check raise is told as its result."""
    try:
        answers[place] = list(check.look())
    except Exception as error:
        text = f"could not be checked: {type(error).__name__}: {error}"
        answers[place] = [wrong(check.name, text, "Put right what it says, then check again.")]


def _late(check: Check, seconds: float) -> Line:
    return wrong(
        check.name,
        f"gave no answer within {seconds:g} seconds",
        "Something hangs: a network disk, or a program that waits. Look at it by hand.",
    )


def _without_secrets(line: Line) -> Line:
    return Line(line.check, line.status, hide_secrets(line.seen), hide_secrets(line.advice))
