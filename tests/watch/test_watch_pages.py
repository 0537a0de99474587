"""Watch sessions on the pages: opened, shown in each state, drained, aborted, killed, resumed."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import transaction
from django.test import Client

from runs.core.states import NoticeKind, Outcome, ValidationState
from runs.lifecycle import outcomes
from runs.models import Notice, Project, Run, Validation, WatchSession
from runs.timeline import announce
from runs.watch import acts as watches
from runs.watch import pages as watch_pages
from runs.watch import switch as auto
from runs.watch.session import Request, Terms
from runs.web import fragments
from tests import make
from tests.fakes import START, World
from tests.watch.watch_day import BATCH, WATCH, Day
from tests.web.people import hx, text_of

pytestmark = pytest.mark.django_db(transaction=True)

FORM = {"is_watching": "on", "limit": "", "every": "10"}


@pytest.fixture
def day(world: World) -> Day:
    return Day(world)


def words(html: str) -> str:
    """What a person reads: no tags, no doubled white space."""
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def part(html: str, name: str) -> str:
    return words(html.partition(f'id="{name}"')[2].partition("</section>")[0].partition(">")[2])


def page_of(client: Client, day: Day) -> str:
    return text_of(client.get(f"/projects/{day.project.pk}/"))


def at(day: Day, *more: str) -> str:
    return "/".join((f"/projects/{day.project.pk}/watch", *more))


def of_session(client: Client, day: Day, name: str) -> str:
    return part(text_of(client.get(at(day, str(day.session.pk), ""))), name)


@pytest.mark.long
@pytest.mark.row("MALA-W-03", "MALA-W-29", "MALA-W-73", level="contract")
@pytest.mark.parametrize("is_htmx", [True, False])
def test_a_session_is_opened_by_the_form_and_shown_on_the_card(
    anna: Client, day: Day, is_htmx: bool
) -> None:
    shown = page_of(anna, day)
    form = shown.partition('id="watch-form"')[2].partition("</form>")[0]
    assert re.findall(r'<input[^>]* name="([^"]+)"', form) == ["csrfmiddlewaretoken", "is_watching", "limit", "every"]  # fmt: skip
    assert re.search(r'name="every" value="10"', form)
    send: Any = hx if is_htmx else Client.post
    answer = send(anna, at(day, ""), {**FORM, "limit": "25"})
    assert answer.status_code == (200 if is_htmx else 303)
    session = WatchSession.objects.get()
    if is_htmx:
        assert 'hx-target="#watch-form"' in text_of(answer)
    else:
        assert answer.headers["Location"] == at(day, str(session.pk), "")
    assert (session.is_watching, session.limit, session.every) == (True, 25, 10)
    assert session.opened_by == "anna"
    card = part(page_of(anna, day), "project-watch")
    assert "working Session" in card
    assert "Completed 0 of at most 25" in card
    assert "Next validation at 10 completed" in card
    assert 'id="project-watch" class="is-open"' in page_of(anna, day)


@pytest.mark.row("MALA-W-40", "MALA-W-41", "MALA-W-42", "MALA-W-43", level="contract")
@pytest.mark.parametrize("wrong", ["0", "-1", "x", "1.5"])
@pytest.mark.parametrize(("field", "name"), [("limit", "max-issues"), ("every", "validate-every")])
def test_a_wrong_number_is_said_at_its_field_and_nothing_is_made(
    anna: Client, day: Day, field: str, name: str, wrong: str
) -> None:
    said = f'<p class="error" id="id_{field}_error">Error: --{name} must be at least 1</p>'
    before = Notice.objects.count()
    for answer in (
        hx(anna, at(day, ""), {**FORM, field: wrong}),
        anna.post(at(day, ""), {**FORM, field: wrong}),
    ):
        assert answer.status_code == 422
        assert text_of(answer).count(said) == 1
        assert text_of(answer).count('class="error"') == 1
        assert f'value="{wrong}"' in text_of(answer)
    assert not WatchSession.objects.exists()
    assert Notice.objects.count() == before
    assert not day.world.tracker.calls


@pytest.mark.row("MALA-W-41", "MALA-W-40", level="contract")
def test_both_wrong_numbers_are_said_at_once(anna: Client, day: Day) -> None:
    shown = text_of(anna.post(at(day, ""), {"limit": "0", "every": "0"}))
    assert shown.count('class="error"') == 2


@pytest.mark.row("MALA-W-44", "C-27", level="contract")
def test_empty_numbers_mean_no_limit_and_one_validation_at_the_end(anna: Client, day: Day) -> None:
    anna.post(at(day, ""), {"limit": "", "every": ""})
    session = day.session
    assert (session.is_watching, session.limit, session.every) == (False, None, None)
    card = part(page_of(anna, day), "project-watch")
    assert "Limit none" in card
    assert "Next validation at the end" in card
    assert "When nothing is ready ends" in card


@pytest.mark.postgres
@pytest.mark.row("MALA-W-12", level="contract")
def test_a_second_start_is_refused_and_leads_to_the_open_session(anna: Client, day: Day) -> None:
    day.opens()
    for answer in (hx(anna, at(day, ""), FORM), anna.post(at(day, ""), FORM)):
        assert answer.status_code == 409
        assert f'href="{at(day, str(day.session.pk), "")}"' in text_of(answer)
        assert "has an open watch session. Nothing was started." in text_of(answer)
    assert WatchSession.objects.count() == 1


def test_a_project_that_cannot_be_driven_is_refused_in_words(anna: Client, day: Day) -> None:
    Project.objects.update(state="cloning")
    answer = hx(anna, at(day, ""), FORM)
    assert answer.status_code == 409
    assert "has not been cloned yet. Nothing was started." in text_of(answer)
    assert "watch-form" not in page_of(anna, day)


def test_who_may_only_look_sees_it_and_can_do_nothing(vera: Client, day: Day) -> None:
    day.opens()
    session = day.session
    for page in (page_of(vera, day), text_of(vera.get(at(day, str(session.pk), "")))):
        assert f"ession {session.pk}" in page
        assert "watch-kill" not in page
        assert 'id="watch-form"' not in page
    for name in ("drain", "abort", "kill"):
        answer = vera.post(at(day, str(session.pk), name), {"sure": "yes"})
        assert answer.status_code == 403
    assert vera.post(at(day, ""), FORM).status_code == 403
    assert vera.post(f"/projects/{day.project.pk}/validation/", {"checks": "x"}).status_code == 403
    assert day.session.request == 0


@pytest.mark.row("MALA-W-16", "MALA-W-17", "MALA-W-20", level="contract")
def test_an_idle_session_says_so_and_when_it_asks_next(anna: Client, day: Day) -> None:
    day.opens()
    Project.objects.update(queue_asked_at=day.world.clock.now)  # else its page has it asked again
    card = part(page_of(anna, day), "project-watch")
    assert "Idle: no ready issues. Polling in 60s..." in card
    assert "Next poll 12:01:00 UTC" in card
    pushed = fragments.regions(f"project:{day.project.pk}", True, None)
    assert pushed is not None
    assert "Idle: no ready issues. Polling in 60s..." in pushed["project-watch"]
    assert "Idle: no ready issues. Polling in 60s..." in of_session(anna, day, "watch-entries")
    WatchSession.objects.update(blocked=3)
    assert "Idle: 3 issues exist but none ready." in of_session(anna, day, "watch-state")


@pytest.mark.row("MALA-W-73", "MALA-W-31", level="contract")
def test_the_session_page_shows_each_state(anna: Client, world: World) -> None:
    day = Day(world, "1", "2", "3").opens(Terms(is_watching=True, every=1, limit=9))
    shown = of_session(anna, day, "watch-state")
    assert "working" in shown
    assert "Completed 0 of at most 9 Limit 9 Next validation at 1 completed" in shown
    assert "Last validation none yet Failed polls 0" in shown
    runs = of_session(anna, day, "watch-runs")
    assert "3 live" in runs
    day.ends("1")
    assert "waiting for active runs" in of_session(anna, day, "watch-state")
    hx(anna, at(day, str(day.session.pk), "drain"))
    day.tick()
    assert "draining" in of_session(anna, day, "watch-state")
    assert "It drains: nothing new starts" in of_session(anna, day, "watch-act")
    day.ends("2").ends("3", outcome=Outcome.DIED).tick()
    act = of_session(anna, day, "watch-act")
    assert "Interrupted (exit code 130)" in act
    assert "3 completed, 1 of them failed. Nothing was checked: no validation" in act
    assert "Last validation nothing to check at 3 completed" in of_session(anna, day, "watch-state")
    listed = words(text_of(anna.get(at(day, ""))))
    assert "Interrupted (exit code 130) 3, 1 failed anna" in listed


@pytest.mark.row("MALA-W-67", "MALA-W-72", "MALA-W-70", level="contract")
@pytest.mark.parametrize(
    ("code", "reason", "said", "tone"),
    [
        (0, "queue empty", "Success (exit code 0)", ""),
        (1, "issues failed", "Issues failed (exit code 1)", "bad"),
        (1, "validation failed", "Validation failed (exit code 1)", "bad"),
        (3, "poll failed", "Poll failed (exit code 3)", "bad"),
        (130, "interrupted", "Interrupted (exit code 130)", ""),
    ],
)
def test_the_list_says_how_each_ended(
    anna: Client, day: Day, code: int, reason: str, said: str, tone: str
) -> None:
    WatchSession.objects.create(
        project=day.project,
        phase="ended",
        code=code,
        reason=reason,
        opened_at=START,
        ended_at=START,
    )
    shown = text_of(anna.get(at(day, "")))
    assert f'<span class="pill {tone}">{said}</span>' in shown
    assert said in part(page_of(anna, day), "project-watch")


@pytest.mark.row("MALA-W-50", "MALA-W-51", level="contract")
def test_a_button_names_only_what_is_at_work(anna: Client, day: Day) -> None:
    day.opens(WATCH)
    over = "No run is active: it ends at once (exit code 130)."
    assert of_session(anna, day, "watch-act").count(over) == 2
    assert "Press again: end it" in text_of(anna.get(at(day, str(day.session.pk), "")))
    WatchSession.objects.update(validation="running")
    shown = text_of(anna.get(at(day, str(day.session.pk), "")))
    assert "Kills the validation at once. Work is kept." in shown
    assert "Press again: interrupt the validation" in shown
    assert "waits for the validation, validates" in shown


def test_the_list_is_paged(anna: Client, day: Day) -> None:
    for _ in range(51):
        WatchSession.objects.create(
            project=day.project, phase="ended", code=0, reason="queue empty", opened_at=START, ended_at=START
        )  # fmt: skip
    first, second = text_of(anna.get(at(day, ""))), text_of(anna.get(at(day, "?page=2")))
    assert (first.count("Success (exit code 0)"), second.count("Success (exit code 0)")) == (50, 1)
    assert 'rel="next" href="?page=2"' in first
    assert 'rel="prev" href="?page=1"' in second


@pytest.mark.row("MALA-W-45", "MALA-W-50", "MALA-W-51", level="contract")
@pytest.mark.parametrize(
    ("name", "will", "asks"),
    [
        ("drain", "Starts nothing new, waits for 2 active runs, validates, then ends (exit code 130).", ""),
        ("abort", "Interrupts 2 active runs; ten seconds are left to end.", "Press again: interrupt 2 runs"),
        ("kill", "Kills 2 active runs at once.", "Press again: kill 2 runs"),
    ],
)  # fmt: skip
def test_each_button_says_what_it_does_and_dangerous_ones_ask_twice(
    anna: Client, world: World, name: str, will: str, asks: str
) -> None:
    day = Day(world, "1", "2").opens()
    html = page_of(anna, day)
    assert will in words(html)
    button = html.partition(f'id="watch-{name}"')[2].partition(">")[0]
    assert ("data-confirm" in button) is bool(asks)
    assert asks in button
    address = at(day, str(day.session.pk), name)
    first = anna.post(address)
    if asks:
        assert first.status_code == 200
        assert will in words(text_of(first))
        assert day.session.request == 0
        first = anna.post(address, {"sure": "yes"})
    assert first.status_code == 303
    assert day.session.request == {"drain": 1, "abort": 2, "kill": 3}[name]
    assert day.session.asked_by == "anna"
    again = hx(anna, address, {"sure": "yes"}, at=at(day, str(day.session.pk), ""))
    assert "Nothing was changed." in text_of(again)
    assert 'hx-target="#watch-act"' in text_of(again)
    assert "watch-drain" not in page_of(anna, day)
    assert ("watch-kill" in page_of(anna, day)) is (name != "kill")


@pytest.mark.row("C-28", level="contract")
def test_what_the_switch_opened_is_shown_and_its_buttons_say_that_they_turn_it_off(
    anna: Client, day: Day
) -> None:
    auto.switch(day.lab, day.project, is_on=True, by="anna")
    card = part(page_of(anna, day), "project-watch")
    assert "started by automatic work" in card
    assert "Automatic work is turned off too." in card
    anna.post(at(day, str(day.session.pk), "drain"))
    assert Project.objects.get().is_auto is False


@pytest.mark.row("C-29", level="contract")
@pytest.mark.parametrize("is_htmx", [True, False])
def test_a_tracker_that_cannot_be_reached_stops_the_switch_until_resume(
    anna: Client, day: Day, is_htmx: bool
) -> None:
    auto.switch(day.lab, day.project, is_on=True, by="anna")
    day.fails().wait(200)
    assert day.end == (3, "poll failed")
    shown = page_of(anna, day)
    card = part(shown, "project-auto")
    assert "Stopped: tracker unreachable." in card
    assert "Turn off" in card
    assert "watch-resume" in shown
    address = at(day, "resume")
    answer = hx(anna, address, at=f"/projects/{day.project.pk}/") if is_htmx else anna.post(address)
    assert answer.status_code == (200 if is_htmx else 303)
    assert "watch-resume" not in page_of(anna, day)
    assert day.session.is_open
    assert "nothing to resume" in text_of(hx(anna, address))


@pytest.mark.row("C-51", level="contract")
def test_a_paused_session_says_so_and_offers_reset(anna: Client, world: World) -> None:
    day = Day(world, *"1234", parallel=1).opens(WATCH)
    for key in "123":
        run = Run.objects.active().get(issue_key=key)
        outcomes.record(world.lab, run, Outcome.DIED, "because")
        world.sessions.all.pop(run.session, None)
        day.tick()
    assert day.session.phase == "paused"
    shown = page_of(anna, day)
    assert "paused Session" in part(shown, "project-watch")
    assert 'id="watch-reset"' in shown
    assert "watch-reset" in text_of(anna.get(f"/projects/{day.project.pk}/"))
    anna.post(f"/projects/{day.project.pk}/reset")
    day.tick()
    assert "watch-reset" not in page_of(anna, day)
    assert day.active == ["4"]


def a_validation(day: Day, **fields: Any) -> Validation:
    fields.setdefault("state", ValidationState.RUNNING)
    if fields["state"] != ValidationState.RUNNING:
        fields.setdefault("ended_at", START)
    return Validation.objects.create(
        project=day.project, session=day.session, number=1, count=2, host="local", minutes=30,
        most_fixers=2, mark="m", began_at=START, **fields,
    )  # fmt: skip


def a_result(name: str, **fields: Any) -> dict[str, Any]:
    empty = {"status": 0, "seconds": 1.5, "tail": "", "signal": None, "is_over_time": False}
    more = {"is_given_up": False, "trouble": "", "attempt": 0, "is_running": False}
    return {**empty, **more, "name": name, "began_at": START.isoformat(), **fields}


@pytest.mark.row("MALA-W-39", level="contract")
def test_a_running_validation_shows_its_commands(anna: Client, day: Day) -> None:
    day.opens()
    running = a_result("0-2.txt", status=None, is_running=True)
    row = a_validation(
        day,
        commands=[["make", "lint"], ["make", "test"], ["make", "docs"]],
        results=[a_result("0-1.txt"), running],
    )
    WatchSession.objects.update(phase="validating", validation="running")
    shown = of_session(anna, day, "watch-validations")
    assert "Validation 1 running after 2 completed" in shown
    assert "make lint passed 1.5 s Output: all of make lint make test running" in shown
    assert "make docs waits" in shown
    live = at(day, str(day.session.pk), "live")
    for _ in range(2):
        answer = anna.get(live, headers={"HX-Request": "true", "HX-PTag": "x"})
        assert answer.status_code == 200
        assert 'hx-target="#watch-validations"' in text_of(answer)
    results = [a_result("0-1.txt"), a_result("0-2.txt", status=2, tail="<b>red</b>")]
    Validation.objects.filter(pk=row.pk).update(
        state="failed", reason="make test failed", results=results, ended_at=START
    )
    page = text_of(anna.get(at(day, str(day.session.pk), "")))
    assert "make test failed with exit status 2" in words(page)
    assert "&lt;b&gt;red" in page
    assert "make docs was not run" in words(page)


@pytest.mark.row("MALA-W-73", level="contract")
def test_what_failed_stands_when_a_fixer_ended_without_a_commit(anna: Client, day: Day) -> None:
    day.opens()
    failed = a_result("0-1.txt", status=2, tail="1 failed", argv=["make", "test"])
    commands = [["make", "test"], ["make", "docs"]]
    row = a_validation(day, state="failed", attempt=1, commands=commands, results=[failed])
    page = words(text_of(anna.get(at(day, str(day.session.pk), ""))))
    assert "make test failed" in page
    assert "make docs was not run" in page
    assert "Last validation failed at 2 completed" in page
    card = words(text_of(anna.get(f"/projects/{day.project.pk}/")))
    assert "Last validation failed at 2 completed" in card
    Validation.objects.filter(pk=row.pk).update(state="running", step="checking", ended_at=None)
    assert "make test waits" in of_session(anna, day, "watch-validations")


@pytest.mark.row("MALA-W-73", level="contract")
def test_nothing_to_check_is_never_green(anna: Client, day: Day) -> None:
    day.opens()
    a_validation(day, state=ValidationState.NOTHING, reason="no commands are set for this project")
    page = text_of(anna.get(at(day, str(day.session.pk), "")))
    shown = page.partition('id="watch-validations"')[2].partition("</section>")[0]
    assert '<span class="pill ">nothing to check</span>' in shown
    assert "good" not in shown
    assert "passed" not in shown


def test_a_refresh_is_304_until_the_session_changes(anna: Client, day: Day) -> None:
    day.opens()
    live = at(day, str(day.session.pk), "live")
    for address in (live, f"/projects/{day.project.pk}/live"):
        tag = anna.get(address, headers={"HX-Request": "true"})["HX-PTag"]
        headers = {"HX-Request": "true", "HX-PTag": tag}
        assert anna.get(address, headers=headers).status_code == 304
        session = day.session
        WatchSession.objects.update(poll_failures=1, version=session.version + 1)
        changed = anna.get(address, headers=headers)
        assert changed.status_code == 200
        assert "1 in a row; three end it" in text_of(changed)
        WatchSession.objects.update(poll_failures=0)


def test_sessions_of_other_projects_are_not_here(anna: Client, day: Day) -> None:
    day.opens()
    other = make.a_project("other")
    wrong = f"/projects/{other.pk}/watch/{day.session.pk}"
    assert anna.get(f"{wrong}/").status_code == 404
    assert anna.get(f"{wrong}/live").status_code == 404
    assert anna.post(f"{wrong}/kill", {"sure": "yes"}).status_code == 404
    assert anna.get("/projects/987654321/watch/").status_code == 404
    assert day.session.request == 0


@pytest.mark.row("C-54", level="contract")
def test_what_validations_run_is_set_with_errors_at_the_field(anna: Client, day: Day) -> None:
    address = f"/projects/{day.project.pk}/validation/"
    sent = {"checks": "make lint\nmake test", "check_minutes": "5", "fix_attempts": "0"}
    assert anna.post(address, sent).status_code == 303
    project = Project.objects.get()
    assert project.commands == [["make", "lint"], ["make", "test"]]
    assert (project.check_minutes, project.fix_attempts) == (5, 0)
    assert "make lint\nmake test" in text_of(anna.get(address))
    for field, wrong, said in (
        ("checks", "make lint && make test", "no shell reads this"),
        ("check_minutes", "0", "greater than or equal to 1"),
        ("check_minutes", "x", "Write a number."),
        ("fix_attempts", "11", "less than or equal to 10"),
    ):
        answer = anna.post(address, {**sent, field: wrong})
        assert answer.status_code == 422
        error = text_of(answer).partition(f'id="id_{field}_error">')[2].partition("</p>")[0]
        assert said in error
    assert Project.objects.get().commands == project.commands


@pytest.mark.row("MALA-V-53", level="contract")
def test_with_gates_its_commands_are_those_of_the_page_checks(anna: Client, day: Day) -> None:
    session = day.opens().session
    places = [at(day, ""), at(day, str(session.pk), ""), f"/projects/{day.project.pk}/"]
    checks, own = (
        f'href="/projects/{day.project.pk}/{name}/"' for name in ("checks", "validation")
    )
    assert all(own in text_of(anna.get(place)) for place in places)
    Project.objects.update(policy="gates")
    assert all(own not in text_of(anna.get(place)) for place in places)
    assert all(checks in text_of(anna.get(place)) for place in places)
    said = words(text_of(anna.get(f"/projects/{day.project.pk}/validation/")))
    assert "This project uses gates: its watch sessions run the commands of Checks" in said


@pytest.mark.long
@pytest.mark.parametrize("count", [1, 20])
def test_pages_on_sessions_cost_a_fixed_number_of_queries(
    anna: Client, world: World, count: int, django_assert_num_queries: Any
) -> None:
    keys = [str(number) for number in range(count)]
    day = Day(world, *keys, parallel=count).opens(WATCH)
    for number in range(count):
        Validation.objects.create(
            project=day.project, session=day.session, number=number + 1, count=number, host="local",
            minutes=1, most_fixers=0, mark="m", began_at=START, state="passed", ended_at=START,
        )  # fmt: skip
    anna.get("/")
    with django_assert_num_queries(16):
        anna.get(at(day, str(day.session.pk), ""))
    with django_assert_num_queries(10):
        anna.get(at(day, ""))


def test_the_project_page_costs_one_query_for_it_and_the_overview_none(
    anna: Client, world: World, django_assert_num_queries: Any
) -> None:
    day = Day(world, "1", "2").opens(WATCH)
    assert watches.open_of(day.project) is not None
    anna.get("/")
    Project.objects.update(queue_asked_at=world.clock.now)  # else its page has it asked again
    with django_assert_num_queries(2 + 13):
        page_of(anna, day)
    with django_assert_num_queries(2 + 5):
        anna.get("/")


@pytest.mark.row("MALA-W-73", level="contract")
def test_the_overview_says_which_projects_are_watched_and_what_they_do(
    anna: Client, world: World
) -> None:
    day = Day(world)
    assert "hidden" in text_of(anna.get("/")).partition('id="watching"')[2].partition(">")[0]
    day.opens(WATCH)
    shown = text_of(anna.get("/"))
    assert "hidden" not in shown.partition('id="watching"')[2].partition(">")[0]
    assert part(shown, "watching") == "Watch sessions 1 open demo idle"
    nav = words(shown.partition('id="nav-projects"')[2].partition("</nav>")[0])
    assert "demo watching" in nav
    assert f'href="{at(day, str(day.session.pk), "")}"' in shown
    day.ready("1")
    day.wait(60, every=10).asks(Request.DRAIN)
    shown = text_of(anna.get("/"))
    assert part(shown, "watching") == "Watch sessions 1 open demo draining"
    assert "demo draining" in words(shown.partition('id="nav-projects"')[2].partition("</nav>")[0])
    assert "watching" in (fragments.regions("overview", True) or {})


@pytest.mark.row("C-29", "C-14", level="contract")
def test_a_session_that_failed_needs_somebody_until_the_next_one_is_open(
    anna: Client, vera: Client, world: World
) -> None:
    day = Day(world, "1").opens(BATCH)
    day.ends("1", outcome=Outcome.DIED)
    number = day.session.pk
    shown = part(text_of(anna.get("/")), "needs-you")
    assert f"demo watch session {number}: issues failed (exit code 1)" in shown
    day.opens(WATCH)
    assert "watch session" not in part(text_of(anna.get("/")), "needs-you")
    assert watches.kill(day.lab, day.session, "anna")
    day.tick()
    assert "watch session" not in part(text_of(anna.get("/")), "needs-you")
    day.fails()
    assert auto.switch(day.lab, day.project, is_on=True, by="anna")
    day.wait(200, every=10)
    for client, leads in ((anna, f'hx-post="{at(day, "resume")}"'), (vera, ">Open<")):
        shown = text_of(client.get("/"))
        assert "is stopped: tracker unreachable" in part(shown, "needs-you")
        row = shown.partition(f'id="need-stalled-{day.project.pk}"')[2].partition("</div></div>")[0]
        assert leads in row


@pytest.mark.row("MALA-W-73", level="contract")
def test_a_session_shows_its_own_timeline_and_no_other(anna: Client, day: Day) -> None:
    Project.objects.update(checks="make test")
    day.ready("1")
    day.opens(BATCH).ends("1")
    first = day.session
    row = Validation.objects.get()
    day.asks(Request.KILL)
    day.ready("2")
    day.opens(WATCH)
    with transaction.atomic():  # a process that lets go late
        announce.tell(
            day.lab, NoticeKind.VALIDATION_STEP, "a late word", project=row.project, watch_id=first.pk
        )  # fmt: skip
    shown = part(text_of(anna.get(at(day, str(first.pk), ""))), "watch-entries")
    other = of_session(anna, day, "watch-entries")
    assert "a late word" in shown
    assert "validation 1 cancelled" in shown
    assert "a late word" not in other
    assert "validation" not in other.replace("a validation after", "")
    assert f"watch session {first.pk} " in shown
    assert f"watch session {day.session.pk} " in other
    assert "#1 " in shown
    assert "#2 " in other
    assert "#1 " not in other


@pytest.mark.long
@pytest.mark.row("MALA-W-73", level="contract")
def test_what_is_older_of_a_session_is_reached(anna: Client, day: Day) -> None:
    day.opens(WATCH)
    last = watch_pages.RUNS
    for number in range(last + 1):
        make.a_run(day.project, str(number), slot=number + 1, watch=day.session, outcome="died")
        Validation.objects.create(
            project=day.project, session=day.session, number=number + 1, count=number, host="local",
            minutes=1, most_fixers=0, mark="m", began_at=START, state="passed", ended_at=START,
        )  # fmt: skip
        with transaction.atomic():
            announce.tell(day.lab, NoticeKind.VALIDATION_STEP, f"word {number}", watch_id=day.session.pk)  # fmt: skip
    address = at(day, str(day.session.pk), "")
    newest = text_of(anna.get(address))
    assert f'/ws/watch:{day.session.pk}"' in newest
    for name, seen, unseen in (
        ("runs", "#0 Issue 0", f"#{last} Issue {last}"),
        ("validations", "Validation 41 ", f"Validation {last + 1} "),
        ("entries", "word 0", f"word {last}"),
    ):
        assert f'rel="next" href="?{name}=2#watch-{name}"' in newest
        assert unseen in part(newest, f"watch-{name}")
        older = text_of(anna.get(f"{address}?{name}=2"))
        assert seen in part(older, f"watch-{name}")
        assert unseen not in part(older, f"watch-{name}")
        assert f"?{name}=2" in older.partition('id="live"')[2].partition(">")[0]
        assert f'/ws/issues:{day.project.pk}"' in older  # a push would bring back what is newest
    assert anna.get(f"{address}?runs=x&entries=-1&validations=99999999999").status_code == 200


def test_what_is_told_of_a_session_is_pushed_to_its_page(day: Day) -> None:
    day.opens(WATCH)
    notice = Notice.objects.filter(kind=NoticeKind.WATCH_OPENED).get()
    topic = f"watch:{day.session.pk}"
    assert topic in fragments.topics_of(notice)
    regions = fragments.regions(topic, False) or {}
    assert set(fragments.WATCH) <= set(regions)
    assert "was opened" in regions["watch-entries"]
    assert "Drain" not in regions["watch-act"]
    assert "Drain" in (fragments.regions(topic, True) or {})["watch-act"]
    assert fragments.regions("watch:987654321", True) is None


def test_a_session_that_is_held_up_says_by_what(anna: Client, day: Day) -> None:
    day.ready("1")
    day.project.agent.login_command = ["agent", "status"]
    day.project.agent.save()
    day.world.login.answer = False
    day.opens(BATCH)
    said = "Something is ready, and nothing starts. Test agent is not logged in."
    assert said in of_session(anna, day, "watch-state")
    assert said in words(page_of(anna, day))
    WatchSession.objects.update(phase="draining")
    assert "nothing starts" not in of_session(anna, day, "watch-state")
