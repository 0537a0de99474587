"""What we add to Django's database layer: rows made in bulk, SQL that is kept, connections that broke."""

from __future__ import annotations

import copy
import functools
import logging
import re
import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from typing import Any, ParamSpec, Self, TypeVar
from weakref import WeakKeyDictionary

from django.db import (
    DEFAULT_DB_ALIAS,
    Error,
    InterfaceError,
    OperationalError,
    connection,
    connections,
    models,
)
from django.db.models import QuerySet
from django.db.models.base import ModelState
from django.db.models.lookups import In
from django.utils.dateparse import parse_datetime

from runs.core.ports import Lab

logger = logging.getLogger(__name__)

_P = ParamSpec("_P")
_Found = TypeVar("_Found")
NO_DATABASE = (OperationalError, InterfaceError)
# Shorter than the silence after which others take work for lost.
PATIENCE = timedelta(minutes=5)
ASK_EVERY = 1.0  # seconds
REST_SECONDS = 90.0  # longer than periodic work leaves its connection alone
MOST_STATEMENTS = 16  # of one query, each with other values


class QuickRows(models.Model):
    """Makes its instances from the database without `__init__`: 10 µs each instead of 100.

    A tick reads 400 of them, a board 100. For models whose fields are plain attributes and which
    nobody hooks with pre_init or post_init. A field that was not asked for is absent, which is how
    Django itself marks it as deferred.
    """

    class Meta:
        abstract = True

    @classmethod
    def from_db(  # type: ignore[override]  # the stubs are of a later Django
        cls, db: str | None, field_names: Collection[str], values: Collection[Any]
    ) -> Self:
        row = cls.__new__(cls)
        row._state = ModelState()
        row._state.adding = False
        row._state.db = db
        row.__dict__.update(zip(field_names, values, strict=True))
        return row


_WORDS = re.compile(r"[a-z0-9._]{1,40}")
MOST_WORDS = 60


class InWords(In):
    """`__in` of our own words, such as states and kinds, written into the statement as they are.

    SQLite matches a condition of an index with the text of a query: `outcome IN (?, ?)` is not
    `outcome IN ('died', 'failed')` to it, whatever is bound, and it reads the whole table. Other values
    stay parameters.
    """

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        if not self.rhs_is_direct_value():
            return super().as_sql(compiler, connection)
        words = list(dict.fromkeys(self.rhs))
        if not 0 < len(words) <= MOST_WORDS or not all(_is_word(one) for one in words):
            return super().as_sql(compiler, connection)
        column, params = self.process_lhs(compiler, connection)
        listed = ", ".join(f"'{one}'" for one in map(str, words))
        return f"{column} IN ({listed})", params


def _is_word(value: object) -> bool:
    return isinstance(value, str) and _WORDS.fullmatch(str(value)) is not None


def renew_connection() -> None:
    """Let go of a connection that failed, so that the next query opens a new one.

    Django does so between requests and tasks; work that goes on after an error has to ask for it.
    """
    if connection.errors_occurred and not connection.in_atomic_block:
        connection.close_if_unusable_or_obsolete()


def read_version() -> int | None:
    """Return a number that is another one once another connection has written; None for a server.

    https://www.sqlite.org/pragma.html#pragma_data_version
    """
    if connection.vendor != "sqlite":
        return None
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA data_version")
        return int(cursor.fetchone()[0])


def drop_lost_connection() -> None:
    """Close this thread's connection where its database may be another one by now.

    A file tells that at once. Of a server nobody knows, so a connection to one never stays.
    """
    if connection.vendor != "sqlite" or getattr(connection, "is_replaced", False):
        drop_connection()


class ConnectionPool:
    """The open connections of a process to its file that no work uses at the moment.

    Many threads work in a busy hour, few at the same time, and each open database takes some megabytes:
    work takes the one that was used last, whose pages and statements are still warm.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._idle: list[tuple[Any, float]] = []

    def take(self) -> bool:
        """Give this thread a connection; False where it has an open one, which stays its own."""
        if any(one.connection is not None for one in connections.all(initialized_only=True)):
            return False
        with self._lock:
            found = self._idle.pop()[0] if self._idle else None
        if found is None:
            found = connections.create_connection(DEFAULT_DB_ALIAS)
            found.inc_thread_sharing()  # one thread at a time
        connections[DEFAULT_DB_ALIAS] = found
        return True

    def put_back(self) -> None:
        """Take back what `take` gave this thread, if it is still open."""
        used = connections[DEFAULT_DB_ALIAS]
        del connections[DEFAULT_DB_ALIAS]
        if used.connection is not None:
            with self._lock:
                self._idle.append((used, self._clock()))

    def close_idle(self, seconds: float = REST_SECONDS) -> None:
        """Close connections that nobody has used for so many seconds."""
        with self._lock:
            closed = [one for one in self._idle if self._clock() - one[1] >= seconds]
            self._idle = [one for one in self._idle if one not in closed]
        for unused, _ in closed:
            try:
                unused.close()
            except Error:
                logger.exception("a connection that nobody uses was not closed")


pool = ConnectionPool()


def keep_connection(work: Callable[_P, None]) -> Callable[_P, None]:
    """Let work that comes again and again have a connection that stays open for what comes next.

    Opening a database in a file reads its whole schema, which takes longer than a look at a machine
    at rest. After an error, and where `drop_lost_connection` says so, a new one is opened.
    """

    @functools.wraps(work)
    def carry_out(*args: _P.args, **named: _P.kwargs) -> None:
        was_taken = pool.take()
        try:
            drop_lost_connection()
            work(*args, **named)
        finally:
            if connection.vendor != "sqlite" or connection.errors_occurred:
                drop_connection()
            if was_taken:
                pool.put_back()

    return carry_out


def drop_connection() -> None:
    """Have the next query open a new connection, where no transaction is under way."""
    if not connection.in_atomic_block:
        connection.close()


def run_beside(name: str, work: Callable[[], _Found]) -> Future[_Found]:
    """Begin work in a thread of its own; the result raises what the work raises.

    The work should ask no database: each thread opens one of its own, for milliseconds.
    """
    result: Future[_Found] = Future()

    def carry_out() -> None:
        try:
            result.set_result(work())
        except BaseException as error:
            result.set_exception(error)
        finally:
            drop_connection()  # one that was opened to mask an error

    threading.Thread(target=carry_out, name=name, daemon=True).start()
    return result


def patiently(
    lab: Lab,
    act: Callable[[], object],
    is_stopping: Callable[[], bool],
    waits: str,
    **about: object,
) -> None:
    """Do what writes, again while the database does not answer: what was found is not lost by that.

    Raises what the act raises; the database's error after minutes, or once this process ends. The
    log is told once what `waits`, and what that is `about`.
    """
    until, is_told = lab.now() + PATIENCE, False
    while True:
        try:
            act()
            return
        except NO_DATABASE:
            if not is_told:
                logger.warning(waits, extra=about)
            is_told = True
            renew_connection()
            if is_stopping() or lab.now() >= until:
                raise
            lab.pause(ASK_EVERY)


# No row holds a moment near this one, so that it is recognised among the parameters.
_MARK = datetime(9000, 1, 1, tzinfo=UTC)
_NEAR = timedelta(days=3650)
# Nor such keys, which stand for those that each call names.
_KEYS = tuple(range(9_000_000_000_000_000_000, 9_000_000_000_000_000_008))
_PLACES = {one: place for place, key in enumerate(_KEYS) for one in (key, str(key))}


class Compiled:
    """A query whose SQL is made once and asked again and again, each time about another moment.

    Django takes some milliseconds to make the SQL of a dozen subqueries, and SQLite a tenth of one
    to answer it: what is asked every few seconds for months is worth keeping. `make` builds it for
    a moment, or moments around that one; only what depends on that moment, and the keys of rows that each
    call names, may differ from one call to the next. One is of one kind of database.
    """

    def __init__(self, make: Callable[[datetime], QuerySet[Any, Any]]) -> None:
        self._make = make
        self._sql = ""
        self._params: list[Any] = []
        self._times: dict[int, timedelta] = {}
        self._keys: dict[int, int] = {}
        self._asked: QuerySet[Any, Any]
        self._compiler: Any

    def first(
        self, now: datetime = _MARK, keys: Sequence[int | str] = ()
    ) -> tuple[Any, ...] | None:
        """The row as `rows` finds it first, as the database gives it; None when there is none.

        Raises DatabaseError.
        """
        with connection.cursor() as cursor:
            cursor.execute(*self._statement(now, keys))
            row: tuple[Any, ...] | None = cursor.fetchone()
        return row

    def rows(self, now: datetime = _MARK, keys: Sequence[int | str] = ()) -> list[Any]:
        """All that the query finds as things are `now`, as Django makes it. Raises DatabaseError.

        The moment may be left out where it is not asked about one. `keys`: those that it is about.
        """
        statement = self._statement(now, keys)
        compiler = copy.copy(self._compiler)
        compiler.connection = connections[DEFAULT_DB_ALIAS]
        compiler.as_sql = lambda *_args, **_kwargs: statement
        converters = self._converters_of(compiler)
        compiler.get_converters = lambda _expressions: converters
        rows = self._asked._chain()  # type: ignore[attr-defined]
        rows.query.get_compiler = lambda *_args, **_kwargs: compiler
        return list(rows)

    def _converters_of(self, compiler: Any) -> Any:
        """What makes Python's values of a row's, once a connection: for 200 columns half a millisecond.

        Kept with the connection, whose methods they are, and no longer than this statement.
        """
        converters = vars(compiler.connection).setdefault(
            "prepared_converters", WeakKeyDictionary()
        )
        if self not in converters:
            columns = [one[0] for one in compiler.select[: compiler.col_count]]
            converters[self] = compiler.get_converters(columns)
        return converters[self]

    def _statement(
        self, now: datetime, keys: Sequence[int | str] = ()
    ) -> tuple[str, tuple[Any, ...]]:
        if not self._sql:
            self._compile()
        params = list(self._params)
        for place, number in self._keys.items():
            params[place] = keys[number]
        for place, apart in self._times.items():
            params[place] = connection.ops.adapt_datetimefield_value(now + apart)
        return self._sql, tuple(params)

    def _compile(self) -> None:
        asked = self._make(_MARK)
        compiler = asked.query.get_compiler(connection=connection)
        sql, params = compiler.as_sql()
        compiler.connection = None  # which belongs to a thread
        self._params = list(params)
        self._times = {
            place: apart for place, one in enumerate(params) if (apart := _apart(one)) is not None
        }
        self._keys = {
            place: _PLACES[one]
            for place, one in enumerate(params)
            if isinstance(one, int | str) and one in _PLACES
        }
        self._asked, self._compiler = asked, compiler
        self._sql = sql


def prepared(make: Callable[..., QuerySet[Any, Any]]) -> Callable[..., Compiled]:
    """The statement of a query that is asked again and again with the same few plain values.

    `make` builds the query for a moment and those values. So many are kept as `MOST_STATEMENTS` says.
    """
    return prepared_with_keys(0)(make)


def prepared_with_keys(
    count: int,
) -> Callable[[Callable[..., QuerySet[Any, Any]]], Callable[..., Compiled]]:
    """The same for a query about so many rows, whose keys each call of `rows` names.

    `make` gets their places behind the moment.
    """

    def keep(make: Callable[..., QuerySet[Any, Any]]) -> Callable[..., Compiled]:
        @functools.lru_cache(maxsize=MOST_STATEMENTS)
        def statement(_vendor: str, *values: object) -> Compiled:
            return Compiled(lambda now: make(now, *_KEYS[:count], *values))

        return lambda *values: statement(connection.vendor, *values)

    return keep


def _apart(param: object) -> timedelta | None:
    """How far a parameter is from the moment that the query was made for; None when it is no moment."""
    try:
        at = parse_datetime(param) if isinstance(param, str) else param
    except ValueError:
        return None
    if not isinstance(at, datetime):
        return None
    apart = (at if at.tzinfo else at.replace(tzinfo=UTC)) - _MARK
    return apart if abs(apart) < _NEAR else None
