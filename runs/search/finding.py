"""Looks for what was typed: a fixed number of queries, whatever there is of everything."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Model, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, Left

from runs.core import writing
from runs.core.states import ProjectState, TrackerKind
from runs.models import Project, Run
from runs.search import places, rules
from runs.search.places import Reader
from runs.search.rules import Asked, Hit, Kind
from runs.web import words
from trackers.builtin.models import Issue, PullRequest

RECENT = 20_000  # rows whose words are looked through, the newest; keys are found in all
SOME = 12  # of each question: more than are shown of a kind
TITLE = 160
MOST_PROJECTS = 500

_PROJECT = (
    *("name", "slug", "state", "tracker", "tracker_root", "ready_label", "is_auto", "streak"),
    *("last_opened_at", "queue_seen", "pulls_seen"),
)


@dataclass(frozen=True, slots=True)
class _Place:
    """The projects by their numbers and by their trackers' roots."""

    projects: Mapping[int, Project]
    by_root: Mapping[int, Project]
    asked: Asked
    named: Mapping[str, Collection[int]]

    def words(self, column: str, of_project: str) -> Q:
        """Rows whose column holds every term but those that name their project, and at least one."""
        found, holds, is_named = Q(), Q(), False
        for term in self.asked.sought:
            own = _holds(column, term)
            roots = self.roots(self.named[term]) if of_project == "root_id" else self.named[term]
            found &= own | Q(**{f"{of_project}__in": roots}) if roots else own
            holds |= own
            is_named |= bool(roots)
        return found & holds if is_named else found

    def roots(self, projects: Collection[int]) -> list[int]:
        return [root for root, project in self.by_root.items() if project.pk in projects]

    @property
    def mine(self) -> Collection[int]:
        """The projects that all terms beside a number name; all where there is none such."""
        each = [frozenset(self.named.get(term, ())) for term in self.asked.beside]
        return reduce(and_, each) or self.projects if each else self.projects


def find(typed: str, reader: Reader) -> Sequence[Hit]:
    """What fits, the best first, of what this reader may see. At most ten queries.

    With nothing typed: projects and pages, in one query.
    """
    asked = rules.read(typed)
    rows = Project.objects.only(*_PROJECT).recent_first()[:MOST_PROJECTS]
    projects = {project.pk: project for project in rows}
    hits = [*places.pages(reader)]
    for project in projects.values():
        hits += places.of_project(project, reader)
    if not asked.text:
        return rules.ranked((hit for hit in hits if _is_plain(hit)), asked)
    roots = {int(p.tracker_root): p for p in projects.values() if _is_kept_here(p)}
    names = [(pk, project.name) for pk, project in projects.items()]
    place = _Place(projects, roots, asked, rules.named(asked, names))
    hits += [
        *_issues(place, reader),
        *_runs(place, reader),
        *_pulls(place),
        *_remote(place, reader),
    ]
    if reader.is_admin:
        hits += _people(asked)
    return rules.ranked(hits, asked)


def _is_plain(hit: Hit) -> bool:
    """Whether somebody who has typed nothing yet is offered it."""
    return hit.kind is Kind.PROJECT or (hit.kind is Kind.PAGE and not hit.ids)


def _is_kept_here(project: Project) -> bool:
    return project.tracker == TrackerKind.BUILTIN and project.tracker_root.isdigit()


def _issues(place: _Place, reader: Reader) -> Iterator[Hit]:
    rows = Issue.objects.annotate(cut=Left("title", TITLE))
    shown = rows.only("number", "root_id", "is_open", "updated_at")
    found = _found(shown, Kind.ISSUE, place)
    ready = _startable(place, found) if reader.can_act else set()
    for row in found:
        project = place.by_root[row.root_id]
        note = project.name if row.is_open else f"{project.name}, closed"
        yield Hit(
            Kind.ISSUE, _line(row.cut), "issue", (project.pk, row.number), key=str(row.number),
            words=f"#{row.number}", note=note, at=row.updated_at,
        )  # fmt: skip
        if row.pk in ready:
            yield places.start(project, str(row.number), _line(row.cut))


def _startable(place: _Place, found: Sequence[Any]) -> set[int]:
    """Those of the issues that carry the ready label and that no run works on. Two queries."""
    ready = [
        row
        for row in found
        if row.is_open and place.by_root[row.root_id].state == ProjectState.READY
    ]
    labels = Issue.labels.through.objects.filter(issue__in=[row.pk for row in ready])
    carried = set(labels.values_list("issue_id", "label__name"))
    keys = {str(row.number) for row in ready}
    projects = {place.by_root[row.root_id].pk for row in ready}
    active = Run.objects.active().filter(project__in=projects, issue_key__in=keys).order_by()
    taken = set(active.values_list("project_id", "issue_key"))
    return {
        row.pk
        for row in ready
        if (row.pk, place.by_root[row.root_id].ready_label) in carried
        and (place.by_root[row.root_id].pk, str(row.number)) not in taken
    }


def _runs(place: _Place, reader: Reader) -> Iterator[Hit]:
    rows = Run.objects.only(
        *("project_id", "issue_key", "issue_title", "branch", "state", "outcome"),
        *("requested_at", "ended_at", "checking_at"),
    )
    asked, found = place.asked, list[Run]()
    if asked.number is not None:
        exact = Q(pk=asked.number)
        if asked.kind is not Kind.RUN:
            exact |= Q(issue_key=str(asked.number), project_id__in=place.mine)
        found += rows.filter(exact).order_by("-pk")[:SOME]
    likes = place.words("issue_title", "project_id")
    if len(asked.terms) == 1:
        likes |= _holds("branch", asked.text)
    found += _recent(rows, Run).filter(likes).order_by("-pk")[:SOME]
    for run in {run.pk: run for run in found if run.project_id in place.projects}.values():
        yield from _of_run(run, place.projects[run.project_id].name, reader)


def _of_run(run: Run, project: str, reader: Reader) -> Iterator[Hit]:
    how = words.outcome_words(run.outcome) if run.outcome else str(run.state)
    title = f"Run {run.pk}: {_line(run.issue_title)}"
    yield Hit(
        Kind.RUN, title, "run", (run.pk,), key=str(run.pk),
        words=f"{_line(run.issue_title)} #{run.issue_key} {run.issue_key} {run.branch}",
        note=f"{project}, issue {run.issue_key}, {how}", at=run.ended_at or run.requested_at,
    )  # fmt: skip
    if reader.can_act and run.is_active:
        yield places.stop(run, project)


def _pulls(place: _Place) -> Iterator[Hit]:
    rows = PullRequest.objects.annotate(cut=Left("title", TITLE))
    shown = rows.only("number", "root_id", "head", "state", "updated_at")
    for row in _found(shown, Kind.PULL, place):
        project = place.by_root[row.root_id]
        yield Hit(
            Kind.PULL, _line(row.cut), "pull", (project.pk, row.number), key=str(row.number),
            words=f"#{row.number} {row.head} pr", note=f"{project.name}, {row.state}",
            at=row.updated_at,
        )  # fmt: skip


def _remote(place: _Place, reader: Reader) -> Iterator[Hit]:
    """What trackers elsewhere told last: ready issues, which can be started, and open pull requests."""
    for project in place.projects.values():
        for key, title, url in project.queue_seen:
            yield Hit(
                Kind.ISSUE, _line(str(title)), address=str(url), key=str(key), words=f"#{key}",
                note=project.name,
            )  # fmt: skip
            if reader.can_act:
                yield places.start(project, str(key), _line(str(title)))
        for number, head, title, url in project.pulls_seen:
            yield Hit(
                Kind.PULL, _line(str(title)), address=str(url), key=str(number),
                words=f"#{number} {head} pr", note=f"{project.name}, open",
            )  # fmt: skip


def _people(asked: Asked) -> Iterator[Hit]:
    rows = User.objects.filter(*[_holds("username", term) for term in asked.terms]).order_by(
        "username"
    )
    for pk, name, is_active in rows.values_list("pk", "username", "is_active")[:SOME]:
        note = "" if is_active else "deactivated"
        yield Hit(Kind.PERSON, name, "person", (pk,), words="people user", note=note)


def _found(rows: QuerySet[Any], kind: Kind, place: _Place) -> Sequence[Any]:
    """Rows of a tracker by their number, then the newest by their words. At most two queries."""
    found: list[Any] = []
    asked = place.asked
    if asked.number is not None and asked.kind in (None, kind):
        mine = rows.filter(number=asked.number, root_id__in=place.roots(place.mine))
        found += mine.order_by("-updated_at")[:SOME]
    # Of all trackers, the newest first: asked for those of projects, SQLite sorts all that fit.
    likes = place.words("title", "root_id")
    found += _recent(rows, rows.model).filter(likes).order_by("-pk")[:SOME]
    return list({row.pk: row for row in found if row.root_id in place.by_root}.values())


def _recent(rows: QuerySet[Any], model: type[Model]) -> QuerySet[Any]:
    """The newest rows: words are looked for one row after the other, so that has an end."""
    newest = model._default_manager.order_by("-pk").values("pk")[:1]
    return rows.filter(pk__gt=Coalesce(Subquery(newest), Value(0)) - RECENT)


def _holds(column: str, term: str) -> Q:
    return Q(**{f"{column}__icontains": term.removeprefix("#")})


def _line(text: str) -> str:
    return writing.one_line(text, TITLE)
