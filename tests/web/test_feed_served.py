"""Pushes between real processes: one writes the timeline, daphne tells the open pages."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from runs.web.sockets import BROKEN, CHECK_SECONDS
from tests import databases
from tests.house.product import until as wait_until
from tests.patience import PATIENCE, comes_within
from tests.web.daphne_fixture import PROJECT, Served
from tests.web.socket_client import Closed, Refused, SocketClient

RUN_SQL = "from django.db import connection; connection.cursor().execute"


@pytest.fixture(scope="module")
def served(once_served: Served) -> Served:
    return once_served


@pytest.fixture
def run(served: Served) -> int:
    return int(served.do(PROJECT))


def until(shown: str, page: SocketClient) -> list[dict[str, Any]]:
    frames = [page.frame()]
    while shown not in frames[-1]["content"]:
        frames.append(page.frame())
    return frames


@pytest.mark.both_databases
@pytest.mark.row("X-06", "C-61", level="real")
def test_what_another_process_writes_reaches_an_open_page_without_redis(
    served: Served, run: int
) -> None:
    cookie = served.cookie()
    with served.page("overview", cookie) as overview, served.page(f"run:{run}", cookie) as page:
        page.silence(0.5)

        def appears(number: int) -> None:
            served.do(f"tell('checkpoint {number}.', run=run)")
            until(f"checkpoint {number}.", page)
            until(f"checkpoint {number}.", overview)

        comes_within(2, appears)


@pytest.mark.both_databases
@pytest.mark.row("X-07", level="real")
def test_a_page_that_comes_back_is_shown_the_three_events_it_missed(
    served: Served, run: int
) -> None:
    cookie = served.cookie()
    with served.page(f"run:{run}", cookie) as page:
        served.do("tell('seen', run=run)")
        last = until("seen", page)[-1]["id"]
    for text in ("first missed", "second missed", "third missed"):
        newest = served.do(f"result = tell({text!r}, run=run)")
    with served.page(f"run:{run}", cookie, last) as page:
        back = page.frame()
    assert back["id"] == newest
    for text in ("first missed", "second missed", "third missed"):
        assert text in back["content"]


@pytest.mark.both_databases
@pytest.mark.row("X-07", level="real")
def test_a_burst_of_two_thousand_events_ends_in_the_last_one_without_repeats(
    served: Served, run: int
) -> None:
    cookie = served.cookie()
    pages = [served.page(f"run:{run}", cookie) for _ in range(5)]
    last: list[int] = []
    # All at the same time: the server drops a page that answers none of its pings for half a minute.
    with ThreadPoolExecutor(1 + len(pages)) as others:
        writing = others.submit(
            served.do,
            "for n in range(2000): tell(f'event {n:04}', run=run)\nresult = tell('the end', run=run)",
        )
        read = others.map(lambda page: until("the end", page), pages)
        for page, frames in zip(pages, read, strict=True):
            ids = [frame["id"] for frame in frames]
            assert ids == sorted(set(ids))
            assert len({frame["content"] for frame in frames}) == len(frames)
            page.drop()
            last.append(frames[-1]["id"])
        # A frame may show more than its id says, since it is rendered after the cursor was read;
        # it never says more than it shows, so a page that comes back misses nothing.
        assert all(1 <= newest <= writing.result(PATIENCE) for newest in last)


def test_fifty_open_pages_all_hear_of_a_change(served: Served, run: int) -> None:
    cookie = served.cookie()
    pages = [served.page("overview", cookie) for _ in range(50)]
    pages[-1].silence(1)
    served.do("tell('for everyone', run=run)")
    for page in pages:
        assert until("for everyone", page)
        page.drop()


@pytest.mark.row("X-10", level="real")
def test_a_page_of_another_site_is_refused_before_it_opens(served: Served) -> None:
    cookie = served.cookie()
    for origin in ("http://evil.example", f"http://localhost:{served.port}", "null", ""):
        with pytest.raises(Refused) as refused:
            SocketClient(served.port, "overview", cookie, origin=origin)
        assert refused.value.status in (400, 403)
    with pytest.raises(Refused):
        SocketClient(served.port, "../admin", cookie)


@pytest.mark.row("X-10", level="real")
def test_a_socket_without_login_is_closed_with_4401(served: Served) -> None:
    for cookie in ("", "made-up"):
        with pytest.raises(Closed) as closed:
            served.page("overview", cookie).frame()
        assert closed.value.code == 4401


@pytest.mark.row("X-09", level="real")
def test_a_socket_that_fails_is_closed_so_that_its_page_opens_another(own_served: Served) -> None:
    cookie = own_served.cookie()
    own_served.do(f"{RUN_SQL}('ALTER TABLE django_session RENAME TO away')")
    with pytest.raises(Closed) as closed:
        own_served.page("overview", cookie).frame()
    assert closed.value.code == BROKEN


@pytest.mark.row("X-10", level="real")
def test_a_viewer_is_pushed_no_stop_button_and_an_operator_is(served: Served, run: int) -> None:
    viewer = served.cookie("vera", superuser=False, may_act=False)
    operator = served.cookie("olga", superuser=False, may_act=True)
    stop = f"/runs/{run}/stop"
    with served.page("overview", viewer, None) as page:
        assert stop not in page.frame()["content"]
    with served.page("overview", operator, None) as page:
        assert stop in page.frame()["content"]


@pytest.mark.row("X-10", level="real")
def test_who_loses_the_role_or_is_deactivated_loses_open_pages_at_once(
    served: Served, run: int
) -> None:
    served.cookie("anna")
    demoted = served.cookie("olga", superuser=False)
    gone = served.cookie("otto", superuser=False)
    verb = """
from django.contrib.auth.models import User
from runs.people.roles import Role
from runs.people import acts as people
person = User.objects.get(username={name!r}).pk
people.{call}
"""
    stop = f"/runs/{run}/stop"
    with served.page("overview", demoted, None) as page, served.page(f"run:{run}", gone) as other:
        assert stop in page.frame()["content"]
        other.silence(0.5)
        call = "change_role(lab, person, Role.VIEWER, by='anna')"
        served.do(verb.format(name="olga", call=call))
        shown = until("olga is viewer now", page)
        assert all(stop not in frame["content"] for frame in shown)
        started = time.monotonic()
        served.do(verb.format(name="otto", call="deactivate(lab, person, by='anna')"))
        with pytest.raises(Closed) as closed:
            while True:
                other.frame()
        assert closed.value.code == 4401
        assert time.monotonic() - started < CHECK_SECONDS / 2


def test_the_page_of_a_run_that_is_not_there_is_closed_with_4404(served: Served) -> None:
    with pytest.raises(Closed) as closed:
        served.page("run:987654321", served.cookie()).frame()
    assert closed.value.code == 4404


@pytest.mark.row("X-05", level="real")
def test_a_tracker_token_is_in_no_page_no_push_and_no_log(served: Served, run: int) -> None:
    cookie = served.cookie()
    project = served.do(f"result = project = Run.objects.get(pk={run}).project_id")
    served.do(
        "Project.objects.update(token='ghp_very-secret', warning='cannot read'); tell('seen', run=run)"
    )
    kept = served.do("result = str(Project.objects.get(pk=project).token)")
    assert kept == "ghp_very-secret"
    texts = [
        served.get(path, cookie)[1]
        for path in (
            "/",
            f"/projects/{project}/",
            f"/runs/{run}/",
            "/settings/",
            f"/admin/runs/project/{project}/change/",
        )
    ]
    for topic in ("overview", f"project:{project}", f"run:{run}"):
        with served.page(topic, cookie, None) as page:
            texts.append(page.frame()["content"])
    assert all("very-secret" not in text for text in [*texts, served.log()])
    stored = databases.ask(served.state, "select token from runs_project")
    assert stored
    assert "very-secret" not in str(stored)


@pytest.mark.row("X-10", level="real")
def test_a_tab_that_logs_out_gets_no_further_frame(served: Served, run: int) -> None:
    leaving, staying = served.cookie(), served.cookie("bob")
    with served.page("overview", leaving) as gone, served.page("overview", staying) as page:
        page.silence(0.5)
        served.do(
            f"from django.contrib.sessions.models import Session\nSession.objects.filter(pk={leaving!r}).delete()"
        )
        served.do("tell('for bob only', run=run)")
        until("for bob only", page)
        with pytest.raises(Closed) as closed:
            while True:
                assert "for bob only" not in gone.frame()["content"]
        assert closed.value.code == 4401


@pytest.mark.row("X-06", level="real")
def test_a_lost_ring_costs_no_more_than_the_safety_poll(served: Served, run: int) -> None:
    with served.page(f"run:{run}", served.cookie()) as page:
        wait_until(served.paths.feed_socket(served.web_pid).exists)
        served.paths.feed_socket(served.web_pid).unlink()
        served.do("tell('nobody rang', run=run)")
        until("nobody rang", page)


@pytest.mark.both_databases
@pytest.mark.row("X-07", level="real")
def test_nothing_is_lost_while_the_web_process_is_killed_and_restarted(
    served: Served, run: int
) -> None:
    cookie = served.cookie()
    last = 0
    told = 0
    for life in range(2):
        with served.page(f"run:{run}", cookie, last) as page:
            told = served.do(f"result = tell('while alive {life}', run=run)")
            last = until(f"while alive {life}", page)[-1]["id"]
            served.kill()
            with pytest.raises(Closed):
                while True:
                    page.frame()
        told = served.do(f"result = tell('while dead {life}', run=run)")
        served.start()
        with served.page(f"run:{run}", cookie, last) as page:
            frames = until(f"while dead {life}", page)
            last = frames[-1]["id"]
    assert last == told
    assert len(list(served.paths.feed.iterdir())) <= 1


def test_a_web_process_ends_calmly_with_pages_open(served: Served) -> None:
    with served.page("overview", served.cookie()) as page:
        page.silence(0.5)
        served.stop()
    assert "took too long to shut down" not in served.log()
    assert "Traceback" not in served.log()
    assert "was never retrieved" not in served.log()
