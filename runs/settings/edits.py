"""Whether somebody else changed what a form shows since it was opened: marks of values, compare-and-set.

One mechanism for all forms and for programs: a form brings back the mark of what it showed, which has a
digest for each field, so that what was changed meanwhile can be named. A value itself is not in it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from django.db.models import Model, QuerySet
from django.utils.crypto import salted_hmac

from runs.core.refusal import ActRefused

LENGTH = 12
MOST = 4000  # characters of a mark
_SALT = "labsite.edits"
TEXT = "Somebody else changed this meanwhile, so nothing was stored."


class ChangedMeanwhile(ActRefused):
    """Nothing was stored: these fields hold something else than was shown."""

    code = "changed"

    def __init__(self, names: Collection[str]) -> None:
        super().__init__(TEXT)
        self.names = sorted(names)


def mark(values: Mapping[str, Any]) -> str:
    """What the values of some fields are marked with; another mark once one of them is another."""
    return ",".join(f"{name}.{_digest(name, value)}" for name, value in sorted(values.items()))


def changed(seen: str, values: Mapping[str, Any]) -> list[str]:
    """The fields whose value is another than the one that was marked; a mark of none is of no form."""
    marked = dict(part.split(".", 1) for part in seen.split(",") if "." in part)
    return [
        name
        for name, value in sorted(values.items())
        if name in marked and marked[name] != _digest(name, value)
    ]


def check(seen: str, values: Mapping[str, Any]) -> None:
    """Raises ChangedMeanwhile when the values are no longer those that were marked."""
    if names := changed(seen, values):
        raise ChangedMeanwhile(names)


def store(rows: QuerySet[Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Write these values of one row where it still holds those before, in one statement.

    Raises ChangedMeanwhile when it holds others by now.
    """
    if not rows.filter(**before).update(**after):
        raise ChangedMeanwhile(before)


def _digest(name: str, value: Any) -> str:
    text = f"{name}={_plain(value)}"
    return salted_hmac(_SALT, text, algorithm="sha256").hexdigest()[:LENGTH]


def _plain(value: Any) -> str:
    """A value as text, alike whether it was stored or typed."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case Decimal():
            return f"{value.normalize():f}"
        case Model():
            return str(value.pk)
        case datetime() | date() | time():
            return value.isoformat()
        case dict() | list() | tuple():
            return json.dumps(value, sort_keys=True, default=str)
    return str(value).replace("\r\n", "\n")
