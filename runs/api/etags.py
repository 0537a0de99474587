"""`ETag` and `If-Match`: a program that says what it read overwrites nobody's later change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from django.http import HttpRequest, HttpResponse
from pydantic import BaseModel

from runs.settings import edits
from runs.web.refusals import Denied

Shown = TypeVar("Shown", bound=BaseModel)


def given(request: HttpRequest) -> str:
    """The mark that a program says it read; empty for none, or for whatever there is."""
    seen = request.headers.get("If-Match", "").strip().removeprefix("W/").strip('"')
    return "" if seen == "*" else seen


def mark(response: HttpResponse, shown: Shown, values: Mapping[str, Any] | None = None) -> Shown:
    """The answer with the mark of its values as `ETag`; of all of them, where none are named."""
    response["ETag"] = (
        f'"{edits.mark(shown.model_dump(mode="json") if values is None else values)}"'
    )
    return shown


def check(request: HttpRequest, shown: BaseModel) -> None:
    """Raises Denied with 412 when what there is now is not what was read."""
    try:
        edits.check(given(request), shown.model_dump(mode="json"))
    except edits.ChangedMeanwhile as meanwhile:
        raise refused(meanwhile) from meanwhile


def refused(meanwhile: edits.ChangedMeanwhile) -> Denied:
    """What a change meanwhile means to a program."""
    return Denied(412, meanwhile.code, meanwhile.text)
