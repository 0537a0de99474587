"""What the pages on watch sessions show: one session, and the list of all of a project."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.db.models import Prefetch, QuerySet
from django.http import Http404, QueryDict
from django.urls import reverse

from runs.core.ports import Lab
from runs.core.states import TrackerKind, ValidationState
from runs.models import Fixer, Notice, Project, Run, Settings, Validation, WatchSession
from runs.overview import board
from runs.overview.board import Board, RunRow
from runs.watch import card as watch_card
from runs.watch import command_rows
from runs.watch.card import WatchCard
from runs.watch.command_rows import CommandRow

PAGE = 50
RUNS, ENTRIES, VALIDATIONS = 50, 50, 10
LAST_PAGE = 10_000
EARLIER = 20  # run levels whose commands tell how long they usually take
_TONES = {
    ValidationState.RUNNING: "info",
    ValidationState.PASSED: "good",
    ValidationState.FAILED: "bad",
}


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which page of each part of a session is shown, as its address says."""

    runs: int = 1
    entries: int = 1
    validations: int = 1

    @classmethod
    def read(cls, sent: QueryDict) -> Chosen:
        """What makes no sense is as if it were not there."""
        return cls(
            **{name: _number(sent.get(name, "")) for name in ("runs", "entries", "validations")}
        )

    @property
    def is_newest(self) -> bool:
        return self == Chosen()

    def at(self, name: str, page: int) -> str:
        """The address of another page of one part; the others stay where they are."""
        pages = {**asdict(self), name: page}
        return f"?{urlencode({key: n for key, n in pages.items() if n > 1})}#watch-{name}"


@dataclass(frozen=True, slots=True)
class Part:
    """One page of one part of a session, with the ways to what is newer and older."""

    rows: Sequence[Any]
    page: int
    previous: str = ""
    next: str = ""


Passes = Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class ValidationCard:
    """A validation with its commands and fixers. *Nothing to check* has no colour: it proved nothing."""

    row: Validation
    commands: Sequence[CommandRow]
    fixers: Sequence[Fixer]

    @property
    def tone(self) -> str:
        return _TONES.get(ValidationState(self.row.state), "")

    @property
    def name(self) -> str:
        return f"validation-{self.row.number}"

    @property
    def worktree(self) -> str:
        """Where its clean worktree was kept; empty where it was removed."""
        kept: Mapping[str, Any] = self.row.artifacts
        return kept.get("worktree_path") or "" if kept.get("worktree_state") == "kept" else ""


NEWEST = Chosen()


@dataclass(frozen=True, slots=True)
class WatchPage:
    """The page of a session, or of all of a project, as a push shows it: the newest of each part."""

    board: Board
    facts: Mapping[str, Any]


def project_of(project_id: int) -> Project:
    """A project without its secrets, else 404."""
    found = Project.objects.filter(pk=project_id).defer("token", "hook_secret").first()
    if found is None:
        raise Http404("There is no such project.")
    return found


def pushed(lab: Lab, session_id: int) -> WatchPage | None:
    """The page of a session for a push; None when it went with its project. Eleven queries."""
    rows = WatchSession.objects.filter(pk=session_id)
    picture = board.load(lab)
    project = picture.by_id.get(rows.values_list("project_id", flat=True).first() or 0)
    return WatchPage(picture, session(lab, project, session_id)) if project is not None else None


def pushed_list(lab: Lab, project_id: int) -> WatchPage | None:
    """The newest sessions of a project for a push; None when it is gone. Seven queries."""
    picture = board.load(lab)
    project = picture.by_id.get(project_id)
    return WatchPage(picture, sessions(project, 1)) if project is not None else None


def session_of(project: Project, session_id: int) -> Any:
    """A session of a project with the number of its active runs, else 404."""
    rows = watch_card.with_facts(WatchSession.objects.filter(pk=session_id, project=project))
    found = rows.first()
    if found is None:
        raise Http404("There is no such watch session.")
    found.project = project
    return found


def card(session: Any, settings: Settings | None = None) -> WatchCard:
    """A session that was read with its active runs."""
    return WatchCard(session, session.active, settings or Settings.current())


def session(
    lab: Lab, project: Project, session_id: int, chosen: Chosen = NEWEST
) -> Mapping[str, Any]:
    """Everything that the page of a session shows. Seven queries."""
    settings = Settings.current()
    row = session_of(project, session_id)
    now = lab.now()
    found = _validations(lab, row, chosen)
    return {
        "project": project,
        "watch": card(row, settings),
        "session": row,
        "now": now,
        "validations": found,
        "issue_is_here": project.tracker == TrackerKind.BUILTIN,
        "is_unchecked": any(one.row.state == ValidationState.NOTHING for one in found.rows),
        "runs": _runs(project, row, now, settings, chosen),
        "entries": _entries(project, row, chosen),
    }


def sessions(project: Project, page: int) -> Mapping[str, Any]:
    """The sessions of a project, newest first, and its switch. Three queries."""
    first = (page - 1) * PAGE
    rows: Any = watch_card.with_facts(WatchSession.objects.filter(project=project))
    found = list(rows.order_by("-pk")[first : first + PAGE + 1])
    settings = Settings.current()
    return {
        "project": project,
        "cards": [card(row, settings) for row in found[:PAGE]],
        "watch": watch_card.of(project, settings, ()),
        "chosen": {"page": page},
        "previous": f"?page={page - 1}" if page > 1 else "",
        "next": f"?page={page + 1}" if len(found) > PAGE else "",
        "is_open": page == 1 and bool(found) and found[0].is_open,
    }


def seen(session: Any) -> str:
    """Changes with a session and with what its running validation prints. One query."""
    marks = Validation.objects.filter(session=session).values_list("pk", "state", "step", "results")
    told = repr((session.pk, session.version, session.active, list(marks[:VALIDATIONS])))
    return hashlib.sha256(told.encode()).hexdigest()[:20]


def validation_card(
    lab: Lab, row: Validation, fixers: Sequence[Fixer], passes: Passes | None = None
) -> ValidationCard:
    """A validation as its page shows it: every command, those that did not run too."""
    frame = command_rows.Frame(
        is_running=row.is_running,
        is_waiting=row.is_checking,
        printed=command_rows.of_lab(lab, row),
        link=lambda name: reverse("runs:validation-output", args=[row.pk, name]),
        passes=passes or {},
    )
    wanted = row.spec["commands"] if row.spec else [{"argv": argv} for argv in row.commands]
    return ValidationCard(row, command_rows.rows(wanted, row.current, frame), fixers)


def earlier_passes(rows: Sequence[Validation]) -> Mapping[int, Passes]:
    """How long commands took in run levels of the project before each of these. One query, if any."""
    levels = [row for row in rows if row.spec]
    if not levels:
        return {}
    before = Validation.objects.filter(project=levels[0].project_id, spec__isnull=False)
    before = before.filter(pk__lt=max(row.pk for row in levels)).order_by("-pk")
    found = list(before.values_list("pk", "results")[:EARLIER])
    return {
        row.pk: command_rows.passes(results for pk, results in found if pk < row.pk)
        for row in levels
    }


def _validations(lab: Lab, session: WatchSession, chosen: Chosen) -> Part:
    rows = session.validations.order_by("-number")
    rows = rows.prefetch_related(Prefetch("fixers", Fixer.objects.order_by("number")))
    found = _cut(rows, VALIDATIONS, chosen, "validations")
    earlier = earlier_passes(found.rows)
    cards = [
        validation_card(lab, row, list(row.fixers.all()), earlier.get(row.pk)) for row in found.rows
    ]
    return replace(found, rows=cards)


def _runs(
    project: Project, session: WatchSession, now: datetime, settings: Settings, chosen: Chosen
) -> Part:
    rows = Run.objects.light().filter(watch=session).order_by("-pk")
    found = _cut(rows, RUNS, chosen, "runs")
    for run in found.rows:
        run.project = project
    budget = project.budget(settings)
    return replace(found, rows=[RunRow(run, run.spent(now, budget)) for run in found.rows])


def _entries(project: Project, session: WatchSession, chosen: Chosen) -> Part:
    """What was told of the session, its validations and its runs, newest first."""
    found = _cut(Notice.objects.filter(watch=session), ENTRIES, chosen, "entries")
    for notice in found.rows:
        notice.project = project
    return found


def _cut(rows: QuerySet[Any], size: int, chosen: Chosen, name: str) -> Part:
    """The chosen page of these rows. One query."""
    page = getattr(chosen, name)
    first = (page - 1) * size
    found = list(rows[first : first + size + 1])
    return Part(
        found[:size],
        page,
        previous=chosen.at(name, page - 1) if page > 1 else "",
        next=chosen.at(name, page + 1) if len(found) > size else "",
    )


def _number(text: str) -> int:
    return (
        max(1, min(LAST_PAGE, int(text)))
        if text.isascii() and text.isdigit() and len(text) < 9
        else 1
    )
