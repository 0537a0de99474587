"""The end-to-end check by labsite's own `./lab watch`, really: a second labsite on the fixture."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from runs.models import AgentProfile, Project
from runs.validation import clean_room
from runs.validation.clean_room import ByHand
from runs.validation.specs import E2E, Coverage, Scope, Spec
from tests.real import RealWorld
from tests.validation.test_e2e import left, room_of

pytestmark = pytest.mark.django_db(transaction=True)

# What an agent does, without a model: the file that the issue asks for, a commit that names the
# issue, and an end with status 0. What it was started with is told to the test.
AGENT = """
import pathlib, subprocess
with open({told!r}, "a") as told:
    told.write(str(pathlib.Path.cwd()) + chr(10))
pathlib.Path("GREETING.txt").write_text("hello" + chr(10))
who = ["-c", "user.name=agent", "-c", "user.email=agent@localhost"]
subprocess.run(["git", "add", "-A"], check=True)
subprocess.run(["git", *who, "commit", "-qm", "feat: greet (bd-1, #1)"], check=True)
subprocess.run(["git", "push", "-q", "origin", "HEAD"], check=True)
"""


def own(real: RealWorld, code: str, **terms: int):  # type: ignore[no-untyped-def]
    project = real.project(argv=[sys.executable, "-c", code, "{prompt}"])
    AgentProfile.objects.update(mode=AgentProfile.Mode.ONE_SHOT)
    project.refresh_from_db()
    spec = Spec((), True, True, Coverage(False), E2E(**terms), Scope.RUN_LEVEL)
    room = room_of(real, project)
    return room, clean_room.run(real.lab, room, spec, ByHand(lambda: True))


def output(room, name: str) -> str:  # type: ignore[no-untyped-def]
    path = room.folder / f"{room.attempt}-{name}.txt"
    return path.read_text() if path.exists() else ""


@pytest.mark.row("MALA-V-74", "MALA-V-101", "MALA-V-102", level="real")
def test_a_second_labsite_takes_the_issue_through_and_is_gone_afterwards(
    real: RealWorld, tmp_path: Path
) -> None:
    told = tmp_path / "told"
    room, found = own(real, AGENT.format(told=str(told)))
    assert found.e2e is not None
    assert found.e2e["passed"], (found.e2e, output(room, "e2e"), output(room, "e2e-look"))
    (where,) = told.read_text().splitlines()
    assert str(real.paths.e2e_fixtures) in where
    assert left(real) == []
    assert Project.objects.count() == 1
    for entry in Path("/proc").glob("[0-9]*/cwd"):
        try:
            at = entry.readlink()
        except OSError:
            continue
        assert not str(at).startswith(str(real.paths.e2e_fixtures))
