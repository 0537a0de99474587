"""The feed of a task group: what each pass repeats is told once between two things that happened."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from runs.core.states import NoticeKind
from runs.models import Notice

REPEATED = (NoticeKind.MONITOR_PROGRESS, NoticeKind.MONITOR_WARNED)


@dataclass(slots=True)
class Told:
    """An entry, and how often in a row it was said: the newest of its like."""

    notice: Notice
    times: int = 1


def folded(notices: Iterable[Notice]) -> Sequence[Told]:
    """Entries, newest first. Equal words of passes that changed nothing come as one."""
    found: list[Told] = []
    passing: dict[str, Told] = {}
    for notice in notices:
        is_repeated = notice.kind in REPEATED
        if not is_repeated:
            passing = {}
        elif notice.text in passing:
            passing[notice.text].times += 1
            continue
        told = Told(notice)
        if is_repeated:
            passing[notice.text] = told
        found.append(told)
    return found
