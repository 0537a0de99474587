"""The fields in which settings and projects keep limits of tokens and money."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

MOST_TOKENS = 10**12
MOST_MONEY = Decimal(100_000)
_TOKENS = "All that goes in, from the cache too, and all that comes out."


def tokens(label: str, help_text: str, *, may_be_empty: bool = False) -> Any:
    """A number of tokens; zero sets no limit."""
    return models.PositiveBigIntegerField(
        f"limit of {label}",
        **_default(0, may_be_empty),
        validators=[MinValueValidator(0), MaxValueValidator(MOST_TOKENS)],
        help_text=f"{help_text} {_TOKENS}",
    )


def money(label: str, help_text: str, *, may_be_empty: bool = False) -> Any:
    """An amount of US dollars; zero sets no limit."""
    return models.DecimalField(
        f"limit of {label} (US dollars)",
        **_default(Decimal(0), may_be_empty),
        max_digits=9,
        decimal_places=2,
        validators=[MinValueValidator(Decimal(0)), MaxValueValidator(MOST_MONEY)],
        help_text=f"{help_text} Holds only for agents that tell their cost.",
    )


def _default(zero: int | Decimal, may_be_empty: bool) -> dict[str, Any]:
    return {"null": True, "blank": True} if may_be_empty else {"default": zero}
