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

from runs.core.ports import Lab, SeamError
from runs.core.states import ValidationState
from runs.models import Fixer, Notice, Project, Run, Settings, Validation, WatchSession
from runs.overview import board
from runs.overview.board import Board, RunRow
from runs.validation import acts as validation_acts
from runs.validation import command_rules
from runs.validation import rules as validation_rules
from runs.validation.command_rules import Checked
from runs.watch import card as watch_card
from runs.watch.card import WatchCard
from runs.web import terminal

PAGE = 50
RUNS, ENTRIES, VALIDATIONS = 50, 50, 10
LAST_PAGE = 10_000
TAIL_BYTES = 8_000
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


@dataclass(frozen=True, slots=True)
class CommandRow:
    """One command of a validation, and what it gave by now."""

    text: str
    state: str
    tone: str
    why: str = ""
    seconds: float | None = None
    began_at: datetime | None = None
    output: str = ""


@dataclass(frozen=True, slots=True)
class ValidationCard:
    """A validation with its commands and fixers. *Nothing to check* has no colour: it proved nothing."""

    row: Validation
    commands: Sequence[CommandRow]
    fixers: Sequence[Fixer]

    @property
    def tone(self) -> str:
        return _TONES.get(ValidationState(self.row.state), "")


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
    """The newest sessions of a project for a push; None when it is gone. Six queries."""
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
        "is_unchecked": any(one.row.state == ValidationState.NOTHING for one in found.rows),
        "runs": _runs(project, row, now, settings, chosen),
        "entries": _entries(project, row, chosen),
    }


def sessions(project: Project, page: int) -> Mapping[str, Any]:
    """The sessions of a project, newest first. Two queries."""
    first = (page - 1) * PAGE
    rows: Any = watch_card.with_facts(WatchSession.objects.filter(project=project))
    found = list(rows.order_by("-pk")[first : first + PAGE + 1])
    settings = Settings.current()
    return {
        "project": project,
        "cards": [card(row, settings) for row in found[:PAGE]],
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


def validation_card(lab: Lab, row: Validation, fixers: Sequence[Fixer]) -> ValidationCard:
    """A validation as its page shows it: every command, those that did not run too."""
    results = row.current
    rows = [_command(lab, row, argv, result) for argv, result in zip(row.commands, results)]  # noqa: B905
    waits = "waits" if row.is_checking else "was not run"
    rest = row.commands[len(results) :]
    rows += [CommandRow(command_rules.shown(argv), waits, "") for argv in rest]
    return ValidationCard(row, rows, fixers)


def _validations(lab: Lab, session: WatchSession, chosen: Chosen) -> Part:
    rows = session.validations.order_by("-number")
    rows = rows.prefetch_related(Prefetch("fixers", Fixer.objects.order_by("number")))
    found = _cut(rows, VALIDATIONS, chosen, "validations")
    cards = [validation_card(lab, row, list(row.fixers.all())) for row in found.rows]
    return replace(found, rows=cards)


def _command(
    lab: Lab, row: Validation, argv: Sequence[str], result: Mapping[str, Any]
) -> CommandRow:
    text = command_rules.shown(argv)
    if result["is_running"] and row.is_running:
        began = datetime.fromisoformat(result["began_at"])
        shown = terminal.render(_printed(lab, row, result["name"]))
        return CommandRow(text, "running", "info", began_at=began, output=shown)
    names = ("status", "seconds", "tail", "signal", "is_over_time", "is_given_up", "trouble")
    why = validation_rules.why_failed(argv, Checked(**{name: result[name] for name in names}))
    state, tone = ("failed", "bad") if why else ("passed", "good")
    output = terminal.render(result["tail"]) if result["tail"] else ""
    return CommandRow(text, state, tone, why, result["seconds"], output=output)


def _printed(lab: Lab, row: Validation, name: str) -> str:
    """The end of what a command printed by now; could not tell is nothing."""
    try:
        found = validation_acts.printed(lab, row, name, -TAIL_BYTES, TAIL_BYTES)
    except SeamError:
        return ""
    return found.data.decode(errors="replace") if found is not None else ""


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
