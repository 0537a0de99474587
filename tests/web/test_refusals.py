"""What a refusal means to a program that asked over HTTP."""

from __future__ import annotations

import pytest

from runs.core.refusal import ActRefused
from runs.web.refusals import denial

NO, AT_NAME = "No.", {"name": "No."}


@pytest.mark.parametrize(
    ("refused", "status", "code", "fields"),
    [
        pytest.param(ActRefused(NO), 409, "refused", {}, id="makes no sense now"),
        pytest.param(ActRefused(NO, code="busy"), 409, "busy", {}, id="a code of its own"),
        pytest.param(ActRefused(NO, code="not_managed"), 400, "not_managed", {}, id="not ours"),
        pytest.param(ActRefused(NO, field="name"), 422, "invalid", AT_NAME, id="a wrong field"),
        pytest.param(ActRefused(NO, fields=AT_NAME), 422, "invalid", AT_NAME, id="wrong fields"),
        pytest.param(
            ActRefused(NO, code="invalid", field="name"), 422, "invalid", AT_NAME, id="said invalid"
        ),
        pytest.param(
            ActRefused(NO, code="name_taken", field="name"), 409, "name_taken", AT_NAME, id="taken"
        ),
    ],
)
def test_a_refusal_is_a_status_a_code_and_its_fields(
    refused: ActRefused, status: int, code: str, fields: dict[str, str]
) -> None:
    denied = denial(refused)
    assert (denied.status, denied.code, denied.text, denied.fields) == (status, code, NO, fields)
