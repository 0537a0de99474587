"""Loop settings for one run alone, as they are typed and as its start request keeps them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from runs.core import budgets, writing
from runs.loops import events

NONE = "none"
# What a start request keeps beside columns of the loop settings.
OBJECTIVE, ROLES = "objective", "roles"
# Of a run that is taken up as a loop, whatever its project does otherwise: on its own issue alone.
AS_LOOP: Mapping[str, Any] = {"is_on": True, "is_persistent": False}
MOST_TURNS = 1_000_000
MOST_SECONDS = 366 * 86_400
MOST_COOLDOWN = 86_400
MOST_COST = Decimal("9999999999.99")
MOST_PROMPT = 30_000
_CENT = Decimal("0.01")


class WrongOption(ValueError):
    """What was typed is no value of its option; the text says what is."""


def read(typed: Mapping[str, str | None]) -> dict[str, Any]:
    """The options that were typed, by the columns of the loop settings and as JSON has them.

    Raises WrongOption.
    """
    found: dict[str, Any] = {}
    for option, (column, reader) in _READERS.items():
        text = typed.get(option)
        if text is not None:
            found[column] = reader(option, text.strip())
    return found


def values(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Options as a start request kept them, as the columns of the loop settings have them."""
    found = {name: value for name, value in stored.items() if name not in (OBJECTIVE, ROLES)}
    cost = found.get("max_cost")
    return {**found, "max_cost": Decimal(cost)} if cost is not None else found


def is_loop(stored: Mapping[str, Any]) -> bool:
    """Whether a start request asks for a loop, be its project's runs loops or not."""
    return stored.get("is_on") is True


def objective(stored: Mapping[str, Any]) -> str:
    """The text that the loop works on in place of its issue's; empty: the issue's."""
    return str(stored.get(OBJECTIVE, ""))


def prompt(text: str, place: str) -> str:
    """A prompt as it can be worked on. Raises WrongOption."""
    found = writing.clean(text).strip()
    if not found:
        raise WrongOption(f"{place} is empty")
    if len(found) > MOST_PROMPT:
        raise WrongOption(f"{place} has more than {MOST_PROMPT:,} characters")
    return found


def _turns(option: str, text: str) -> int | None:
    if text == NONE:
        return None
    is_number = text.isascii() and text.isdigit() and len(text) <= 9
    if not is_number or not 1 <= int(text) <= MOST_TURNS:
        raise WrongOption(f"--{option} is a whole number from 1 to {MOST_TURNS:,}, or none")
    return int(text)


def _runtime(option: str, text: str) -> int | None:
    if text == NONE:
        return None
    found = budgets.typed_seconds(text)
    if not found or found > MOST_SECONDS:
        raise WrongOption(f"--{option} is a length from 1s to 366 days, such as 90m or 4h, or none")
    return found


def _cost(option: str, text: str) -> str | None:
    if text == NONE:
        return None
    try:
        found = Decimal(text) if text.isascii() else Decimal("NaN")
    except InvalidOperation:
        found = Decimal("NaN")
    if not found.is_finite() or not _CENT <= found <= MOST_COST or found % _CENT:
        raise WrongOption(f"--{option} is US dollars in whole cents, such as 2.50, or none")
    return str(found.quantize(_CENT))


def _cooldown(option: str, text: str) -> int:
    found = budgets.typed_seconds(text)
    if found is None or found > MOST_COOLDOWN:
        raise WrongOption(f"--{option} is a length of at most 24h, such as 30s; 0 for none")
    return found


def _word(option: str, text: str) -> str:
    if not events.is_topic(text):
        raise WrongOption(f"--{option} is one word of letters, digits and _, such as LOOP_COMPLETE")
    return text


_READERS = {
    "max-turns": ("max_turns", _turns),
    "max-runtime": ("max_seconds", _runtime),
    "max-cost": ("max_cost", _cost),
    "completion-word": ("completion", _word),
    "cooldown": ("cooldown_seconds", _cooldown),
}
OPTIONS = tuple(_READERS)
