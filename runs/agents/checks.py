"""Whether an agent can be started on this machine: its program, its version, its login.

Looking for the program costs no process, so it is done afresh before every start. Its version and
login are asked by a task, since each starts a program.
"""

from __future__ import annotations

import logging

from django.db import transaction

from runs.accounts import logins, payment_rules
from runs.accounts.payment_rules import Payment, PaymentFacts
from runs.agents import check_rules
from runs.agents.check_rules import ProgramFacts
from runs.core.ports import Lab, SeamError
from runs.core.states import AnswerCode, NoticeKind
from runs.dispatch.eligibility import Obstacle
from runs.models import AgentProfile
from runs.timeline import announce

logger = logging.getLogger(__name__)

_SANDBOX = ("IS_SANDBOX", "CLAUDE_CODE_BUBBLEWRAP")


def obstacle(lab: Lab, profile: AgentProfile) -> Obstacle | None:
    """Why no session of this agent can start here, looked at now.

    That it is gone, or there again, is stored for the pages.
    """
    found, unfit = inspect(lab, profile)
    if found is not None and (found == "" or profile.is_found is False):
        _store_found(lab, profile, found)
    return unfit


def inspect(lab: Lab, profile: AgentProfile) -> tuple[str | None, Obstacle | None]:
    """Where its program is, None when that cannot be told, and why it cannot be started.

    Starts no program and stores nothing.
    """
    env, found = profile.env, _find(lab, profile)
    values = {name: lab.programs.variable(name, env) for name in _SANDBOX}
    facts = ProgramFacts(
        name=profile.name,
        argv=profile.argv,
        found=found,
        is_root=lab.programs.is_root(),
        is_sandbox=check_rules.is_sandbox(values),
    )
    return found, check_rules.obstacle(facts)


def payment(lab: Lab, profile: AgentProfile) -> Payment:
    """Return which account pays for what this agent does here. Starts no program."""
    keys = payment_rules.list_keys(profile.argv)
    there = [name for name in keys if lab.programs.variable(name, profile.env)]
    own = [name for name in there if profile.env.get(name)]
    inherited = [name for name in there if name not in own]
    return payment_rules.describe_payment(PaymentFacts(profile.argv, own, inherited))


def refusal(lab: Lab, profile: AgentProfile) -> tuple[str, AnswerCode] | None:
    """Why a session of this agent may not be started, asked now; None when it may."""
    unfit = obstacle(lab, profile)
    if unfit is not None:
        return unfit.text, AnswerCode.NO_PROGRAM
    if logins.ask(lab, profile) is False:
        text = f"{profile.name} is not logged in on this machine. Log in, then start again."
        return text, AnswerCode.LOGGED_OUT
    return None


def carry_out(lab: Lab, profile_id: int) -> None:
    """Check one agent: found, version, logged in. Nothing when it was checked just now."""
    profile = AgentProfile.objects.filter(pk=profile_id).first()
    if profile is not None and check_rules.is_old(lab.now(), profile.checked_at):
        check(lab, profile)


def check(lab: Lab, profile: AgentProfile) -> None:
    """The same now, however young the last answer is."""
    found = _find(lab, profile)
    _store_found(lab, profile, found)
    said = version(lab, profile) if found else ""
    if found != "":
        logins.ask(lab, profile)
    rows = AgentProfile.objects.filter(pk=profile.pk)
    rows.update(version=said, checked_at=lab.now())
    profile.version, profile.checked_at = said, lab.now()


def sweep(lab: Lab) -> None:
    """See which programs came and went. Starts no program."""
    for profile in AgentProfile.objects.only("name", "argv", "env", "is_found"):
        _store_found(lab, profile, _find(lab, profile))


def ask_when_old(lab: Lab, *profiles: AgentProfile) -> None:
    """Have these agents checked by the worker, unless somebody did so in the last minutes."""
    for profile in profiles:
        if check_rules.is_old(lab.now(), profile.checked_at):
            lab.queue.check_agent(profile.pk)


def ask_again(lab: Lab, profile: AgentProfile) -> None:
    """Have an agent checked now, because a person pressed for it."""
    AgentProfile.objects.filter(pk=profile.pk).update(checked_at=None)
    lab.queue.check_agent(profile.pk)


def _find(lab: Lab, profile: AgentProfile) -> str | None:
    return lab.programs.find(profile.argv[0], profile.env) if profile.argv else ""


def _store_found(lab: Lab, profile: AgentProfile, found: str | None) -> None:
    """Store whether the program is there; that it came or went is told once."""
    before, now = profile.is_found, None if found is None else bool(found)
    if before is now:
        return
    with transaction.atomic():
        won = AgentProfile.objects.filter(pk=profile.pk, is_found=before).update(is_found=now)
        if won and None not in (before, now):
            words = "is installed on this machine" if now else "is not installed here any more"
            announce.tell(lab, NoticeKind.SETTING_CHANGED, f"{profile.name} {words}")
    profile.is_found = now


def version(lab: Lab, profile: AgentProfile) -> str:
    """What its program calls itself, asked now; empty when it does not say."""
    try:
        said = lab.programs.ask([profile.argv[0], "--version"], profile.env)
    except SeamError as error:
        logger.info("no version was told", extra={"error": str(error)})
        return ""
    return check_rules.version_of(said.out, said.err) if said.status == 0 else ""
