"""What the doctor sees of beads: nothing without a project on it, else the program and each folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from labsite.doctor import facts, product
from labsite.doctor.lines import Line, Status
from tests import make
from tests.trackers.bd import Beads, environ

pytestmark = pytest.mark.django_db


@pytest.fixture
def place(tmp_path: Path) -> Beads:
    return Beads(tmp_path / "issues")


def lines() -> list[Line]:
    return list(product.beads(facts.told()["beads"]["value"]))


def test_no_project_on_beads_and_nobody_is_asked(place: Beads) -> None:
    make.a_project()
    assert lines() == []
    assert place.calls() == []


def test_a_missing_bd_is_told_with_the_projects_that_need_it(
    place: Beads, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("demo", "web"):
        make.a_project(name, tracker="beads", tracker_root=place.root)
    monkeypatch.setenv("PATH", str(tmp_path))
    (line,) = lines()
    assert line.status is Status.WRONG
    assert line.seen.startswith("demo, web: The command bd is not installed")


@pytest.mark.real
def test_a_bd_that_is_not_understood_is_told(place: Beads, monkeypatch: pytest.MonkeyPatch) -> None:
    make.a_project(tracker="beads", tracker_root=place.root)
    monkeypatch.setenv("PATH", environ(os.environ)["PATH"])
    (line,) = lines()
    assert (line.status, line.seen) == (
        Status.OK,
        "bd version 0.60.0 (double), 1 project can be read",
    )

    place.fault({"command": "ready", "status": 1, "err": "unknown flag: --limit"})
    (line,) = lines()
    assert line.status is Status.WRONG
    assert line.seen.startswith("demo: This version of bd does not know what labsite asked of it")
