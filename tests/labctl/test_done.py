"""`labctl done` against the real server, real git, and beads: it asks for a look and says what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runs.models import Notice, Project, Run
from tests.desk import Desk
from tests.labctl.session import Session
from tests.real import RealWorld, git


@pytest.fixture
def desk(real: RealWorld) -> Desk:
    made = Desk(real)
    Run.objects.filter(pk=made.run.pk).update(issue_key="bd-7")
    return made


@pytest.fixture
def session(desk: Desk, live_server: Any, tmp_path: Path) -> Session:
    made = Session(tmp_path / "session", token=desk.token, key="bd-7", cwd=desk.tree)
    made.address.write_text(live_server.url)
    return made


@pytest.fixture
def beads(desk: Desk) -> None:
    root = desk.real.beads().root
    Project.objects.filter(pk=desk.project.pk).update(tracker="beads", tracker_root=root)


@pytest.mark.row("C-07", level="real")
@pytest.mark.usefixtures("beads")
def test_it_says_step_by_step_what_is_missing_until_nothing_is(
    session: Session, desk: Desk
) -> None:
    said = session.run("done")
    assert (said.code, said.out) == (1, "")
    assert "Not done yet:\n  there is no commit on afk/7 since the run began\n" in said.err

    desk.commit()
    said = session.run("done")
    assert "no commit whose message names bd-7" in said.err
    assert "git push origin afk/7" in said.err

    git(desk.tree, "commit", "-q", "--amend", "-m", "feat: greet again (bd-7)")
    desk.push()
    desk.real.bell.looks.clear()
    for _ in range(2):
        said = session.run("done")
        assert (said.code, said.err) == (0, "")
        assert "1 committed up to " in said.out
        assert ", pushed, named in " in said.out
    assert desk.real.bell.looks == ["demo", "demo"]
    run = Run.objects.get()
    assert run.look_asked_at is not None
    assert run.is_active, "the judge ends it, not the command"
    assert Notice.objects.filter(text__contains="says that it is done").count() == 1


@pytest.mark.row("C-07", level="real")
@pytest.mark.usefixtures("beads")
def test_an_origin_that_is_silent_is_no_reason_to_go_on(session: Session, desk: Desk) -> None:
    desk.commit()
    git(desk.tree, "commit", "-q", "--amend", "-m", "feat: greet again (bd-7)")
    Project.objects.filter(pk=desk.project.pk).update(url=str(desk.real.folder / "nowhere.git"))

    said = session.run("done")

    assert said.code == 0
    assert "looks again by itself" in said.out
    assert Run.objects.get().look_asked_at is not None


@pytest.mark.row("C-07", level="real")
def test_where_there_are_pull_requests_one_is_asked_for(session: Session) -> None:
    said = session.run("done")
    assert said.code == 1
    assert "labctl pr create" in said.err
    assert Run.objects.get().look_asked_at is None


@pytest.mark.usefixtures("beads")
def test_a_pull_request_is_refused_where_there_are_none(session: Session, desk: Desk) -> None:
    desk.commit()
    desk.push()
    said = session.run("pr", "create", "-t", "x")
    assert said.code == 1
    assert "labctl done" in said.err
