"""The story of a run as its page shows it: facts are read in pieces of bounded size, the rules tell."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q

from runs.core.ports import Lab
from runs.core.states import NoticeKind, TrackerKind
from runs.models import Notice, Run
from runs.run_pages import record_facts, story_rules
from runs.run_pages.story_rules import Event, Fact, Leads, Source, Story
from runs.transcript import own_record
from runs.web import addresses, words
from trackers.base import PullState
from trackers.builtin.models import PullRequest

MOST_TOLD = 200  # entries of the timeline that may be told; of more the newest
MOST_STEPS = 60  # others that are shown in folds
MOST_COUNTED = 20_000
MOST_RECORDS = 3
OPEN_STEPS = 3  # the newest ones of a run that goes on stand in the open
TEXT_CHARACTERS = 220
_ROW = ("pk", "at", "kind", "text", "by", "outcome")
_URLS = {
    Leads.TERMINAL: "runs:run-terminal",
    Leads.CHANGES: "runs:run-changes",
    Leads.CHECKS: "runs:run-checks",
    Leads.CONVERSATION: "runs:conversation",
}


@dataclass(frozen=True, slots=True)
class Line:
    """An event, or a step in a fold, as a template wants it."""

    key: str
    name: str
    tone: str
    text: str
    by: str
    at: datetime
    url: str = ""
    times: int = 1
    after: str = ""
    steps: Sequence[Line] = ()
    hidden: int = 0

    @property
    def unread(self) -> int:
        """How many of the folded steps are not listed in the fold."""
        return self.hidden - len(self.steps)


def of(lab: Lab, run: Run) -> Mapping[str, Any]:
    """Lines of the story in order, and the steps after its last event. Three queries, one more for
    its pull request on the built-in tracker."""
    told = story_rules.tell([*_timeline(run), *of_conversation(lab, run), *_merged(run)])
    steps = [_step(run, one) for one in told.rest if one.text]
    shown = steps[-OPEN_STEPS:] if run.is_active else []
    folded = steps[: len(steps) - len(shown)]
    hidden = told.hidden - len(shown)
    rest = Line("rest", "", "", "", "", lab.now(), steps=folded, hidden=hidden) if hidden else None
    lines = [_line(run, one) for one in told.events]
    return {"lines": lines, "rest": rest, "newest": shown, "mark": _mark(told)}


def mark(lab: Lab, run: Run) -> Sequence[object]:
    """Changes with what the conversation adds to the story, which no timeline tells."""
    return _mark(story_rules.tell(of_conversation(lab, run)))


def _mark(told: Story) -> Sequence[object]:
    found = [event for event in told.events if event.fact.source is not Source.TIMELINE]
    return [(event.name, event.fact.place) for event in found]


def _timeline(run: Run) -> Iterator[Fact]:
    """What the timeline tells: what may be an event, the newest other steps, and how many more."""
    rows = Notice.objects.filter(run=run)
    is_told = Q(kind__in=story_rules.TOLD) | Q(kind=NoticeKind.RUN_STEP) & (
        Q(text__startswith=story_rules.COMMIT) | Q(text__startswith=story_rules.BRANCH)
    )
    told = list(rows.filter(is_told).order_by("-pk").values_list(*_ROW)[:MOST_TOLD])
    steps = list(rows.exclude(is_told).order_by("-pk").values_list(*_ROW)[:MOST_STEPS])
    yield from (_fact(row) for row in (*told, *steps))
    if len(steps) < MOST_STEPS and len(told) < MOST_TOLD:
        return
    known = {row[0] for row in (*told, *steps)}
    ids = rows.order_by("-pk").values_list("pk", flat=True)[:MOST_COUNTED]
    yield from _unread([one for one in reversed(ids) if one not in known], told[::-1])


def _unread(ids: Sequence[int], told: Sequence[tuple[Any, ...]]) -> Iterator[Fact]:
    """How many entries came after each that is told, so that a fold can say it."""
    if not told:
        return
    places = [*(bisect_left(ids, row[0]) for row in told), len(ids)]
    for number, row in enumerate(told):
        count = places[number + 1] - (places[number] if number else 0)
        if count:
            yield Fact(row[1], Source.UNREAD, ident=row[0], count=count)


def _fact(row: tuple[Any, ...]) -> Fact:
    pk, at, kind, text, by, outcome = row
    return Fact(at, Source.TIMELINE, kind, text, by, outcome, ident=pk)


def _merged(run: Run) -> list[Fact]:
    """That its pull request was merged on the built-in tracker, which tells it of the project alone."""
    project = run.project
    if run.pull_number is None or project.tracker != TrackerKind.BUILTIN:
        return []
    pulls = PullRequest.objects.filter(root_id=int(project.tracker_root), number=run.pull_number)
    at = pulls.filter(state=PullState.MERGED).values_list("updated_at", flat=True).first()
    text = f"pull request {run.pull_number}"
    return [Fact(at, Source.TIMELINE, NoticeKind.PULL_MERGED, text)] if at is not None else []


def of_conversation(lab: Lab, run: Run) -> list[Fact]:
    """Edits and tests of its newest records; without a time none is told."""
    mains = [one for one in own_record.find(lab, run) if not one.agent]
    return [fact for one in mains[-MOST_RECORDS:] for fact in record_facts.of(lab, run, one)]


def _line(run: Run, event: Event) -> Line:
    fact = event.fact
    after = words.duration(event.after) if event.after is not None else ""
    steps = [_step(run, one) for one in event.folded if one.text]
    return Line(
        _key(fact),
        event.name,
        event.tone,
        words.one_line(fact.text, TEXT_CHARACTERS),
        fact.by if fact.by not in fact.text else "",
        fact.at,
        _url(run, event),
        event.times,
        after,
        steps,
        event.hidden,
    )


def _step(run: Run, fact: Fact) -> Line:
    text = words.one_line(fact.text, TEXT_CHARACTERS)
    if fact.source is Source.EDIT:
        return Line(_key(fact), "Edit", "", text, "", fact.at, fact.place)
    if fact.source is Source.TESTS:
        name = {True: "Tests green", False: "Tests red", None: "Tests"}[fact.passed]
        return Line(_key(fact), name, "", text, "", fact.at, fact.place)
    tone = words.notice_tone(fact.kind, fact.outcome)
    by = fact.by if fact.by not in fact.text else ""
    return Line(_key(fact), "", tone, text, by, fact.at)


def _key(fact: Fact) -> str:
    """The same for the same fact, so that a fold stays open while the page is brought up to date."""
    if fact.ident:
        return f"notice-{fact.ident}"
    return f"at-{fact.place.partition('#')[2]}" if fact.place else "merged"


def _url(run: Run, event: Event) -> str:
    if event.fact.place:
        return event.fact.place
    if event.leads is Leads.PULL:
        if run.project.tracker == TrackerKind.BUILTIN and run.pull_number:
            return addresses.of("runs:pull", run.project_id, run.pull_number)
        return addresses.of("runs:run-pull", run.pk) if run.pull_url else ""
    if event.leads is Leads.NOWHERE:
        return ""
    url = addresses.of(_URLS[event.leads], run.pk)
    commit = event.fact.text.partition(" ")[0]
    return f"{url}#commit-{commit}" if event.leads is Leads.CHANGES and commit else url
