"""Changes how a project's runs are loops: terms, roles, memories. One transaction each.

What was changed meanwhile by somebody else is not overwritten: a form brings back, as `seen`, the
mark of what it showed, and is refused by ChangedMeanwhile when that is no longer so. Loops that
run keep the terms and roles that they began with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from django.db import transaction

from runs.core.ports import Lab
from runs.core.refusal import ActRefused
from runs.core.states import NoticeKind
from runs.loop_settings import unfit
from runs.loop_settings.unfit import ROLE, TERMS
from runs.loops import acts, events
from runs.models import AgentProfile, LoopMemory, LoopRole, LoopTerms, Project
from runs.settings import edits
from runs.timeline import announce

CHANGED = "changed"
MOST_ROLES = 20
TOO_MANY = f"A project has at most {MOST_ROLES} roles."
PER_ISSUE, PERSISTENT = "per_issue", "persistent"
PRESETS: Mapping[str, Mapping[str, Any]] = {
    PER_ISSUE: {
        **{"is_persistent": False, "max_turns": 50, "max_seconds": 14_400, "max_cost": None},
        **{"has_tasks": True, "has_memories": True, "check_in_seconds": None},
    },
    PERSISTENT: {
        **{"is_persistent": True, "max_turns": 10_000, "max_seconds": 86_400},
        **{"max_cost": Decimal("50.00"), "has_tasks": True, "has_memories": True},
        **{"may_idle": True, "check_in_seconds": 300, "answer_seconds": 600},
    },
}
# What a role has that is not named where all of them are given.
_EMPTY: Mapping[str, Any] = {
    **{"subscriptions": [], "publishes": [], "profile_id": None, "model": "", "effort": ""},
}


class LoopSettingsRefused(ActRefused):
    """It was not changed; says at each wrong field why."""


def terms_row(project: Project) -> LoopTerms:
    """The stored terms of a project's loops, or the defaults, not stored yet."""
    rows = LoopTerms.objects.select_related("profile")
    found = rows.filter(project=project).first() or LoopTerms()
    found.project = project
    return found


def mark(row: LoopTerms | LoopRole) -> str:
    """The mark of what a row says now; another one as soon as any of it is changed."""
    return edits.mark(_said(row))


def _said(row: LoopTerms | LoopRole) -> Mapping[str, Any]:
    """What a form on a row shows, by its columns."""
    names = TERMS if isinstance(row, LoopTerms) else ROLE
    return {name: getattr(row, name) for name in names}


def store_terms(
    lab: Lab,
    project: Project,
    values: Mapping[str, Any],
    *,
    by: str,
    seen: str = "",
    resume: Mapping[str, str] | None = None,
) -> bool:
    """Store these terms, by the names of `TERMS`; what is not named stays. False: as before.

    `resume` is the name and the instructions of a role that is made with them, to take what a loop
    that stays goes on with.
    """
    with transaction.atomic():
        held = _held(project)
        row, there = terms_row(held), _roles(held)
        edits.check(seen, _said(row))
        changed = _fill(row, TERMS, values)
        if resume is not None:
            made = _new_role(held, there)
            _fill(made, ROLE, {**resume, "subscriptions": [events.RESUME]})
            wrong = unfit.wrong_role(made, there, row)
            _refuse({f"resume_{name}": text for name, text in wrong.items()})
            there.append(made)
        _refuse(unfit.wrong_terms(row, there))
        if changed or row.pk is None:
            _save(row)
        if resume is not None:
            made.save()
            changed["role added"] = made.name
        if changed:
            _tell(lab, held, f"loops: {unfit.words(named(changed))}", by)
    return bool(changed)


def add_role(lab: Lab, project: Project, values: Mapping[str, Any], *, by: str) -> LoopRole:
    """Put a role behind the others; `values` by the names of `ROLE`."""
    with transaction.atomic():
        held = _held(project)
        there = _roles(held)
        row = _new_role(held, there)
        _fill(row, ROLE, values)
        _refuse(unfit.wrong_role(row, there, terms_row(held)))
        row.save()
        _tell(lab, held, f"role {row.name} of loops was added", by)
    return row


def change_role(
    lab: Lab, row: LoopRole, values: Mapping[str, Any], *, by: str, seen: str = ""
) -> bool:
    """Store what a role is; what is not named stays. False: as before."""
    with transaction.atomic():
        held = _held(row.project)
        there = _roles(held)
        now = next((one for one in there if one.pk == row.pk), None)
        if now is None:
            text = "This role was removed meanwhile. Nothing was changed."
            raise LoopSettingsRefused(text, code=CHANGED)
        edits.check(seen, _said(now))
        changed = _fill(now, ROLE, values)
        others = [one for one in there if one.pk != row.pk]
        _refuse(unfit.wrong_role(now, others, terms_row(held)))
        if changed:
            now.save()
            _tell(lab, held, f"role {now.name} of loops was changed", by)
    return bool(changed)


def remove_role(lab: Lab, row: LoopRole, *, by: str) -> bool:
    """Take a role out; False when it is gone already. Raises LoopSettingsRefused where others need it."""
    with transaction.atomic():
        held = _held(row.project)
        left = [one for one in _roles(held) if one.pk != row.pk]
        if wrong := unfit.wrong_without(left, terms_row(held)):
            raise LoopSettingsRefused(f"{wrong} Nothing was removed.")
        gone, _ = LoopRole.objects.filter(pk=row.pk).delete()
        if gone:
            _tell(lab, held, f"role {row.name} of loops was removed", by)
    return bool(gone)


def replace(
    lab: Lab,
    project: Project,
    values: Mapping[str, Any],
    roles: Sequence[Mapping[str, Any]] | None = None,
    *,
    by: str,
) -> bool:
    """Store terms, and with `roles` let these be all roles, in this order. All or nothing. False: as before.

    What is wrong is named by its place, such as `roles.2.subscriptions`. A name that stays keeps its row.
    """
    with transaction.atomic():
        held = _held(project)
        row, there = terms_row(held), _roles(held)
        changed = _fill(row, TERMS, values)
        wanted = there if roles is None else role_rows(held, there, roles, row)
        _refuse(unfit.wrong_terms(row, wanted))
        if changed or row.pk is None:
            _save(row)
        told = [f"loops: {unfit.words(named(changed))}"] if changed else []
        if roles is not None and _store_roles(there, wanted):
            names = ", ".join(one.name for one in wanted) or "none"
            told.append(f"roles of loops are {names} now")
        if told:
            _tell(lab, held, "; ".join(told), by)
    return bool(told)


def add_memory(lab: Lab, project: Project, text: str, *, by: str) -> LoopMemory:
    """Keep a text for all later loops of a project. Raises LoopRefused."""
    said = acts.checked_text(lab, text)
    acts.check_room(project.pk)
    with transaction.atomic():
        made = LoopMemory.objects.create(project=project, text=said, by=by, at=lab.now())
        _tell(lab, project, f"memory {made.pk} of loops was added", by)
    return made


def remove_memory(lab: Lab, project: Project, memory_id: int, *, by: str) -> bool:
    """Forget a text; loops that run keep it until their next turn. False when it is gone already."""
    with transaction.atomic():
        gone, _ = LoopMemory.objects.filter(project=project, pk=memory_id).delete()
        if gone:
            _tell(lab, project, f"memory {memory_id} of loops was removed", by)
    return bool(gone)


def _save(row: LoopTerms) -> None:
    """How often automatic work asks for the next issue is kept where it is looked for."""
    row.save()
    idle = row.idle_seconds if row.is_on and not row.is_persistent else None
    Project.objects.filter(pk=row.project_id).update(poll_seconds=idle)


def role_words(refused: LoopSettingsRefused, names: Sequence[str]) -> str:
    """What is wrong with roles of these names; its fields are `roles.PLACE.COLUMN`."""
    said = []
    for field, why in refused.fields.items():
        _, place, column = [*field.split("."), "", ""][:3]
        name = names[int(place)] if place.isdigit() and int(place) < len(names) else field
        said.append(f"{name}, {column.removesuffix('_id')}: {why}")
    return " ".join(said) or refused.text


def role_rows(
    project: Project,
    there: Sequence[LoopRole],
    given: Sequence[Mapping[str, Any]],
    terms: LoopTerms,
) -> list[LoopRole]:
    """The rows that roles become, not stored; those of `there` that keep their names stay rows.

    Raises LoopSettingsRefused with what is wrong in all of them.
    """
    if len(given) > MOST_ROLES:
        raise LoopSettingsRefused(TOO_MANY, field="roles")
    kept = {one.name: one for one in there}
    names = [str(one.get("name", "")) for one in given]
    rows = [kept.pop(name) if name in kept else LoopRole(project=project) for name in names]
    wrong: dict[str, str] = {}
    for place, (row, values) in enumerate(zip(rows, given, strict=True)):
        row.position = place + 1
        _fill(row, ROLE, {**_EMPTY, **values})
    for place, row in enumerate(rows):
        others = [one for one in rows if one is not row]
        found = unfit.wrong_role(row, others, terms)
        wrong |= {f"roles.{place}.{name}": text for name, text in found.items()}
    _refuse(wrong)
    return rows


def _store_roles(there: Sequence[LoopRole], wanted: Sequence[LoopRole]) -> bool:
    """Make the rows what is wanted; whether that changed anything."""
    before = {one.pk: (_said(one), one.position) for one in _again(there)}
    kept = {one.pk for one in wanted if one.pk}
    for one in there:
        if one.pk not in kept:
            one.delete()
    for one in wanted:
        one.save()
    return before != {one.pk: (_said(one), one.position) for one in wanted}


def _again(rows: Sequence[LoopRole]) -> list[LoopRole]:
    """Rows as they are stored, since those in hand may be filled in already."""
    return list(LoopRole.objects.filter(pk__in=[one.pk for one in rows]))


def _roles(project: Project) -> list[LoopRole]:
    return list(LoopRole.objects.filter(project=project))


def _new_role(project: Project, there: Sequence[LoopRole]) -> LoopRole:
    if len(there) >= MOST_ROLES:
        raise LoopSettingsRefused(TOO_MANY)
    return LoopRole(project=project, position=max((one.position for one in there), default=0) + 1)


def _held(project: Project) -> Project:
    """The project as it is now, which nobody else changes before the transaction ends."""
    Project.objects.hold(project.pk)
    rows = Project.objects.select_related("agent").defer("token", "hook_secret")
    return rows.get(pk=project.pk)


def _fill(
    row: LoopTerms | LoopRole, names: Sequence[str], values: Mapping[str, Any]
) -> dict[str, Any]:
    """Fill in a row; what differs, by its name. Raises LoopSettingsRefused for names that are none."""
    _refuse({name: "There is no such setting." for name in values if name not in names})
    changed = {name: value for name, value in values.items() if getattr(row, name) != value}
    for name, value in changed.items():
        setattr(row, name, value)
    return changed


def named(changed: Mapping[str, Any]) -> dict[str, Any]:
    """An agent by its name."""
    if changed.get("profile_id") is None:
        return dict(changed)
    profile = AgentProfile.objects.filter(pk=changed["profile_id"]).first()
    return {**changed, "profile_id": profile.name if profile else ""}


def _refuse(wrong: Mapping[str, str]) -> None:
    if wrong:
        raise LoopSettingsRefused(" ".join(wrong.values()), fields=wrong)


def _tell(lab: Lab, project: Project, text: str, by: str) -> None:
    announce.tell(lab, NoticeKind.SETTING_CHANGED, text, project=project, by=by)
