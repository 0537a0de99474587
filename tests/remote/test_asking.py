"""One machine asks another over a real Redis: reads are answered, acts happen once or not at all."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from runs.core.paths import Paths
from runs.core.ports import Lab, MaybeGiven, Output, SeamError
from runs.remote import messages
from runs.remote.answering import Answers
from runs.remote.asking import Others
from runs.remote.link import Link
from runs.remote.messages import Question
from runs.transcript.record_rules import Form, OwnRecord
from tests.fakes import World
from tests.patience import PATIENCE
from tests.redis_server import Server

NOW = datetime(2026, 11, 24, 1, 2, 3, tzinfo=UTC)


class Machines:
    """This one and another, each with a state folder and a link of its own."""

    def __init__(self, server: Server, world: World, folder: Path) -> None:
        for name in ("here", "there"):
            (folder / name).mkdir()
        self.link = Link(server.url, "key", "here", folder / "here")
        self.far = Link(server.url, "key", "there", folder / "there")
        self.folder = folder
        self.here = replace(world.lab, host="here", paths=Paths(folder / "here"))
        self.there = replace(world.lab, host="there", paths=Paths(folder / "there"))
        self.version = "0.1.0+98"  # of the other machine
        self.now = NOW  # by the clock of the database
        self.answers = self.answering()

    def answering(self) -> Answers:
        """The other machine's worker, just started."""
        return Answers(self.far, lambda: self.there, lambda lab: Whole(), lambda: self.now)

    def asked(self, seconds: float) -> Lab:
        """The other machine's `Lab` for somebody who waits so long."""
        others = Others(
            self.link,
            self.folder / "here",
            lambda: self.now,
            (seconds, seconds),
            lambda host: self.version,
        )
        return replace(self.here, others=others.at).at("there")

    @contextmanager
    def working(self, seconds: float = 15) -> Iterator[Lab]:
        """The other machine's `Lab`, asked from here while its worker answers."""
        is_over = threading.Event()
        thread = threading.Thread(target=self.answers.run, args=(is_over.is_set,))
        thread.start()
        try:
            yield self.asked(seconds)
        finally:
            is_over.set()
            thread.join(PATIENCE)
            assert not thread.is_alive()

    def waiting(self) -> list[bytes]:
        return list(self.far.client.lrange(self.far.key("asked", "there"), 0, -1))


class Noted:
    """Sessions that write down what is done with them."""

    def __init__(self) -> None:
        self.pressed: list[str] = []
        self.error: Exception | None = None
        self.meanwhile: Callable[[], object] = lambda: None

    def screens(self, names: list[str], lines: int = 0) -> dict[str, str]:
        if self.error:
            raise self.error
        return {name: f"screen of {name}, {lines}" for name in names}

    def output(self, folder: Path, start: int, limit: int, record: str = "") -> Any:
        raise SeamError("no")

    def press(self, name: str, marker: str, key: str) -> None:
        self.pressed.append(key)
        self.meanwhile()

    def kill(self, name: str, marker: str) -> None:
        raise AssertionError("a session is ended by its own host")


class Whole:
    """What a host does as a whole."""

    def read(self, run_id: int, name: str, start: int, limit: int) -> Output:
        return Output(f"{run_id} {name} {start} {limit}".encode(), 99, NOW)

    def restore(self, rescue_id: int, by: str) -> dict[str, str]:
        return {"name": f"{rescue_id} by {by}"}


@pytest.fixture
def machines(redis_server: Server, world: World, tmp_path: Path) -> Machines:
    made = Machines(redis_server, world, tmp_path)
    made.there = replace(made.there, sessions=Noted())  # type: ignore[arg-type]
    return made


def noted(machines: Machines) -> Noted:
    return machines.there.sessions  # type: ignore[return-value]


def test_a_machine_is_itself_and_another_is_asked(machines: Machines) -> None:
    assert machines.here.at("here") is machines.here
    assert replace(machines.here, others=None).at("there").host == "here"
    with machines.working() as there:
        assert there.host == "there"
        assert there.sessions.screens(["a"], 5) == {"a": "screen of a, 5"}
        assert there.repos.has(machines.here.paths.state) is True
        assert there.sessions.output(machines.here.paths.state, 0, 9) is None
        with pytest.raises(SeamError, match="outside the state folder"):
            there.repos.has(Path("/etc"))
        noted(machines).error = SeamError("tmux hangs")
        with pytest.raises(SeamError, match="tmux hangs"):
            there.sessions.screens(["a"])
        noted(machines).error = RuntimeError("secret")
        with pytest.raises(SeamError, match="it failed there: RuntimeError"):
            there.sessions.screens(["a"])
        with pytest.raises(SeamError, match="own worker only"):
            there.sessions.kill("a", "m")


def test_another_machine_reads_records_and_acts_on_kept_work_as_a_whole(
    machines: Machines,
) -> None:
    record = OwnRecord(Form.CLAUDE, "s1", "run:7", ())
    with machines.working() as there:
        assert there.records.read(record, 3, 4) == Output(b"7 s1 3 4", 99, NOW)
        assert there.elsewhere is not None
        assert there.elsewhere.restore(5, "anna") == {"name": "5 by anna"}


def test_a_worker_of_an_older_version_is_not_asked_what_it_would_leave_unanswered(
    machines: Machines,
) -> None:
    machines.version = "0.1.0+97"
    with machines.working() as there:
        with pytest.raises(SeamError, match=r"host there runs an older labsite \(0\.1\.0\+97\)"):
            there.records.read(OwnRecord(Form.CLAUDE, "s1", "run:7", ()), 3, 4)
        assert there.sessions.screens(["a"], 5) == {
            "a": "screen of a, 5"
        }  # and what it knows, it is
    assert machines.waiting() == []


def test_what_a_newer_version_asks_is_answered_with_a_sentence_and_not_with_silence(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = Question("", "there", "sessions", "hologram", [["a"]], {})
    others = Others(machines.link, machines.folder / "here", lambda: NOW)
    with machines.working():
        for asked in (new, replace(new, name="screens", form=2)):
            with pytest.raises(SeamError, match="on host there does not answer “"):
                others._ask("there", replace(asked, id=asked.name), 15)
    assert noted(machines).pressed == []


def test_an_act_is_carried_out_once_on_the_host_that_is_meant(machines: Machines) -> None:
    with machines.working() as there:
        there.sessions.press("a", "m", "1")
    assert noted(machines).pressed == ["1"]


def test_a_host_that_is_silent_could_not_be_told_of_and_does_nothing_later(
    machines: Machines,
) -> None:
    with pytest.raises(SeamError, match=r"host there did not answer within 0\.2 s"):
        machines.asked(0.2).sessions.screens(["a"])
    there = machines.asked(0.2)
    with pytest.raises(SeamError, match="host there did not answer") as raised:
        there.sessions.press("a", "m", "1")
    assert not isinstance(raised.value, MaybeGiven)  # taken back, so it will not happen
    with pytest.raises(SeamError, match="a moment ago"):  # of a page's questions one waits
        there.sessions.screens(["a"])
    left = machines.waiting()
    assert len(left) == 2
    for text in left:
        machines.answers.answer(text)
    assert noted(machines).pressed == []


def test_a_question_that_comes_twice_or_to_another_host_is_not_carried_out(
    machines: Machines,
) -> None:
    third = Answers(machines.far, lambda: replace(machines.there, host="third"), None, lambda: NOW)

    def carry_out() -> None:
        text = machines.far.waiting.brpop([machines.far.key("asked", "there")], timeout=15)[1]
        for answers in (third, machines.answers, machines.answers):
            answers.answer(text)

    thread = threading.Thread(target=carry_out)
    thread.start()
    machines.asked(15).sessions.press("a", "m", "1")
    thread.join(PATIENCE)
    assert noted(machines).pressed == ["1"]


def taken(machines: Machines) -> bytes:
    """The question that waits for the other host, taken off its list."""
    return bytes(machines.far.waiting.brpop([machines.far.key("asked", "there")], timeout=15)[1])


def pressed_once(machines: Machines) -> tuple[bytes, Callable[[], object]]:
    """An act that was asked for and carried out: its message, and how to put its claim back."""
    kept: list[bytes] = []

    def carry_out() -> None:
        kept.append(taken(machines))
        machines.answers.answer(kept[0])

    thread = threading.Thread(target=carry_out)
    thread.start()
    machines.asked(15).sessions.press("a", "m", "1")
    thread.join(PATIENCE)
    claim = machines.far.key("claim", json.loads(kept[0][64:])["id"])
    return kept[0], lambda: machines.far.client.set(claim, 1)


def test_an_act_is_not_done_again_by_who_puts_message_and_claim_into_redis_once_more(
    machines: Machines,
) -> None:
    """Somebody who may write there, or a connection that was lost before its answer and asked again."""
    text, claim_again = pressed_once(machines)
    claim_again()
    machines.answers.answer(text)
    assert noted(machines).pressed == ["1"]
    machines.now += timedelta(minutes=1)
    restarted = machines.answering()  # it remembers nothing
    claim_again()
    restarted.answer(text)
    assert noted(machines).pressed == ["1"]


def test_an_act_that_is_meant_for_another_time_is_not_done(machines: Machines) -> None:
    """As one that a database names whose clock was set."""
    ahead = Question(
        "1", "there", "sessions", "press", ["a", "m", "1"], {}, until="2099-01-01T00:00:00+00:00"
    )
    for question in (ahead, replace(ahead, until=""), replace(ahead, until="soon")):
        text = messages.written(machines.link.secret, question.values, machines.folder, 9999)
        machines.far.client.set(machines.far.key("claim", "1"), 1)
        machines.answers.answer(text)
    assert noted(machines).pressed == []


@pytest.mark.parametrize(
    "told",
    [
        pytest.param(
            {"value": None, "to": "another question"}, id="the answer to another question"
        ),
        pytest.param({"value": None}, id="an answer to none"),
        pytest.param(None, id="the question itself"),
    ],
)
def test_what_answers_another_question_is_no_answer(
    machines: Machines, told: dict[str, object] | None
) -> None:
    """All of it is signed with the key of the installation, and put in place by whoever may write."""

    def swap() -> None:
        text = taken(machines)
        link, known = machines.far, json.loads(text[64:])
        if told is not None:
            text = messages.written(link.secret, told, machines.folder, 9999)
        link.client.lpush(link.key("answer", known["id"]), text)

    for ask, kind in (
        (lambda there: there.sessions.screens(["a"]), SeamError),
        (lambda there: there.sessions.press("a", "m", "1"), MaybeGiven),
    ):
        thread = threading.Thread(target=swap)
        thread.start()
        with pytest.raises(kind, match="does not answer this question"):
            ask(machines.asked(15))
        thread.join(PATIENCE)


def test_of_an_act_whose_answer_got_lost_nobody_says_that_it_did_not_happen(
    machines: Machines, redis_server: Server
) -> None:
    noted(machines).meanwhile = redis_server.stop
    with machines.working(0.5) as there, pytest.raises(MaybeGiven):
        there.sessions.press("a", "m", "1")
    assert noted(machines).pressed == ["1"]


def test_without_redis_nothing_is_sent_and_that_is_said(
    machines: Machines, redis_server: Server
) -> None:
    redis_server.stop()
    there = machines.asked(0.5)
    with pytest.raises(SeamError, match="Redis does not answer") as raised:
        there.sessions.press("a", "m", "1")
    assert not isinstance(raised.value, MaybeGiven)
