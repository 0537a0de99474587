"""Two worker processes and many starters at once, in processes of their own, on a real product."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from runs.core.paths import Paths
from tests.house.product import Product, until
from tests.repositories import a_checkout
from tests.web.daphne_fixture import Served

CAP, ISSUES, STARTERS = 4, 9, 4

MADE = """
from runs.issues import acts as issues; from runs.projects import acts as projects
agent = AgentProfile.objects.create(name="Idle", argv={argv!r})
Settings.current()
Settings.objects.update(agent=agent, session_cap={cap})
project = projects.add(lab, name="shop", source={source!r}, token="", by="anna")
for number in range({issues}):
    issues.create(lab, project, title=f"Issue {{number}}", labels=["ready-for-agent"], by="anna")
"""
READY = """
from django.db.models import F
from runs.issues import acts as issues; from runs.dispatch import start_requests as starts; from runs.stop_project import stop_project; from runs import tick
project = Project.objects.get()
"""
STARTS = """
for number in range(4):
    starts.request(lab, project, "anna")
    tick.tick(lab, force=True)
"""
COUNTS = """
for number in range(25):
    issues.create(lab, project, title=f"Counted {number}", by="anna")
    Host.objects.update(looked=F("looked") + 1)
"""
STOPS = "result = stop_project(lab, project, 'anna')"
FACTS = """
from trackers.builtin.models import Issue, Root
result = {
    "project": Project.objects.get().state,
    "pending": StartRequest.objects.filter(answer="").count(),
    "answers": sorted(StartRequest.objects.values_list("answer", flat=True)),
    "runs": list(Run.objects.order_by("pk").values(
        "issue_key", "slot", "session", "state", "outcome", "reason")),
    "started": Notice.objects.filter(kind="run.started").count(),
    "ended": sorted(Notice.objects.filter(kind="run.ended").values_list("run_id", flat=True)),
    "numbers": list(Issue.objects.order_by("number").values_list("number", flat=True)),
    "next": Root.objects.get().next_number,
    "looked": Host.objects.get().looked,
}
"""


class Hands:
    """Processes of their own on one state folder, as cron jobs or further doors would be."""

    def __init__(self, state: Path) -> None:
        self._all = [Served(state) for _ in range(STARTERS)]

    def do(self, code: str) -> Any:
        return self._all[0].do(code)

    def facts(self) -> dict[str, Any]:
        return dict(self.do(FACTS))

    def at_once(self, code: str) -> list[Any]:
        """Run the same code in all of them, none before each is ready."""
        for hand in self._all:
            hand.do(READY)
        with ThreadPoolExecutor(STARTERS) as pool:
            return list(pool.map(lambda hand: hand.do(code), self._all))

    def close(self) -> None:
        for hand in self._all:
            hand.close()


def _sessions(state: Path) -> list[str]:
    socket = str(Paths(state).tmux_socket)
    done = subprocess.run(
        ["tmux", "-S", socket, "list-sessions", "-F", "#{session_name}"],
        capture_output=True,
        text=True,
        check=False,
    )
    return sorted(done.stdout.split())


@pytest.fixture
def hands(used: Path) -> Iterator[Hands]:
    """Hands on the used state folder, whose tmux is ended after the test."""
    made = Hands(used)
    yield made
    made.close()
    socket = str(Paths(used).tmux_socket)
    subprocess.run(["tmux", "-S", socket, "kill-server"], capture_output=True, check=False)


@pytest.mark.both_databases
@pytest.mark.row("X-09", "LAB-58", level="real")
def test_many_starters_never_start_twice_never_pass_the_cap_and_lose_no_count(
    used: Path, hands: Hands, start: Callable[..., Product], tmp_path: Path
) -> None:
    product = start(LAB_WORKERS="2")
    assert len(product.workers()) == 2
    source = a_checkout(tmp_path / "shop", tmp_path / "shop-origin.git")
    idle = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(900)"]
    argv = [*idle, "{prompt}"]
    hands.do(MADE.format(argv=argv, cap=CAP, source=str(source), issues=ISSUES))
    until(lambda: hands.facts()["project"] == "ready", told=lambda: product.log)

    hands.at_once(STARTS)
    until(lambda: _is_calm(hands.facts()), told=lambda: product.log)
    now = hands.facts()
    assert now["answers"].count("started") == CAP, now["answers"]
    assert len(now["answers"]) == 4 * STARTERS
    ended = [(run["issue_key"], run["outcome"], run["reason"]) for run in now["runs"]]
    assert [run for run in ended if run[1]] == []
    assert sorted(run["issue_key"] for run in now["runs"]) == ["1", "2", "3", "4"], now["runs"]
    assert sorted(run["slot"] for run in now["runs"]) == [1, 2, 3, 4]
    assert {run["state"] for run in now["runs"]} == {"working"}
    assert now["started"] == CAP
    assert _sessions(used) == sorted(run["session"] for run in now["runs"])

    hands.at_once(COUNTS)
    before, now = now, hands.facts()
    assert now["numbers"] == list(range(1, ISSUES + 25 * STARTERS + 1))
    assert now["next"] == ISSUES + 25 * STARTERS + 1
    assert now["looked"] >= before["looked"] + 25 * STARTERS

    assert sum(hands.at_once(STOPS)) == CAP
    now = hands.facts()
    assert {run["outcome"] for run in now["runs"]} == {"stopped"}
    assert len(now["ended"]) == len(set(now["ended"])) == CAP
    assert _sessions(used) == []
    assert "Traceback" not in product.log


def _is_calm(now: dict[str, Any]) -> bool:
    """Every request is answered and no session is being made."""
    return now["pending"] == 0 and all(run["state"] != "starting" for run in now["runs"])
