"""Holds runs and profiles while the service refuses an agent's account, and releases them.

A held run has no session and no slot; its issue, branch and worktree stay its own, and its budget
rests. A held profile starts nothing, for nobody, until its time or until a person says so. Each
change is a compare-and-set, so that it may be repeated, and be cut short anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from runs.accounts import hold_rules
from runs.accounts.hold_rules import LONGEST, MARGIN
from runs.accounts.refusal_rules import Refused
from runs.core import budgets
from runs.core.ports import Lab
from runs.core.states import AgentState, NoticeKind, Outcome, RunState, Trouble
from runs.forges import mirror
from runs.models import AgentProfile, Host, Run, Settings
from runs.timeline import announce

NOTE = 300
COLUMNS = ("hold", "hold_note", "held_at", "held_until", "holds")


def hold(lab: Lab, run: Run, refused: Refused, seen: Mapping[str, object], lease: int) -> bool:
    """Let a working run wait for its agent's account; False when it was ended or held meanwhile.

    `seen` are exit facts and what the program told. The session is ended afterwards, by `reaper.rest`.
    """
    rows = Run.objects.working().filter(pk=run.pk)
    rows = rows.filter(Exists(Host.objects.filter(name=OuterRef("host"), lease_number=lease)))
    with transaction.atomic():
        won = rows.update(
            **{
                **seen,
                "state": RunState.HELD,
                "held_at": _since(lab, run, seen),
                "slot": None,
                "token_hash": "",
                "resume_failures": 0,
                "retry_at": None,
                "vain_resumes": count_vain_resumes(lab, run, seen),
                "trouble": refused.trouble,
                "agent_note": lab.mask(refused.words)[:NOTE],
            }
        )
        if not won:
            return False
        until = _hold_profile(lab, run, refused)
        waits = hold_rules.waiting(refused.trouble, run.agent)
        text = f"{waits}, goes on at {hold_rules.clock(until, lab.now())}; worktree and branch kept"
        announce.tell(lab, NoticeKind.RUN_HELD, text, run=run)
        mirror.ask(lab, run)
    run.refresh_from_db()
    return True


def count_vain_resumes(lab: Lab, run: Run, seen: Mapping[str, object]) -> int:
    """Return how often in a row a run was refused as soon as it was started again, now included."""
    if run.resumed_at is None:
        return 0
    was_at_once = budgets.age(_since(lab, run, seen), run.resumed_at) < hold_rules.AT_ONCE
    return run.vain_resumes + 1 if was_at_once else 0


def do_others_work(lab: Lab, run: Run) -> bool:
    """Return whether the account of a run's agent serves other runs of that agent meanwhile."""
    now = lab.now()
    others = Run.objects.filter(profile=run.profile_id).exclude(pk=run.pk)
    since = run.resumed_at or now
    works = Q(state=RunState.WORKING, agent_state=AgentState.WORKING, trouble="", is_loop=False)
    long = Q(resumed_at=None, started_at__lte=now - hold_rules.PROVES) | Q(
        resumed_at__lte=now - hold_rules.PROVES
    )
    delivered = Q(outcome=Outcome.SUCCEEDED, ended_at__gte=since)
    return others.filter(works & long | delivered).exists()


def hold_start(lab: Lab, profile: AgentProfile, refused: Refused) -> None:
    """Hold a profile whose account was found unfit before anything was started with it."""
    with transaction.atomic():
        _hold(lab, profile.pk, refused, has_worked=False)


def release(lab: Lab, profile: AgentProfile, why: str, *, by: str = "", anew: bool = False) -> bool:
    """Let a profile start again; False when it was not held, or by another hold meanwhile.

    `anew`: what it was held for was put right, so that the next trouble is a new one.
    """
    rows = AgentProfile.objects.exclude(hold="").filter(pk=profile.pk, held_at=profile.held_at)
    free: dict[str, object] = {"hold": "", "hold_note": "", "held_at": None, "held_until": None}
    with transaction.atomic():
        won = rows.update(**free, **({"holds": 0} if anew else {}))
        if won:
            announce.tell(lab, NoticeKind.AGENT_RELEASED, f"{profile.name}: {why}", by=by)
            transaction.on_commit(lambda: _ring(lab, profile), robust=True)
    if won:
        for name, value in free.items():
            setattr(profile, name, value)
    return bool(won)


def try_again(lab: Lab, profile: AgentProfile, *, by: str) -> bool:
    """A person does not want to wait any longer; False when the profile was not held any more."""
    return release(lab, profile, "tried again now", by=by)


def release_due(lab: Lab) -> int:
    """Release every profile whose time has come; how many."""
    found = due(lab.now())
    return sum([release(lab, one, "tried again now") for one in found])


def due(now: datetime) -> QuerySet[AgentProfile]:
    """Held profiles whose time has come, or lies where no wait could have put it."""
    far = now + LONGEST + MARGIN
    return AgentProfile.objects.exclude(hold="").filter(
        Q(held_until__lte=now) | Q(held_until__gt=far)
    )


def reread(settings: Settings, runs: Sequence[Run]) -> None:
    """Know of the agent for new sessions what became of it since the settings were read.

    Asks nothing while no run is held.
    """
    if settings.agent is not None and any(run.is_held for run in runs):
        settings.agent.refresh_from_db(fields=COLUMNS)


def worked(run: Run) -> None:
    """A run delivered with this profile: its account is well, and a trouble after this a new one."""
    if run.profile_id is not None:
        AgentProfile.objects.filter(pk=run.profile_id, holds__gt=0, hold="").update(holds=0)


def _ring(lab: Lab, profile: AgentProfile) -> None:
    """Have the next look now: one for each project of a run that waits, at least one."""
    slugs = Run.objects.held().filter(profile=profile).values_list("project__slug", flat=True)
    for slug in sorted(set(slugs)):
        lab.bell.look(slug)


def _since(lab: Lab, run: Run, seen: Mapping[str, object]) -> datetime:
    """Since when it could not work: the end of its turn or of its program, as far as that is known."""
    now = lab.now()
    told = seen.get("exited_at") or run.turn_ended_at
    is_fit = isinstance(told, datetime) and now - timedelta(hours=1) <= told <= now
    since = told if is_fit and isinstance(told, datetime) else now
    began = run.resumed_at or run.started_at
    return max(since, began) if began is not None else since


def _hold_profile(lab: Lab, run: Run, refused: Refused) -> datetime:
    """Hold the profile of a run that was turned away; until when it is held now."""
    began = run.resumed_at or run.started_at
    has_worked = budgets.age(lab.now(), began) >= hold_rules.WORKED
    return _hold(lab, run.profile_id or 0, refused, has_worked=has_worked)


def _hold(lab: Lab, profile_id: int, refused: Refused, *, has_worked: bool) -> datetime:
    """Once for all runs that are turned away together; whoever comes second can only know better."""
    now = lab.now()
    rows = AgentProfile.objects.select_for_update(no_key=True).filter(pk=profile_id)
    profile = rows.first()
    if profile is None:
        return now + hold_rules.wait(refused.trouble, 1)
    if hold_rules.is_held(profile.hold, profile.held_until, now) and profile.held_until is not None:
        return _held_already(profile, refused, now)
    said = lab.mask(refused.words)[:NOTE]
    tries = 1 if has_worked else profile.holds + 1
    until = hold_rules.until(refused.trouble, refused.until, tries, now)
    rows.update(
        hold=refused.trouble,
        hold_note=said,
        held_at=now,
        held_until=until,
        holds=tries,
        told_hold=refused.trouble,
    )
    text = hold_rules.told(profile.name, refused.trouble, said, until, now)
    is_new = tries == 1 or profile.told_hold != refused.trouble
    kind = NoticeKind.AGENT_HELD if is_new else NoticeKind.AGENT_HELD_STILL
    announce.tell(lab, kind, text)
    return until


def _held_already(profile: AgentProfile, refused: Refused, now: datetime) -> datetime:
    """A reset that is told later than the wait of the same trouble ends is the better time."""
    assert profile.held_until is not None  # noqa: S101  (held)
    until = hold_rules.until(refused.trouble, refused.until, 1, now)
    is_known = refused.until is not None and until == refused.until + MARGIN
    if not is_known or until <= profile.held_until or profile.hold != refused.trouble:
        return profile.held_until
    AgentProfile.objects.filter(pk=profile.pk, held_at=profile.held_at).update(held_until=until)
    return until


def words(profile: AgentProfile | None, now: datetime) -> str:
    """Why nothing starts with a profile and until when; empty while it is not held."""
    if profile is None or not hold_rules.is_held(profile.hold, profile.held_until, now):
        return ""
    assert profile.held_until is not None  # noqa: S101  (held)
    return hold_rules.refusal(profile.name, Trouble(profile.hold), profile.held_until, now)


def trouble_of(run: Run) -> Trouble:
    """The account's trouble that the row tells of a run's last turn, once that turn is over."""
    return Trouble(run.trouble) if run.turn_ended_at is not None else Trouble.NONE
