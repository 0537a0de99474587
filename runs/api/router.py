"""The router of every part of the API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ninja
from ninja.constants import NOT_SET

from runs.api.schemas import Problem


class Refusal(ninja.Schema):
    """What Ninja makes of a shape, for the one that all refusals have."""

    response: Problem


class Router(ninja.Router):
    """Ninja's, with one model for all refusals.

    Ninja makes a model for each status of each operation. Nearly all of those are refusals, and
    to make them took half of the time in which the API was loaded.
    """

    def add_api_operation(
        self,
        path: str,
        methods: list[str],
        view_func: Callable[..., Any],
        *,
        response: Any = NOT_SET,
        **more: Any,
    ) -> None:
        """An operation that answers what `runs.api.replies` lists."""
        answers = {status: shape for status, shape in response.items() if shape is not Problem}
        super().add_api_operation(path, methods, view_func, response=answers, **more)
        made = self.path_operations[path].operations[-1]
        for key, shape in response.items():
            if shape is Problem:
                statuses = [key] if isinstance(key, int) else key
                made.response_models |= dict.fromkeys(statuses, Refusal)
