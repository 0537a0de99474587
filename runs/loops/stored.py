"""The values of the rules as JSON that tables keep, and back. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from decimal import Decimal
from typing import Any

from runs.loops.events import Event
from runs.loops.prompts import PromptFacts, Task
from runs.loops.roles import Role
from runs.loops.rules import Counters, End, Limits, Terms

Stored = dict[str, Any]


def of_terms(terms: Terms) -> Stored:
    """Terms with their limits; seconds and texts where JSON has no type."""
    limits = asdict(terms.limits)
    limits["runtime"] = (
        None if terms.limits.runtime is None else terms.limits.runtime.total_seconds()
    )
    limits["cost"] = None if terms.limits.cost is None else str(terms.limits.cost)
    return {**asdict(terms), "limits": limits, "required": list(terms.required)}


def terms(stored: Mapping[str, Any]) -> Terms:
    """The terms that `of_terms` wrote."""
    limits = dict(stored["limits"])
    runtime, cost = limits["runtime"], limits["cost"]
    limits["runtime"] = None if runtime is None else timedelta(seconds=runtime)
    limits["cost"] = None if cost is None else Decimal(cost)
    return Terms(**{**stored, "limits": Limits(**limits), "required": tuple(stored["required"])})


def of_counters(counters: Counters) -> Stored:
    """What is counted over the turns."""
    found = asdict(counters)
    found["cost"] = str(counters.cost)
    found["blocks"] = [list(pair) for pair in counters.blocks]
    for name in ("abandoned", "seen"):
        found[name] = sorted(found[name])
    return found


def counters(stored: Mapping[str, Any]) -> Counters:
    """The counters that `of_counters` wrote; nothing is counted where nothing is stored."""
    if not stored:
        return Counters()
    last = stored["last_event"]
    return Counters(
        **{
            **stored,
            "cost": Decimal(stored["cost"]),
            "last_event": None if last is None else Event(**last),
            "blocks": tuple((str(key), int(times)) for key, times in stored["blocks"]),
            "abandoned": frozenset(stored["abandoned"]),
            "seen": frozenset(stored["seen"]),
        }
    )


def of_events(found: Sequence[Event]) -> list[Stored]:
    """Events in their order."""
    return [asdict(event) for event in found]


def events(stored: Sequence[Mapping[str, Any]]) -> tuple[Event, ...]:
    """The events that `of_events` wrote."""
    return tuple(Event(**one) for one in stored)


def of_roles(found: Sequence[Role]) -> list[Stored]:
    """Roles in their order."""
    return [
        {
            **asdict(role),
            "subscriptions": list(role.subscriptions),
            "publishes": list(role.publishes),
        }
        for role in found
    ]


def roles(stored: Sequence[Mapping[str, Any]]) -> tuple[Role, ...]:
    """The roles that `of_roles` wrote."""
    return tuple(_role(one) for one in stored)


def of_facts(facts: PromptFacts) -> Stored:
    """All that a prompt was composed of, so that it can be composed again."""
    return {
        **asdict(facts),
        "memories": list(facts.memories),
        "guidance": list(facts.guidance),
        "uncommitted": list(facts.uncommitted),
        "commits": list(facts.commits),
        "events": of_events(facts.events),
        "tasks": None if facts.tasks is None else [asdict(task) for task in facts.tasks],
        "role": None if facts.role is None else of_roles([facts.role])[0],
        "nearing": {end.value: text for end, text in facts.nearing.items()},
    }


def facts(stored: Mapping[str, Any]) -> PromptFacts:
    """The facts that `of_facts` wrote."""
    tasks, role = stored["tasks"], stored["role"]
    return PromptFacts(
        **{
            **stored,
            "events": events(stored["events"]),
            "tasks": None if tasks is None else [Task(**one) for one in tasks],
            "role": None if role is None else _role(role),
            "nearing": {End(end): text for end, text in stored["nearing"].items()},
        }
    )


def _role(stored: Mapping[str, Any]) -> Role:
    lists = {name: tuple(stored[name]) for name in ("subscriptions", "publishes")}
    return Role(**{**stored, **lists})
