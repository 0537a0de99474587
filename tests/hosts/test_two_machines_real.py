"""Two session hosts and two web processes on one PostgreSQL and one Redis: real servers, processes, git, tmux."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import postgres
from tests.hosts import machines
from tests.hosts.machines import Site
from tests.house.product import is_gone, lab, until
from tests.repositories import git

pytestmark = [
    pytest.mark.any_database,
    pytest.mark.skipif(
        postgres.programs() is None, reason="PostgreSQL's server programs are not installed"
    ),
    pytest.mark.skipif(
        shutil.which("redis-server") is None, reason="Redis (redis-server) is not installed"
    ),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with machines.working(tmp_path_factory.mktemp("site")) as made:
        yield made


@pytest.mark.real
@pytest.mark.row("X-06", "X-09", "LAB-37", "LAB-41", "C-61", level="real")
def test_the_main_job_is_done_on_both_machines_at_once(site: Site) -> None:
    keys = [site.issue() for _ in range(4)]
    for key, machine in zip(keys, [site.one, site.two, site.one, site.two], strict=True):
        site.started(machine.anna, key)
        if key == keys[2]:  # the first one counts it as without a clone until it has told
            until(lambda: site.facts()["warm"] == ["one", "two"], told=site.told)
    # The second machine gets work when the first has two slots less, since it has to clone first.
    runs = site.facts()["runs"]
    assert [runs[key]["host"] for key in keys] == ["one", "one", "two", "two"]
    assert [len(one.sessions()) for one in site.machines] == [2, 2]
    site.finish(*keys)
    facts = site.facts()
    assert facts["claims"] == facts["ended"] == sorted(keys)
    assert [one.sessions() for one in site.machines] == [[], []]
    for run in facts["runs"].values():
        assert not Path(run["worktree"]).exists()
        assert git(site.origin, "show", f"{run['branch']}:made.txt") == "done"
    for machine in site.machines:
        status, page = machine.anna.get(f"/runs/{facts['runs'][keys[2]]['pk']}/")
        assert (status, "succeeded" in page) == (200, True)


@pytest.mark.real
@pytest.mark.row("LAB-46", "LAB-49", "LAB-50", level="real")
def test_a_run_elsewhere_is_seen_and_stopped_through_this_web_process(site: Site) -> None:
    near, key = site.pair()
    run = site.run(key)
    made = Path(run["worktree"]) / "seen.txt"
    made.write_text("written on machine two\n")
    pages = {
        name: site.one.anna.get(f"/runs/{run['pk']}/{name}/") for name in ("terminal", "changes")
    }
    assert f"agent of {key} is here" in pages["terminal"][1]
    assert "written on machine two" in pages["changes"][1]
    agent = site.began()[key]
    status, said = site.one.anna.post(f"/runs/{run['pk']}/stop", sure="yes")
    assert status == 200, said
    until(lambda: is_gone(agent), told=site.told)
    site.ends(key, "stopped")
    assert site.facts()["ended"].count(key) == 1
    assert (site.two.sessions(), made.exists()) == ([], True)
    site.finish(near)


@pytest.mark.long
@pytest.mark.row("RUNE-02", "RUNE-24", level="real")
def test_a_group_whose_runs_are_on_both_machines_is_completed_once(site: Site) -> None:
    before = site.facts()["counts"]
    keys = [site.issue(), site.issue()]
    anna = site.two.anna
    made = anna.post(
        "/projects/1/groups/from-issues", name="both", preset="work", issues=", ".join(keys)
    )
    assert made[0] == 200, made[1]
    assert anna.post("/projects/1/groups/1/monitor", quick="1")[0] == 200
    assert [site.started(anna, key)["host"] for key in keys] == ["one", "two"]
    site.finish(*keys)
    until(lambda: site.facts()["monitors"] == [["two", "complete"]], told=site.told)
    after = site.facts()["counts"]
    assert after["task.completed"] - before.get("task.completed", 0) == 2
    assert (after["monitor.started"], after["monitor.ended"]) == (1, 1)
    status, page = site.one.anna.get("/projects/1/groups/1/")
    assert (status, "2 of 2" in page) == (200, True)


@pytest.mark.long
@pytest.mark.row("MALA-W-01", level="real")
def test_a_watch_session_starts_on_both_machines_and_validates_once(site: Site) -> None:
    site.do("Project.objects.update(parallel_runs=2, checks='test -e hello.txt')")
    keys = [site.issue(), site.issue()]
    opened = site.two.anna.post("/projects/1/watch/", limit="", every="10")
    assert opened[0] == 200, opened[1]
    for key in keys:
        site.works(key)
    assert sorted(site.run(key)["host"] for key in keys) == ["one", "two"]
    site.finish(*keys)
    until(lambda: site.facts()["sessions"] == [["ended", 0, 2, 0]], told=site.told)
    facts = site.facts()
    assert [state for state, _reason in facts["validations"]] == ["passed"]
    assert (facts["counts"]["watch.ended"], facts["counts"]["validation.began"]) == (1, 1)
    assert [facts["ended"].count(key) for key in keys] == [1, 1]


@pytest.mark.real
def test_a_join_token_works_once_and_a_name_belongs_to_one_machine(
    site: Site, tmp_path: Path
) -> None:
    again = lab("host", "join", site.one.running.url, site.token, state=tmp_path / "three")
    assert (again.returncode, again.stderr.count("\n")) == (1, 1)
    assert "it was used already" in again.stderr
    assert not (tmp_path / "three" / "host.json").exists()
    settings = {**site.one.settings, "LAB_SESSION_HOST": "two"}
    taken = lab("up", "--port", "0", state=tmp_path / "four", **settings)
    assert (taken.returncode, taken.stderr.count("\n")) == (1, 1), taken.stderr
    assert "Another machine works as host two" in taken.stderr


@pytest.mark.real
@pytest.mark.row("X-13", level="real")
def test_a_drained_machine_finishes_what_it_has_though_its_worker_is_killed(site: Site) -> None:
    near, far = site.pair()
    drained = site.two.lab("host", "drain", "one")
    assert (drained.returncode, drained.stdout) == (0, "one takes nothing new.\n")
    os.kill(site.one.running.children()["worker"], signal.SIGKILL)
    more = [site.issue(), site.issue()]
    assert [site.started(site.one.anna, key)["host"] for key in more] == ["two", "two"]
    site.finish(near, far, *more)
    assert [site.facts()["ended"].count(key) for key in (near, far, *more)] == [1] * 4
    assert "draining" in site.two.anna.get("/hosts/")[1]
    listed = json.loads(site.two.lab("host", "list", "--json").stdout)
    assert [(one["name"], one["state"], one["runs"]) for one in listed] == [
        ("one", "draining", 0),
        ("two", "working", 0),
    ]
    assert site.two.lab("host", "resume", "one").returncode == 0


@pytest.mark.real
@pytest.mark.row("X-09", "LAB-135", level="real")
def test_a_machine_that_stands_still_is_unknown_and_is_settled_once_when_it_is_back(
    site: Site,
) -> None:
    near, done = site.pair()
    died, stopped, goes_on = site.issue(), site.issue(), site.issue()
    assert site.one.lab("host", "drain", "one").returncode == 0
    for key in (died, stopped, goes_on):
        assert site.started(site.one.anna, key)["host"] == "two"
    assert site.one.lab("host", "resume", "one").returncode == 0
    two = site.two.running
    anna, still = site.one.anna, [two.process.pid, two.children()["worker"]]
    for pid in still:
        os.kill(pid, signal.SIGSTOP)
    try:
        site.does(done)
        site.does(died, "exit 3")
        agents = site.began()
        until(lambda: is_gone(agents[died]))
        until(lambda: site.facts()["pulls"].count(f"afk/{done}") == 1, told=site.told)
        until(lambda: "Host two" in anna.get("/needs/")[1], told=site.told)
        assert "pill bad" in anna.get("/hosts/")[1]
        runs = site.facts()["runs"]
        assert {runs[key]["state"] for key in (done, died, stopped, goes_on)} == {"working"}
        assert "did not answer" in anna.get(f"/runs/{runs[goes_on]['pk']}/terminal/")[1]
        assert anna.post(f"/runs/{runs[stopped]['pk']}/stop", sure="yes")[0] == 200
        until(lambda: site.run(stopped)["outcome"] == "stopped")
        assert not is_gone(agents[stopped])
        fresh = site.issue()
        assert site.started(anna, fresh)["host"] == "one"
        site.finish(near, fresh)
    finally:
        for pid in still:
            os.kill(pid, signal.SIGCONT)
    site.ends(done, "succeeded")
    site.ends(died, "died")
    site.ends(stopped, "stopped")
    until(lambda: is_gone(agents[stopped]), told=site.told)
    until(lambda: "host.back" in site.facts()["counts"], told=site.told)
    assert "pill bad" not in anna.get("/hosts/")[1]
    assert (site.run(goes_on)["state"], is_gone(agents[goes_on])) == ("working", False)
    site.finish(goes_on)
    facts = site.facts()
    assert facts["ended"] == sorted(set(facts["ended"]))
    assert [facts["claims"].count(key) for key in (done, died, stopped, goes_on)] == [1] * 4


@pytest.mark.real
@pytest.mark.row("X-09", "X-13", level="real")
def test_a_database_that_restarts_and_then_only_reads_loses_nothing(site: Site) -> None:
    near, far = site.pair()
    began, before = site.began(), site.facts()
    logs = [len(machine.running.log) for machine in site.machines]
    site.only_reads(True)
    site.restart_database()
    for machine in site.machines:
        anna = machine.anna
        until(lambda anna=anna: anna.get("/")[0] == 200, told=site.told)
        assert f"#{near}" in anna.get("/projects/1/")[1]
        status, said = anna.post("/projects/1/start", issue=near)
        assert (status, "The database only reads just now" in said) == (503, True), said
        assert anna.post(f"/runs/{before['runs'][far]['pk']}/stop", sure="yes")[0] == 503
    site.does(near)  # its labctl asks again until its pull request can be stored
    site.only_reads(False)
    fresh = site.started(site.two.anna, site.issue())["issue_key"]
    site.finish(near, far, fresh)
    facts = site.facts()
    assert facts["ended"] == sorted(set(facts["ended"]))
    assert facts["claims"] == sorted({*before["claims"], fresh})
    assert {key: pid for key, pid in site.began().items() if key in began} == began
    for machine, seen in zip(site.machines, logs, strict=True):
        assert "tick was cut short" not in machine.running.log[seen:]
