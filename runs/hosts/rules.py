"""The rules of more than one machine: how a host stands, and which one takes a start. Pure.

Every host computes the same answer from the same facts and takes only what falls to itself. Where
two know different facts for a moment, the constraints of the database decide.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

SILENT_INTERVALS = 3
NEAR_SLOTS = 1
LEAST_DISK_MB = 1024
MOST_LABELS = 20
_LABEL = re.compile(r"[a-z0-9][a-z0-9._:-]{0,38}[a-z0-9]|[a-z0-9]")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")


class HostState(StrEnum):
    """Whether a host takes work. *Unknown*: it is silent, so nobody can tell how its runs do."""

    WORKING = "working"
    DRAINING = "draining"
    UNKNOWN = "unknown"
    REMOVED = "removed"


class News(StrEnum):
    """What is to be told of a host: nothing, that it fell silent over its runs, that it is back."""

    NONE = ""
    SILENT = "silent"
    BACK = "back"


class Miss(StrEnum):
    """Why no host takes a start now."""

    NONE = ""
    NO_LABEL = "no_label"
    NO_CLONE = "no_clone"
    CLOSED = "closed"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class HostFacts:
    """One host as the database knows it. `warm` are the projects (slugs) whose clone it has."""

    name: str
    state: HostState = HostState.WORKING
    labels: frozenset[str] = frozenset()
    free: int = 1
    is_behind: bool = False
    has_disk: bool = True
    warm: frozenset[str] = frozenset()

    @property
    def closed(self) -> str:
        """Why it takes nothing new whatever it is asked for; empty when it does."""
        if self.state is HostState.UNKNOWN:
            return "is silent"
        if self.state is not HostState.WORKING:
            return f"is {self.state}"
        if self.is_behind:
            return "runs an older version"
        return "" if self.has_disk else "has no disk space left"


@dataclass(frozen=True, slots=True)
class Job:
    """What a project asks of a host. `is_bound`: its origin is kept by labsite, on one host alone."""

    slug: str = ""
    label: str = ""
    is_bound: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """The host that takes a start; without one, why not. A full one is named: it gives the answer."""

    host: str = ""
    miss: Miss = Miss.NONE
    text: str = ""

    @property
    def is_known(self) -> bool:
        """Whether one host gives the answer: it starts it, or says that all are full."""
        return self.miss in (Miss.NONE, Miss.FULL)


def state_of(
    *, is_draining: bool, is_removed: bool, silent_for: timedelta | None, interval: timedelta
) -> HostState:
    """How a host stands. `silent_for` is None when it was never heard."""
    if is_removed:
        return HostState.REMOVED
    if silent_for is None or silent_for > SILENT_INTERVALS * interval:
        return HostState.UNKNOWN
    return HostState.DRAINING if is_draining else HostState.WORKING


def news(state: HostState, runs: int, *, was_told: bool) -> News:
    """What people are told of a host that has `runs`: each silence once, and the end of it once."""
    if state is HostState.UNKNOWN:
        return News.SILENT if runs and not was_told else News.NONE
    return News.BACK if was_told else News.NONE


def place(job: Job, hosts: Sequence[HostFacts]) -> Place:
    """Which host takes the next start of a project.

    The one with the most free slots; among those that have at most one slot less, one that has
    the project's clone already; then the first by name.
    """
    known = [one for one in hosts if one.state is not HostState.REMOVED]
    fit = [one for one in known if not job.label or job.label in one.labels]
    if not fit:
        return Place(miss=Miss.NO_LABEL, text=f"No host has the label {job.label}.")
    # The only host there is says itself what is the matter with its repository.
    is_alone = len(known) == 1
    fit = [one for one in fit if is_alone or not job.is_bound or job.slug in one.warm]
    if not fit:
        text = "No host with what this project asks for has its repository, which labsite keeps itself."
        return Place(miss=Miss.NO_CLONE, text=text)
    ready = [one for one in fit if not one.closed]
    if not ready:
        why = ", ".join(f"{one.name} {one.closed}" for one in sorted(fit, key=lambda one: one.name))
        return Place(miss=Miss.CLOSED, text=f"{_no_host(job)} takes new runs: {why}.")
    best = max(one.free for one in ready)
    if best < 1:
        answers = min(ready, key=lambda one: one.name)
        text = f"{_no_host(job)} is free. A slot is free again when a run ends or is stopped."
        return Place(answers.name, Miss.FULL, text)
    near = [one for one in ready if one.free >= max(1, best - NEAR_SLOTS)]
    chosen = min(near, key=lambda one: (job.slug not in one.warm, -one.free, one.name))
    return Place(chosen.name)


def _no_host(job: Job) -> str:
    return f"No host with label {job.label}" if job.label else "No host"


def is_behind(version: str, versions: Iterable[str]) -> bool:
    """Whether a host runs an older version than another one; one that told none counts as old."""
    newest = max((numbers(one) for one in versions), default=())
    return numbers(version) < newest


def numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version such as "0.1.0+92", in order; empty for none."""
    return tuple(int(one) for one in re.findall(r"\d+", version))


def unfit_name(name: str) -> str:
    """Why this cannot be the name of a host; empty when it can."""
    if _NAME.fullmatch(name):
        return ""
    return "Use letters, digits, dots, dashes and underscores, at most 64, a letter or digit at both ends."


def read_labels(words: Iterable[str]) -> tuple[str, ...]:
    """Labels as they are kept: small letters, each once, in order. Raises ValueError with a sentence."""
    found = sorted({word.strip().lower() for word in words if word.strip()})
    for word in found:
        if not _LABEL.fullmatch(word):
            raise ValueError(
                f"{word[:60]!r} cannot be a label: use letters, digits, dots, dashes, colons and "
                "underscores, at most 40."
            )
    if len(found) > MOST_LABELS:
        raise ValueError(f"Use at most {MOST_LABELS} labels.")
    return tuple(found)


def share(active: int, weight: int) -> float:
    """How much of its share a project has: the one that has least goes first."""
    return active / max(1, weight)


def rank(labels: Collection[str], order: Sequence[str]) -> int:
    """An issue's place by its labels: the lower, the earlier.

    The labels of `order` come first, in that order; without an order `priority:high` comes first.
    `priority:low` comes after everything else.
    """
    known = {label.casefold() for label in labels}
    order = order or ("priority:high",)
    for number, label in enumerate(order):
        if label in known:
            return number
    return len(order) + ("priority:low" in known)
