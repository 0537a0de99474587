"""Several writers at once, connections that break, and letters that a database refuses (X-09)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connection

from runs import tick
from runs.core.paths import Paths
from runs.core.ports import Lab, Sighting
from runs.core.states import RunState
from runs.dispatch import start_requests
from runs.issues import acts as issues
from runs.lifecycle import launch
from runs.models import Host, Project, Run, Settings, StartRequest
from runs.people import setup, throttle
from runs.transcript import screens
from tests import make
from tests.fakes import FakeSessions, World
from tests.patience import PATIENCE
from trackers import registry
from trackers.builtin import store
from trackers.builtin.models import IssueComment

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres]
on_server = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite has no server that ends connections"
)
PASSWORD = "correct horse battery"


def _both(first: Callable[[], object], second: Callable[[], object]) -> list[object]:
    """What two threads with connections of their own come to; refusals are answers too."""
    said: list[object] = []

    def run(act: Callable[[], object]) -> None:
        try:
            said.append(act())
        except Exception as error:
            said.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(act,)) for act in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    return said


def _meet(barrier: threading.Barrier) -> None:
    """Wait for the other one, unless the database keeps it from coming here."""
    try:
        barrier.wait(1)
    except threading.BrokenBarrierError:
        return


@pytest.fixture
def shop(world: World) -> Project:
    """A project on the built-in tracker with one issue."""
    project = make.a_project("shop", tracker="builtin", tracker_root=store.create_root("shop"))
    issues.create(world.lab, project, title="One", by="anna")
    return project


@pytest.mark.row("X-09", level="real")
def test_the_same_comment_sent_twice_at_once_is_kept_once(world: World, shop: Project) -> None:
    both_have_read = threading.Barrier(2)

    class Slow:
        """The tracker, whose readers wait for each other."""

        def __init__(self) -> None:
            self._tracker = registry.tracker("builtin")

        def issue(self, root: str, key: str) -> Any:
            found = self._tracker.issue(root, key)
            _meet(both_have_read)
            return found

        def __getattr__(self, name: str) -> Any:
            return getattr(self._tracker, name)

    lab: Lab = replace(world.lab, tracker_for={"builtin": Slow()}.get)

    def send() -> None:
        issues.comment(lab, shop, "1", body="the very same words", by="anna")

    assert _both(send, send) == [None, None]
    assert IssueComment.objects.count() == 1


class SlowToken:
    """The file of a set-up link, whose remover waits for the other one first."""

    def __init__(self, token: Path) -> None:
        self._token = token
        self._barrier = threading.Barrier(2)

    def read_text(self) -> str:
        return self._token.read_text()

    def unlink(self) -> None:
        _meet(self._barrier)
        self._token.unlink()


@pytest.mark.every_case
@pytest.mark.row("X-09", level="real")
@pytest.mark.parametrize("names", [("anna", "anna"), ("anna", "bert")], ids=["same", "two"])
def test_two_that_use_the_setup_link_at_once_make_one_account(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    token = setup.link_token(Paths(tmp_path))
    assert token

    class Link:
        setup_token = SlowToken(Paths(tmp_path).setup_token)

    def use(name: str) -> User:
        return setup.make_operator(Link(), token, name, PASSWORD)  # type: ignore[arg-type]

    said = _both(lambda: use(names[0]), lambda: use(names[1]))
    assert sorted(type(one).__name__ for one in said) == ["SetupRefused", "User"]
    assert User.objects.count() == 1


def test_many_tries_at_once_are_each_counted(world: World) -> None:
    door = throttle.doors("192.0.2.1", "anna")
    said = []
    for _ in range(6):
        said += _both(
            lambda: throttle.attempt(world.lab, door), lambda: throttle.attempt(world.lab, door)
        )
    assert said.count(None) == 5
    assert {type(one).__name__ for one in said if one} == {"TooManyTries"}


class Meanwhile:
    """Sessions whose first look is followed by something that the asker cannot know of."""

    def __init__(self, sessions: FakeSessions, act: Callable[[], object]) -> None:
        self._sessions = sessions
        self._acts = [act]

    def look(self) -> Mapping[str, Sighting]:
        seen = self._sessions.look()
        while self._acts:
            self._acts.pop()()
        return seen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sessions, name)


def _cut_connections() -> None:
    """What a restart of the server does to every connection of this process."""
    wanted = connection.get_connection_params()
    named = {name: wanted[name] for name in ("dbname", "user", "password", "host", "port", "options") if wanted.get(name)}  # fmt: skip
    with psycopg.connect(**named, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@on_server
@pytest.mark.row("X-09", level="real")
def test_a_tick_that_loses_its_connection_gives_the_lease_back_and_the_next_one_works(
    world: World,
) -> None:
    Settings.current()
    lab: Lab = replace(world.lab, sessions=Meanwhile(world.sessions, _cut_connections))
    cut = tick.tick(lab, force=True)
    assert cut.was_blind or cut.errors
    assert Host.objects.get().lease_owner == ""
    assert not tick.tick(lab, force=True).was_skipped


@on_server
@pytest.mark.row("X-09", level="real")
def test_a_start_that_loses_its_connection_is_brought_to_an_end_by_the_next_tick(
    world: World,
) -> None:
    project = make.a_project(agent=make.an_agent())
    world.tracker.add_root("demo")
    world.tracker.add_issue("demo", "Seven", "7", labels=[project.ready_label])
    asked = start_requests.request(world.lab, project, "anna")
    tick.tick(world.lab, force=True)
    run = Run.objects.get()

    class Cut:
        def __getattr__(self, name: str) -> Any:
            if name == "fetch_default":
                _cut_connections()
            return getattr(world.repos, name)

    lab: Lab = replace(world.lab, repos=Cut())
    launch.carry_out(lab, run.pk)
    tick.tick(world.lab, force=True)
    run.refresh_from_db()
    assert run.state != RunState.STARTING
    assert StartRequest.objects.get(pk=asked.pk).answer == "start_failed"
    assert world.sessions.all == {}


@pytest.mark.row("X-14", level="contract")
def test_a_letter_0_on_a_screen_is_left_out(world: World) -> None:
    run = make.a_run(make.a_project())
    line = screens.last_line("before\nall\0 done \0\n")
    Run.objects.filter(pk=run.pk).update(last_line=line, last_words=screens.tidy("all\0 done"))
    run.refresh_from_db()
    assert (run.last_line, run.last_words) == ("all done", "all done")


@pytest.mark.every_case
@pytest.mark.row("X-14", level="contract")
@pytest.mark.parametrize("wanted", ["\0", "7\0", "\ud800", "x" * 500])
def test_a_start_of_an_issue_that_cannot_be_is_refused(world: World, wanted: str) -> None:
    project = make.a_project(agent=make.an_agent())
    world.tracker.add_root("demo")
    Settings.current()
    asked = start_requests.request(world.lab, project, "anna", wanted)
    tick.tick(world.lab, force=True)
    asked.refresh_from_db()
    assert asked.answer == "nothing_ready"
