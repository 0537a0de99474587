"""Agents' logins: the cached and the fresh answer, and the log-in from the browser."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import IntegrityError, transaction

from runs.accounts import login_rules, logins
from runs.accounts.login_rules import CHECK_FOR, LoginFacts, LoginState
from runs.core.states import NoticeKind
from runs.models import AgentProfile, LoginAttempt, Notice
from tests import make
from tests.fakes import START, World
from tests.real import RealWorld

LONG = "https://login.example/authorise?code=true&state=" + "abc123" * 60


def wrapped(text: str) -> str:
    """As a program shows it that wraps lines itself."""
    return "\n".join(text[n : n + 160] for n in range(0, len(text), 160))


@pytest.mark.row("LAB-133", level="pure")
@pytest.mark.parametrize(
    ("screen", "link"),
    [
        pytest.param("", "", id="nothing yet"),
        pytest.param("Open http://plain.example now", "", id="only https"),
        pytest.param("Open https://a.example/x?y=1.\nPaste code:", "https://a.example/x?y=1", id="in a sentence"),
        pytest.param(f"Go to\n{LONG}\nPaste code:", LONG, id="on one line that tmux joined"),
        pytest.param(f"Go to\n{wrapped(LONG)}\nPaste code here", LONG, id="wrapped by the program"),
        pytest.param(f"Go to\n{wrapped(LONG)}\n\nPaste", LONG, id="and a free line"),
        pytest.param("https://a.example/x\nshort", "https://a.example/x", id="a short line goes nowhere on"),
        pytest.param("https://" + "a" * 3000, "", id="too long to be one"),
    ],
)  # fmt: skip
def test_the_link_is_read_off_the_screen(screen: str, link: str) -> None:
    assert login_rules.find_link(screen, 160) == link


@pytest.mark.row("LAB-133", level="pure")
@pytest.mark.parametrize(
    ("code", "is_fine"),
    [
        pytest.param("abc#def-123", True, id="a code"),
        pytest.param("x" * 4096, True, id="as long as can be"),
        pytest.param("x" * 4097, False, id="too long"),
        pytest.param("", False, id="empty"),
        pytest.param("abc\ndef", False, id="a line break"),
        pytest.param("abc\x1b[A", False, id="an escape"),
        pytest.param("abc\x7f", False, id="delete"),
    ],
)
def test_what_may_be_pasted(code: str, is_fine: bool) -> None:
    assert (login_rules.fault(code) == "") is is_fine


S = LoginState


@pytest.mark.row("LAB-133", level="pure")
@pytest.mark.parametrize(
    ("state", "alive", "logged_in", "left", "after"),
    [
        pytest.param(S.WAITING, True, True, 60, S.WAITING, id="logged in before: nothing done yet"),
        pytest.param(S.LINKED, True, None, 60, S.LINKED, id="waits for the code"),
        pytest.param(S.LINKED, False, True, 60, S.DONE, id="the browser did it without a code"),
        pytest.param(S.LINKED, False, False, 60, S.FAILED, id="the program ended for nothing"),
        pytest.param(S.LINKED, False, None, 60, S.LINKED, id="ended, and nobody can say more"),
        pytest.param(S.LINKED, None, None, 60, S.LINKED, id="tmux does not answer"),
        pytest.param(S.CHECKING, True, False, 5, S.CHECKING, id="not yet"),
        pytest.param(S.CHECKING, True, True, 5, S.DONE, id="logged in"),
        pytest.param(S.CHECKING, True, True, 0, S.DONE, id="logged in at the last moment"),
        pytest.param(S.CHECKING, True, None, 0, S.FAILED, id="time is up"),
        pytest.param(S.WAITING, None, None, -1, S.FAILED, id="nobody came"),
        pytest.param(S.LINKED, True, None, 9000, S.FAILED, id="the clock was set back"),
        pytest.param(S.DONE, False, False, -1, S.DONE, id="an end stays"),
    ],
)  # fmt: skip
def test_each_step_follows_from_the_facts(
    state: S, alive: bool | None, logged_in: bool | None, left: int, after: S
) -> None:
    deadline = START + timedelta(seconds=left)
    assert login_rules.step(LoginFacts(state, alive, logged_in, START, deadline)) == after


@pytest.fixture
def profile(db: None) -> AgentProfile:
    return make.an_agent(login_command=["check"], login_argv=["log-in"])


@pytest.mark.row("LAB-68", level="contract")
def test_the_answer_is_kept_for_thirty_seconds(world: World, profile: AgentProfile) -> None:
    assert logins.known(world.lab, profile) is True
    world.login.answer = False
    world.clock.forward(seconds=29)
    assert logins.known(world.lab, AgentProfile.objects.get(pk=profile.pk)) is True
    assert world.login.asked == 1
    world.clock.forward(seconds=1)
    assert logins.known(world.lab, AgentProfile.objects.get(pk=profile.pk)) is False
    world.clock.jump(days=-1)
    world.login.answer = None
    assert logins.known(world.lab, AgentProfile.objects.get(pk=profile.pk)) is None


@pytest.mark.row("LAB-68", level="contract")
def test_a_start_asks_anew_and_a_change_is_told_once(world: World, profile: AgentProfile) -> None:
    assert logins.ask(world.lab, profile) is True
    for answer in (False, False, None, True, True):
        world.login.answer = answer
        assert logins.ask(world.lab, AgentProfile.objects.get(pk=profile.pk)) is answer
    told = list(Notice.objects.filter(kind=NoticeKind.LOGIN_CHANGED).values_list("text", flat=True))
    assert told == ["Test agent is logged out: new sessions are not started"]


def test_an_agent_without_a_check_is_never_asked(world: World, db: None) -> None:
    plain = make.an_agent("plain")
    assert logins.known(world.lab, plain) is True
    assert logins.ask(world.lab, plain) is True
    assert world.login.asked == 0
    with pytest.raises(logins.LoginRefused):
        logins.begin(world.lab, plain, "anna")


def begun(world: World, profile: AgentProfile) -> LoginAttempt:
    """A log-in that shows its link."""
    attempt = logins.begin(world.lab, profile, "anna")
    world.sessions.text[attempt.session] = "Open https://login.example/x\nPaste:"
    return logins.look(world.lab, attempt)


@pytest.mark.row("LAB-133", level="contract")
def test_a_code_that_works_logs_in_and_ends_the_program(
    world: World, profile: AgentProfile
) -> None:
    world.login.answer = False
    attempt = begun(world, profile)
    assert (attempt.state, attempt.link) == ("linked", "https://login.example/x")
    world.login.answer = True
    done = logins.paste(world.lab, attempt, " code#1 ", "anna")
    assert done.state == "done"
    assert world.sessions.typed == [(attempt.session, "code#1")]
    assert world.sessions.all == {}
    assert "code#1" not in str([*Notice.objects.values(), *LoginAttempt.objects.values()])


@pytest.mark.row("LAB-133", level="contract")
def test_after_twenty_seconds_without_login_the_program_is_torn_down(
    world: World, profile: AgentProfile
) -> None:
    world.login.answer = False
    attempt = begun(world, profile)
    waited: list[float] = []

    def pause(seconds: float) -> None:
        waited.append(seconds)
        world.clock.forward(seconds=seconds)

    ended = logins.paste(replace(world.lab, pause=pause), attempt, "wrong", "anna")
    assert ended.state == "failed"
    assert sum(waited) == CHECK_FOR.total_seconds()
    assert world.sessions.all == {}


def test_a_wrong_code_is_refused_and_the_link_stays(world: World, profile: AgentProfile) -> None:
    attempt = begun(world, profile)
    for code in ("", "a\nb", "x" * 5000):
        with pytest.raises(logins.LoginRefused):
            logins.paste(world.lab, attempt, code, "anna")
    assert logins.current(profile) == attempt
    assert world.sessions.typed == []


@pytest.mark.postgres
def test_two_people_share_one_log_in_and_one_of_two_codes_is_typed(
    world: World, profile: AgentProfile
) -> None:
    attempt = begun(world, profile)
    assert logins.begin(world.lab, profile, "bob") == attempt
    with pytest.raises(IntegrityError), transaction.atomic():
        LoginAttempt.objects.create(profile=profile, mark="x", started_at=START, deadline=START)
    logins.paste(world.lab, attempt, "one", "anna")
    with pytest.raises(logins.LoginRefused):
        logins.paste(world.lab, attempt, "two", "bob")
    assert len(world.sessions.typed) == 1


@pytest.mark.every_case
@pytest.mark.parametrize("kind", ["nobody comes", "the web process was killed", "it is ended"])
def test_nothing_stays_behind(world: World, profile: AgentProfile, kind: str) -> None:
    attempt = begun(world, profile)
    if kind == "it is ended":
        logins.cancel(world.lab, attempt, "anna")
    elif kind == "nobody comes":
        world.clock.forward(minutes=11)
    else:
        LoginAttempt.objects.update(state="checking", deadline=world.clock.now + CHECK_FOR)
        world.login.answer = False
        world.clock.forward(seconds=21)
    for _ in range(2):
        logins.sweep(world.lab)
    attempt.refresh_from_db()
    assert attempt.state == "failed"
    assert attempt.link == ""
    assert world.sessions.all == {}


def test_a_program_that_cannot_start_says_why(world: World, profile: AgentProfile) -> None:
    world.sessions.broken_start = "no space"
    assert "no space" in logins.begin(world.lab, profile, "anna").error


def test_somebody_who_logged_in_elsewhere_is_seen(world: World, profile: AgentProfile) -> None:
    world.login.answer = False
    logins.ask(world.lab, profile)
    world.login.answer = True
    world.clock.forward(seconds=31)
    logins.sweep(world.lab)
    assert AgentProfile.objects.get(pk=profile.pk).is_logged_in is True
    assert Notice.objects.filter(text="Test agent is logged in again").count() == 1


STUB = """
import pathlib, sys
print("Open this in your browser:\\n")
print("https://login.example/authorise?" + "abc123" * 50, flush=True)
code = input("Paste the code: ")
if code == "right":
    pathlib.Path(sys.argv[1]).write_text("in")
input()
"""


@pytest.mark.row("LAB-133", level="real")
@pytest.mark.parametrize("code", ["right", "wrong"])
def test_a_real_program_shows_its_link_and_takes_the_code(
    real: RealWorld, tmp_path: Path, code: str
) -> None:
    mark = tmp_path / "logged-in"
    profile = make.an_agent(
        login_command=["test", "-e", str(mark)],
        login_argv=[sys.executable, "-c", STUB, str(mark)],
    )
    attempt = logins.begin(real.lab, profile, "anna")
    assert attempt.link == "https://login.example/authorise?" + "abc123" * 50
    assert real.session_names() == [attempt.session]

    def pause(seconds: float) -> None:
        time.sleep(0.1)
        real.offset += timedelta(seconds=seconds)

    ended = logins.paste(replace(real.lab, pause=pause), attempt, code, "anna")
    assert ended.state == ("done" if code == "right" else "failed")
    assert mark.exists() is (code == "right")
    real.until(lambda: real.session_names() == [])
