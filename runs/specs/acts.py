"""Changes what a project proves: its policy, terms, commands and reviewers. One transaction each.

What was changed meanwhile by somebody else is not overwritten: a form brings back, as `seen`, the
mark of what it showed, and is refused by ChangedMeanwhile when that is no longer so. The
timeline names what was changed and never holds a command, in which somebody may have written a secret.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from django.db import transaction

from runs.core.ports import Lab
from runs.core.refusal import ActRefused
from runs.core.states import CompletionPolicy, NoticeKind
from runs.models import (
    CheckCommand,
    CheckDefaults,
    CheckTerms,
    Project,
    Reviewer,
)
from runs.settings import edits
from runs.specs import unfit
from runs.specs.unfit import REVIEWER, TERM_NAMES, TERMS
from runs.timeline import announce
from runs.validation import specs
from runs.validation.specs import Command, Switch

_Row = TypeVar("_Row", CheckCommand, Reviewer)
_Value = TypeVar("_Value")

CHANGED = "changed"
MOST_REVIEWERS = 10


class SpecRefused(ActRefused):
    """It was not changed; says at each wrong field why."""


def terms_row(project: Project) -> CheckTerms:
    """The stored terms of a project, or the defaults, not stored yet."""
    return CheckTerms.objects.filter(project=project).first() or CheckTerms(project=project)


def differing(project: Project, row: CheckTerms, defaults: CheckDefaults) -> list[str]:
    """In what a project's policy and terms differ from those that new projects get, in words."""
    found = [name for name in TERMS if getattr(row, name) != getattr(defaults, name)]
    policy = ["completion policy"] if project.policy != defaults.policy else []
    return [*policy, *(TERM_NAMES[name] for name in found)]


def mark(row: CheckTerms | CheckCommand | Reviewer | Project) -> str:
    """The mark of what a row says now; another one as soon as any of it is changed."""
    return edits.mark(_said(row))


def _said(row: CheckTerms | CheckCommand | Reviewer | Project) -> Mapping[str, Any]:
    """What a form on a row shows, by its columns."""
    names = {CheckTerms: TERMS, Reviewer: REVIEWER, Project: ("policy",)}.get(type(row))
    return {one: getattr(row, one) for one in names} if names else asdict(_command(row))


def store_policy(lab: Lab, project: Project, policy: str, *, by: str, seen: str = "") -> bool:
    """What the project believes as the end of a run; runs keep what they began with. False: as before."""
    try:
        wanted = CompletionPolicy(policy)
    except ValueError:
        known = ", ".join(CompletionPolicy)
        text = f"{policy[:40]} is no completion policy; there are {known}."
        raise SpecRefused(text, field="policy") from None
    with transaction.atomic():
        row = _held(project)
        edits.check(seen, _said(row))
        if row.policy == wanted:
            return False
        if why := unfit.wrong_policy(row.pk, wanted):
            raise SpecRefused(why, field="policy")
        Project.objects.filter(pk=row.pk).update(policy=wanted)
        _tell(lab, row, f"the completion policy is {wanted.label} now", by)
    project.policy = wanted
    return True


def store_terms(
    lab: Lab, project: Project, values: Mapping[str, Any], *, by: str, seen: str = ""
) -> bool:
    """Store these terms, by the names of `TERMS`; what is not named stays. False: as before."""
    with transaction.atomic():
        held = _held(project)
        row = terms_row(held)
        edits.check(seen, _said(row))
        changed = _set_terms(row, values)
        if changed:
            row.save()
            _tell(lab, held, f"checks: {_terms_words(row, changed)}", by)
    return bool(changed)


def add_command(lab: Lab, project: Project, command: Command, *, by: str) -> CheckCommand:
    """Put a command behind the others."""
    with transaction.atomic():
        held = _held(project)
        made = _append(held, command)
        _tell(lab, held, f"command {command.name} ({command.kind.words}) was added", by)
    return made


def change_command(
    lab: Lab, row: CheckCommand, command: Command, *, by: str, seen: str = ""
) -> bool:
    """Make a command another one; its place stays. False: as before."""
    with transaction.atomic():
        held = _held(row.project)
        now = _still_there(CheckCommand, row, "command")
        edits.check(seen, _said(now))
        if now.command() == command:
            return False
        _write(now, command)
        now.save()
        _tell(lab, held, f"command {command.name} ({command.kind.words}) was changed", by)
    return True


def remove_command(lab: Lab, row: CheckCommand, *, by: str) -> bool:
    """Take a command out; False when it is gone already."""
    with transaction.atomic():
        held = _held(row.project)
        gone, _ = CheckCommand.objects.filter(pk=row.pk).delete()
        if gone:
            _tell(lab, held, f"command {row.name} was removed", by)
    return bool(gone)


def move_command(lab: Lab, row: CheckCommand, *, is_up: bool, by: str) -> bool:
    """Let a command change places with its neighbour of the same kind; False at the end."""
    with transaction.atomic():
        held = _held(row.project)
        now = _still_there(CheckCommand, row, "command")
        alike = list(held.check_commands.filter(kind=now.kind))
        place = next(n for n, one in enumerate(alike) if one.pk == now.pk)
        other = place - 1 if is_up else place + 1
        if not 0 <= other < len(alike):
            return False
        alike[place], alike[other] = alike[other], alike[place]
        positions = sorted(one.position for one in alike)
        for position, one in zip(positions, alike, strict=True):
            CheckCommand.objects.filter(pk=one.pk).update(position=position)
        _tell(lab, held, f"command {now.name} was moved {'up' if is_up else 'down'}", by)
    return True


def take(
    lab: Lab,
    project: Project,
    commands: Iterable[Command],
    values: Mapping[str, Any],
    *,
    by: str,
) -> tuple[int, int]:
    """Store proposed or imported commands and terms, all or nothing: how many were added and changed.

    A command whose name is there already becomes the new one in its place.
    """
    with transaction.atomic():
        held = _held(project)
        there = {one.name: one for one in held.check_commands.all()}
        wanted = list(commands)
        added = [one for one in wanted if one.name not in there]
        changed = [one for one in wanted if one.name in there and there[one.name].command() != one]
        for one in changed:
            _write(there[one.name], one)
            there[one.name].save()
        for one in added:
            _append(held, one)
        row = terms_row(held)
        terms = _set_terms(row, values)
        if terms:
            row.save()
        names = ", ".join(one.name for one in [*added, *changed])
        told = [f"commands {names} were taken over"] if names else []
        told += [f"checks: {_terms_words(row, terms)}"] if terms else []
        if told:
            _tell(lab, held, "; ".join(told), by)
    return len(added), len(changed)


def replace_commands(lab: Lab, project: Project, commands: Sequence[Command], *, by: str) -> bool:
    """Let these be a project's commands, in this order. False: as before.

    What is wrong is named by its place, such as `commands.2.argv`.
    """
    if len(commands) > specs.MOST_COMMANDS:
        text = f"A project has at most {specs.MOST_COMMANDS} commands."
        raise SpecRefused(text, field="commands")
    with transaction.atomic():
        held = _held(project)
        there, named = list(held.check_commands.all()), [(one.name, one) for one in commands]
        if not _replace(there, named, lambda: CheckCommand(project=held), _write, "commands"):
            return False
        _tell(lab, held, f"commands are {_names(commands)} now", by)
    return True


def replace_reviewers(
    lab: Lab, project: Project, reviewers: Sequence[Mapping[str, Any]], *, by: str
) -> bool:
    """Let these be a project's reviewers, each with all of `REVIEWER`. False: as before."""
    if len(reviewers) > MOST_REVIEWERS:
        raise SpecRefused(f"A project has at most {MOST_REVIEWERS} reviewers.", field="reviewers")
    with transaction.atomic():
        held = _held(project)
        there, named = list(held.reviewers.all()), [(str(one["name"]), one) for one in reviewers]
        make = lambda: Reviewer(project=held)  # noqa: E731
        if not _replace(there, named, make, _write_reviewer, "reviewers"):
            return False
        now = held.reviewers.all()
        _tell(lab, held, f"reviewers are {_names(now)} now", by)
    return True


def _replace(
    there: Sequence[_Row],
    wanted: Sequence[tuple[str, _Value]],
    make: Callable[[], _Row],
    write: Callable[[_Row, _Value], None],
    what: str,
) -> bool:
    """Make, change and remove rows until they are what is wanted; whether that changed anything.

    A name that stays keeps its row. Raises SpecRefused with what is wrong in all of them.
    """
    before, kept, after = [_said(one) for one in there], {one.name: one for one in there}, []
    names = {name for name, _ in wanted}
    for one in there:
        if one.name not in names:
            one.delete()
    wrong: dict[str, str] = {}
    for place, (name, value) in enumerate(wanted):
        row = kept.pop(name, None) or make()
        row.position = place + 1
        try:
            write(row, value)
        except SpecRefused as refused:
            wrong |= {f"{what}.{place}.{field}": why for field, why in refused.fields.items()}
        else:
            row.save()
            after.append(_said(row))
    if wrong:
        raise SpecRefused(" ".join(f"{n}: {why}" for n, why in wrong.items()), fields=wrong)
    return before != after


def _names(rows: Iterable[Command | Reviewer]) -> str:
    return ", ".join(one.name for one in rows) or "none"


def add_reviewer(lab: Lab, project: Project, values: Mapping[str, Any], *, by: str) -> Reviewer:
    """Put a reviewer behind the others; `values` by the names of `REVIEWER`."""
    with transaction.atomic():
        held = _held(project)
        others = list(held.reviewers.all())
        if len(others) >= MOST_REVIEWERS:
            raise SpecRefused(f"A project has at most {MOST_REVIEWERS} reviewers.")
        row = Reviewer(project=held, position=max((o.position for o in others), default=0) + 1)
        _write_reviewer(row, values)
        row.save()
        _tell(lab, held, f"reviewer {row.name} was added", by)
    return row


def change_reviewer(
    lab: Lab, row: Reviewer, values: Mapping[str, Any], *, by: str, seen: str = ""
) -> bool:
    """Store what a reviewer is; what is not named stays. False: as before."""
    with transaction.atomic():
        held = _held(row.project)
        now = _still_there(Reviewer, row, "reviewer")
        edits.check(seen, _said(now))
        before = _said(now)
        _write_reviewer(now, values)
        if _said(now) == before:
            return False
        now.save()
        _tell(lab, held, f"reviewer {now.name} was changed", by)
    return True


def remove_reviewer(lab: Lab, row: Reviewer, *, by: str) -> bool:
    """Take a reviewer out; False when it is gone already."""
    with transaction.atomic():
        held = _held(row.project)
        gone, _ = Reviewer.objects.filter(pk=row.pk).delete()
        if gone:
            _tell(lab, held, f"reviewer {row.name} was removed", by)
    return bool(gone)


def _held(project: Project) -> Project:
    """The project as it is now, which nobody else changes before the transaction ends."""
    Project.objects.hold(project.pk)
    return Project.objects.defer("token", "hook_secret").get(pk=project.pk)


def _still_there(model: type[Any], row: CheckCommand | Reviewer, what: str) -> Any:
    now = model.objects.filter(pk=row.pk).first()
    if now is None:
        raise SpecRefused(f"This {what} was removed meanwhile. Nothing was changed.", code=CHANGED)
    return now


def _command(row: Any) -> Command:
    made: Command = row.command()
    return made


def _append(project: Project, command: Command) -> CheckCommand:
    others = list(project.check_commands.all())
    if len(others) >= specs.MOST_COMMANDS:
        raise SpecRefused(f"A project has at most {specs.MOST_COMMANDS} commands.")
    position = max((one.position for one in others), default=0) + 1
    row = CheckCommand(project=project, position=position)
    _write(row, command)
    row.save()
    return row


def _write(row: CheckCommand, command: Command) -> None:
    """Fill in a row from a command that can be run. Raises SpecRefused."""
    if wrong := unfit.wrong_command(row, command):
        raise SpecRefused(" ".join(wrong.values()), fields=wrong)
    for name, value in asdict(command).items():
        setattr(row, name, list(value) if isinstance(value, tuple) else value)


def _set_terms(row: CheckTerms, values: Mapping[str, Any]) -> list[str]:
    """Fill in the terms; the names of those that differ. Raises SpecRefused."""
    wrong = {name: "There is no such setting." for name in values if name not in TERMS}
    given = {name: value for name, value in values.items() if name in TERMS}
    wrong |= unfit.wrong_terms(given)
    if not wrong and "disabled" in given:
        off = specs.switches(given["disabled"])
        given["disabled"] = [one.value for one in Switch if one in off]
    changed = [name for name, value in given.items() if getattr(row, name) != value]
    if not wrong:
        for name in changed:
            setattr(row, name, given[name])
        wrong = unfit.wrong_fields(row, changed)
    if wrong:
        raise SpecRefused(" ".join(wrong.values()), fields=wrong)
    return changed


def _write_reviewer(row: Reviewer, values: Mapping[str, Any]) -> None:
    """Fill in a reviewer: an agent, or a command. Raises SpecRefused."""
    wrong = {name: "There is no such setting." for name in values if name not in REVIEWER}
    for name in REVIEWER:
        if name in values:
            setattr(row, name, values[name])
    wrong |= unfit.wrong_reviewer(row)
    limits = {} if wrong else unfit.wrong_fields(row, ["is_on", "profile", "model", "effort"])
    wrong |= {"profile_id" if name == "profile" else name: why for name, why in limits.items()}
    if wrong:
        raise SpecRefused(" ".join(wrong.values()), fields=wrong)


def _terms_words(row: CheckTerms, changed: Sequence[str]) -> str:
    """What was changed. Commands and environments are named without their contents."""
    parts = []
    for name in changed:
        label, value = TERM_NAMES[name], getattr(row, name)
        if name == "disabled":
            parts.append(f"turned off: {', '.join(value) or 'nothing'}")
        elif isinstance(value, list):
            parts.append(f"{label} changed")
        elif isinstance(value, bool):
            parts.append(f"{label}: {'on' if value else 'off'}")
        else:
            parts.append(f"{label}: {value if value != '' else 'not set'}")
    return "; ".join(parts)


def _tell(lab: Lab, project: Project, text: str, by: str) -> None:
    announce.tell(lab, NoticeKind.SETTING_CHANGED, text, project=project, by=by)
