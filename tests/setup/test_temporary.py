"""A temporary folder of a run's own: short, private, counted, and gone with the run."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from runs import sweep
from runs.core import paths as core_paths
from runs.core.paths import Paths
from runs.core.ports import SeamError
from runs.core.states import Outcome, RunState
from runs.kept import disk
from runs.lifecycle import reaper, stop
from runs.machine.tmux import TmuxSessions
from runs.models import Project, Run
from tests import make
from tests.fakes import World
from tests.real import RealWorld
from tests.world.stories import look, passing, press_start, ready, start

NAME_OF_FIFTY = "vscode-git-0123456789-0123456789-0123456789.sock"


@pytest.mark.pure
@pytest.mark.parametrize("state", ["/srv/lab", "/home/anna/.local/share/labsite", "/x" * 80])
def test_a_socket_with_a_long_name_fits_into_it(state: str) -> None:
    folder = Paths(Path(state)).temporary_folder(999_999)
    assert len(f"{folder}/{NAME_OF_FIFTY}") < 108
    assert (folder.parent == Path(state) / "tmp") is (len(state) < 40)


@pytest.mark.pure
def test_the_state_folder_may_be_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_paths, "_TEMPORARY_LIMIT", 1000)
    (tmp_path / "state").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "state")
    folder = Paths(link).temporary_folder(7)
    for _ in "12":
        TmuxSessions(Paths(link), {}).make_temporary(folder)
    assert (tmp_path / "state/tmp/7").stat().st_mode & 0o777 == 0o700


@pytest.mark.pure
@pytest.mark.parametrize("name", [".", "tmp", "tmp/7"])
def test_no_link_on_the_way_is_followed_where_others_have_theirs_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    paths = Paths(Path("/x" * 80))
    link = paths.shared_place / name
    link.parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "elsewhere").mkdir()
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SeamError, match=f"{link} belongs to somebody else"):
        TmuxSessions(paths, {}).make_temporary(paths.temporary_folder(7))
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.django_db(transaction=True)
def test_it_is_there_before_the_set_up_and_stays_while_the_run_does(world: World) -> None:
    project = make.a_project(agent=make.an_agent(), setup="npm ci")
    world.tracker.add_root("demo")
    there: list[set[Path]] = []
    world.checks.meanwhile = lambda check: there.append(set(world.sessions.temporary))
    run = start(world, project)
    folder = world.lab.paths.temporary_folder(run.pk)
    assert there == [{folder}]
    assert world.checks.ran[0].env["TMPDIR"] == str(folder)
    assert world.sessions.orders[run.session].env["TMPDIR"] == str(folder)
    assert not folder.is_relative_to(run.worktree)
    stop.stop(world.lab, run, "anna")
    look(world)
    assert Run.objects.get().settled_at is not None
    assert world.sessions.temporary == set()


@pytest.mark.django_db(transaction=True)
def test_a_profile_may_name_another(world: World) -> None:
    project = make.a_project(agent=make.an_agent(env={"TMPDIR": "/var/tmp/mine"}))
    world.tracker.add_root("demo")
    run = start(world, project)
    assert world.sessions.orders[run.session].env["TMPDIR"] == "/var/tmp/mine"


@pytest.mark.django_db(transaction=True)
def test_that_of_a_held_run_stays(world: World) -> None:
    run = make.a_run(make.a_project(), "7", state=RunState.HELD, held_at=world.clock.now)
    folder = world.lab.paths.temporary_folder(run.pk)
    world.sessions.temporary.add(folder)
    reaper.rest(world.lab, run)
    assert world.sessions.temporary == {folder}


@pytest.mark.django_db(transaction=True)
def test_it_counts_as_disk_use_of_its_project(world: World) -> None:
    project: Project = make.a_project()
    run = make.a_run(project, "7")
    settled = make.a_run(project, "8", outcome=Outcome.SUCCEEDED, settled_at=world.clock.now)
    paths = world.lab.paths
    world.repos.sizes_of = {
        project.repo(paths): 1000,
        paths.temporary_folder(run.pk): 200,
        paths.temporary_folder(settled.pk): 30,
    }
    assert disk.measure(world.lab, project) == 1200


@pytest.mark.real
@pytest.mark.django_db(transaction=True)
def test_an_agent_makes_a_socket_in_it_and_all_of_it_goes_with_the_run(real: RealWorld) -> None:
    line = "python3 -c \"import os, socket, time; at = os.environ['TMPDIR']; "
    line += f"socket.socket(socket.AF_UNIX).bind(at + '/{NAME_OF_FIFTY}'); "
    line += "os.makedirs(at + '/closed/inner'); open(at + '/closed/inner/x', 'w').close(); "
    line += "os.chmod(at + '/closed/inner', 0); os.chmod(at + '/closed', 0); time.sleep(600)\""
    project = real.project(argv=["/bin/sh", "-c", line])
    ready(real)
    run = press_start(real, project).run
    assert run is not None
    folder = real.paths.temporary_folder(run.pk)
    assert folder.stat().st_mode & 0o777 == 0o700
    real.until(lambda: (folder / "closed").exists() and (folder / "closed").stat().st_mode & 7 == 0)
    assert (folder / NAME_OF_FIFTY).is_socket()
    assert not real.repos.is_dirty(Path(run.worktree))
    stop.stop(real.lab, run, "anna")
    look(real)
    assert not folder.exists()


@pytest.mark.real
@pytest.mark.django_db(transaction=True)
def test_what_no_run_needs_is_removed_by_the_first_tick(real: RealWorld) -> None:
    project = real.project()
    ready(real)
    run = press_start(real, project).run
    assert run is not None
    mine, lost = (real.paths.temporary_folder(pk) for pk in (run.pk, run.pk + 100))
    odd = real.paths.temporary / "not-a-run"
    for folder in (lost, odd):
        folder.mkdir()
    sweep.reconcile(passing(real), real.sessions.look())
    assert mine.is_dir()
    assert odd.is_dir()
    assert not lost.exists()
