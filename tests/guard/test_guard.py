"""The repository that runs share is put right, and it is told of the runs that worked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runs.core.kept_ports import SharedState
from runs.gates import runner as gates
from runs.guard import acts
from runs.guard.shared_files import ACCEPTED, ASIDE, SharedFiles
from runs.models import Attempt, Fixer, Notice, Run, Validation
from runs.validation import endings, fixer_endings
from tests import make
from tests.fakes import START
from tests.guard.test_rules import CONFIG, HEAD, USUAL

HOOKED = SharedState({**USUAL.files, "config": CONFIG + "[core]\n\thooksPath = /x\n"})


def told(run: Run) -> list[str]:
    rows = Notice.objects.filter(run=run, kind="run.warned").order_by("pk")
    return [row.text for row in rows]


@pytest.fixture
def project(world):
    project = make.a_project()
    world.repos.shared[project.repo(world.lab.paths)] = USUAL
    return project


def shared(world, project) -> SharedState:
    return world.repos.shared[project.repo(world.lab.paths)]


def change(world, project, state: SharedState) -> None:
    world.repos.shared[project.repo(world.lab.paths)] = state


@pytest.mark.django_db
def test_a_change_is_put_back_and_told_once_of_the_run_that_worked(world, project):
    run = make.a_run(project, started_at=None)
    acts.check_shared(world.lab, run.project)
    Run.objects.update(started_at=START)
    change(world, project, HOOKED)

    for _ in range(2):
        acts.check_shared(world.lab, run.project)
    assert shared(world, project) == USUAL
    assert len(told(run)) == 1
    assert "core.hookspath" in told(run)[0]


@pytest.mark.django_db
def test_what_a_program_does_before_its_start_was_seen_is_told_of_it_and_no_person_s(
    world, project
):
    run = make.a_run(project, started_at=None, state="starting", launcher="one that lives")
    acts.check_shared(world.lab, run.project, starting=run)
    change(world, project, HOOKED)

    acts.check_shared(world.lab, run.project)
    assert shared(world, project) == USUAL
    assert "core.hookspath" in told(run)[0]


@pytest.mark.django_db
def test_what_a_neighbour_did_is_told_of_all_who_worked_and_not_of_the_one_that_starts(
    world, project
):
    first, second, third = (
        make.a_run(project, key, slot=slot, started_at=None)
        for slot, key in enumerate(("7", "8", "9"), 1)
    )
    acts.check_shared(world.lab, first.project)
    Run.objects.exclude(pk=third.pk).update(started_at=START)
    change(world, project, SharedState(USUAL.files, {"pre-commit": "x"}))

    acts.check_shared(world.lab, third.project)
    assert shared(world, project) == USUAL
    assert "1 other run worked" in told(first)[0]
    assert told(first) == told(second)
    assert told(third) == []


@pytest.mark.django_db
def test_what_a_person_changes_while_no_run_works_stays(world, project):
    run = make.a_run(project, started_at=None)
    acts.check_shared(world.lab, run.project)
    proxied = SharedState({**USUAL.files, "config": CONFIG + "[http]\n\tproxy = http://p\n"})
    change(world, project, proxied)
    acts.check_shared(world.lab, run.project)
    Run.objects.update(started_at=START)
    acts.check_shared(world.lab, run.project)
    assert shared(world, project) == proxied
    assert told(run) == []


@pytest.mark.django_db
def test_harm_of_before_the_guard_is_put_right_at_the_next_start(world, project):
    change(world, project, HOOKED)
    run = make.a_run(project, started_at=None)
    acts.check_shared(world.lab, run.project)
    assert "hooksPath" not in shared(world, project).files["config"]
    assert told(run) == []
    row = Notice.objects.get(kind="project.warned")
    assert row.text.startswith("The shared repository could not be used with")
    assert "core.hookspath. labsite put that right" in row.text


@pytest.mark.django_db
def test_while_runs_work_it_is_looked_at_all_the_time(world, project, django_assert_num_queries):
    run = make.a_run(project, started_at=None)
    acts.check_shared(world.lab, project)
    Run.objects.update(started_at=START)
    with django_assert_num_queries(0):
        acts.watch(world.lab, [run])
    change(world, project, HOOKED)
    acts.watch(world.lab, [run])
    assert shared(world, project) == USUAL
    assert len(told(run)) == 1


@pytest.mark.django_db
def test_runs_that_are_settled_or_elsewhere_are_not_told(world, project):
    settled = make.a_run(project, "6", slot=3, outcome="succeeded")
    other = make.a_run(project, "8", slot=2, host="other")
    run = make.a_run(project, started_at=None)
    acts.check_shared(world.lab, run.project)
    change(world, project, HOOKED)
    acts.check_shared(world.lab, run.project)
    assert told(settled) == told(other) == []


@pytest.mark.django_db
def test_a_repository_that_cannot_be_read_is_left_alone(world):
    run = make.a_run(make.a_project())
    acts.check_shared(world.lab, run.project)
    assert told(run) == []
    assert world.repos.accepted == {}


@pytest.mark.django_db
def test_what_a_run_did_to_its_own_repository_is_told_once(world, project):
    run = make.a_run(project, worktree="/tree")
    acts.check_own(world.lab, run)
    world.repos.settings_in[Path("/tree")] = "[core]\n\tbare = true\n"
    for _ in range(2):
        acts.check_own(world.lab, run)
    assert len(told(run)) == 1
    assert "core.bare was set" in told(run)[0]


UNREAD = SharedState({"HEAD": HEAD}, unread=frozenset({"config"}))


@pytest.mark.django_db
def test_what_cannot_be_read_is_accepted_by_nobody_and_put_back_while_runs_work(world, project):
    run = make.a_run(project, started_at=None)
    acts.check_shared(world.lab, project)
    change(world, project, UNREAD)
    acts.check_shared(world.lab, project)
    assert shared(world, project) == UNREAD
    assert list(world.repos.accepted.values()) == [USUAL]
    Run.objects.update(started_at=START)
    acts.check_shared(world.lab, project)
    assert shared(world, project) == USUAL
    assert "was changed: config." in told(run)[0]


@pytest.mark.django_db
def test_what_could_not_be_read_from_the_first_is_not_accepted_with_runs_either(world, project):
    make.a_run(project)
    change(world, project, UNREAD)
    acts.check_shared(world.lab, project)
    assert world.repos.accepted == {}


def a_validation(project, **fields):
    about = {"number": 1, "count": 1, "minutes": 1, "most_fixers": 1, "host": "local"} | fields
    run = make.a_run(project, "5", slot=4, outcome="succeeded")
    return Validation.objects.create(project=project, run=run, began_at=START, **about)


def a_fixer(project, **fields):
    row = a_validation(project, state="failed", ended_at=START, settled_at=START)
    about = {"validation": row, "host": "local", "number": 1, "asked_at": START, "session": "fix"}
    return Fixer.objects.create(project=project, **about, **fields)


def an_attempt(project, **fields):
    run = make.a_run(project, "5", slot=4, outcome="succeeded")
    about = {"project": project, "run": run, "host": "local", "number": 1, "began_at": START}
    return Attempt.objects.create(**about, **fields)


@pytest.mark.parametrize("make_row", [a_validation, a_fixer, an_attempt])
@pytest.mark.django_db
def test_what_checks_and_fixers_change_is_no_person_s(world, project, make_row):
    acts.check_shared(world.lab, project)
    make_row(project)
    change(world, project, HOOKED)
    acts.check_shared(world.lab, project)
    assert shared(world, project) == USUAL
    row = Notice.objects.get(kind="project.warned")
    assert row.text.startswith("While checks or a fixer worked, the shared repository")


@pytest.mark.parametrize("make_row", [a_validation, a_fixer, an_attempt])
@pytest.mark.django_db
def test_checks_and_fixers_of_other_hosts_change_nothing_here(world, project, make_row):
    make_row(project)
    changed = SharedState({**USUAL.files, "info/attributes": "* text\n"})
    for rows in (Validation, Fixer, Attempt):
        rows.objects.update(host="other")
    acts.check_shared(world.lab, project)
    change(world, project, changed)
    acts.check_shared(world.lab, project)
    assert shared(world, project) == changed


ENDINGS = {
    "validation": (a_validation, endings.settle),
    "fixer": (a_fixer, fixer_endings.settle),
    "attempt": (an_attempt, lambda lab, row: gates.HANDLER.close(lab, row, False)),
}


@pytest.mark.parametrize(("make_row", "settle"), ENDINGS.values(), ids=ENDINGS)
@pytest.mark.django_db
def test_what_they_did_last_is_put_back_when_they_are_settled(world, project, make_row, settle):
    acts.check_shared(world.lab, project)
    row = make_row(project)
    over = {"end": "delivered"} if make_row is a_fixer else {"state": "failed"}
    type(row).objects.filter(pk=row.pk).update(ended_at=START, **over)
    row.refresh_from_db()
    change(world, project, HOOKED)
    settle(world.lab, row)
    row.refresh_from_db()
    assert row.settled_at is not None
    assert shared(world, project) == USUAL
    assert "While checks or a fixer" in Notice.objects.get(kind="project.warned").text


@pytest.mark.django_db
def test_what_a_person_changed_before_a_validation_begins_stays(world, project):
    acts.check_shared(world.lab, project)
    row = a_validation(project)
    changed = SharedState({**USUAL.files, "info/attributes": "* text\n"})
    change(world, project, changed)
    acts.check_shared(world.lab, project, starting=row)
    acts.check_shared(world.lab, project)
    assert shared(world, project) == changed


# The files themselves.


@pytest.fixture
def repo(tmp_path):
    repo = tmp_path / "repo.git"
    for name in ("objects/info", "refs", "hooks", "info"):
        (repo / name).mkdir(parents=True)
    (repo / "config").write_text(CONFIG)
    (repo / "HEAD").write_text(HEAD)
    (repo / "hooks" / "update.sample").write_text("#!/bin/sh\n")
    return repo


def test_samples_of_hooks_are_none(repo):
    assert SharedFiles().read_shared(repo) == USUAL


def test_a_folder_without_a_repository_tells_nothing(tmp_path):
    assert SharedFiles().read_shared(tmp_path) is None


@pytest.mark.parametrize("text", ["", "no JSON", "[]", '{"files": 3, "hooks": {}}', '{"files": {"a": 1}, "hooks": {}}'])  # fmt: skip
def test_a_note_of_what_is_accepted_that_was_spoilt_tells_nothing(repo, text):
    files = SharedFiles()
    files.accept_shared(repo, USUAL)
    assert files.accepted_shared(repo) == USUAL
    (repo / ACCEPTED).write_text(text)
    assert files.accepted_shared(repo) is None


def test_files_are_written_whatever_stands_in_their_place(repo, tmp_path):
    files = SharedFiles()
    (repo / "config").unlink()
    (repo / "config").symlink_to(tmp_path / "mine")
    (tmp_path / "mine").write_text("mine")
    (repo / "HEAD").unlink()
    (repo / "HEAD").mkdir()
    (repo / "objects/info/alternates").write_text("/x\n")
    os.mkfifo(repo / "commondir")
    found = files.read_shared(repo)
    assert found is not None
    assert sorted(found.files) == ["objects/info/alternates"]
    assert found.unread == {"HEAD", "commondir", "config"}

    wanted = {"commondir": None, "objects/info/alternates": None, **USUAL.files}
    files.mend_shared(repo, wanted, [])
    assert files.read_shared(repo) == USUAL
    assert (tmp_path / "mine").read_text() == "mine"


def test_hooks_are_put_aside_not_deleted(repo, tmp_path):
    files = SharedFiles()
    hook = repo / "hooks" / "pre-commit"
    for text in ("first", "second"):
        hook.write_text(text)
        assert files.read_shared(repo).hooks.keys() == {"pre-commit"}
        files.mend_shared(repo, {}, ["pre-commit"])
        assert files.read_shared(repo) == USUAL
        assert (repo / ASIDE / "pre-commit").read_text() == text


def test_a_hook_that_is_made_executable_is_another_one(repo):
    hook = repo / "hooks" / "pre-commit"
    hook.write_text("x")
    before = SharedFiles().read_shared(repo)
    hook.chmod(0o755)
    assert SharedFiles().read_shared(repo) != before


def test_a_folder_of_hooks_that_is_a_link_goes(repo, tmp_path):
    files = SharedFiles()
    (repo / "hooks" / "update.sample").unlink()
    (repo / "hooks").rmdir()
    (repo / "hooks").symlink_to(tmp_path)
    assert files.read_shared(repo).hooks == {".": str(tmp_path)}
    files.mend_shared(repo, {}, ["."])
    assert files.read_shared(repo) == USUAL
    assert tmp_path.is_dir()


def test_bytes_survive(repo):
    files = SharedFiles()
    odd = CONFIG.encode() + b"# \xff\r\n"
    (repo / "config").write_bytes(odd)
    files.accept_shared(repo, files.read_shared(repo))
    accepted = files.accepted_shared(repo)
    assert accepted == files.read_shared(repo)
    (repo / "config").unlink()
    files.mend_shared(repo, accepted.files, [])
    assert (repo / "config").read_bytes() == odd


def test_what_is_too_large_is_not_read(repo):
    (repo / "config").write_text("#" * 1_000_001)
    found = SharedFiles().read_shared(repo)
    assert (dict(found.files), found.unread) == ({"HEAD": HEAD}, {"config"})


def test_a_folder_of_hooks_that_nobody_may_read_is_said_and_put_aside(repo, monkeypatch):
    files = SharedFiles()
    monkeypatch.setattr("os.access", lambda *_: False)  # root may read everything
    assert files.read_shared(repo).unread == {"hooks"}
    files.mend_shared(repo, {}, ["."])
    assert files.read_shared(repo) == USUAL


def test_a_hook_of_any_bytes_has_a_name_that_can_be_stored(repo):
    files = SharedFiles()
    for name in (b"a\xff", b"a\nb"):
        Path(os.fsdecode(os.fsencode(repo / "hooks") + b"/" + name)).write_text("x")
    assert sorted(files.read_shared(repo).hooks) == ["a\\nb", "a\\xff"]
    files.mend_shared(repo, {}, ["a\\nb", "a\\xff"])
    assert files.read_shared(repo) == USUAL


def test_a_binary_hook_is_told_from_another_one(repo):
    hook = repo / "hooks" / "update"
    hook.write_bytes(b"\xff1")
    before = SharedFiles().read_shared(repo)
    hook.write_bytes(b"\xff2")
    assert SharedFiles().read_shared(repo) != before


@pytest.mark.parametrize("aside", ["file", "link", "folder"])
def test_nothing_that_stands_aside_hinders_the_guard(repo, tmp_path, aside):
    files = SharedFiles()
    place = repo / ASIDE
    if aside == "file":
        place.write_text("x")
    elif aside == "link":
        place.symlink_to(tmp_path / "nowhere")
    else:
        (place / "config" / "deep").mkdir(parents=True)
        (place / "config" / "deep").chmod(0)
        place.chmod(0)
    (repo / "config").unlink()
    (repo / "config" / "deep").mkdir(parents=True)
    (repo / "config").chmod(0)
    assert files.read_shared(repo).unread == {"config"}
    files.mend_shared(repo, USUAL.files, [])
    assert files.read_shared(repo) == USUAL
