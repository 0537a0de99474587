"""The product's web process for tests: real daphne, real files, and a second process that writes."""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher

from labsite import programs
from runs.core.paths import Paths
from tests import databases, prepared
from tests.patience import PATIENCE
from tests.ports import free_port
from tests.web.socket_client import SocketClient

# For `Served.do`: a new project with a working run, whose number is the result.
PROJECT = """
from datetime import UTC, datetime
name = f"demo-{Project.objects.count() + 1}"
project = Project.objects.create(name=name, slug=name, state="ready", source="/x", tracker="memory",
                                 tracker_root="demo", created_at=datetime.now(UTC))
run = Run.objects.create(project=project, host="local", issue_key="7", issue_title="Seven", state="working",
                         session=f"{name}~1~afk-7", branch="afk/7", slot=1, requested_at=datetime.now(UTC),
                         started_at=datetime.now(UTC))
result = run.pk
"""

ROOT = Path(__file__).resolve().parents[2]

# The other process of the product, as a worker is one: it runs what the test sends it.
HAND = """
import json, os, sys, traceback
import django
django.setup()
from django.db import transaction
from runs import wiring
from runs.core.states import NoticeKind
from runs.models import *
from runs.timeline import announce
def tell(text, **more):
    with transaction.atomic():
        return announce.tell(wiring.lab(), NoticeKind.RUN_WARNED, text, **more).pk
lab = wiring.lab()
space = globals()
answers = os.fdopen(os.dup(1), "w")
sys.stdout = sys.stderr
for line in sys.stdin:
    space["result"] = None
    try:
        exec(json.loads(line), space)
        answer = {"result": space["result"]}
    except BaseException:
        answer = {"error": traceback.format_exc()}
    answers.write(json.dumps(answer, default=str) + "\\n")
    answers.flush()
"""


@functools.cache
def _password() -> str:
    """Everybody's password as the product stores it, which takes a third of a second to make."""
    return PBKDF2PasswordHasher().encode("correct horse battery", "of-these-tests")


class Served:
    """daphne on a free port with its own state folder, in the default installation's settings."""

    def __init__(self, state: Path, **environment: str) -> None:
        self.state = state
        self.paths = Paths(state)
        self.port = free_port()
        self.base_url = f"http://127.0.0.1:{self.port}"
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("LAB_")},
            "DJANGO_SETTINGS_MODULE": "labsite.settings",
            "LAB_STATE_DIR": str(state),
            "PYTHONPATH": str(ROOT),
            **databases.environment(state),
            **environment,
        }
        self._web: subprocess.Popen[bytes] | None = None
        self._hand: subprocess.Popen[str] | None = None

    def start(self, argv: Sequence[str] = ()) -> None:
        """Start daphne, or `argv` in its place, and wait until it answers."""
        with (self.state / "web.log").open("ab") as log:
            self._web = subprocess.Popen(
                argv or programs.web_argv("127.0.0.1", self.port),
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + PATIENCE
        while not self.is_up():
            assert self._web.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.05)

    def is_up(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.base_url}/healthz", timeout=PATIENCE) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def kill(self) -> None:
        """As `kill -9` does: no goodbye, and its socket file stays behind."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """As the supervisor does; the exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> int:
        if self._web is None:
            return 0
        self._web.send_signal(how)
        code = self._web.wait(PATIENCE)
        self._web = None
        return code

    @property
    def web_pid(self) -> int:
        assert self._web is not None
        return self._web.pid

    def log(self) -> str:
        return (self.state / "web.log").read_text(errors="replace")

    def do(self, code: str) -> Any:
        """Run code in the other process, with all models, `lab` and `tell(text, run=…)`.

        What it assigns to `result` comes back.
        """
        if self._hand is None:
            self._hand = subprocess.Popen(
                [sys.executable, "-c", HAND],
                cwd=ROOT,
                env=self.environment,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        assert self._hand.stdin is not None
        assert self._hand.stdout is not None
        self._hand.stdin.write(json.dumps(code) + "\n")
        self._hand.stdin.flush()
        answer = json.loads(self._hand.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def cookie(self, name: str = "anna", *, superuser: bool = True, may_act: bool = True) -> str:
        """The session cookie of somebody who has logged in; made when missing."""
        return str(
            self.do(f"""
from django.contrib.auth.models import Permission, User
from django.test import Client
user, is_new = User.objects.get_or_create(
    username={name!r}, defaults={{"is_superuser": {superuser}, "is_staff": {superuser}}})
if is_new:
    user.password = {_password()!r}
    user.save()
if {may_act}:
    user.user_permissions.add(Permission.objects.get(codename="act"))
client = Client()
client.force_login(user)
result = client.cookies["lab_session"].value
""")
        )

    def browser_cookies(self, cookie: str) -> list[dict[str, str]]:
        """For `context.add_cookies(...)` of Playwright."""
        return [{"name": "lab_session", "value": cookie, "url": self.base_url}]

    def get(self, path: str, cookie: str = "") -> tuple[int, str]:
        """One page: status and text."""
        request = urllib.request.Request(
            self.base_url + path, headers={"Cookie": f"lab_session={cookie}"}
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as wrong:
            with wrong:
                return wrong.code, wrong.read().decode()

    def page(self, topic: str, cookie: str, last: int | None = 0) -> SocketClient:
        """An open page's socket that has said what it shows."""
        return SocketClient(self.port, topic, cookie).hello(last)

    def close(self) -> None:
        self._end(signal.SIGKILL)
        if self._hand is not None:
            assert self._hand.stdin is not None
            assert self._hand.stdout is not None
            self._hand.stdin.close()
            self._hand.wait(PATIENCE)
            self._hand.stdout.close()


@pytest.fixture(scope="session")
def prepared_state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state folder with migrated database and collected files, made once a run and copied."""
    return prepared.collected(tmp_path_factory)


@contextmanager
def serving(prepared_state: Path) -> Iterator[Served]:
    """The running web process of a fresh installation."""
    folder = Path(tempfile.mkdtemp(prefix="lab-served-"))
    databases.copy(prepared_state, folder)
    made = Served(folder)
    try:
        made.start()
        yield made
    finally:
        made.close()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def served(prepared_state: Path) -> Iterator[Served]:
    with serving(prepared_state) as made:
        yield made


@pytest.fixture(scope="module")
def once_served(prepared_state: Path) -> Iterator[Served]:
    """One for the tests of a module that are at home with what the ones before left behind.

    Starting it takes longer than most of them; a module takes it by a `served` of its own.
    """
    with serving(prepared_state) as made:
        yield made


@pytest.fixture
def own_served(prepared_state: Path) -> Iterator[Served]:
    """One for a test alone, in such a module."""
    with serving(prepared_state) as made:
        yield made
