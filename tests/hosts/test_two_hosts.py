"""Two hosts on one database: what each takes, how one drains, falls silent, is given up and comes back."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from datetime import timedelta
from html import unescape
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import F
from django.test import Client

from labsite import host_command, preflight
from labsite.doctor import product as doctor
from labsite.doctor.lines import Status
from runs import tick
from runs.core import lease
from runs.core.ports import Lab
from runs.core.states import AnswerCode, NoticeKind, Outcome
from runs.dispatch import facts, start_requests
from runs.groups import acts as groups
from runs.groups import monitors
from runs.groups.terms import MonitorState
from runs.hosts import acts, command, queries, silence
from runs.hosts import facts as hosts_facts
from runs.hosts.acts import HostRefused
from runs.hosts.ports import Vitals
from runs.hosts.rules import HostState
from runs.lifecycle import launch
from runs.manual import acts as manual
from runs.models import (
    Host,
    Monitor,
    Notice,
    Parked,
    Project,
    Run,
    Settings,
    StartRequest,
    Workflow,
)
from runs.notices import addresses, deliveries, pushes
from runs.overview import board, digest
from tests import make
from tests.fakes import FakeRepos, World
from tests.web.people import text_of
from tests.world.stories import ready

pytestmark = pytest.mark.django_db


@dataclass
class Machine:
    """A machine that tells what the test says."""

    identity: str = ""
    version: str = "0.1.0+93"
    disk: int | None = 50_000
    clones: tuple[str, ...] = ("demo",)

    def is_other(self, identity: str) -> bool:
        return bool(self.identity) and identity not in ("", self.identity)

    def vitals(self) -> Vitals:
        return Vitals(1.5, 8, self.disk)

    def warm(self) -> tuple[str, ...]:
        return self.clones


class Repos(FakeRepos):
    """Repositories that are folders, so that it shows which host has which."""

    def create(self, repo: Path, url: str, token: str = "") -> None:
        super().create(repo, url, token)
        repo.mkdir(parents=True)


class Host2:
    """One host of the test: a fake outside of its own, clock and tracker those of all."""

    def __init__(self, world: World, name: str, folder: Path) -> None:
        self.own = World(folder)
        self.repos = Repos()
        self.name, self.machine = name, Machine()
        self.world = world

    @property
    def lab(self) -> Lab:
        shared = {"now": self.world.clock, "steady": self.world.clock.steady}
        trackers = {"tracker_for": {"memory": self.world.tracker}.get}
        mine = {
            "repos": self.repos,
            "host": self.name,
            "process": f"{self.name}:1:1",
            "machine": self.machine,
        }
        return replace(self.own.lab, **shared, **trackers, **mine)

    def tick(self) -> tick.Report:
        report = tick.tick(self.lab, force=True)
        assert report.errors == []
        for run in Run.objects.starting().filter(host=self.name, launcher=""):
            launch.carry_out(self.lab, run.pk)
        return report


Pair = tuple[Host2, Host2]


@pytest.fixture
def project(world: World) -> Project:
    made = make.a_project(agent=make.an_agent())
    world.tracker.add_root("demo")
    return made


@pytest.fixture
def hosts(world: World, project: Project, tmp_path: Path) -> Pair:
    found = Host2(world, "a", tmp_path / "a"), Host2(world, "b", tmp_path / "b")
    for one in found:
        one.tick()
    return found


def press(project: Project, *hosts: Host2, key: str = "") -> StartRequest:
    asked = start_requests.request(hosts[0].lab, project, "anna", key)
    for host in hosts:
        host.tick()
    return StartRequest.objects.get(pk=asked.pk)


def silent(name: str, minutes: float = 10) -> None:
    """The host has given no sign of life for so long."""
    rows = Host.objects.filter(name=name)
    rows.update(seen_at=F("seen_at") - timedelta(minutes=minutes))


def on(name: str) -> list[str]:
    return list(Run.objects.active().filter(host=name).values_list("issue_key", flat=True))


def test_people_s_starts_are_spread_by_free_slots(
    world: World, project: Project, hosts: Pair
) -> None:
    for key in "1234":
        ready(world, key)
    answers = [press(project, *hosts).answer for _ in range(4)]
    assert answers == [AnswerCode.STARTED] * 4
    assert (len(on("a")), len(on("b"))) == (2, 2)
    assert sorted(on("a") + on("b")) == ["1", "2", "3", "4"]


def test_automatic_work_is_shared_and_handed_on_at_once(
    world: World, project: Project, hosts: Pair
) -> None:
    a, b = hosts
    Project.objects.update(is_auto=True, parallel_runs=4)
    for key in "1234":
        ready(world, key)
    for _ in range(4):  # no poll is due again meanwhile: whoever has more room is woken
        a.tick()
        b.tick()
    assert (len(on("a")), len(on("b"))) == (2, 2)


def test_a_label_decides_and_nobody_with_it_is_told(
    world: World, project: Project, hosts: Pair
) -> None:
    a, b = hosts
    ready(world, "1")
    Project.objects.update(host_label="gpu")
    refused = press(project, a, b)
    assert (refused.answer, refused.text) == (AnswerCode.NO_HOST, "No host has the label gpu.")
    Host.objects.filter(name="b").update(labels=["gpu"])
    assert press(project, a, b).answer == AnswerCode.STARTED
    assert (on("a"), on("b")) == ([], ["1"])
    Host.objects.filter(name="b").update(session_cap=1)
    ready(world, "2")
    full = press(project, a, b)
    assert full.answer == AnswerCode.AT_CAP
    assert full.text.startswith("No host with label gpu is free.")


def test_a_draining_host_takes_nothing_new_and_its_run_goes_on(
    world: World, project: Project, hosts: Pair
) -> None:
    a, b = hosts
    for key in "123":
        ready(world, key)
    press(project, a, b)
    assert on("a") == ["1"]
    assert acts.drain(a.lab, acts.named("a"), "anna") is True
    assert acts.drain(a.lab, acts.named("a"), "anna") is False
    press(project, a, b)
    press(project, a, b)
    assert (on("a"), sorted(on("b"))) == (["1"], ["2", "3"])
    assert acts.resume(a.lab, acts.named("a"), "anna") is True
    ready(world, "4")
    press(project, a, b)
    assert sorted(on("a")) == ["1", "4"]
    told = Notice.objects.filter(kind=NoticeKind.HOST_CHANGED).values_list("text", "by")
    assert ("host a is drained: it takes nothing new", "anna") in told


def test_with_all_draining_it_is_said(world: World, project: Project, hosts: Pair) -> None:
    a, b = hosts
    ready(world, "1")
    for name in "ab":
        acts.drain(a.lab, acts.named(name), "anna")
    assert press(project, a, b).text == "No host takes new runs: a is draining, b is draining."


def test_a_silent_host_is_unknown_and_its_run_is_neither_ended_nor_taken_over(
    world: World, project: Project, hosts: Pair
) -> None:
    a, b = hosts
    ready(world, "1")
    press(project, a, b)
    run = Run.objects.get()
    silent("a")
    ready(world, "2")
    press(project, b)
    assert on("b") == ["2"]
    states = {row.name: row.state for row in queries.all_of(b.lab)}
    assert states == {"a": HostState.UNKNOWN, "b": HostState.WORKING}
    assert press(project, b, key="1").text == "Issue 1 is already claimed by a run."
    run.refresh_from_db()
    assert run.is_active
    a.tick()  # it is back, and nothing has happened meanwhile
    run.refresh_from_db()
    assert run.is_active
    assert {row.state for row in queries.all_of(b.lab)} == {HostState.WORKING}


def test_what_ended_while_a_host_was_cut_off_is_settled_once_with_what_happened(
    world: World, project: Project, hosts: Pair
) -> None:
    a, b = hosts
    ready(world, "1")
    press(project, a, b)
    run = Run.objects.get()
    silent("a")
    world.clock.forward(minutes=10)
    a.own.sessions.end(run.session, status=1)
    b.tick()
    assert Run.objects.get().is_active
    a.tick()
    a.tick()
    run = Run.objects.get()
    assert (run.outcome, run.settled_at is not None) == (Outcome.DIED, True)
    assert Notice.objects.filter(kind=NoticeKind.RUN_ENDED, run=run).count() == 1


def test_what_is_given_up_is_reaped_and_not_gone_on_with_when_the_host_is_back(
    world: World, project: Project, hosts: Pair
) -> None:
    a, b = hosts
    ready(world, "1")
    press(project, a, b)
    run = Run.objects.get()
    with pytest.raises(HostRefused, match="Host a answers"):
        acts.give_up(b.lab, acts.named("a"), "anna")
    silent("a")
    assert acts.give_up(b.lab, acts.named("a"), "anna") == 1
    run.refresh_from_db()
    assert (run.outcome, run.settled_at) == (Outcome.STOPPED, None)
    assert run.reason.startswith("given up by anna: host a has been silent")
    assert run.session in a.own.sessions.look()  # nobody else touched it
    # Its branch may still be there, so nobody else takes the issue either.
    assert press(project, b, key="1").answer == AnswerCode.NOTHING_READY
    a.tick()
    run.refresh_from_db()
    assert run.settled_at is not None
    assert run.session not in a.own.sessions.look()
    assert Run.objects.count() == 1


def test_a_host_is_not_removed_over_its_runs_unless_somebody_says_so(
    world: World, project: Project, hosts: Pair
) -> None:
    a, b = hosts
    ready(world, "1")
    press(project, a, b)
    with pytest.raises(HostRefused, match=r"On a a run is at work \(demo #1\)"):
        acts.remove(b.lab, acts.named("a"), "anna")
    assert on("a") == ["1"]
    assert acts.remove(b.lab, acts.named("a"), "anna", and_runs=True) == 1
    assert [row.name for row in queries.all_of(b.lab)] == ["b"]
    with pytest.raises(HostRefused, match=r"There is no host a\. There is: b"):
        acts.named("a")
    a.tick()  # its worker is still there and tidies up, and takes nothing
    assert Run.objects.get(issue_key="1").settled_at is not None
    ready(world, "2")
    press(project, b)
    assert on("b") == ["2"]


def test_the_worker_of_a_removed_host_does_nothing_any_more_and_says_what_to_do(
    world: World, project: Project, hosts: Pair
) -> None:
    a, b = hosts
    acts.remove(b.lab, acts.named("a"), "anna")
    seen = Host.objects.get(name="a").seen_at
    report = tick.tick(a.lab, force=True)
    assert (report.is_taken_out, report.did, report.started) == (True, False, 0)
    (said,) = report.errors
    assert said.startswith("Host a was removed, so its worker does nothing any more")
    assert "say ./lab host claim a here" in said
    assert Host.objects.get(name="a").seen_at == seen
    with pytest.raises(lease.Removed):
        lease.check_not_removed("a")
    lease.check_not_removed("b")
    line = doctor.tick({"age": 900.0, "is_late": True, "interval": 30, "removed": said}, True)
    assert (line.status, line.advice) == (Status.WRONG, said.partition(". ")[2])
    a.lab.paths.state.mkdir(exist_ok=True)
    a.lab.paths.removed.write_text(said)
    assert preflight.removed(a.lab.paths) == said
    acts.claim(a.lab, acts.named("a", even_removed=True), "anna")
    assert preflight.removed(a.lab.paths) == ""
    a.tick()
    assert [row.state for row in queries.all_of(b.lab)] == [HostState.WORKING] * 2


def test_the_monitors_and_workflows_of_a_removed_host_go_on_elsewhere(
    world: World, project: Project, hosts: Pair
) -> None:
    a, b = hosts
    group = groups.make(a.lab, project, "both", by="anna")
    assert monitors.start(a.lab, group, by="anna").host == "a"
    workflow = Workflow.objects.create(
        project=project, name="w", host="a", ceiling_seconds=60, started_at=world.clock(),
        counted_from=world.clock(), look_at=world.clock(),
    )  # fmt: skip
    Host.objects.create(name="0")  # it was never heard
    acts.remove(b.lab, acts.named("a"), "anna")
    workflow.refresh_from_db()
    assert (workflow.host, workflow.state) == ("b", "running")
    b.tick()
    assert Monitor.objects.get().state != MonitorState.RUNNING  # a group without tasks is complete
    ended = Monitor.objects.get()
    assert ended.host == "b"


def test_people_are_told_once_that_a_host_with_runs_fell_silent_and_that_it_is_back(
    world: World, project: Project, hosts: Pair, operator: User
) -> None:
    a, b = hosts
    topics = [NoticeKind.HOST_SILENT, NoticeKind.HOST_BACK]
    address = addresses.add(b.lab, operator, "phone", "json://127.0.0.1:1/t", topics)
    Settings.objects.update(public_address="https://lab.example")

    def told() -> list[str]:
        for lab in (a.lab, b.lab, b.lab):
            silence.tell(lab)
        return list(Notice.objects.filter(kind__in=topics).values_list("kind", flat=True))

    silent("a")
    silence.tell(b.lab)
    assert not Notice.objects.filter(kind__in=topics).exists()  # nothing runs there
    a.tick()
    ready(world, "1")
    press(project, a, b)
    assert told() == []
    silent("a")
    silence.tell(b.lab)
    assert told() == [NoticeKind.HOST_SILENT]  # the host that asks itself is not silent
    text = Notice.objects.get(kind=NoticeKind.HOST_SILENT).text
    assert text.startswith("host a gives no sign of life since ")
    assert "a run is there (demo #1). Nothing was ended and nothing is taken over" in text
    a.tick()
    assert told() == [NoticeKind.HOST_BACK, NoticeKind.HOST_SILENT]
    back = Notice.objects.filter(kind=NoticeKind.HOST_BACK)
    assert back.get().text.endswith("min, and what runs there goes on")
    silent("a", minutes=30)
    silence.tell(b.lab)
    assert Notice.objects.filter(kind=NoticeKind.HOST_SILENT).count() == 2
    deliveries.post(b.lab)
    sent = list(address.deliveries.order_by("pk").values_list("title", "text"))
    assert [title for title, _ in sent] == [
        "labsite: a machine that has runs fell silent",
        "labsite: a machine that fell silent is back",
        "labsite: a machine that has runs fell silent",
    ]
    assert {text.splitlines()[-1] for _, text in sent} == {"https://lab.example/hosts/"}
    assert [pushes.page_of(row) for row in address.deliveries.all()] == ["/hosts/"] * 3
    acts.give_up(b.lab, acts.named("a"), "anna")
    a.tick()
    silence.tell(b.lab)
    assert (
        back.order_by("pk")
        .last()
        .text.endswith("is back after 30 min; nothing runs there any more")
    )


def test_what_is_new_of_hosts_is_found_by_the_one_question_of_the_worker(
    world: World, project: Project, hosts: Pair
) -> None:
    if connection.vendor == "sqlite":
        return
    a, b = hosts
    found = Host.objects.filter(name="b").filter(silence.has_news("b"))
    silent("a")
    assert not found.exists()
    a.tick()
    ready(world, "1")
    press(project, a, b)
    assert not found.exists()
    silent("a")
    assert found.exists()
    assert not Host.objects.filter(silence.has_news("a")).exists()
    silence.tell(b.lab)
    assert not found.exists()
    a.tick()
    assert found.exists()
    silence.tell(b.lab)
    assert not found.exists()


def test_a_host_whose_disk_is_full_takes_nothing_new_and_says_why(
    world: World, project: Project, hosts: Pair, anna: Client
) -> None:
    a, b = hosts
    ready(world, "1")
    press(project, a, b)
    assert on("a") == ["1"]
    a.machine.disk = 700
    a.tick()
    for key in "23":
        ready(world, key)
        press(project, a, b)
    assert (on("a"), sorted(on("b"))) == (["1"], ["2", "3"])  # what runs there goes on
    why = "takes nothing new: less than 1 GB of disk is free; what runs there goes on"
    assert [row.closed for row in queries.all_of(b.lab)] == [why, ""]
    page = text_of(anna.get("/hosts/"))
    assert why in page
    assert re.search(r"\d+ s ago", page)
    acts.drain(a.lab, acts.named("b"), "anna")
    ready(world, "4")
    refused = press(project, a, b)
    assert refused.text == "No host takes new runs: a has no disk space left, b is draining."
    a.machine.disk = 5000
    a.tick()
    assert press(project, a, b).answer == AnswerCode.STARTED


def test_clocks_that_are_ninety_seconds_apart_make_no_host_unknown(
    world: World, project: Project, hosts: Pair
) -> None:
    a, b = hosts
    for apart in (-90, 180):
        world.clock.jump(seconds=apart)
        a.tick()
        assert {row.state for row in queries.all_of(b.lab)} == {HostState.WORKING}


def test_an_older_version_takes_nothing_and_is_shown(
    world: World, project: Project, hosts: Pair
) -> None:
    a, b = hosts
    a.machine.version = "0.1.0+92"
    a.tick()
    ready(world, "1")
    press(project, a, b)
    assert (on("a"), on("b")) == ([], ["1"])
    assert [row.is_behind for row in queries.all_of(b.lab)] == [True, False]


def test_a_removed_host_makes_none_of_the_others_old_or_short_of_disk(
    world: World, project: Project, hosts: Pair
) -> None:
    a, b = hosts
    b.machine.version = "0.1.0+94"
    b.tick()
    acts.remove(a.lab, acts.named("b"), "anna")
    a.machine.disk = 700  # the only host there is says itself what its disk is short of
    a.tick()
    ready(world, "1")
    assert press(project, a).answer == AnswerCode.STARTED
    assert [(row.is_behind, row.closed) for row in queries.all_of(a.lab)] == [(False, "")]


def test_a_host_tells_with_its_tick_how_it_is(world: World, project: Project, hosts: Pair) -> None:
    (row, _) = queries.all_of(hosts[0].lab)
    assert (row.load, row.cores, row.disk_free_gb) == (1.5, 8, 48.8)
    assert Host.objects.get(name="a").warm == ["demo"]


def test_a_second_machine_of_the_same_name_is_refused_and_ends_nothing(
    world: World, project: Project, hosts: Pair, tmp_path: Path
) -> None:
    a, _ = hosts
    a.machine.identity = "one"
    ready(world, "1")
    press(project, a)
    twin = Host2(world, "a", tmp_path / "twin")
    twin.machine.identity = "two"
    report = tick.tick(twin.lab, force=True)
    assert report.errors[0].startswith("Another machine works as host a")
    assert report.ended == 0
    assert on("a") == ["1"]
    with pytest.raises(lease.OtherMachine):
        lease.check_name(twin.lab)
    lease.check_name(a.lab)
    with pytest.raises(HostRefused, match="no other machine can take its place"):
        acts.claim(twin.lab, acts.named("a"), "anna")
    silent("a")
    read, number = acts.named("a"), Host.objects.get(name="a").lease_number
    a.tick()  # it is back in the moment between look and act
    with pytest.raises(HostRefused, match="was heard, or taken by another machine, just now"):
        acts.claim(twin.lab, read, "anna")
    lease.check_name(a.lab)
    silent("a")
    acts.claim(twin.lab, acts.named("a"), "anna")
    lease.check_name(twin.lab)
    assert not lease.renew(a.lab, number + 1)  # its tick that stood still may write nothing more


def test_a_run_says_on_which_host_it_is_and_how_one_attaches_there(
    world: World, project: Project, hosts: Pair, anna: Client
) -> None:
    ready(world, "1")
    press(project, *hosts)
    run = Run.objects.get()
    page = f"/runs/{run.pk}/terminal/"
    assert "on host a" in text_of(anna.get(page))
    assert "ssh" not in text_of(anna.get(page))
    given = host_command._parser().parse_args(["set", "a", "--ssh", "anna@a.example", "--cap", "3"])
    assert command.carry_out(given) == 0
    assert Host.objects.get(name="a").session_cap == 3
    socket = str(hosts[0].lab.paths.tmux_socket)
    attach = shlex.join(["tmux", "-S", socket, "attach", "-t", f"={run.session}"])
    assert shlex.join(["ssh", "-t", "anna@a.example", attach]) in unescape(text_of(anna.get(page)))
    odd = host_command._parser().parse_args(["set", "a", "--cap", "many"])
    assert command.carry_out(odd) == 1
    again = host_command._parser().parse_args(["set", "a", "--cap", "general"])
    assert command.carry_out(again) == 0
    assert Host.objects.get(name="a").session_cap is None


def test_a_silent_host_with_runs_needs_somebody(
    world: World, project: Project, hosts: Pair, anna: Client
) -> None:
    a, b = hosts
    ready(world, "1")
    press(project, a, b)
    assert on("a") == ["1"]
    silent("a")
    picture = board.load(b.lab, with_waiting=True)
    if connection.vendor == "sqlite":  # one machine: no other host is looked for
        assert not picture.silent
        return
    (need,) = digest.needs(picture).rows
    assert need.need.title == "Host a"
    assert "1 run is there, and nobody can tell how it does" in need.need.why
    assert need.url == "/hosts/"
    assert [label for _url, label in need.ways] == ["Give up its runs"]
    assert anna.get(need.ways[0][0]).status_code == 200
    acts.give_up(b.lab, acts.named("a"), "anna")
    assert "need-host" not in str(digest.needs(board.load(b.lab, with_waiting=True)).rows)


def test_what_another_host_keeps_claims_its_issue(
    world: World, project: Project, hosts: Pair
) -> None:
    _a, b = hosts
    acts.drain(b.lab, acts.named("a"), "anna")
    ready(world, "1")
    Parked.objects.create(
        project=project, host="a", branch="afk/1", tip="1", committed_at=world.clock.now
    )
    assert press(project, b, key="1").text == "Issue 1 is already claimed by a kept branch."
    (queue,) = facts.gather(b.lab, Settings.current(), [project])
    assert set(queue.claims or ()) == {"1"}


def test_what_a_web_process_alone_is_asked_for_is_carried_out_by_a_host(
    world: World, project: Project, hosts: Pair
) -> None:
    a, b = hosts
    door = replace(a.lab, host="door", others=lambda lab, host: replace(lab, host=host))
    group = groups.make(door, project, "both", by="anna")
    assert monitors.start(door, group, by="anna").host == "a"
    with pytest.raises(manual.SessionRefused, match="a machine that has, such as a"):
        manual.start(door, project, "", "anna")
    assert list(Host.objects.order_by("name").values_list("name", flat=True)) == ["a", "b"]
    Project.objects.update(home="b")
    project.refresh_from_db()
    assert hosts_facts.carrier(door, project) == "b"
    silent("b")
    assert hosts_facts.carrier(door, project) == "a"
    assert hosts_facts.carrier(door, project, "b") == "b"
    assert hosts_facts.carrier(replace(b.lab, others=door.others), project) == "b"
    b.tick()
    a.tick()
    assert Monitor.objects.get().state != MonitorState.RUNNING  # a group without tasks is complete


@pytest.mark.parametrize("fails", [False, True])
def test_a_host_without_a_clone_makes_one_first_and_says_when_it_cannot(
    world: World, project: Project, hosts: Pair, fails: bool
) -> None:
    a, b = hosts
    Project.objects.update(home="a")
    Host.objects.filter(name="a").update(is_draining=True)
    if fails:
        b.repos.broken_fetch = "no route to host"
    ready(world, "1")
    press(project, a, b)
    run = Run.objects.get()
    steps = list(Notice.objects.filter(run=run).values_list("text", flat=True))
    assert "demo is cloned on b, which has no clone of it yet" in steps
    if fails:
        assert run.outcome == Outcome.FAILED
        assert "host b could not clone demo: " in run.reason
    else:
        assert on("b") == ["1"]
