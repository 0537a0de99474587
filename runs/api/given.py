"""What every query and body has in common, without the framework of the HTTP API: agents send it too."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

MOST_ROWS = 200
BIGGEST_ID = 2**63 - 1
BIGGEST_NUMBER = 2**31 - 1
NO_NUL = r"^[^\x00]*$"


def _whole(given: object) -> object:
    """JSON knows no whole numbers: 5.0 is the same as 5."""
    return int(given) if isinstance(given, float) and given.is_integer() else given


WHOLE = BeforeValidator(_whole)


class Given(BaseModel):
    """A request's body."""

    model_config = ConfigDict(extra="forbid", strict=True)


def never_null(schema: dict[str, Any]) -> None:
    """A part of a query may be left out; there is no way to write null in one."""
    schema.update(schema.pop("anyOf")[0])
    schema.pop("default", None)


def absent(**limits: Any) -> Any:
    return Field(default=None, json_schema_extra=never_null, **limits)


class Limited(BaseModel):
    limit: int = Field(50, ge=1, le=MOST_ROWS)


class Paging(Limited):
    """Which rows of a list: `next` of one answer is `cursor` of the next question."""

    cursor: int | None = absent(ge=0, le=BIGGEST_ID)
