"""Which statuses an operation may answer with, for the description."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runs.api.schemas import Problem

ALWAYS = frozenset({400, 401, 404, 422, 500, 503})
CHANGING = ALWAYS | {403, 409, 502}
WITH_BODY = CHANGING | {413, 415}

Replies = Mapping[Any, Any]


def look(shape: Any) -> Replies:
    """A question: its answer, or a refusal."""
    return {200: shape, ALWAYS: Problem}


def act(shape: Any, *statuses: int) -> Replies:
    """A change without a body."""
    return {**dict.fromkeys(statuses or (200,), shape), CHANGING: Problem}


def edited(shape: Any) -> Replies:
    """A change with a body that may say with `If-Match` what it is to change."""
    return {**given(shape), 412: Problem}


def given(shape: Any, *statuses: int) -> Replies:
    """A change with a body."""
    return {**dict.fromkeys(statuses or (200,), shape), WITH_BODY: Problem}
