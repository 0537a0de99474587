"""Makes the demo project: a real repository, a scripted agent, three ready issues."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import transaction

from runs.core.ports import Lab, SeamError
from runs.core.states import ProjectState
from runs.issues import acts as issues
from runs.models import AgentProfile, Project
from runs.projects import acts
from trackers.builtin import store
from trackers.builtin.models import Root

AGENT = "Demo agent"
NAMES = ("demo", "labsite-demo")
_DATA = Path(__file__).resolve().parent
_SUFFIX = ".txt"


@dataclass(frozen=True, slots=True)
class Planned:
    """One issue of the demo, as its data file describes it."""

    title: str
    body: str


def make(lab: Lab, by: str) -> Project:
    """The demo project; made on the first call, the same one afterwards.

    A call that was interrupted is completed by the next. Raises SeamError when its repository
    cannot be made, ProjectRefused when both its names are taken.
    """
    folder = lab.paths.demo / "splitbill"
    _make_repository(lab, folder)
    project = Project.objects.filter(source=str(folder)).first() or _add(lab, folder, by)
    if project.agent is None:
        project.agent = _agent()
        project.save(update_fields=["agent"])
    _write_issues(lab, project, by)
    if project.state == ProjectState.FAILED:
        acts.retry(lab, project, by)
    return project


def _make_repository(lab: Lab, folder: Path) -> None:
    """The program and one commit; made aside and renamed, so that the folder is whole or absent."""
    if folder.exists():
        return
    part = folder.with_name(f"{folder.name}.part")
    try:
        shutil.rmtree(part, ignore_errors=True)
        for stored in sorted((_DATA / "project").rglob(f"*{_SUFFIX}")):
            target = part / stored.relative_to(_DATA / "project").with_suffix("")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(stored.read_bytes())
        lab.repos.found(part, "feat: split a bill among people")
        part.rename(folder)
    except OSError as error:
        raise SeamError(f"{folder} could not be written: {error.strerror}") from error


def _add(lab: Lab, folder: Path, by: str) -> Project:
    taken = set(Project.objects.filter(name__in=NAMES).values_list("name", flat=True))
    name = next((name for name in NAMES if name not in taken), NAMES[0])
    return acts.add(lab, name=name, source=str(folder), token="", by=by)


def _agent() -> AgentProfile:
    """The profile of the scripted agent, made when there is none yet."""
    agent, _ = AgentProfile.objects.get_or_create(
        name=AGENT,
        defaults={
            "argv": [sys.executable, "-u", str(_DATA / "agent.py"), "{prompt}"],
            "mode": AgentProfile.Mode.INTERACTIVE,
            "env": {"DEMO_PAUSE": "1"},
        },
    )
    return agent


def _write_issues(lab: Lab, project: Project, by: str) -> None:
    """Once, however many ask for the demo at the same time."""
    with transaction.atomic():
        Project.objects.hold(project.pk)
        root = Root.objects.filter(pk=store.root_id(project.tracker_root))
        if not root.filter(next_number=1).exists():
            return
        for planned in planned_issues():
            issues.create(
                lab,
                project,
                title=planned.title,
                body=planned.body,
                labels=[project.ready_label],
                by=by,
            )


def planned_issues() -> list[Planned]:
    """The three issues, in the order in which they are written."""
    abouts: list[dict[str, Any]] = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in (_DATA / "changes").glob("*/about.json")
    ]
    return [Planned(**about["issue"]) for about in sorted(abouts, key=lambda about: about["order"])]
