"""Why settings of loops cannot be stored: for each wrong field a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models

from runs.core.states import AgentMode, CompletionPolicy
from runs.loops import beginning, events
from runs.loops.events import Event
from runs.loops.roles import Role, problems
from runs.models import AgentProfile, LoopRole, LoopTerms

TERMS = (
    *("is_on", "profile_id", "is_persistent", "completion", "cancellation", "required"),
    *("max_turns", "max_seconds", "max_cost", "max_turn_seconds", "failures", "redispatches"),
    *("malformed", "same_event", "recoveries", "blocks", "cooldown_seconds", "is_strict"),
    *("may_idle", "idle_seconds", "pause_seconds", "has_tasks", "has_memories"),
    *("check_in_seconds", "answer_seconds", "cleans_up", "resets_notes"),
)
ROLE = ("name", "instructions", "subscriptions", "publishes", "profile_id", "model", "effort")
MOST_TOPICS = 50
MOST_SECONDS = 31_536_000  # a year
MOST_COUNT = 1_000_000
NOT_ONE_SHOT = "{} stays open until it is ended. Choose an agent that ends by itself (one-shot)."
NO_COST = (
    "{} does not tell what a turn costs, so this limit would never be reached. Leave it empty, or "
    "choose an agent that prints the JSON lines of Claude Code."
)
HAS_COST_LIMIT = (
    "{} does not tell what a turn costs, and these loops have a limit of money. Remove that limit, "
    "or choose an agent that prints the JSON lines of Claude Code."
)
NO_TOPIC = "“{}” is no topic: use letters, digits, - and _, joined by dots, such as build.done."
TELLS_COST = (AgentProfile.Output.CLAUDE,)


def wrong_terms(row: LoopTerms, roles: Sequence[LoopRole]) -> dict[str, str]:
    """Why a filled-in row cannot be stored beside these roles."""
    wrong = _wrong_columns(row, [name for name in TERMS if name not in ("profile_id", "required")])
    wrong |= _wrong_bounds(row)
    for name in ("completion", "cancellation"):
        word = getattr(row, name)
        if word and not events.is_topic(word):
            wrong.setdefault(name, NO_TOPIC.format(word[:60]))
    if row.max_cost is not None and row.max_cost <= 0:
        wrong.setdefault("max_cost", "Write more than 0, or leave it empty.")
    if row.completion and row.completion == row.cancellation:
        wrong["cancellation"] = "This is the completion word. Choose another one."
    if said := wrong_topics(row.required):
        wrong["required"] = said
    wrong |= _wrong_agent(row, roles)
    if row.is_on and row.project.policy == CompletionPolicy.GATES:
        wrong["is_on"] = beginning.IS_GATED
    if not wrong:
        found = [one.role for one in roles]
        plain = list(problems(found, row.completion, is_persistent=False))
        stays = [
            one
            for one in problems(found, row.completion, is_persistent=row.is_persistent)
            if one not in plain
        ]
        wrong |= {"completion": " ".join(plain)} if plain else {}
        wrong |= {"is_persistent": " ".join(stays)} if stays else {}
    return wrong


def wrong_role(row: LoopRole, others: Sequence[LoopRole], terms: LoopTerms) -> dict[str, str]:
    """Why a filled-in role cannot be stored beside the others of its project."""
    names = [name for name in ROLE if name not in ("profile_id", "subscriptions", "publishes")]
    wrong = _wrong_columns(row, names)
    for name in ("subscriptions", "publishes"):
        if said := wrong_topics(getattr(row, name), has_patterns=name == "subscriptions"):
            wrong[name] = said
    if wrong:
        return wrong
    wrong |= _wrong_words(row.role, [one.role for one in others], terms)
    profile = AgentProfile.objects.filter(pk=row.profile_id).first() if row.profile_id else None
    if row.profile_id and profile is None:
        wrong["profile_id"] = "There is no such agent."
    elif profile is not None and profile.mode != AgentMode.ONE_SHOT:
        wrong["profile_id"] = NOT_ONE_SHOT.format(profile.name)
    elif profile is not None and terms.max_cost is not None and not tells_cost(profile):
        wrong["profile_id"] = HAS_COST_LIMIT.format(profile.name)
    runs_it = profile or beginning.profile_of(terms)
    return wrong | _wrong_choice(row, runs_it)


def _wrong_choice(row: LoopRole, profile: AgentProfile | None) -> dict[str, str]:
    """Model and effort are of the closed lists of the agent that runs it."""
    if profile is None:
        return {}
    offered = {"model": profile.allows(row.model, ""), "effort": profile.allows("", row.effort)}
    return {
        name: f"{profile.name} does not offer it." for name, is_so in offered.items() if not is_so
    }


def wrong_without(left: Sequence[LoopRole], terms: LoopTerms) -> str:
    """Why the roles that are left cannot stand alone; empty when they can."""
    found = [one.role for one in left]
    return " ".join(problems(found, terms.completion, is_persistent=terms.is_persistent))


def wrong_topics(value: object, *, has_patterns: bool = False) -> str:
    """Why a value is no list of topics; empty when it is one."""
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        return 'Write a list of topics, such as ["build.done"].'
    if len(value) > MOST_TOPICS:
        return f"At most {MOST_TOPICS} topics."
    for one in value:
        if not events.is_topic(one.replace("*", "any") if has_patterns else one):
            return NO_TOPIC.format(one[:60])
    return ""


def takes_resume(roles: Sequence[LoopRole]) -> bool:
    """Whether one of the roles takes the event that a loop which stays goes on with."""
    resume = Event(events.RESUME)
    return any(events.subscribes(one.subscriptions, resume) for one in roles)


def tells_cost(profile: AgentProfile) -> bool:
    """Whether an agent says what each turn costs."""
    return profile.output in TELLS_COST


def _wrong_agent(row: LoopTerms, roles: Sequence[LoopRole]) -> dict[str, str]:
    chosen = AgentProfile.objects.filter(pk=row.profile_id).first() if row.profile_id else None
    if row.profile_id and chosen is None:
        return {"profile_id": "There is no such agent."}
    if chosen is not None and chosen.mode != AgentMode.ONE_SHOT:
        return {"profile_id": NOT_ONE_SHOT.format(chosen.name)}
    row.profile = chosen
    runs_it = beginning.profile_of(row)
    if row.is_on and runs_it is None:
        return {"profile_id": beginning.NO_AGENT}
    if row.max_cost is None:
        return {}
    own = AgentProfile.objects.filter(pk__in=[one.profile_id for one in roles if one.profile_id])
    silent = [one.name for one in (*([runs_it] if runs_it else ()), *own) if not tells_cost(one)]
    return {"max_cost": NO_COST.format(", ".join(silent))} if silent else {}


def _wrong_words(role: Role, others: Sequence[Role], terms: LoopTerms) -> dict[str, str]:
    """What the contract of roles says, at the field that it is about."""
    fine = Role(role.name, "x", ("x.x",))
    probes = {
        "name": fine,
        "instructions": replace(fine, instructions=role.instructions),
        "subscriptions": replace(fine, subscriptions=role.subscriptions),
    }
    wrong: dict[str, str] = {}
    told = set(problems(others, terms.completion, is_persistent=False))
    for name, probe in probes.items():
        found = problems([*others, probe], terms.completion, is_persistent=False)
        said = [one for one in found if one not in told]
        told.update(said)
        if said:
            wrong[name] = " ".join(said)
    all_of_them = problems([*others, role], terms.completion, is_persistent=terms.is_persistent)
    if stays := [one for one in all_of_them if one not in told]:
        wrong.setdefault("subscriptions", " ".join(stays))
    return wrong


def _wrong_bounds(row: LoopTerms) -> dict[str, str]:
    """Numbers beyond what a clock or a column can hold."""
    wrong = {}
    for name in TERMS:
        value = getattr(row, name)
        if isinstance(value, bool) or not isinstance(value, int) or name == "profile_id":
            continue
        most = MOST_SECONDS if name.endswith("_seconds") else MOST_COUNT
        if value > most:
            wrong[name] = f"At most {most:,}."
    return wrong


def _wrong_columns(row: models.Model, names: Sequence[str]) -> dict[str, str]:
    """The limits of the model's own fields, as the admin's form checks them."""
    try:
        row.clean_fields(exclude={one.name for one in row._meta.fields} - set(names))
    except ValidationError as error:
        return {name: " ".join(said) for name, said in error.message_dict.items()}
    return {}


def words(changed: Mapping[str, Any]) -> str:
    """Changed settings as the timeline tells them."""
    parts = []
    for name, value in changed.items():
        label = name.removesuffix("_id").replace("_", " ").removeprefix("is ").removeprefix("has ")
        if isinstance(value, bool):
            shown = "on" if value else "off"
        elif isinstance(value, list):
            shown = ", ".join(value) or "none"
        else:
            shown = str(value) if value not in ("", None) else "not set"
        parts.append(f"{label}: {shown}")
    return "; ".join(parts)
