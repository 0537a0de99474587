"""Verbs on trackers that have to be waited for: once, outside of transactions, in somebody's name."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.db import connection

from runs.issues import acts as issues
from runs.issues import remote
from runs.models import Notice, Project, Run, Sent
from runs.projects import sending
from runs.pulls import acts as pulls
from tests import make
from tests.fakes import World
from tests.world.memory_tracker import MemoryTracker
from trackers.account import Purpose
from trackers.base import Ability, NewPull, Pull, Refused, Unreachable

pytestmark = pytest.mark.django_db(transaction=True)


class Far(MemoryTracker):
    """Fails the test when it is asked inside a transaction, or as if nobody waited for it."""

    kind = "gitea"

    def _count(self, call: str) -> None:
        assert not connection.in_atomic_block, f"{call} was asked inside a transaction"
        super()._count(call)
        self.purposes.add(Purpose.PULLS.now)

    purposes: set[Purpose] = set()


@pytest.fixture
def far(world: World) -> Far:
    tracker = Far(frozenset(Ability) - {Ability.LOCAL})
    tracker.purposes = set()
    tracker.add_root("demo")
    tracker.add_issue("demo", "Add retries", key="7")
    world.lab = replace(world.lab, tracker_for={"gitea": tracker}.get)
    return tracker


@pytest.fixture
def project(far: Far) -> Project:
    return make.a_project(tracker="gitea", tracker_root="demo")


def _working(world: World, project: Project) -> Run:
    run = make.a_run(project, fork_point="f" * 40)
    repo = project.repo(world.lab.paths)
    world.repos.origins[str(repo)] = {"afk/7": "e" * 40}
    return run


@pytest.mark.row("X-01", level="contract")
def test_a_comment_is_written_once_in_the_name_of_who_wrote_it(
    world: World, far: Far, project: Project
) -> None:
    run = make.a_run(project)
    for _ in range(2):
        issues.comment(world.lab, project, "7", body="Begun.", by="claude, run 1", run=run)
    said = [one.body for one in far.issue("demo", "7").comments]
    assert said == ["Begun.\n\n_claude, run 1, through labsite_"]
    (notice,) = Notice.objects.filter(kind="issue.commented")
    assert (notice.by, notice.text, notice.run_id) == ("claude, run 1", "comment: Begun.", run.pk)
    assert not Sent.objects.exists()


@pytest.mark.postgres
def test_the_same_words_wait_while_they_are_being_sent(
    world: World, far: Far, project: Project
) -> None:
    waited: list[float] = []

    def pause(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            Sent.objects.all().delete()

    world.lab = replace(world.lab, pause=pause)
    with sending.alone(world.lab, project, "one"), sending.alone(world.lab, project, "one"):
        assert len(waited) == 3
    world.lab = replace(world.lab, pause=lambda seconds: None)
    with sending.alone(world.lab, project, "two"):
        with pytest.raises(Unreachable), sending.alone(world.lab, project, "two"):
            pass
        world.clock.forward(minutes=2)  # who began must have died
        with sending.alone(world.lab, project, "two"):
            pass


@pytest.mark.row("X-01", level="contract")
def test_issues_are_written_labelled_and_closed_there(
    world: World, far: Far, project: Project
) -> None:
    far.create_label("demo", "bug")
    made = remote.create(world.lab, project, title="Socks", body="b", labels=["bug"], by="anna")
    assert (made.title, made.labels) == ("Socks", ("bug",))
    remote.add_label(world.lab, project, made.key, "late", by="anna")
    remote.remove_label(world.lab, project, made.key, "bug", by="anna")
    assert far.issue("demo", made.key).labels == ("late",)
    remote.close(world.lab, project, made.key, by="anna")
    assert not far.issue("demo", made.key).is_open
    assert Notice.objects.filter(kind="issue.changed", by="anna").count() == 4


def test_what_is_not_declared_is_refused_before_anybody_is_asked(
    world: World, project: Project
) -> None:
    bare = Far(frozenset())
    world.lab = replace(world.lab, tracker_for={"gitea": bare}.get)
    for act in (
        lambda: remote.create(world.lab, project, title="x", by="anna"),
        lambda: remote.close(world.lab, project, "7", by="anna"),
        lambda: remote.add_label(world.lab, project, "7", "x", by="anna"),
    ):
        with pytest.raises(Refused, match="cannot do that"):
            act()
    assert not bare.calls


@pytest.mark.row("X-01", "LAB-35", level="contract")
def test_a_pull_request_is_opened_there_once_and_closes_its_issue(
    world: World, far: Far, project: Project
) -> None:
    run = _working(world, project)
    opened = [
        pulls.create(world.lab, run, title="Add retries", body="Done.", by="claude, run 1")
        for _ in range(2)
    ]
    assert opened[0].number == opened[1].number
    (entry,) = far.shelves["demo"].pulls
    assert "Closes #7" in entry["body"]
    assert Notice.objects.filter(kind="pull.opened").count() == 1
    number = opened[0].number
    far.add_issue("demo", "on a forge a pull request is an issue too", key=str(number))
    pulls.comment(world.lab, project, number, body="Look.", by="claude", run=run)
    pulls.comment(world.lab, project, number, body="Look.", by="claude", run=run)
    assert Notice.objects.filter(kind="pull.commented").count() == 1


def test_one_that_was_opened_before_labsite_died_is_found_and_told_of(
    world: World, far: Far, project: Project
) -> None:
    run = _working(world, project)

    class Dies(Exception):
        pass

    def opened_and_dead(root: str, new: NewPull) -> Pull:
        MemoryTracker.create_pull(far, root, new)
        raise Dies

    far.create_pull = opened_and_dead  # type: ignore[method-assign]
    with pytest.raises(Dies):
        pulls.create(world.lab, run, title="Add retries", by="claude")
    assert pulls.create(world.lab, run, title="Add retries", by="claude").number
    assert len(far.shelves["demo"].pulls) == 1
    assert Notice.objects.filter(kind="pull.opened").count() == 1


def test_what_somebody_waits_for_is_no_polling(world: World, far: Far, project: Project) -> None:
    issues.comment(world.lab, project, "7", body="Begun.", by="anna")
    assert far.purposes == {Purpose.READ}
    assert Purpose.QUEUE.now is Purpose.QUEUE
