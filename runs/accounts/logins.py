"""Whether agents are logged in, and logging one in from the browser."""

from __future__ import annotations

import logging
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from runs.accounts import credentials, holds, login_rules
from runs.accounts.login_rules import CHECK_FOR, OPEN_FOR, LoginFacts, LoginState
from runs.core import tokens
from runs.core.ports import Lab, Order, SeamError
from runs.core.refusal import ActRefused
from runs.core.states import NoticeKind, Trouble
from runs.models import AgentProfile, LoginAttempt
from runs.timeline import announce
from runs.transcript import screens

logger = logging.getLogger(__name__)

COLUMNS = 160
LINK_STEP, CHECK_STEP = 0.2, 1.0
LINK_PATIENCE = 5.0
GONE = "The program of the log-in ended and the agent is not logged in."
LATE = "Nobody finished the log-in in time, so its program was ended. Begin again."
UNCHECKED = "The agent did not say within 20 seconds that it is logged in. Begin again."


class LoginRefused(ActRefused):
    """The log-in did not go on; nothing was changed."""


def known(lab: Lab, profile: AgentProfile) -> bool | None:
    """Whether an agent is logged in, at most 30 seconds old, for sweeps; None: could not tell.

    An agent without a check counts as logged in: there is nothing to ask.
    """
    if login_rules.is_fresh(lab.now(), profile.login_checked_at):
        return profile.is_logged_in if profile.login_command else True
    return ask(lab, profile)


def ask(lab: Lab, profile: AgentProfile) -> bool | None:
    """The same, asked now, as a start needs it. What changed is told."""
    if not profile.login_command:
        return True
    answer = credentials.is_logged_in(lab, profile)
    # Who emptied the check meanwhile does not get the old answer.
    rows = AgentProfile.objects.filter(pk=profile.pk, login_command=profile.login_command)
    with transaction.atomic():
        if answer is None:
            rows.update(is_logged_in=None, login_checked_at=lab.now())
        elif rows.exclude(is_logged_in=answer).update(is_logged_in=answer) and (
            not answer or profile.is_logged_in is False
        ):
            words = (
                "is logged in again" if answer else "is logged out: new sessions are not started"
            )
            announce.tell(lab, NoticeKind.LOGIN_CHANGED, f"{profile.name} {words}")
            if answer and profile.hold == Trouble.LOGIN:
                holds.release(lab, profile, "logged in again", anew=True)
        rows.update(login_checked_at=lab.now())
    profile.is_logged_in, profile.login_checked_at = answer, lab.now()
    return answer


def begin(lab: Lab, profile: AgentProfile, by: str) -> LoginAttempt:
    """Start the agent's own log-in program and wait a moment for its link; one at a time.

    Somebody who comes second gets the one that is open. Raises LoginRefused.
    """
    if not profile.login_argv:
        raise LoginRefused(f"{profile.name} has no program for logging in.")
    now = lab.now()
    facts = {"by": by, "mark": tokens.new_mark(), "started_at": now, "deadline": now + OPEN_FOR}
    try:
        with transaction.atomic():
            attempt = LoginAttempt.objects.create(profile=profile, **facts)
            text = f"a log-in of {profile.name} was begun"
            announce.tell(lab, NoticeKind.SETTING_CHANGED, text, by=by)
    except IntegrityError:
        found = current(profile)
        if found is None:
            raise LoginRefused("Another log-in ended in this moment. Begin again.") from None
        return found
    folder = lab.paths.run_folders / attempt.session
    env = {str(name): str(value) for name, value in profile.env.items()}
    order = Order(
        session=attempt.session,
        folder=folder,
        cwd=folder,
        argv=profile.login_argv,
        env=env,
        marker=attempt.mark,
    )
    try:
        lab.sessions.start(order)
    except SeamError as error:
        _end(lab, attempt, LoginState.FAILED, f"The program could not be started: {error}")
        return attempt
    for _ in range(int(LINK_PATIENCE / LINK_STEP)):
        lab.pause(LINK_STEP)
        look(lab, attempt)
        if attempt.state != LoginState.WAITING:
            break
    return attempt


def current(profile: AgentProfile) -> LoginAttempt | None:
    """The log-in of an agent that is open."""
    over = [LoginState.DONE, LoginState.FAILED]
    return LoginAttempt.objects.filter(profile=profile).exclude(state__in=over).first()


def look(lab: Lab, attempt: LoginAttempt) -> LoginAttempt:
    """Take the next step that the facts prove, and read the link when it is there."""
    state = LoginState(attempt.state)
    if state.is_over:
        return attempt
    alive = _is_alive(lab, attempt)
    is_tried = state is LoginState.CHECKING or alive is False
    answer = ask(lab, attempt.profile) if is_tried and attempt.profile.login_command else None
    if is_tried and not attempt.profile.login_command:
        answer = alive is False or None  # without a check, a program that ended has done its work
    after = login_rules.step(LoginFacts(state, alive, answer, lab.now(), attempt.deadline))
    if after.is_over:
        why = {LoginState.CHECKING: UNCHECKED}.get(state, LATE) if alive is not False else GONE
        _end(lab, attempt, after, "" if after is LoginState.DONE else why)
        if after is LoginState.DONE and attempt.profile.hold == Trouble.LOGIN:
            holds.release(lab, attempt.profile, "logged in again", by=attempt.by, anew=True)
    elif state is LoginState.WAITING:
        _read_link(lab, attempt)
    return attempt


def paste(lab: Lab, attempt: LoginAttempt, code: str, by: str) -> LoginAttempt:
    """Give the program the code and wait up to 20 seconds for the login. Raises LoginRefused.

    The code is kept nowhere.
    """
    code = code.strip()
    wrong = login_rules.fault(code)
    if wrong:
        raise LoginRefused(wrong)
    deadline = lab.now() + CHECK_FOR
    open_one = LoginAttempt.objects.filter(pk=attempt.pk, state=LoginState.LINKED)
    if not open_one.update(state=LoginState.CHECKING, deadline=deadline):
        raise LoginRefused("This log-in does not wait for a code any more. Begin again.")
    attempt.refresh_from_db()
    try:
        lab.sessions.say(attempt.session, attempt.mark, code, is_secret=True)
    except SeamError:
        _end(lab, attempt, LoginState.FAILED, GONE)
        return attempt
    for _ in range(int(CHECK_FOR.total_seconds() / CHECK_STEP) + 1):
        if look(lab, attempt).is_over:
            return attempt
        lab.pause(CHECK_STEP)
    return look(lab, attempt)


def cancel(lab: Lab, attempt: LoginAttempt, by: str) -> None:
    """End an open log-in and its program."""
    _end(lab, attempt, LoginState.FAILED, f"ended by {by}")


def sweep(lab: Lab) -> None:
    """End log-ins that nobody finished, and see when somebody logged in elsewhere meanwhile."""
    for attempt in waiting().select_related("profile"):
        if _is_here(lab, attempt) or lab.now() >= attempt.deadline + CHECK_FOR:
            look(lab, attempt)
    for profile in AgentProfile.objects.filter(is_logged_in=False):
        known(lab, profile)


def waiting() -> QuerySet[LoginAttempt]:
    """Log-ins that nobody has finished."""
    return LoginAttempt.objects.exclude(state__in=[LoginState.DONE, LoginState.FAILED])


def logged_out(now: datetime) -> QuerySet[AgentProfile]:
    """Agents that were logged out when they were asked, which is too long ago to be sure of."""
    is_old = Q(login_checked_at=None) | Q(login_checked_at__lte=now - login_rules.FRESH)
    return AgentProfile.objects.filter(is_old, is_logged_in=False).exclude(login_command=[])


def _is_here(lab: Lab, attempt: LoginAttempt) -> bool:
    """Whether its program was started on this machine, as far as its folder tells."""
    return not lab.machine.identity or (lab.paths.run_folders / attempt.session).is_dir()


def _is_alive(lab: Lab, attempt: LoginAttempt) -> bool | None:
    try:
        seen = lab.sessions.look().get(attempt.session)
    except SeamError:
        return None
    return seen is not None and seen.alive


def _read_link(lab: Lab, attempt: LoginAttempt) -> None:
    try:
        screen = lab.sessions.screens([attempt.session], 200).get(attempt.session, "")
    except SeamError:
        return
    link = login_rules.find_link(screens.plain(screen), COLUMNS)
    waiting = LoginAttempt.objects.filter(pk=attempt.pk, state=LoginState.WAITING)
    if link and waiting.update(link=link, state=LoginState.LINKED):
        attempt.refresh_from_db()


def _end(lab: Lab, attempt: LoginAttempt, state: LoginState, error: str) -> None:
    """Write the end down once, then tear the session down; its secrets go with it."""
    over = [LoginState.DONE, LoginState.FAILED]
    open_one = LoginAttempt.objects.filter(pk=attempt.pk).exclude(state__in=over)
    open_one.update(state=state, error=error, link="")
    attempt.refresh_from_db()
    try:
        lab.sessions.kill(attempt.session, attempt.mark)
    except SeamError as failed:
        logger.warning("log-in session was not ended", extra={"error": str(failed)})
    lab.sessions.forget(lab.paths.run_folders / attempt.session)
