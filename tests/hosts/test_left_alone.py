"""What another host is at is left to it: nobody here can tell whether its processes live."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User

from labsite import preflight
from runs import sweep, tick
from runs.accounts import logins
from runs.agents import trial
from runs.agents.trial_rules import TrialState
from runs.core import lease
from runs.core.ports import Lab
from runs.core.states import Outcome, RunState
from runs.hosts import acts as hosts_acts
from runs.jobs import runner as jobs
from runs.kept import discard, removal
from runs.lifecycle import launch, stop
from runs.machine import processes
from runs.management import same_key
from runs.manual import acts as manual
from runs.manual import endings as manual_endings
from runs.models import (
    AgentTrial,
    CheckRun,
    Delivery,
    Discarding,
    Due,
    Fixer,
    Host,
    LoginAttempt,
    ManualSession,
    NoticeAddress,
    Parked,
    Project,
    RecordToKeep,
    Validation,
)
from runs.notices import addresses, deliveries, pushes
from runs.on_request import check_runner, checks
from runs.projects import cloning
from runs.validation import fixers
from runs.validation import runner as validation_runner
from tests import make
from tests.fakes import World
from tests.hosts.test_two_hosts import Host2, Pair, hosts, project, silent
from tests.real import RealWorld
from tests.repositories import a_checkout

__all__ = ["hosts", "project"]
pytestmark = pytest.mark.django_db

OTHER = "another-boot:7:7"  # as a process of another machine, or of an earlier boot of this one


@pytest.fixture
def b(hosts: Pair) -> Lab:
    """The second host, which tells processes apart as a machine does."""
    hosts[1].machine.identity = "b"
    me = processes.name_of(os.getpid())
    return replace(hosts[1].lab, process=me, is_process_alive=processes.is_alive)


def alone() -> None:
    """There is no other host any more."""
    Host.objects.exclude(name="b").delete()


def test_a_notice_that_another_host_is_sending_is_not_sent_here_too(
    world: World, b: Lab, operator: User
) -> None:
    address = addresses.add(world.lab, operator, "phone", "json://x", ["auto.paused"])
    now = world.clock()
    until = now + deliveries.LONGEST_SEND
    row = {"state": "sending", "sender": OTHER, "created_at": now, "next_at": until}
    Delivery.objects.create(
        address=address, title="paused", text="", is_self_test=True, tries=1, **row
    )
    deliveries.post(b)
    assert Delivery.objects.get().state == "sending"
    world.clock.forward(seconds=121)
    deliveries.post(b)
    assert Delivery.objects.get().state == "waiting"


def test_a_trial_that_another_host_carries_out_is_not_ended_here(world: World, b: Lab) -> None:
    made = trial.ask(b, make.an_agent("Tried"), "anna")
    rows = AgentTrial.objects.filter(pk=made.pk)
    rows.update(state=TrialState.RUNNING, process=OTHER)
    trial.sweep(b)
    assert rows.get().state == TrialState.RUNNING
    alone()  # then it was an earlier boot of this machine
    trial.sweep(b)
    assert (rows.get().state, rows.get().note) == (TrialState.FAILED, trial.INTERRUPTED)


def test_a_log_in_on_another_host_is_not_ended_here_while_it_has_time(
    world: World, b: Lab, hosts: Pair
) -> None:
    hosts[0].machine.identity = "a"
    a, profile = hosts[0].lab, make.an_agent("Tried")
    profile.login_argv, profile.login_command = ["agent", "login"], ["agent", "status"]
    profile.save()
    hosts[1].own.login.answer = False
    attempt = logins.begin(a, profile, "anna")
    (a.paths.run_folders / attempt.session).mkdir(parents=True)
    rows = LoginAttempt.objects.filter(pk=attempt.pk)
    logins.sweep(b)
    assert rows.get().state == "waiting"
    logins.sweep(a)
    assert rows.get().state == "waiting"
    world.clock.forward(minutes=11)
    logins.sweep(b)
    assert rows.get().state == "failed"


@pytest.mark.parametrize(
    ("keepers", "is_begun_again"),
    [
        pytest.param("", False, id="nobody knows who has it"),
        pytest.param("ab", False, id="both have the branch"),
        pytest.param("b", True, id="this host alone has it, so it was an earlier boot"),
    ],
)
def test_a_discard_that_another_host_may_carry_out_is_not_begun_here_too(
    world: World, project: Project, b: Lab, keepers: str, *, is_begun_again: bool
) -> None:
    now = world.clock()
    for name in keepers:
        Parked.objects.create(project=project, branch="afk/7", host=name, committed_at=now)
    row = Discarding.objects.create(project=project, branch="afk/7", asked_at=now, process=OTHER)
    discard.tend(b)
    row.refresh_from_db()
    assert (row.process == "") is is_begun_again


def test_who_has_surely_ended(world: World, b: Lab) -> None:
    mine = b.process.partition(":")[0]
    assert lease.is_gone(b, f"{mine}:0:0") is True
    assert lease.is_gone(b, b.process) is False
    assert lease.is_gone(b, OTHER) is False
    assert lease.is_gone(replace(b, machine=world.lab.machine), OTHER) is True  # one machine alone
    alone()
    assert lease.is_gone(b, OTHER) is True
    Host.objects.create(name="c", removed_at=world.clock() - timedelta(days=1))
    assert lease.is_gone(b, OTHER) is True


@pytest.fixture
def twin(world: World, project: Project, hosts: Pair, tmp_path: Path, settings: Any) -> Host2:
    """The machine that was host a, back after another one took its place; this process is its worker."""
    hosts[0].machine.identity = "new"
    hosts[0].tick()
    found = Host2(world, "a", tmp_path / "twin")
    found.machine.identity = "old"
    settings.RUNS_LAB = lambda: found.lab
    return found


def test_a_machine_whose_place_another_took_carries_out_nothing_of_that_name(
    world: World, project: Project, hosts: Pair, twin: Host2
) -> None:
    from runs import tasks

    run = make.a_run(project, "7", host="a", state=RunState.STARTING, launcher="")
    settings.HUEY.verbs["launch"](run.pk)
    run.refresh_from_db()
    assert (run.launcher, run.state) == ("", RunState.STARTING)
    ended = make.a_run(project, "8", host="a", slot=2, outcome=Outcome.SUCCEEDED)
    RecordToKeep.objects.create(run=ended, asked_at=world.clock())
    facts = {"label": "x", "session": "demo~x", "branch": "lab/x", "state": "live", "by": "anna"}
    driven = ManualSession.objects.create(
        project=project, host="a", asked_at=world.clock(), **facts
    )
    tasks.keep_records.call_local()
    tasks.tend.call_local()
    assert RecordToKeep.objects.exists()
    driven.refresh_from_db()
    assert driven.ended_at is None
    with pytest.raises(lease.OtherMachine):
        tasks.own_lab()


def test_who_stops_something_through_such_a_machine_does_not_have_it_settled_there(
    world: World, project: Project, twin: Host2
) -> None:
    """Its web process goes on; what is to be tidied up lies on the machine that has the name."""
    run = make.a_run(project, "7", host="a")
    assert stop.stop(twin.lab, run, "anna")
    facts = {"label": "x", "session": "demo~x", "branch": "lab/x", "state": "live", "by": "anna"}
    driven = ManualSession.objects.create(
        project=project, host="a", asked_at=world.clock(), **facts
    )
    assert manual_endings.stop(twin.lab, driven, "anna")
    with pytest.raises(manual.SessionRefused, match="Another machine works as host a"):
        manual.start(twin.lab, project, "", "anna")
    for one in (run, driven):
        one.refresh_from_db()
        assert one.ended_at is not None
        assert one.settled_at is None
    assert twin.own.bell.looks == ["demo"]


@pytest.fixture
def terms() -> Iterator[list[int]]:
    """The signals to end that this process got."""
    found: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: found.append(number))
    yield found
    signal.signal(signal.SIGTERM, before)


def test_the_worker_of_such_a_machine_ends_and_says_what_to_do(
    twin: Host2, terms: list[int]
) -> None:
    from runs import tasks

    twin.lab.paths.state.mkdir()
    Due.objects.all().delete()
    for _ in range(2):
        tasks.offer_tick.call_local()
    assert terms == [signal.SIGTERM]
    said = preflight.removed(twin.lab.paths)
    assert said.startswith("Another machine works as host a, so nothing is done here. Set")


def test_work_that_stands_on_the_queue_of_the_wrong_host_is_not_carried_out_there(
    world: World, project: Project, hosts: Pair
) -> None:
    """Messages say no host, and whoever may write into Redis may move one."""
    b, now = hosts[1].lab, world.clock()
    run = make.a_run(project, "7", host="a", state=RunState.STARTING, launcher="")
    launch.carry_out(b, run.pk)
    facts = {"label": "x", "session": "demo~x", "branch": "lab/x", "by": "anna"}
    driven = ManualSession.objects.create(project=project, host="a", asked_at=now, **facts)
    manual.carry_out(b, driven.pk)
    terms = {"number": 1, "count": 1, "minutes": 30, "most_fixers": 1, "mark": "m"}
    row = Validation.objects.create(
        project=project, host="a", run=run, began_at=now, step="checking", **terms
    )
    validation_runner.carry_out(b, row.pk)
    fixed = {"number": 1, "session": "demo~f", "branch": "lab/f", "mark": "f", "fork_point": "1"}
    fixer = Fixer.objects.create(project=project, host="a", validation=row, asked_at=now, **fixed)
    fixers.carry_out(b, fixer.pk)
    check = CheckRun.objects.create(run=run, host="a", asked_at=now, mark="c")
    job = jobs.request(world.lab, checks.CHECK_RUNS, check.pk, host="a")
    check_runner.carry_out(b, check.pk)
    for one in (run, driven, row, fixer, check, job):
        one.refresh_from_db()
    taken = [run.launcher, driven.launcher, row.runner, fixer.launcher, job.owner]
    assert taken == [""] * 5
    assert (run.state, driven.state, row.state) == ("starting", "starting", "running")
    assert (fixer.end, check.is_running) == ("", True)


@pytest.mark.parametrize("path", ["start", "sweep", "first look"])
def test_what_a_removed_project_of_the_same_name_left_on_this_host_is_not_taken_for_the_new_one(
    real: RealWorld, path: str
) -> None:
    """A removal tidies up its own host alone; here agents would push to the origin of before."""
    old, new = real.folder / "old", real.folder / "new"
    for folder in (old, new):
        a_checkout(folder)
    lab = replace(real.lab, host="b")
    gone = make.a_project(home="a", url=str(old))
    cloning.bring_here(lab, gone)
    repo, tree = gone.repo(lab.paths), lab.paths.worktrees / "demo-7"
    base = lab.repos.ref(repo, "refs/remotes/origin/main")
    lab.repos.add_worktree(repo, tree, "afk/7", base or "")
    (tree / "only-here").write_text("unsaved")
    gone.delete()
    project = make.a_project(home="a", url=str(new))
    if path == "start":
        cloning.bring_here(lab, project)
        assert lab.repos.remote_url(repo) == str(new)
        assert lab.repos.claims(repo) == frozenset()
        cloning.bring_here(lab, project)  # what is its own stays
    elif path == "sweep":
        sweep.carry_out(lab, project.pk)
    else:
        assert tick.tick(lab, force=True).errors == []
    (kept,) = repo.parent.glob("demo.git.kept-*")
    (moved,) = tree.parent.glob("demo-7.kept-*")
    assert lab.repos.remote_url(kept) == str(old)
    assert lab.repos.claims(kept) == {"7"}
    assert (moved / "only-here").read_text() == "unsaved"
    assert not tree.exists()
    assert not Parked.objects.filter(project=project).exists()


def test_a_machine_with_another_key_is_refused_and_takes_no_device_from_anybody(
    world: World, hosts: Pair, operator: User, settings: Any
) -> None:
    """What another key stored it cannot read, and would take for lost."""
    a, b = (replace(one.lab, others=lambda lab, _: lab) for one in hosts)
    key = pushes.public_key(a)
    NoticeAddress.objects.create(
        user=operator, name="phone", url="x", created_at=world.clock(), endpoint_digest="1"
    )
    same_key.check(b)
    settings.SECRET_KEY = "another one"
    with pytest.raises(same_key.OtherKey, match="LAB_SECRET_KEY is not that of host a"):
        same_key.check(b)
    same_key.check(replace(b, others=None))  # one machine alone: somebody has replaced the key
    silent("a")
    same_key.check(b)  # and so with several, once all of them were stopped
    assert pushes.public_key(b) != key
    assert not NoticeAddress.objects.exists()
    hosts[0].tick()
    same_key.check(b)  # the first that started has left a sign of the new key
    settings.SECRET_KEY = "a third one"
    with pytest.raises(same_key.OtherKey):
        same_key.check(b)


def test_a_project_is_removed_where_its_repository_is_and_what_is_there_is_unknown_elsewhere(
    world: World, project: Project, hosts: Pair
) -> None:
    a, b = hosts
    Project.objects.update(home="a")
    project.refresh_from_db()
    assert removal.holdings(b.lab, project).parked is None
    assert removal.holdings(a.lab, project).parked == 0
    now = world.clock()
    Parked.objects.create(project=project, branch="afk/7", host="b", committed_at=now)
    assert removal.holdings(a.lab, project).parked is None
    removal.remove(b.lab, project, "anna")
    assert b.own.queue.hosts == ["a"]
    removal.carry_out(b.lab, project.pk)
    assert Project.objects.exists()
    hosts_acts.remove(b.lab, Host.objects.get(name="a"), "anna")
    assert Project.objects.get().home == "b"
    removal.carry_out(b.lab, project.pk)
    assert not Project.objects.exists()
