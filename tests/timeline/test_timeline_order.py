"""The timeline is told in the order in which entries became visible: nothing lost, nothing twice."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from runs.core.states import NoticeKind
from runs.models import Notice
from runs.timeline import commit_order
from runs.timeline import queries as timeline
from tests import make
from tests.fakes import START
from tests.patience import PATIENCE

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres]
on_server = pytest.mark.skipif(
    connection.vendor != "postgresql",
    reason="SQLite has one writer at a time, so entries cannot overtake each other",
)


def _write(text: str) -> int:
    return Notice.objects.create(at=START, kind=NoticeKind.RUN_STEP, text=text).pk


def test_entries_come_in_their_order_however_the_query_was_ordered_before() -> None:
    for number in range(5):
        _write(f"entry {number}")
    found = commit_order.following(Notice.objects.order_by("-pk"), 0)
    assert [row.text for row in found] == [f"entry {number}" for number in range(5)]


def _after(entry: int, limit: int) -> list[Notice]:
    """What is told after an entry, also when one of another database ends in the very moment.

    Other tests run on the same server. A transaction of theirs that ends while this is asked could
    be one of ours, so nothing newer is told; the next time it is over.
    """
    for _ in range(20):
        found = timeline.read(entry, limit)
        if not found.is_waiting:
            break
    return found.entries


def _newest() -> int:
    """The last entry that is told, asked often enough for the same reason."""
    return statistics.mode(timeline.newest() for _ in range(15))


def _is_waiting(entry: int) -> bool:
    """Whether something of ours is kept back, asked often enough for the same reason."""
    return all(timeline.read(entry, 500).is_waiting for _ in range(20))


class Follower:
    """Reads what is new as the feed does; `naive` follows ids instead."""

    def __init__(self, naive: bool = False) -> None:
        self.naive = naive
        self.cursor = _newest()
        self.seen: list[str] = []

    def read(self) -> list[str]:
        if self.naive:
            found = list(Notice.objects.filter(pk__gt=self.cursor).order_by("pk"))
        else:
            found = _after(self.cursor, 500)
        if found:
            self.cursor = found[-1].pk
        self.seen += [notice.text for notice in found]
        return [notice.text for notice in found]


@contextmanager
def _open_transaction(text: str) -> Iterator[int]:
    """An entry that another connection has written and commits when the block is left."""
    written, commit, ids = threading.Event(), threading.Event(), []

    def work() -> None:
        try:
            with transaction.atomic():
                ids.append(_write(text))
                written.set()
                commit.wait(PATIENCE)
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    assert written.wait(PATIENCE)
    try:
        yield ids[0]
    finally:
        commit.set()
        thread.join(PATIENCE)


@on_server
def test_an_entry_that_commits_late_is_told_first_and_not_lost() -> None:
    _write("before")
    follower, naive = Follower(), Follower(naive=True)
    with _open_transaction("late") as late:
        early = _write("early")
        assert late < early
        assert (follower.read(), naive.read()) == ([], ["early"])
        assert _is_waiting(follower.cursor)
        assert _newest() == follower.cursor
    assert (follower.read(), naive.read()) == (["late", "early"], [])
    assert not _is_waiting(follower.cursor)
    assert follower.read() == []


@on_server
def test_an_older_transaction_with_a_higher_id_keeps_its_place() -> None:
    """Ids then fall along the order; a cursor stands where its entry is, not where its number is."""
    follower = Follower()
    begun, go, done = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        try:
            with transaction.atomic():
                with connection.cursor() as cursor:
                    cursor.execute("SELECT pg_current_xact_id()")
                begun.set()
                go.wait(PATIENCE)
                _write("high")
        finally:
            connection.close()
            done.set()

    threading.Thread(target=work).start()
    assert begun.wait(PATIENCE)
    low = _write("low")
    go.set()
    assert done.wait(PATIENCE)
    assert follower.read() == ["high", "low"]
    assert follower.cursor == low == _newest()
    assert follower.read() == []


@on_server
def test_what_another_database_of_the_server_does_keeps_nothing_back() -> None:
    import psycopg

    mine = connection.get_connection_params()
    elsewhere = {key: mine[key] for key in ("host", "port", "user", "password") if mine.get(key)}
    follower = Follower()
    with psycopg.connect(dbname="postgres", **elsewhere) as other:
        other.execute("SELECT pg_current_xact_id()")
        told = _write("told at once")
        assert follower.read() == ["told at once"]
        assert _newest() == told
        with _open_transaction("late"):
            _write("early")
            assert follower.read() == []
        assert follower.read() == ["late", "early"]


@on_server
def test_a_storm_of_writers_loses_nothing_and_repeats_nothing() -> None:
    follower = Follower()

    def write(writer: int) -> None:
        try:
            for number in range(60):
                with transaction.atomic():
                    _write(f"{writer}:{number}")
                    time.sleep((writer * 7 + number * 3) % 10 * 0.0003)
        finally:
            connection.close()

    writers = [threading.Thread(target=write, args=(writer,)) for writer in range(8)]
    for thread in writers:
        thread.start()
    while any(thread.is_alive() for thread in writers):
        follower.read()
    follower.read()
    assert len(follower.seen) == len(set(follower.seen)) == 8 * 60
    for writer in range(8):
        mine = [text for text in follower.seen if text.startswith(f"{writer}:")]
        assert mine == [f"{writer}:{number}" for number in range(60)]


def test_what_a_transaction_wrote_itself_it_can_read() -> None:
    with transaction.atomic():
        first, second = _write("one"), _write("two")
        assert [notice.pk for notice in _after(0, 10)] == [first, second]
        assert _newest() == second


def test_a_stretch_ends_at_its_limit_and_goes_on_there() -> None:
    ids = [_write(str(number)) for number in range(7)]
    found = _after(0, 3)
    assert [notice.pk for notice in found] == ids[:3]
    assert [notice.pk for notice in _after(found[-1].pk, 100)] == ids[3:]
    assert _after(ids[-1] + 10_000, 100) == []


def test_what_follows_an_entry_is_one_question_that_leaves_heavy_things_where_they_are() -> None:
    """A reader that is 100,000 entries behind must not fetch a run's screen with each of them."""
    run = make.a_run(make.a_project())
    with transaction.atomic():  # what is written in it is told in it at once
        for _ in range(3):
            Notice.objects.create(
                at=START, kind=NoticeKind.RUN_STEP, text="x", run=run, project=run.project
            )
        with CaptureQueriesContext(connection) as asked:
            told = timeline.after(0, 10)
            assert [(one.run_id, one.project and one.project.name) for one in told] == (
                [(run.pk, "demo")] * 3
            )
    assert len(asked) == 1
    for heavy in ("last_words", "prompt", "token"):
        assert f'"{heavy}"' not in asked[0]["sql"]


def test_after_a_removed_entry_nothing_is_lost() -> None:
    _write("before")
    removed = _write("removed")
    after = [_write("one"), _write("two")]
    Notice.objects.filter(pk=removed).delete()
    found = [notice.pk for notice in _after(removed, 100)]
    assert found[-2:] == after
    assert len(found) <= 2 + commit_order.SLACK


@on_server
def test_after_a_removed_entry_what_committed_late_is_not_lost() -> None:
    with _open_transaction("late"):
        removed = _write("removed")
    newest = _write("newest")
    Notice.objects.filter(pk=removed).delete()
    told = _after(removed, 100)
    assert [notice.text for notice in told] == ["late", "newest"]
    assert told[-1].pk == newest


@on_server
def test_a_dump_of_a_server_that_was_further_on_does_not_silence_the_timeline() -> None:
    kept = [_write("old"), _write("older")]
    with connection.cursor() as cursor:
        cursor.execute("""UPDATE "runs_notice" SET "xid" = '99999999999'""")
    assert _after(0, 10) == []
    assert timeline.mend_order()
    assert not timeline.mend_order()
    new = _write("new")
    assert [notice.pk for notice in _after(0, 10)] == [*kept, new]
    assert [notice.pk for notice in _after(kept[-1], 10)] == [new]


@on_server
def test_nothing_is_mended_while_others_write() -> None:
    with _open_transaction("late"):
        _write("early")
        assert not timeline.mend_order()
