"""The timeline as a stream, from a real web process: at once, without loss, and only as long as allowed."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests import databases
from tests.api.stream_client import Stream, token_of
from tests.patience import PATIENCE, comes_within
from tests.web.daphne_fixture import Served


@pytest.fixture(scope="module")
def web(prepared_state: Path) -> Iterator[Served]:
    """One web process for all of them, which the last ones break, kill and end; each has people of its own."""
    folder = Path(tempfile.mkdtemp(prefix="lab-stream-"))
    databases.copy(prepared_state, folder)
    made = Served(folder)
    try:
        made.start()
        yield made
    finally:
        made.close()
        shutil.rmtree(folder, ignore_errors=True)


def threads(served: Served) -> int:
    return len(list(Path(f"/proc/{served.web_pid}/task").iterdir()))


def opened(served: Served, token: str, query: str = "", last: str = "") -> Stream:
    """A stream that has said hello, so what is told from now on has to come."""
    stream = Stream(served, token, query, last=last)
    assert stream.status == 200, stream.answer.read()
    hello = stream.event()
    assert hello is not None
    assert hello.kind == ":"
    return stream


def test_an_entry_arrives_within_a_second_with_its_id(web: Served) -> None:
    _, token = token_of(web)
    with opened(web, token) as stream:
        assert stream.answer.getheader("Content-Type") == "text/event-stream; charset=utf-8"
        assert stream.answer.getheader("Cache-Control") == "no-store"

        def arrives(number: int) -> None:
            told = web.do(f"result = tell('entry {number}')")
            event = stream.entries(1)[0]
            assert (event.kind, event.id, event.data["id"]) == ("entry", told, told)
            assert event.data["text"] == f"entry {number}"
            assert event.data["at"].endswith("Z")

        comes_within(1, arrives)


@pytest.mark.both_databases
def test_a_stream_is_resumed_by_the_last_id_without_loss_or_repeats(web: Served) -> None:
    _, token = token_of(web)
    seen: list[int] = []
    last = web.do("result = tell('the beginning')")
    with ThreadPoolExecutor(1) as other:
        writing = other.submit(web.do, "result = [tell(f'entry {n}') for n in range(600)]")
        while len(seen) < 600:
            with opened(web, token, "?after=0", last=str(last)) as stream:
                got = stream.entries(min(70, 600 - len(seen)))
            seen += [event.id for event in got]
            last = seen[-1]
        assert seen == writing.result(PATIENCE)


def test_without_an_id_it_begins_with_what_comes_next(web: Served) -> None:
    _, token = token_of(web)
    first = web.do("result = tell('long ago')")
    with opened(web, token) as new, opened(web, token, f"?after={first - 1}") as old:
        told = web.do("result = tell('now')")
        assert [event.id for event in new.entries(1)] == [told]
        assert [event.id for event in old.entries(2)] == [first, told]


ENDS = {
    "revoked": "api_tokens.revoke(lab, ApiToken.objects.get(pk={token}), by='anna')",
    "deactivated": "User.objects.filter(username={name!r}).update(is_active=False); tell('gone')",
    "expired": "ApiToken.objects.filter(pk={token}).update(expires_at=lab.now()); tell('gone')",
    "removed": "User.objects.filter(username={name!r}).delete(); tell('gone')",
}


@pytest.mark.row("X-10", level="real")
@pytest.mark.parametrize("how", ENDS)
def test_a_token_that_ends_ends_its_stream_before_anything_more_is_told(
    web: Served, how: str
) -> None:
    pk, token = token_of(web, how)
    _, other = token_of(web, "bob")
    with opened(web, token) as stream, opened(web, other) as staying:
        seen = web.do("result = tell('seen')")
        assert stream.entries(1)[0].id == staying.entries(1)[0].id == seen
        web.do(ENDS[how].format(token=pk, name=how))
        event = stream.entries(1)[0]
        assert (event.kind, event.data["code"]) == ("refused", "unknown_token")
        assert stream.event() is None
        assert staying.entries(1)[0].kind == "entry"
    again = Stream(web, token)
    assert (again.status, again.problem()["code"]) == (401, "unknown_token")


@pytest.mark.row("X-10", level="real")
def test_a_stream_is_refused_in_the_one_shape(web: Served) -> None:
    _, token = token_of(web)
    cookie = web.cookie()
    for stream, status, code in (
        (Stream(web, ""), 401, "no_token"),
        (Stream(web, "lab_wrong"), 401, "unknown_token"),
        (Stream(web, token, "?after=x"), 422, "invalid"),
        (Stream(web, token, "?after=-1"), 422, "invalid"),
        (Stream(web, token, f"?after={2**63}"), 422, "invalid"),
        (Stream(web, token, "?since=1"), 422, "invalid"),
        (Stream(web, token, "?after=1&after=2"), 422, "invalid"),
        (Stream(web, token, last="x"), 422, "invalid"),
        (Stream(web, token, last="9" * 40), 422, "invalid"),
        (Stream(web, token, method="POST"), 405, "wrong_method"),
    ):
        problem = stream.problem()
        assert (stream.status, problem["code"]) == (status, code)
        assert set(problem) == {"code", "text", "fields"}
        assert stream.answer.getheader("Cache-Control") == "no-store"
    assert web.get("/api/v1/timeline/stream", cookie)[0] == 401
    assert "Traceback" not in web.log()


def test_an_open_stream_holds_no_thread_and_there_are_not_endlessly_many(web: Served) -> None:
    tokens = [token_of(web, f"user {n}")[1] for n in range(6)]
    streams = [opened(web, tokens[0])]
    before = threads(web)
    streams += [opened(web, token) for token in [tokens[0]] * 9 + tokens[1:5] * 10]
    assert len(streams) == 50
    # Those of the last requests may still be there, or have just gone; one for each would be 49.
    assert threads(web) < before + 10
    for token in (tokens[0], tokens[5]):
        refused = Stream(web, token)
        assert (refused.status, refused.problem()["code"]) == (429, "too_many_streams")
        assert refused.answer.getheader("Retry-After") == "10"
    told = web.do("result = tell('for all')")
    for stream in streams:
        assert stream.entries(1)[0].id == told
        stream.close()
    deadline = time.monotonic() + PATIENCE
    while (again := Stream(web, tokens[5])).status != 200:
        again.close()
        assert time.monotonic() < deadline
    again.close()
    assert "Traceback" not in web.log()


def test_a_lost_ring_costs_no_more_than_the_safety_poll(web: Served) -> None:
    _, token = token_of(web)
    with opened(web, token) as stream:
        web.do("tell('rung')")
        stream.entries(1)
        web.paths.feed_socket(web.web_pid).unlink()
        web.do("tell('nobody rang')")
        assert stream.entries(1)[0].data["text"] == "nobody rang"


def test_a_killed_web_process_loses_nothing(web: Served) -> None:
    _, token = token_of(web)
    with opened(web, token) as stream:
        web.do("tell('before')")
        last = stream.entries(1)[0].id
        web.kill()
        assert stream.event() is None
    told = web.do("result = [tell('one'), tell('two')]")
    web.start()
    with opened(web, token, last=str(last)) as stream:
        assert [event.id for event in stream.entries(2)] == told


def test_a_web_process_ends_calmly_with_streams_open(web: Served) -> None:
    _, token = token_of(web)
    with opened(web, token):
        web.stop()
    assert "took too long to shut down" not in web.log()
    assert "Traceback" not in web.log()
    assert "was never retrieved" not in web.log()
    # What the killed one left, the one after it took away.
    assert not list(web.paths.feed.iterdir())
