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
    Field,
    create_model,
)

from runs.api.given import BIGGEST_ID as BIGGEST_ID
from runs.api.given import BIGGEST_NUMBER as BIGGEST_NUMBER
from runs.api.given import MOST_ROWS as MOST_ROWS
from runs.api.given import NO_NUL as NO_NUL
from runs.api.given import WHOLE as WHOLE
from runs.api.given import Given as Given
from runs.api.given import Limited, never_null
from runs.api.given import Paging as Paging
from runs.api.given import absent as absent
from runs.core.states import NoticeKind, Outcome
from runs.core.writing import TEXT_LIMIT, TITLE_LIMIT
from runs.history.filters import MOST_MONEY, Sort, placed
from runs.models import Settings
from runs.settings.acts import NUMBERS
from trackers.base import Side

# In addresses, bounded so that no database is asked for a number that it cannot hold.
ProjectId = Annotated[int, Path(ge=1, le=BIGGEST_ID)]
AgentId = Annotated[int, Path(ge=1, le=BIGGEST_ID)]
RunId = Annotated[int, Path(ge=1, le=BIGGEST_ID)]
Number = Annotated[int, Path(ge=1, le=BIGGEST_NUMBER)]
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _day(given: object) -> object:
    """A day is written as one; a number of seconds is none."""
    if isinstance(given, str) and not _DAY.fullmatch(given):
        raise ValueError("Write a day as 2026-11-21")
    return given


Day = Annotated[date, BeforeValidator(_day)]
Name = Annotated[str, Field(max_length=60, pattern=NO_NUL)]
Address = Annotated[str, Field(max_length=500, pattern=NO_NUL)]
Title = Annotated[str, Field(min_length=1, max_length=TITLE_LIMIT, pattern=NO_NUL)]
LongText = Annotated[str, Field(max_length=TEXT_LIMIT, pattern=NO_NUL)]
Labels = Annotated[list[Name], Field(max_length=100)]


def _one_of(schema: dict[str, Any]) -> None:
    never_null(schema)
    schema["enum"] = list(OUTCOMES)


OUTCOMES = ("active", *(one.value for one in Outcome))


def _known_outcome(text: str) -> str:
    if text not in OUTCOMES:
        raise ValueError(f"Write one of {', '.join(OUTCOMES)}")
    return text


class IssueFilter(Paging):
    state: Literal["open", "closed", "all"] = "open"
    label: str = Field("", max_length=60, pattern=NO_NUL)
    text: str = Field("", max_length=200, pattern=NO_NUL)


class PullFilter(Paging):
    state: Literal["open", "ended", "all"] = "open"


def _known_place(text: str) -> str:
    try:
        placed(text)
    except ValueError:
        raise ValueError("Write what an answer gave as next") from None
    return text


class RunFilter(Limited):
    """What is left out narrows nothing. `since` and `until` are days of UTC on which runs ended, both
    included; `least` and `most` are dollars. `text` is looked for in titles and branches. A minus
    in `sort` begins with the newest, longest or dearest. `cursor` is `next` of the page before."""

    cursor: Annotated[str, AfterValidator(_known_place)] | None = absent(
        max_length=40, pattern=r"^[0-9]+(\.[0-9]+)?$"
    )
    outcome: Annotated[str, AfterValidator(_known_outcome)] | None = Field(
        None, json_schema_extra=_one_of
    )
    project: int | None = absent(ge=1, le=BIGGEST_ID)
    issue: str = Field("", max_length=60, pattern=NO_NUL)
    agent: str = Field("", max_length=60, pattern=NO_NUL)
    model: str = Field("", max_length=100, pattern=NO_NUL)
    person: str = Field("", max_length=150, pattern=NO_NUL)
    since: Day | None = absent()
    until: Day | None = absent()
    text: str = Field("", max_length=200, pattern=NO_NUL)
    least: float | None = absent(ge=0, le=float(MOST_MONEY), allow_inf_nan=False)
    most: float | None = absent(ge=0, le=float(MOST_MONEY), allow_inf_nan=False)
    sort: Sort = Sort.STARTED


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
    """What was looked at. When the branch or its target is another by now, nothing is merged.

    `checks`: the state of the checks in spite of which it is merged; empty for none.
    """

    head: Annotated[str, Field(max_length=64, pattern=NO_NUL)] = ""
    into: Annotated[str, Field(max_length=200, pattern=NO_NUL)] = ""
    checks: Literal["", "failed", "missing", "running"] = ""


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
    """What the agent is told to go on with, at most 4,000 characters.

    With `as_loop` each turn begins anew in the worktree, where its session cannot be gone on with.
    """

    text: LongText
    as_loop: bool = False


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
