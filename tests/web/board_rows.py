"""Rows for the page tests: a project on the built-in tracker with issues, runs and a timeline."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction

from runs.core.states import AnswerCode, NoticeKind
from runs.models import Host, Project, Run, Settings, StartRequest
from runs.timeline import announce
from tests import make
from tests.fakes import START, World
from trackers import registry
from trackers.builtin import store

LABEL = "ready-for-agent"


def a_tracked_project(name: str = "demo", **fields: Any) -> Project:
    """A usable project with a tracker of its own."""
    return make.a_project(name, tracker="builtin", tracker_root=store.create_root(name), **fields)


def a_ready_issue(project: Project, title: str = "Add retries") -> int:
    return store.create_issue(
        project.tracker_root, title=title, body="", author="anna", labels=[LABEL], at=START
    )


def a_tick(world: World) -> None:
    """The worker has just looked."""
    Host.objects.update_or_create(name="local", defaults={"last_tick_at": world.clock.now})


def tell(world: World, text: str, kind: NoticeKind = NoticeKind.RUN_STEP, **about: Any) -> int:
    with transaction.atomic():
        return announce.tell(world.lab, kind, text, **about).pk


def full_board(world: World, rows: int) -> Project:
    """A project with this many of everything that a page lists."""
    world.lab = dataclasses.replace(world.lab, tracker_for=registry.tracker)
    a_tick(world)
    Settings.current()  # made by the first who asks
    project = a_tracked_project()
    for n in range(rows):
        other = a_tracked_project(f"other-{n}", warning="The tracker did not answer.")
        a_ready_issue(project, f"Ready {n}")
        a_ready_issue(other, f"Ready {n}")
        run = make.a_run(project, str(1000 + n), slot=n + 1)
        ended = make.a_run(
            project, str(2000 + n), outcome="died", reason="the session ended", warning="kept"
        )
        tell(world, "first output", run=run)
        tell(world, "the session ended", NoticeKind.RUN_ENDED, run=ended, outcome="died")
    return project


@dataclass
class Answering:
    """A bell whose worker answers every start at once with the same code."""

    code: AnswerCode
    text: str = ""
    run: Run | None = None
    rings: int = 0

    def timeline(self) -> None:
        self.rings += 1

    def look(self, project: str) -> None:
        StartRequest.objects.filter(answer="").update(
            answer=self.code, text=self.text, run=self.run
        )


def answer_starts(world: World, code: AnswerCode, text: str = "", run: Run | None = None) -> None:
    world.lab = dataclasses.replace(world.lab, bell=Answering(code, text, run))


def ago(**delta: float) -> Any:
    return START - timedelta(**delta)


def pages(project: Project) -> list[str]:
    """The pages that show a full board."""
    working, ended = Run.objects.filter(outcome="").first(), Run.objects.exclude(outcome="").first()
    found = [f"/runs/{run.pk}/" for run in (working, ended) if run is not None]
    return ["/", f"/projects/{project.pk}/", "/history/", "/settings/", *found]


def actions(project: Project, run: Run) -> list[str]:
    """Every address that only changes something."""
    at = f"/projects/{project.pk}"
    return [
        f"{at}/start",
        f"{at}/stop-all",
        f"{at}/retry",
        f"/runs/{run.pk}/stop",
        "/demo/",
    ]
