"""Validations on a real product whose worker is killed, or told to end, while a command runs."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runs.core.paths import Paths
from tests.house.product import Product, is_gone, until
from tests.repositories import a_checkout
from tests.web.daphne_fixture import Served

# Beside the worktree it notes each process of its own; it ends when it may.
COMMAND = "sh -c 'echo $$ >> ../pids; while [ ! -e ../go ]; do sleep 0.1; done; echo over'"
MADE = """
from django.db import transaction
from runs.models import Validation, WatchSession
from runs.projects import acts as projects; from runs.validation import acts as validations
Settings.current()
project = projects.add(lab, name="shop", source={source!r}, token="", by="anna")
"""
BEGIN = """
Project.objects.update(checks={command!r}, tracker="")
project = Project.objects.get()
session = WatchSession.objects.create(project=project, opened_at=lab.now(), phase="validating",
    validation="running", completed=3)
with transaction.atomic():
    validations.begin(lab, session)
"""
FACTS = """
row = Validation.objects.values("state", "losses", "results", "number", "settled_at").first() or {}
result = {**row, "settled_at": str(row.get("settled_at") or ""), "project": Project.objects.get().state,
    "count": Validation.objects.count()}
"""


@pytest.fixture
def hand(used: Path) -> Iterator[Served]:
    made = Served(used)
    yield made
    made.close()


def _pids(used: Path) -> list[int]:
    noted = Paths(used).worktrees / "pids"
    return [int(line) for line in noted.read_text().split()] if noted.exists() else []


def _begun(used: Path, hand: Served, product: Product, tmp_path: Path) -> None:
    """A validation whose one command runs."""
    source = a_checkout(tmp_path / "shop", tmp_path / "shop-origin.git")
    hand.do(MADE.format(source=str(source)))
    until(lambda: hand.do(FACTS)["project"] == "ready", told=lambda: product.log)
    hand.do(BEGIN.format(command=COMMAND))
    until(lambda: _pids(used), told=lambda: product.log)


def _ends(used: Path, hand: Served, product: Product) -> dict[str, Any]:
    """Let the command end; what is stored then."""
    (Paths(used).worktrees / "go").touch()
    until(lambda: hand.do(FACTS)["settled_at"], told=lambda: product.log)
    return dict(hand.do(FACTS))


@pytest.mark.both_databases
@pytest.mark.row("MALA-W-13", level="real")
def test_a_killed_worker_costs_one_run_of_the_commands_and_an_ended_product_none(
    used: Path, hand: Served, start: Callable[..., Product], tmp_path: Path
) -> None:
    product = start()
    _begun(used, hand, product, tmp_path)
    os.kill(product.children()["worker"], signal.SIGKILL)
    until(lambda: len(_pids(used)) == 2, told=lambda: product.log)
    first, second = _pids(used)
    assert is_gone(first)
    assert not is_gone(second)

    product.press_ctrl_c()
    product.wait()
    assert is_gone(second)
    found = hand.do(FACTS)
    assert (found["state"], found["losses"]) == ("running", 1)

    product = start()
    until(lambda: len(_pids(used)) == 3, told=lambda: product.log)
    found = _ends(used, hand, product)
    assert (found["state"], found["losses"], found["count"]) == ("passed", 1, 1)
    assert [one["tail"] for one in found["results"]] == ["over\n"]
    assert not list(Paths(used).worktrees.glob("*.check-*"))
    assert len(_pids(used)) == 3
    assert "Traceback" not in product.log
