"""Two real session hosts on one PostgreSQL and one Redis, and the agents that work on them."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests import postgres
from tests.house.product import Product, lab, until
from tests.patience import PATIENCE
from tests.redis_server import Server as Redis
from tests.repositories import a_checkout
from tests.web.daphne_fixture import Served

# A host counts as silent after three of them, which a worker of a busy machine must not need for one.
TICK_SECONDS = 8
# The agent says where and that it works, and does what the test hands it for its issue.
AGENT = """
echo "agent of $LAB_ISSUE is here"
echo "$LAB_ISSUE $$ $PWD" >> {folder}/began
until [ -e {folder}/$LAB_ISSUE ]; do sleep 0.3; done
commit() {{ echo "$1" >> made.txt; git add made.txt; git commit -qm "feat: $1"; }}
. {folder}/$LAB_ISSUE
exec sleep 900
"""
# It commits, pushes and opens its pull request, as an agent that is done does.
JOB = 'commit done && git push -q origin "$LAB_BRANCH" && labctl pr create'
MADE = """
from runs.issues import acts as issues
from runs.projects import acts as projects
agent = AgentProfile.objects.create(name="Handed", argv=["sh", {script!r}, "{{prompt}}"])
Settings.objects.update_or_create(pk=1, defaults={{"agent": agent, "session_cap": 20, "tick_seconds": {tick}}})
result = projects.add(lab, name="shop", source={source!r}, token="", by="anna").pk
"""
ISSUE = """
from runs.issues import acts as issues
project = Project.objects.get()
result = str(issues.create(lab, project, title="Do it", labels=["ready-for-agent"], by="anna"))
"""
FACTS = """
from trackers.builtin.models import PullRequest as Pull
from django.db import models
result = {
    "project": Project.objects.get().state,
    "warm": [host.name for host in Host.objects.order_by("name") if "shop" in host.warm],
    "runs": {run["issue_key"]: run for run in Run.objects.order_by("pk").values(
        "pk", "issue_key", "host", "state", "outcome", "reason", "session", "branch", "worktree")},
    "claims": sorted(Run.objects.values_list("issue_key", flat=True)),
    "ended": sorted(Notice.objects.filter(kind="run.ended").values_list("run__issue_key", flat=True)),
    "answers": [(one.answer, one.text) for one in StartRequest.objects.order_by("pk")],
    "counts": dict(Notice.objects.order_by().values_list("kind").annotate(models.Count("pk"))),
    "pulls": sorted(Pull.objects.values_list("head", flat=True)),
    "monitors": list(Monitor.objects.values_list("host", "state")),
    "sessions": list(WatchSession.objects.values_list("phase", "code", "completed", "failed")),
    "validations": list(Validation.objects.values_list("state", "reason")),
    "unsettled": sorted(Run.objects.filter(settled_at=None).values_list("issue_key", flat=True)),
}
"""


class Person:
    """Somebody at one web process, without a browser."""

    def __init__(self, url: str, cookie: str) -> None:
        self.url = url
        self._head = {"Cookie": f"lab_session={cookie}; lab_csrf={'a' * 32}"}

    def get(self, path: str) -> tuple[int, str]:
        return self._ask(path, None)

    def post(self, path: str, **form: str) -> tuple[int, str]:
        """Press a button; what the page says that follows."""
        sent = {"csrfmiddlewaretoken": "a" * 32, **form}
        return self._ask(path, urllib.parse.urlencode(sent).encode())

    def _ask(self, path: str, sent: bytes | None) -> tuple[int, str]:
        request = urllib.request.Request(f"{self.url}{path}", data=sent, headers=self._head)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()


class Machine:
    """One machine: its state folder, what runs on it, and Anna at its web process."""

    def __init__(self, name: str, state: Path, settings: dict[str, str]) -> None:
        self.name, self.state, self.settings = name, state, settings
        self.product: Product | None = None
        self.cookie = ""

    def start(self) -> Machine:
        self.product = Product(self.state, "--port", "0", **self.settings)
        return self

    @property
    def running(self) -> Product:
        assert self.product is not None
        return self.product

    @property
    def anna(self) -> Person:
        return Person(self.running.url, self.cookie)

    def lab(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """A command of labsite on this machine."""
        return lab(*argv, state=self.state, **self.settings)

    def sessions(self) -> list[str]:
        argv = [
            "tmux",
            "-S",
            str(self.state / "tmux.sock"),
            "list-sessions",
            "-F",
            "#{session_name}",
        ]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        return sorted(done.stdout.split())

    def pids(self) -> list[int]:
        """All of the product here: whoever starts its parts, web, and worker."""
        return [self.running.process.pid, *self.running.children().values()]

    def close(self) -> None:
        if self.product is not None:
            for pid in self.pids():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
            self.product.close()
        socket = str(self.state / "tmux.sock")
        subprocess.run(["tmux", "-S", socket, "kill-server"], capture_output=True, check=False)


class Site:
    """Machine one, machine two that joined it, one project, and agents that the test leads."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.hand_folder = folder, folder / "hand"
        self.hand_folder.mkdir()
        self.database, self.redis = postgres.Server(), Redis()
        self.hand: Served | None = None
        self.machines: list[Machine] = []
        self.token = ""

    def open(self) -> None:
        """Both machines at work; the second one joined by the command that the first one printed."""
        self.database.start()
        self.redis.start()
        settings = {
            "LAB_DATABASE_URL": self.database.url(),
            "LAB_REDIS_URL": self.redis.url,
            "LAB_SECRET_KEY": "one key for both machines of this test",
            "LAB_SESSION_HOST": "one",
        }
        one = Machine("one", self.folder / "one", settings)
        self.machines.append(one)
        one.start().running.wait_until_ready()
        invited = one.lab("host", "add", "two", "--url", one.running.url)
        assert invited.returncode == 0, invited.stderr
        join = shlex.split(invited.stdout)
        self.token = join[-1]
        two = Machine("two", self.folder / "two", {})
        joined = two.lab(*join[1:])
        assert joined.returncode == 0, joined.stderr
        self.machines.append(two.start())
        self.hand = Served(self.folder / "one", **settings)
        one.cookie = two.cookie = self.hand.cookie()
        source = a_checkout(self.folder / "shop", self.origin)
        script = self.folder / "agent.sh"
        script.write_text(AGENT.format(folder=self.hand_folder))
        self.do(MADE.format(script=str(script), source=str(source), tick=TICK_SECONDS))
        two.running.wait_until_ready()
        until(lambda: self.facts()["project"] == "ready", told=self.told)

    def restart_database(self) -> None:
        """Cut every connection, as a failover does."""
        self.database.stop()
        self.database.start()
        self.do("from django.db import connections; connections.close_all()")

    def only_reads(self, is_on: bool) -> None:
        """Have the server refuse changes, as one does while it is no primary; or take them again."""
        import psycopg

        with psycopg.connect(self.database.url(), autocommit=True) as server:
            server.execute("SET default_transaction_read_only = off")
            value = "on" if is_on else "off"
            server.execute(f"ALTER SYSTEM SET default_transaction_read_only = {value}")
            server.execute("SELECT pg_reload_conf()")

    @property
    def origin(self) -> Path:
        return self.folder / "shop-origin.git"

    @property
    def one(self) -> Machine:
        return self.machines[0]

    @property
    def two(self) -> Machine:
        return self.machines[1]

    def do(self, code: str) -> Any:
        assert self.hand is not None
        return self.hand.do(code)

    def facts(self) -> dict[str, Any]:
        """What the database knows. Whoever waits for a change asks a few times a second at most."""
        time.sleep(0.2)
        return dict(self.do(FACTS))

    def run(self, key: str) -> dict[str, Any]:
        """The run of an issue; empty while there is none."""
        return dict(self.facts()["runs"].get(key, {}))

    def issue(self) -> str:
        """A new issue, which is ready; its key."""
        return str(self.do(ISSUE))

    def started(self, anna: Person, key: str) -> dict[str, Any]:
        """The run of an issue that somebody started and whose agent is at work."""
        status, said = anna.post("/projects/1/start", issue=key)
        assert status == 200, said
        self.works(key)
        return self.run(key)

    def works(self, key: str) -> None:
        until(
            lambda: self.run(key).get("state") == "working" and key in self.began(), told=self.told
        )

    def began(self) -> dict[str, int]:
        """The agents that began, by issue, and their processes."""
        file = self.hand_folder / "began"
        lines = file.read_text().splitlines() if file.exists() else []
        return {line.split()[0]: int(line.split()[1]) for line in lines}

    def does(self, key: str, told: str = JOB) -> None:
        """Let an agent do this."""
        fresh = self.hand_folder / f"{key}.new"
        fresh.write_text(f"{told}\n")
        fresh.rename(self.hand_folder / key)

    def pair(self) -> tuple[str, str]:
        """Two issues that are at work, on machine one and on machine two, both of which are free."""
        keys = self.issue(), self.issue()
        for key, machine in zip(keys, self.machines, strict=True):
            assert self.started(self.two.anna, key)["host"] == machine.name
        return keys

    def finish(self, *keys: str) -> None:
        """Let agents do their job, and wait until all is settled."""
        for key in keys:
            self.does(key)
        for key in keys:
            self.ends(key, "succeeded")

    def ends(self, key: str, outcome: str) -> None:
        until(
            lambda: self.run(key)["outcome"] == outcome and key not in self.facts()["unsettled"],
            told=self.told,
        )

    def told(self) -> str:
        logs = [f"{one.name}: {one.running.log[-3000:]}" for one in self.machines if one.product]
        return "\n".join([str(self.facts()), *logs])

    def close(self) -> None:
        if self.hand is not None:
            self.hand.close()
        for machine in self.machines:
            machine.close()
        self.redis.close()
        self.database.close()
        ours = str(self.folder).encode()
        for entry in Path("/proc").glob("[0-9]*"):  # agents outlive all that is ended above
            with contextlib.suppress(OSError):
                if ours in (entry / "cmdline").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)


@contextlib.contextmanager
def working(folder: Path) -> Iterator[Site]:
    """Both machines, which are ended whatever happens."""
    site = Site(folder)
    try:
        site.open()
        yield site
    finally:
        site.close()
