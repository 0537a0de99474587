"""Bad days of `./lab wait` and `./lab watch`: a script that called it may not be told a result that there is none of."""

from __future__ import annotations

import io
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection

from labsite.follow import Command, Presses, main
from runs.core.paths import Paths
from runs.groups import command as wait
from runs.groups.command import HumanLines
from runs.groups.terms import Result
from runs.watch import command as watch

HEEDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture
def handlers() -> Iterator[None]:
    """What was heeded before is heeded afterwards."""
    before = {number: signal.getsignal(number) for number in HEEDED}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.row("RUNE-04", level="contract")
@pytest.mark.django_db
@pytest.mark.parametrize(("read", "code"), [(wait.read, 3), (watch.read, 1)])
def test_what_nobody_expected_is_a_failure_and_no_partial_result(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
    handlers: None,
    read: Callable[[Sequence[str]], Command],
    code: int,
) -> None:
    monkeypatch.setenv("LAB_STATE_DIR", str(tmp_path))

    def broken(*_: Any) -> Any:
        raise OperationalError("no such table: runs_taskgroup")

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as worker:
        worker.bind(str(Paths(tmp_path).worker_socket))  # so that nothing is started
        with connection.execute_wrapper(broken):
            assert main(read, ["wave"]) == code
    said = capsys.readouterr()
    assert "no such table" in said.err
    assert said.out == ""


def test_a_terminal_that_does_not_know_a_letter_is_told_all_the_same() -> None:
    raw = io.BytesIO()
    lines = HumanLines(io.TextIOWrapper(raw, encoding="ascii", write_through=True))
    lines.told(datetime(2026, 11, 21, 12, tzinfo=UTC), "Checkpoint 1 \u2014 Work")
    lines.result(Result(("1",), (), timed_out=False))
    assert b"Checkpoint 1 ? Work" in raw.getvalue()
    assert b"completed   1: 1" in raw.getvalue()


def test_a_closed_terminal_is_heeded_unless_it_was_to_be_ignored(handlers: None) -> None:
    presses = Presses()
    presses.listen()
    signal.raise_signal(signal.SIGHUP)
    assert (presses.is_hung_up, presses.take()) == (True, 0)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    presses.listen()
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
