"""Task groups: made by hand or from a set of issues, closed, deleted (RUNE)."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from django.db import IntegrityError, transaction

from runs.core import writing
from runs.core.ports import Lab
from runs.core.refusal import ActRefused
from runs.core.states import NoticeKind
from runs.groups import issue_tasks, monitors, signal_folders, tasks
from runs.groups.task_rules import MOST_WORKERS, NAME_RULE, is_inside
from runs.groups.tasks import NewTask
from runs.groups.terms import PresetName, is_name
from runs.models import MonitorPreset, Project, Task, TaskGroup, Worker, WorkflowPhase
from runs.timeline import announce
from trackers.base import Ability, Issue, NotFound

_NO_FIELDS: Mapping[str, str] = MappingProxyType({})


class GroupRefused(ActRefused):
    """The group cannot be made so; the text says why, `fields` where."""


class NameTaken(GroupRefused):
    """The project has an open group of that name."""

    code = "name_taken"


@dataclass(frozen=True, slots=True)
class Chosen:
    """A set of open issues: those named, those with a label, those of a milestone."""

    keys: Sequence[str] = ()
    label: str = ""
    milestone: str = ""


@dataclass(frozen=True, slots=True)
class NewWorker:
    """Somebody who will work on a group; `output_file` has to be there before a task counts."""

    name: str
    output_file: str = ""


def open_of(project: Project, name: str) -> TaskGroup:
    """The open group of that name. Raises NotFound."""
    found = TaskGroup.objects.filter(project=project, name=name, closed_at=None).first()
    if found is None:
        raise NotFound(f"There is no open task group {writing.one_line(name)} in this project.")
    found.project = project
    return found


def make(
    lab: Lab,
    project: Project,
    name: str,
    *,
    preset: str = PresetName.WORK,
    new: Sequence[NewTask] = (),
    workers: Sequence[NewWorker] = (),
    output_dir: str = "",
    by: str,
) -> TaskGroup:
    """Make a group with its first tasks and workers, or nothing. Raises GroupRefused, TaskRefused."""
    name, output_dir = name.strip(), output_dir.strip().rstrip("/")
    _check(name, preset, workers, output_dir)
    try:
        with transaction.atomic():
            # Runs that start meanwhile wait here, so that each task sees its run or is seen by it.
            Project.objects.hold(project.pk)
            group = TaskGroup.objects.create(
                project=project,
                name=name,
                preset=preset,
                output_dir=output_dir,
                made_at=lab.now(),
                made_by=by,
            )
            Worker.objects.bulk_create(
                Worker(group=group, name=one.name, output_file=one.output_file.strip())
                for one in workers
            )
            text = f"task group {name} was made, watched as {preset}"
            announce.tell(lab, NoticeKind.GROUP_MADE, text, group=group, by=by)
            if new:
                tasks.add(lab, group, new, by=by)
            signal_folders.prepare(lab, group)
    except IntegrityError as error:
        text = (
            f"This project has an open task group {name}. Close it first, or choose another name."
        )
        raise NameTaken(text, fields={"name": text}) from error
    return group


def from_issues(
    lab: Lab,
    project: Project,
    name: str,
    chosen: Chosen,
    *,
    preset: str = PresetName.WORK,
    by: str,
) -> TaskGroup:
    """Make a group with one task for each chosen open issue, each following the issue's runs.

    Raises GroupRefused, TaskRefused, TrackerError.
    """
    tracker = lab.tracker_for(project.tracker) if project.tracker else None
    if tracker is None:
        text = "This project has no tracker that labsite can read. Nothing was made."
        raise GroupRefused(text, fields={"issues": text})
    if chosen.milestone and Ability.MILESTONES not in tracker.abilities:
        text = "This project's tracker has no milestones; choose by label. Nothing was made."
        raise GroupRefused(text, fields={"milestone": text})
    new = _as_tasks(_pick(tracker.open_issues(project.tracker_root), chosen))
    keys = [one.issue_key for one in new]
    while True:
        with contextlib.suppress(issue_tasks.RunStarted), transaction.atomic():
            # A run's row before its project's, which is the order in which a run ends.
            held = issue_tasks.hold(project, keys)
            group = make(lab, project, name, preset=preset, new=new, by=by)
            issue_tasks.catch_up(lab, group, held)
            return group


def close(lab: Lab, group: TaskGroup, by: str) -> bool:
    """End a group: its monitor stops, its tasks stay as they are. False when it was closed."""
    with transaction.atomic():
        rows = TaskGroup.objects.filter(pk=group.pk, closed_at=None)
        won = rows.update(closed_at=lab.now())
        if won:
            if monitor := monitors.running_of(group):
                monitors.stop(lab, monitor, by)
            text = f"task group {group.name} was closed"
            announce.tell(lab, NoticeKind.GROUP_CLOSED, text, group=group, by=by)
            signal_folders.clean(lab, group)
    group.refresh_from_db(fields=["closed_at"])
    return bool(won)


def delete(lab: Lab, group: TaskGroup, by: str) -> None:
    """Remove a group with its tasks, monitors and what was told of them; the project says so."""
    close(lab, group, by)  # from here on nobody adds to what is about to go
    with transaction.atomic():
        _hold(group)
        text = f"task group {group.name} was deleted"
        announce.tell(lab, NoticeKind.GROUP_CLOSED, text, project=group.project, by=by)
        TaskGroup.objects.filter(pk=group.pk).delete()


def _hold(group: TaskGroup) -> None:
    """Wait for whoever is at work on the group, in their own order: they note what they did last,
    which holds the group itself. The other way round each would wait for the other."""
    for rows in (
        WorkflowPhase.objects.filter(group=group),
        Task.objects.filter(group=group),
        Worker.objects.filter(group=group),
        TaskGroup.objects.filter(pk=group.pk),
    ):
        list(rows.select_for_update().order_by("pk").values_list("pk"))


def _check(name: str, preset: str, workers: Sequence[NewWorker], output_dir: str) -> None:
    """Everything wrong at once, each at its field."""
    wrong: dict[str, str] = {}
    if not is_name(name):
        wrong["name"] = f"A name {NAME_RULE}."
    if not MonitorPreset.objects.complete().filter(name=preset).exists():
        wrong["preset"] = f"There is no preset {writing.one_line(preset)}."
    if output_dir and not is_inside(output_dir, 500):
        wrong["output_dir"] = "This has to be a folder inside the worktree, such as out/review."
    if said := _wrong_workers(workers):
        wrong["workers"] = said
    if wrong:
        raise GroupRefused(f"{' '.join(wrong.values())} Nothing was made.", fields=wrong)


def _wrong_workers(workers: Sequence[NewWorker]) -> str:
    names = [one.name for one in workers]
    files = [one.output_file.strip() for one in workers if one.output_file.strip()]
    if not all(is_name(one) for one in names):
        return f"A worker's name {NAME_RULE}."
    if len(set(names)) < len(names):
        return "Two workers have the same name."
    if len(names) > MOST_WORKERS:
        return f"A group has at most {MOST_WORKERS} workers."
    if not all(is_inside(one, 200) for one in files):
        return "An output file has to be inside the output folder, such as ash-1.md."
    return ""


def _pick(issues: Sequence[Issue], chosen: Chosen) -> list[Issue]:
    """The issues that were meant. Raises GroupRefused when one is not open or there is none."""
    there = {issue.key for issue in issues}
    keys = {key.strip().removeprefix("#") for key in chosen.keys} - {""}
    if lost := sorted(keys - there):
        named = ", ".join(f"#{writing.one_line(key)}" for key in lost[:10])
        text = f"Not open on this project's tracker: {named}. Nothing was made."
        raise GroupRefused(text, fields={"issues": text})
    found = [
        issue
        for issue in issues
        if issue.key in keys
        or (chosen.label and chosen.label in issue.labels)
        or (chosen.milestone and issue.milestone == chosen.milestone)
    ]
    if not found:
        text = "No open issue fits, so there is nothing to make a group of. Nothing was made."
        raise GroupRefused(text, fields={"issues": text})
    return found


def _as_tasks(issues: Sequence[Issue]) -> list[NewTask]:
    """A task for each; a key that could not be a file gets a number."""
    return [
        NewTask(one.title, key=one.key if is_name(one.key) else "", issue_key=one.key)
        for one in issues
    ]
