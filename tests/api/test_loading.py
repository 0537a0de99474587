"""What it costs to load the API, which every start of the web process pays."""

from __future__ import annotations

from ninja.operation import Operation

from runs.api.api import api
from runs.api.router import Refusal


def operations() -> list[Operation]:
    """Every operation as the API holds it."""
    return [
        one
        for _, router in api._routers
        for view in router.path_operations.values()
        for one in view.operations
    ]


def test_all_refusals_of_all_operations_share_one_model() -> None:
    refusals = [
        model
        for one in operations()
        for status, model in one.response_models.items()
        if status >= 400
    ]

    assert len(refusals) > 500
    assert set(refusals) == {Refusal}


def test_every_operation_still_tells_what_it_answers_when_it_goes_well() -> None:
    silent = [
        one.view_func.__name__
        for one in operations()
        if not any(status < 400 for status in one.response_models)
    ]

    assert silent == ["timeline_stream"]
