"""A whole product, saved while it works and agents push, and restored at another place."""

from __future__ import annotations

import contextlib
import http.cookiejar
import json
import os
import re
import signal
import subprocess
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from labsite.backup import tables
from labsite.database import chosen
from tests import databases
from tests.house.product import LAB, environment, lab, until
from tests.patience import PATIENCE
from tests.prepared import OPERATOR
from tests.repositories import git
from tests.story.test_bad_days import ASK, IDLE, PULL, RUNS
from tests.story.test_main_job import _make_demo

SECRETS = """
from runs.models import AgentProfile, Project
Project.objects.update(token='x-token-of-origin')
profile = AgentProfile.objects.get(name='idle')
profile.env = {'API_KEY': 'of-the-agent'}
profile.save()
"""
READ_SECRETS = """
from runs.models import AgentProfile, Project
print(str(Project.objects.get().token), AgentProfile.objects.get(name='idle').env['API_KEY'])
"""
COLUMNS = (
    "select t.name, c.name from sqlite_master t, pragma_table_info(t.name) c where t.type = 'table'"
)
SERVER_COLUMNS = (
    "select table_name, column_name from information_schema.columns where table_schema = 'public'"
)
# Texts of the past name the place where they were written; nothing acts on them.
HISTORY = {"runs_notice", "runs_startrequest", "runs_run.prompt", "runs_run.warning"}


class Pushing:
    """An agent that commits and pushes as fast as it can, with a file that it never commits."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self.count = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._go)
        (tree / "never committed").write_text("kept by the backup\n")

    def _go(self) -> None:
        while not self._stop.is_set():
            (self.tree / "work.txt").write_text(f"{self.count}\n")
            git(self.tree, "add", "work.txt")
            git(self.tree, "commit", "-q", "-m", f"step {self.count}")
            git(self.tree, "push", "-q", "origin", "HEAD")
            git(self.tree, "fetch", "-q", "origin")
            self.count += 1

    def __enter__(self) -> Pushing:
        self._thread.start()
        until(lambda: self.count > 2)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


TOLD = (
    "select * from builtin_issue order by id",
    "select * from builtin_issuecomment order by id",
    "select * from builtin_pullrequest order by id",
    "select id, kind, text from runs_notice order by id",
    "select id, issue_key, outcome, reason, branch, fork_point from runs_run order by id",
    "select username, password from auth_user order by id",
)


def _told(state: Path) -> list[list[Any]]:
    return [databases.ask(state, question) for question in TOLD]


def _login(url: str) -> str:
    """The title of the overview after a login as Anna."""
    opener = urllib.request.build_opener(
        urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
    )
    page = opener.open(f"{url}/login/", timeout=PATIENCE).read().decode()
    token = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)[0]
    form = {
        "csrfmiddlewaretoken": token,
        "username": OPERATOR["DJANGO_SUPERUSER_USERNAME"],
        "password": OPERATOR["DJANGO_SUPERUSER_PASSWORD"],
        "next": "/",
    }
    request = urllib.request.Request(
        f"{url}/login/", urllib.parse.urlencode(form).encode(), {"Referer": f"{url}/login/"}
    )
    answer = opener.open(request, timeout=PATIENCE)
    return f"{urllib.parse.urlsplit(answer.url).path} {answer.status}"


ANSWERS = "from runs.models import StartRequest; print([(r.answer, r.text) for r in StartRequest.objects.all()])"


@pytest.fixture
def restored(story: Any) -> Iterator[list[Any]]:
    """Stories on other folders, closed after the test."""
    made: list[Any] = []
    yield made
    for other in made:
        other.close()


@pytest.mark.both_databases
def test_a_busy_product_comes_back_at_another_place(
    story: Any, tmp_path: Path, restored: list[Any]
) -> None:
    story.up()
    _make_demo(story)
    story.shell(IDLE)
    story.shell(SECRETS)
    for _ in range(2):
        story.shell(ASK)
    until(
        lambda: story.shell(RUNS) == "1:working: 2:working:",
        told=lambda: f"{story.shell(RUNS)}; {story.shell(ANSWERS)}",
    )
    story.shell(PULL)
    until(lambda: story.shell(RUNS) == "1:ended:succeeded 2:working:")
    settled = "select 1 from runs_run where outcome = 'succeeded' and settled_at is not null"
    until(lambda: databases.ask(story.state, settled))
    repo, tree = story.paths.repos / "demo.git", story.paths.worktrees / "demo-2"
    head = git(repo, "rev-parse", "refs/heads/afk/1")
    git(repo, "update-ref", "refs/rescue/1/parked", head)
    before = _told(story.state)
    file = tmp_path / "a.backup"
    with Pushing(tree) as pushing:
        done = lab("backup", str(file), state=story.state)
        assert done.returncode == 0, done.stderr
        until(lambda: pushing.count > 6)
    assert "1 worktrees" in done.stdout or "2 worktrees" in done.stdout

    refused = lab("restore", str(file), state=tmp_path / "new")
    assert refused.returncode == 1
    assert "still runs here" in refused.stderr
    assert not (tmp_path / "new").exists()

    assert "labsite runs on" in lab("restore", str(file), state=story.state).stderr

    made = git(tree, "rev-list", "HEAD").split()
    story.product.press_ctrl_c()
    assert story.product.wait() == 0
    used = lab("restore", str(file), state=story.state)
    assert (used.returncode, "is not empty" in used.stderr) == (1, True)
    assert len(used.stderr.splitlines()) == 1
    story.close()
    story.product = None
    story.state.rename(tmp_path / "gone")
    done = lab("restore", str(file), state=tmp_path / "new")
    assert done.returncode == 0, done.stderr

    other = type(story)(tmp_path / "new")
    restored.append(other)
    for question, rows in zip(TOLD, before, strict=True):
        # What was told before is there; the product may have told more until the backup.
        assert databases.ask(other.state, question)[: len(rows)] == rows
    _refs_hold(other, head, made, tmp_path / "gone")
    places = {f"{table}.{column}" for table, column in tables.PLACES}
    assert {"runs_run.worktree"} <= _naming(other.state, other.state) <= places
    assert _naming(other.state, story.state) == set()
    report = json.loads(lab("doctor", "--json", state=other.state, LAB_PORT="0").stdout)
    assert [line for line in report["checks"] if line["status"] == "wrong"] == []

    assert other.shell(READ_SECRETS) == "x-token-of-origin of-the-agent"
    other.shell("from runs.models import Project; Project.objects.update(token='')")
    other.up()
    assert _login(other.url) == "/ 200"
    until(lambda: other.shell(RUNS) == "1:ended:succeeded 2:ended:died")
    assert (other.paths.worktrees / "demo-2" / "never committed").exists()
    other.shell(ASK)
    until(lambda: other.shell(RUNS) == "1:ended:succeeded 2:ended:died 3:working:")
    assert other.sessions() == ["demo~1~afk-3"]


def _refs_hold(other: Any, parked: str, made: Sequence[str], gone: Path) -> None:
    """Custom refs are equal; the moving branch is whole at some commit of the agent's."""
    repo, tree = other.paths.repos / "demo.git", other.paths.worktrees / "demo-2"
    assert git(repo, "rev-parse", "refs/rescue/1/parked") == parked
    assert git(repo, "rev-parse", "refs/heads/afk/2") in made
    old = gone / "repos" / "demo.git"
    assert git(repo, "fsck", "--connectivity-only", "--no-dangling") == ""
    assert (
        git(other.paths.origins / "demo.git", "fsck", "--connectivity-only", "--no-dangling") == ""
    )
    assert (tree / "never committed").read_text() == "kept by the backup\n"
    changed = git(tree, "status", "--porcelain").splitlines()
    assert '?? "never committed"' in changed
    assert {line.split(maxsplit=1)[1] for line in changed} <= {'"never committed"', "work.txt"}
    moving = ("refs/heads/afk/2", "refs/remotes/origin/afk/2")
    names = "--format=%(objectname) %(refname)"
    assert [
        line for line in git(repo, "for-each-ref", names).splitlines() if not line.endswith(moving)
    ] == [
        line for line in git(old, "for-each-ref", names).splitlines() if not line.endswith(moving)
    ]


def _naming(state: Path, folder: Path) -> set[str]:
    """Columns with a value that names a path in a folder, texts of the past aside."""
    columns: dict[str, list[str]] = {}
    for table, column in databases.ask(state, SERVER_COLUMNS if chosen() else COLUMNS):
        if not {table, f"{table}.{column}"} & HISTORY:
            columns.setdefault(table, []).append(column)
    found = set()
    for table, names in columns.items():
        # One question a table: a connection for each of a thousand columns took seconds.
        named = (
            f"""max(case when cast("{name}" as text) like '%{folder}/%' then 1 else 0 end)"""
            for name in names
        )
        (row,) = databases.ask(state, f'select {", ".join(named)} from "{table}"')  # noqa: S608
        found |= {f"{table}.{name}" for name, is_named in zip(names, row, strict=True) if is_named}
    return found


# Python reads a module of this name at its start: it stops the process in the middle of its work.
STOPS = """
import os, signal, sys
seen = []
def hear(event, given):
    if event == "open" and "/demo/" in str(given[0]):
        seen.append(given[0])
        if len(seen) == 2:
            os.close(os.open(os.environ["STOPPED"], os.O_CREAT))
            os.kill(os.getpid(), signal.SIGSTOP)
sys.addaudithook(hear)
"""


@contextlib.contextmanager
def _in_the_middle(folder: Path, *argv: str, state: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A command that has stopped at the second file which it reads or makes; ended afterwards."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(STOPS)
    stopped = folder / "stopped"
    process = subprocess.Popen(
        [str(LAB), *argv],
        env=environment(state, PYTHONPATH=str(folder), STOPPED=str(stopped)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        until(lambda: stopped.exists() or process.poll() is not None)
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _some(state: Path) -> None:
    """A few files to save."""
    (state / "demo").mkdir(exist_ok=True)
    for number in range(4):
        (state / "demo" / f"{number}").write_bytes(os.urandom(100_000))


@pytest.mark.parametrize("kind", ["backup", "restore"])
def test_a_kill_in_the_middle_leaves_nothing_that_looks_whole(
    used: Path, tmp_path: Path, kind: str
) -> None:
    """SIGKILL leaves a hidden folder, which the next attempt sweeps up."""
    _some(used)
    file, new = tmp_path / "out" / "a.backup", tmp_path / "out" / "new"
    file.parent.mkdir()
    if kind == "restore":
        assert lab("backup", str(file), state=used).returncode == 0
    target = file if kind == "backup" else new
    argv = ("backup", str(file)) if kind == "backup" else ("restore", str(file))
    seen = f".{target.name}.*-*/" + ("made" if kind == "backup" else "state/demo/*")
    with _in_the_middle(
        tmp_path / "stops", *argv, state=used if kind == "backup" else new
    ) as process:
        assert any(target.parent.glob(seen))
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    assert not target.exists()
    assert any(target.parent.glob(f".{target.name}.*"))
    again = lab(*argv, state=used if kind == "backup" else new)
    assert again.returncode == 0, again.stderr
    assert target.exists()
    assert not any(target.parent.glob(f".{target.name}.*"))


def test_an_interrupt_leaves_nothing_at_all(used: Path, tmp_path: Path) -> None:
    _some(used)
    (tmp_path / "out").mkdir()
    argv = ("backup", str(tmp_path / "out" / "a"))
    with _in_the_middle(tmp_path / "stops", *argv, state=used) as process:
        assert any((tmp_path / "out").glob(".a.*/made"))
        os.killpg(process.pid, signal.SIGTERM)
        os.killpg(process.pid, signal.SIGCONT)
        assert process.wait(PATIENCE) == 130
    assert list((tmp_path / "out").iterdir()) == []
