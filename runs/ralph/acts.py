"""Takes the files of a Ralph project over: what each becomes is shown first, then it is taken whole."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import transaction

from runs.core import writing
from runs.core.ports import Lab, SeamError
from runs.core.refusal import ActRefused
from runs.issues import remote as issues
from runs.loop_settings import settings_acts, unfit
from runs.loop_settings.settings_acts import LoopSettingsRefused
from runs.loops import acts
from runs.loops.acts import LoopRefused
from runs.models import LoopMemory, LoopRole, LoopTerms, Project
from runs.ralph import agents, ralph_file
from runs.ralph.ralph_file import Files, Taken
from runs.ralph.role_file import MOST_BYTES, UnfitFile
from trackers.account import awaited
from trackers.base import Ability, TrackerError

NOTHING = "Nothing was imported."
NO_ISSUE = "this project's tracker takes no new issues from labsite"
MOST_TEXT = MOST_BYTES


class ImportRefused(ActRefused):
    """Nothing was imported; the text says why."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What would become of the files. `roles` is None where those of the project stay.

    `settings` are the changes in words, `removed` the roles that go, `memories` those that are new.
    `title` is that of the issue.
    """

    values: Mapping[str, Any]
    roles: Sequence[Mapping[str, Any]] | None
    memories: tuple[str, ...]
    title: str
    objective: str
    settings: tuple[tuple[str, str], ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    not_taken: tuple[str, ...]
    is_on: bool


@dataclass(frozen=True, slots=True)
class Imported:
    """What was stored: how many memories were new, and the key of the issue."""

    memories: int
    issue: str


def of_repository(lab: Lab, project: Project) -> Files:
    """The files as they stand in the project's repository; empty where they are not to be read."""
    repo = project.repo(lab.paths)
    with contextlib.suppress(SeamError, UnfitFile):
        commit = lab.repos.upstream(repo, project.default_branch)

        def first(*paths: str) -> str:
            found = lab.repos.texts(repo, commit, list(paths), MOST_TEXT)
            return next((found[path] for path in paths if found.get(path)), "")

        settings = first(*ralph_file.SETTINGS_NAMES)
        if settings:
            prompt = first(ralph_file.prompt_file(settings))
            return Files(settings, prompt, first(*ralph_file.MEMORIES), first(*ralph_file.TASKS))
    return Files("")


def of_folder(folder: Path) -> Files:
    """The files of a folder of this machine. Raises ImportRefused."""
    settings = _first(folder, *ralph_file.SETTINGS_NAMES)
    if not settings:
        text = f"{folder} has no {ralph_file.SETTINGS}, or an empty one. {NOTHING}"
        raise ImportRefused(text)
    try:
        prompt = _first(folder, ralph_file.prompt_file(settings))
    except UnfitFile as error:
        raise ImportRefused(f"{folder / ralph_file.SETTINGS}: {error}. {NOTHING}") from error
    memories, tasks = _first(folder, *ralph_file.MEMORIES), _first(folder, *ralph_file.TASKS)
    return Files(settings, prompt, memories, tasks)


def preview(lab: Lab, project: Project, files: Files) -> Preview:
    """What these files would become in a project, as it is now. Raises ImportRefused."""
    try:
        found = ralph_file.read(files)
    except UnfitFile as error:
        raise ImportRefused(f"{ralph_file.SETTINGS}: {error}. {NOTHING}") from error
    left = list(found.not_taken)
    known, unknown = agents.known([found.backend, *(one.agent for one in found.roles or ())])
    left += [f"backend {name}: {agents.UNKNOWN.format(name)}" for name in unknown]
    values = dict(found.values)
    if found.backend in known:
        values["profile_id"] = known[found.backend]
    there = list(LoopRole.objects.filter(project=project))
    given = _role_values(found, known)
    row = settings_acts.terms_row(project)
    before = {name: getattr(row, name) for name in values}
    for name, value in values.items():
        setattr(row, name, value)  # not stored
    rows = there if given is None else _role_rows(project, given, row)
    for name, why in unfit.wrong_terms(row, rows).items():
        if name not in values:
            raise ImportRefused(f"{why} {NOTHING}")
        values.pop(name)
        left.append(f"{found.places.get(name, 'cli.backend')}: {why}")
        setattr(row, name, before[name])
    if wrong := unfit.wrong_terms(row, rows):
        raise ImportRefused(f"{' '.join(wrong.values())} {NOTHING}")
    memories, unkept = _new_memories(lab, project, found.memories)
    left += unkept
    objective = found.objective
    title = issues.title_of(lab, objective) if objective else ""
    if objective and not _takes_issues(lab, project):
        left.append(f"the prompt: {NO_ISSUE}")
        objective = title = ""
    kept = {one["name"] for one in given or ()}
    return Preview(
        values,
        given,
        tuple(memories),
        title,
        objective,
        tuple(_told({name: value for name, value in values.items() if before[name] != value})),
        tuple(one.name for one in there if given is not None and one.name not in kept),
        found.changed,
        tuple(left),
        row.is_on,
    )


def take(lab: Lab, project: Project, wanted: Preview, *, by: str) -> Imported:
    """Store what was shown, all of it or nothing; safe to repeat. Raises ImportRefused."""
    key, is_new = _issue(lab, project, wanted, by)
    try:
        with transaction.atomic():
            settings_acts.replace(lab, project, wanted.values, wanted.roles, by=by)
            count = _remember(lab, project, wanted.memories, by)
    except Exception as error:
        if is_new:
            with contextlib.suppress(TrackerError):
                issues.close(lab, project, key, by=by)
        if isinstance(error, ActRefused):
            raise ImportRefused(f"{error.text} {NOTHING}") from error
        raise
    return Imported(count, key)


def _role_values(found: Taken, known: Mapping[str, int]) -> list[dict[str, Any]] | None:
    if found.roles is None:
        return None
    return [{**one.values, "profile_id": known.get(str(one.agent))} for one in found.roles]


def _role_rows(
    project: Project, given: Sequence[Mapping[str, Any]], row: LoopTerms
) -> list[LoopRole]:
    """Raises ImportRefused with what is wrong with which role."""
    try:
        return settings_acts.role_rows(project, [], given, row)
    except LoopSettingsRefused as refused:
        said = settings_acts.role_words(refused, [f"Hat {one['name']}" for one in given])
        raise ImportRefused(f"{said} {NOTHING}") from refused


def _told(changed: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Changes as name and value, as the timeline names them."""
    named = settings_acts.named(changed)
    parts = (unfit.words({name: value}).partition(": ") for name, value in named.items())
    return [(name, value) for name, _, value in parts]


def _takes_issues(lab: Lab, project: Project) -> bool:
    tracker = lab.tracker_for(project.tracker) if project.tracker else None
    return tracker is not None and Ability.CREATE_ISSUE in tracker.abilities


def _issue(lab: Lab, project: Project, wanted: Preview, by: str) -> tuple[str, bool]:
    """The issue that holds the prompt, and whether it was made now. It has no label, so nothing starts.

    Raises ImportRefused.
    """
    if not wanted.objective:
        return "", False
    try:
        tracker = issues.able(lab, project, Ability.CREATE_ISSUE)
        title = issues.title_of(lab, wanted.objective)
        with awaited():
            # Not each tracker gives the texts in its list.
            for one in tracker.open_issues(project.tracker_root):
                if one.title == title and issues.holds(
                    lab, project, tracker.issue(project.tracker_root, one.key), wanted.objective
                ):
                    return one.key, False
        return issues.of_prompt(lab, project, wanted.objective, by=by).key, True
    except (TrackerError, writing.WrongText, ActRefused) as error:
        why = str(error).rstrip(".")
        text = f"No issue could be made of the prompt: {why}. {NOTHING}"
        raise ImportRefused(text) from error


def _remember(lab: Lab, project: Project, texts: Sequence[str], by: str) -> int:
    """How many of these memories were new."""
    new, _ = _new_memories(lab, project, texts)
    made = [LoopMemory(project=project, text=one, by=by, at=lab.now()) for one in new]
    LoopMemory.objects.bulk_create(made)
    return len(new)


def _new_memories(lab: Lab, project: Project, texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """The memories that the project has not, the newest for which it has room, and what is left out."""
    said, left = [], []
    for text in texts:
        try:
            said.append(acts.checked_text(lab, text))
        except LoopRefused as refused:
            left.append(f"memories: “{writing.one_line(text, 40)}”: {refused.text}")
    rows = LoopMemory.objects.filter(project=project)
    there = set(rows.values_list("text", flat=True))
    new = [one for one in dict.fromkeys(said) if one not in there]
    over = len(new) - max(0, acts.MOST_MEMORIES - rows.count())
    if over > 0:
        left.append(
            f"memories: {over:,} of {len(new):,}, since a project keeps at most {acts.MOST_MEMORIES:,}"
        )
    return new[max(0, over) :], left


def _first(folder: Path, *names: str) -> str:
    """The first of these files that is there. Raises ImportRefused for one that cannot be read."""
    for name in names:
        path = folder / name
        if not path.is_file():
            continue
        try:
            with path.open("rb") as file:
                raw = file.read(MOST_TEXT + 1)
        except OSError as error:
            raise ImportRefused(f"{path} could not be read: {error.strerror}. {NOTHING}") from error
        if len(raw) > MOST_TEXT:
            raise ImportRefused(f"{path} is larger than {MOST_TEXT // 1000} kB. {NOTHING}")
        return raw.decode("utf-8", "replace")
    return ""
