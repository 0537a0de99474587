"""What the HTTP API takes: queries and bodies.

Unknown fields are refused, and so are texts and numbers that a database cannot keep.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Any, Literal

from django.db.models import DecimalField
from ninja import Path
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    create_model,
)

from runs.core.states import NoticeKind, Outcome
from runs.core.writing import TEXT_LIMIT, TITLE_LIMIT
from runs.models import Settings
from runs.settings.acts import NUMBERS
from trackers.base import Side

MOST_ROWS = 200
BIGGEST_ID = 2**63 - 1
BIGGEST_NUMBER = 2**31 - 1
# In addresses, bounded so that no database is asked for a number that it cannot hold.
ProjectId = Annotated[int, Path(ge=1, le=BIGGEST_ID)]
AgentId = Annotated[int, Path(ge=1, le=BIGGEST_ID)]
RunId = Annotated[int, Path(ge=1, le=BIGGEST_ID)]
Number = Annotated[int, Path(ge=1, le=BIGGEST_NUMBER)]
NO_NUL = r"^[^\x00]*$"
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _whole(given: object) -> object:
    """JSON knows no whole numbers: 5.0 is the same as 5."""
    return int(given) if isinstance(given, float) and given.is_integer() else given


def _day(given: object) -> object:
    """A day is written as one; a number of seconds is none."""
    if isinstance(given, str) and not _DAY.fullmatch(given):
        raise ValueError("Write a day as 2026-11-21")
    return given


WHOLE = BeforeValidator(_whole)
Day = Annotated[date, BeforeValidator(_day)]
Name = Annotated[str, Field(max_length=60, pattern=NO_NUL)]
Address = Annotated[str, Field(max_length=500, pattern=NO_NUL)]
Title = Annotated[str, Field(min_length=1, max_length=TITLE_LIMIT, pattern=NO_NUL)]
LongText = Annotated[str, Field(max_length=TEXT_LIMIT, pattern=NO_NUL)]
Labels = Annotated[list[Name], Field(max_length=100)]


class Given(BaseModel):
    """A request's body."""

    model_config = ConfigDict(extra="forbid", strict=True)


def _never_null(schema: dict[str, Any]) -> None:
    """A part of a query may be left out; there is no way to write null in one."""
    schema.update(schema.pop("anyOf")[0])
    schema.pop("default", None)


def absent(**limits: Any) -> Any:
    return Field(default=None, json_schema_extra=_never_null, **limits)


def _one_of(schema: dict[str, Any]) -> None:
    _never_null(schema)
    schema["enum"] = list(OUTCOMES)


OUTCOMES = ("active", *(one.value for one in Outcome))


def _known_outcome(text: str) -> str:
    if text not in OUTCOMES:
        raise ValueError(f"Write one of {', '.join(OUTCOMES)}")
    return text


class Paging(BaseModel):
    """Which rows of a list: `next` of one answer is `cursor` of the next question."""

    limit: int = Field(50, ge=1, le=MOST_ROWS)
    cursor: int | None = absent(ge=0, le=BIGGEST_ID)


class IssueFilter(Paging):
    state: Literal["open", "closed", "all"] = "open"
    label: str = Field("", max_length=60, pattern=NO_NUL)
    text: str = Field("", max_length=200, pattern=NO_NUL)


class PullFilter(Paging):
    state: Literal["open", "ended", "all"] = "open"


class RunFilter(Paging):
    outcome: Annotated[str, AfterValidator(_known_outcome)] | None = Field(
        None, json_schema_extra=_one_of
    )
    project: int | None = absent(ge=1, le=BIGGEST_ID)
    issue: str = Field("", max_length=60, pattern=NO_NUL)


class Following(BaseModel):
    """Where to begin on the timeline; without `project` the entries of all."""

    after: int = Field(0, ge=0, le=BIGGEST_ID)
    limit: int = Field(50, ge=1, le=MOST_ROWS)
    project: int | None = absent(ge=1, le=BIGGEST_ID)


class AuditFilter(Paging):
    """What is left out narrows nothing. `text` is looked for in the entry's words."""

    by: str = Field("", max_length=150, pattern=NO_NUL)
    kind: NoticeKind | None = absent()
    project: int | None = absent(ge=1, le=BIGGEST_ID)
    since: Day | None = absent()
    until: Day | None = absent()
    text: str = Field("", max_length=200, pattern=NO_NUL)


class From(BaseModel):
    """Where a stream begins; without it, with what comes next."""

    after: int | None = absent(ge=0, le=BIGGEST_ID)


class NewProject(Given):
    """A project to be added. An empty name becomes the repository's name."""

    source: Annotated[str, Field(min_length=1, max_length=500, pattern=NO_NUL)]
    name: Name = ""
    token: Address = ""
    tracker: Literal["builtin", "beads"] = "builtin"
    forge: Annotated[int, WHOLE, Field(ge=1, le=BIGGEST_ID)] | None = None


class NewIssue(Given):
    title: Title
    body: LongText = ""
    labels: Labels = []


class IssueEdit(Given):
    """What is left out stays as it is."""

    title: Title | None = None
    body: LongText | None = None


class NewComment(Given):
    body: LongText


class NewPullComment(Given):
    """A comment on the whole pull request, or with `path` and `line` on one line of its diff."""

    body: LongText
    path: Annotated[str, Field(max_length=4096, pattern=NO_NUL)] = ""
    line: Annotated[int, Field(ge=1, le=BIGGEST_NUMBER), WHOLE] | None = None
    side: Side = Side.NEW
    commit: Annotated[str, Field(max_length=64, pattern=NO_NUL)] = ""


class MergeGiven(Given):
    """What was looked at. When the branch or its target is another by now, nothing is merged."""

    head: Annotated[str, Field(max_length=64, pattern=NO_NUL)] = ""
    into: Annotated[str, Field(max_length=200, pattern=NO_NUL)] = ""


class LabelsGiven(Given):
    labels: Labels


class AutoGiven(Given):
    is_auto: Annotated[bool, Field(strict=True)]


class StateGiven(Given):
    state: Literal["open", "closed"]


class StartGiven(Given):
    """Which issue to start. Without one, the lowest ready issue that nobody has claimed."""

    issue: Name | None = None


class FollowUp(Given):
    """What the agent is told to go on with, at most 4,000 characters."""

    text: LongText


class Changes(Given):
    """What is to be changed; may be empty where the pull request was commented on."""

    text: LongText = ""


class Choice(Given):
    """Agent, model and effort for new sessions, from the closed lists of `GET /agents`."""

    agent: Annotated[int, Field(ge=1, le=BIGGEST_ID), WHOLE]
    model: Annotated[str, Field(max_length=100, pattern=NO_NUL)] = ""
    effort: Annotated[str, Field(max_length=40, pattern=NO_NUL)] = ""


def _number(name: str) -> tuple[Any, Any]:
    """A tunable number with the limits that the model itself checks."""
    field: Any = Settings._meta.get_field(name)
    limits = {
        check.code: check.limit_value for check in field.validators if hasattr(check, "limit_value")
    }
    between = Field(ge=limits["min_value"], le=limits["max_value"])
    kind: Any = Annotated[int, between, WHOLE]
    if isinstance(field, DecimalField):
        most = Field(ge=float(limits["min_value"]), le=float(limits["max_value"]))
        kind = Annotated[float, most]
    return kind | None, Field(None, description=str(field.help_text))


Numbers = create_model(  # type: ignore[call-overload]
    "Numbers", __base__=Given, **{name: _number(name) for name in NUMBERS}
)
