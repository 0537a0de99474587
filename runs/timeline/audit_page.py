"""What the page of acts shows: one page of them, newest first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import urlencode

from runs.core.ports import Lab
from runs.overview import board
from runs.overview.board import Board
from runs.timeline import audit
from runs.timeline.audit import Wanted

PAGE = 50


@dataclass(frozen=True, slots=True)
class AuditPage:
    """The newest acts of everybody, as a push shows them."""

    board: Board
    facts: Mapping[str, Any]


def pushed(lab: Lab) -> AuditPage:
    """The first page without a filter. Five queries."""
    return AuditPage(board.load(lab), facts(Wanted()))


def facts(wanted: Wanted) -> Mapping[str, Any]:
    """The acts that fit, and the way to older ones. One query."""
    found = audit.acts(wanted, PAGE + 1)
    older = _address(replace(wanted, before=found[PAGE - 1].pk)) if len(found) > PAGE else ""
    return {"acts": found[:PAGE], "older": older, "is_narrowed": wanted != Wanted()}


def _address(wanted: Wanted) -> str:
    """The query string of a filter; always starts with `?`."""
    return "?" + urlencode({name: value for name, value in asdict(wanted).items() if value})
