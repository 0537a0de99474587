"""A database that goes away while a reviewer is asked: what it was asked costs money, and is asked once."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection

from runs import wiring
from runs.models import Settings
from runs.spending.day_rules import Used
from tests import make
from tests.gates.review_desk import Desk
from tests.gates.test_review import TELLS
from tests.real import RealWorld

pytestmark = pytest.mark.django_db(transaction=True)

# Writes down that it was asked; the first answer is prose.
TALKS = """
import pathlib, sys
asked = pathlib.Path(sys.argv[1])
number = len(asked.read_text()) if asked.exists() else 0
asked.write_text('x' * (number + 1))
print('Approved!' if not number else '{"findings": []}')
"""
COUNTS = "import pathlib, sys; at = pathlib.Path(sys.argv.pop()); at.open('a').write('x')\n" + TELLS


class Away:
    """A database that answers nothing once a reviewer was asked, until somebody waits for it."""

    def __init__(self, asked: Path) -> None:
        self.asked, self.is_back, self.refused = asked, False, 0

    def wait(self, seconds: float) -> None:
        self.is_back = True

    def __call__(self, execute: Any, *args: Any) -> Any:
        if self.asked.exists() and not self.is_back:
            self.refused += 1
            raise OperationalError("server closed the connection unexpectedly")
        return execute(*args)


@pytest.fixture
def desk(real: RealWorld) -> Desk:
    return Desk(real)


@pytest.mark.row("X-09", "MALA-V-99", level="contract")
@pytest.mark.parametrize("how", ["it used tokens", "it is asked once more"])
def test_a_database_that_is_away_when_a_reviewer_has_answered_costs_no_second_review(
    desk: Desk, how: str
) -> None:
    asked = desk.real.folder / "asked"
    if how == "it used tokens":
        said = json.dumps({"structured_output": {"findings": []}})
        argv = [sys.executable, "-c", COUNTS, said, "{prompt}", str(asked)]
        agent = make.an_agent("a", argv=argv, mode="one_shot", output="claude_stream_json")
        desk.reviewer("eyes", command=[], profile=agent)
    else:
        desk.reviewer("eyes", command=[sys.executable, "-c", TALKS, str(asked)])
    away = Away(asked)
    desk.lab = replace(desk.lab, pause=away.wait)
    with connection.execute_wrapper(away):
        assert desk.judge().passed
    assert away.refused
    row = desk.reviews()["eyes"]
    used_tokens = how == "it used tokens"
    assert len(asked.read_text()) == (1 if used_tokens else 2)
    assert row.used == (Used(1007, Decimal("0.25")) if used_tokens else Used())
    assert desk.is_tidy()


@pytest.mark.row("X-09", level="contract")
def test_git_goes_on_with_the_limit_that_it_had(transactional_db: None, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """A worktree is made and removed without the database; that asked for nothing but this limit."""
    Settings.objects.update_or_create(pk=1, defaults={"git_timeout_seconds": 77})
    monkeypatch.setattr(wiring, "_timeout_of", type(wiring._timeout_of)())

    def away(*_: Any) -> None:
        raise OperationalError("server closed the connection unexpectedly")

    with connection.execute_wrapper(away), pytest.raises(OperationalError):
        wiring._git_timeout()
    assert wiring._git_timeout() == 77
    Settings.objects.update(git_timeout_seconds=78)
    wiring._timeout_of.at = time.monotonic() - 6
    with connection.execute_wrapper(away):
        assert wiring._git_timeout() == 77
    wiring._timeout_of.at = time.monotonic() - 6
    assert wiring._git_timeout() == 78
