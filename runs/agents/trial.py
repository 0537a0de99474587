"""Trying an agent: one small task in a scratch repository, told step by step.

A trial is no run: it has no project, no slot and no place on the board. Its session is started by
the same order as a run's; a small server answers `labctl` in place of the product. Everything that
it made is removed when it ends.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from runs.accounts import credentials
from runs.agents import checks, orders, trial_ground, trial_rules
from runs.agents.trial_rules import OPEN, Step, StepState, TrialState, Tried
from runs.core import lease, tokens
from runs.core.ports import Desk, Lab, Order, SeamError
from runs.core.states import NoticeKind
from runs.models import AgentProfile, AgentTrial, Run, Settings
from runs.timeline import announce

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.5
MOST_TRIALS = 200
INTERRUPTED = "labsite was interrupted while it tried the agent. Try again."
NOT_TAKEN = "The worker did not take the trial within a minute. Is it running?"


class Ended(Exception):
    """The trial goes no further; the steps say why."""


def ask(lab: Lab, profile: AgentProfile, by: str) -> AgentTrial:
    """Ask the worker for a trial. Who comes second gets the one that is open."""
    now = lab.now()
    try:
        with transaction.atomic():
            made = AgentTrial.objects.create(
                profile=profile,
                by=by,
                mark=tokens.new_mark(),
                steps=trial_rules.stored(trial_rules.first()),
                asked_at=now,
                deadline=now + trial_rules.QUEUED_FOR,
            )
            text = f"a trial of {profile.name} was begun"
            announce.tell(lab, NoticeKind.SETTING_CHANGED, text, by=by)
    except IntegrityError:
        return AgentTrial.objects.filter(profile=profile).latest("pk")
    lab.queue.try_agent(made.pk)
    return made


def stop(lab: Lab, trial: AgentTrial, by: str) -> None:
    """End an open trial: at once when nobody took it yet, else within a second."""
    AgentTrial.objects.filter(pk=trial.pk, state__in=OPEN).update(is_stop_wanted=True)
    waiting = AgentTrial.objects.filter(pk=trial.pk, state=TrialState.WAITING)
    _end(lab, trial, waiting, TrialState.STOPPED, f"Stopped by {by}.")


def carry_out(lab: Lab, trial_id: int) -> None:
    """Try the agent, from its program to its end. Nothing when somebody else does."""
    now = lab.now()
    taken = AgentTrial.objects.filter(pk=trial_id, state=TrialState.WAITING).update(
        state=TrialState.RUNNING,
        process=lab.process,
        started_at=now,
        deadline=now + trial_rules.TRIAL_FOR,
    )
    if not taken:
        return
    trial = AgentTrial.objects.select_related("profile").get(pk=trial_id)
    note = ""
    try:
        _check(lab, trial)
        _try(lab, trial)
    except Ended:
        pass
    except SeamError as error:
        _tell(trial, Tried(Step.STARTED, StepState.FAILED, str(error)))
    except Exception as error:
        logger.exception("a trial failed by a mistake of ours", extra={"trial_id": trial.pk})
        note = f"labsite made a mistake ({type(error).__name__}); it is in the log"
    finally:
        is_tidy = _tidy(lab, trial)
    if is_tidy:  # else the sweep ends it, and tries again until its session is gone
        _finish(lab, trial, note)


def sweep(lab: Lab) -> None:
    """End trials whose worker is gone, and remove what ended ones left behind."""
    now = lab.now()
    for trial in AgentTrial.objects.filter(state__in=OPEN).select_related("profile"):
        rows = AgentTrial.objects.filter(pk=trial.pk, state=trial.state)
        if trial.state == TrialState.WAITING:
            if now >= trial.deadline:
                _end(lab, trial, rows, TrialState.FAILED, NOT_TAKEN)
        elif _is_lost(lab, trial, now) and _tidy(lab, trial):
            _end(lab, trial, rows, TrialState.FAILED, INTERRUPTED)
    _remove_strays(lab)


def waiting() -> QuerySet[AgentTrial]:
    """Trials that have not ended."""
    return AgentTrial.objects.filter(state__in=OPEN)


def _is_lost(lab: Lab, trial: AgentTrial, now: datetime) -> bool:
    is_late = now >= trial.deadline + trial_rules.LOST_AFTER
    return is_late or lease.is_gone(lab, trial.process)


def steps(trial: AgentTrial) -> list[Tried]:
    """The steps of a trial as they stand."""
    return trial_rules.read(trial.steps)


def versions() -> Mapping[int, Collection[str]]:
    """Return which versions of each profile's program a trial started here, by its last trials.

    One query. One that was stopped, or did not come so far as to start the program, tried nothing.
    """
    over = AgentTrial.objects.filter(state__in=(TrialState.PASSED, TrialState.FAILED))
    found: dict[int, set[str]] = {}
    for profile_id, stored in over.order_by("-pk").values_list("profile", "steps")[:MOST_TRIALS]:
        version = trial_rules.started_version(trial_rules.read(stored))
        if version:
            found.setdefault(profile_id, set()).add(version)
    return found


def _check(lab: Lab, trial: AgentTrial) -> None:
    """What can be known without starting it. Raises Ended."""
    profile = trial.profile
    found, unfit = checks.inspect(lab, profile)
    if unfit is not None:
        _tell(trial, Tried(Step.FOUND, StepState.FAILED, unfit.text))
        raise Ended
    _tell(trial, Tried(Step.FOUND, StepState.PASSED, found or profile.argv[0]))
    said = checks.version(lab, profile) if found else ""
    known = StepState.PASSED if said else StepState.UNKNOWN
    _tell(trial, Tried(Step.VERSION, known, said or "it did not say"))
    _tell(trial, _login(lab, profile))
    if any(one.state is StepState.FAILED for one in steps(trial)):
        raise Ended


def _login(lab: Lab, profile: AgentProfile) -> Tried:
    if not profile.login_command:
        return Tried(Step.LOGIN, StepState.NOT_MEANT, "its profile has no login check")
    answer = credentials.is_logged_in(lab, profile)
    if answer is None:
        return Tried(Step.LOGIN, StepState.UNKNOWN, "its login check gave no answer")
    if not answer:
        return Tried(Step.LOGIN, StepState.FAILED, "It is logged out. Log in, then try again.")
    return Tried(Step.LOGIN, StepState.PASSED)


def _try(lab: Lab, trial: AgentTrial) -> None:
    """Start the agent on its task and watch it to its end. Raises SeamError."""
    run = trial_ground.scratch(lab, trial)
    settings = Settings.current()
    lab.trust.approve(trial.profile.trust, Path(run.worktree), trial.profile.env)
    order, _ = orders.without_signing(lab, orders.make(lab, run, trial.profile, settings))
    desk = lab.desks.open(
        order.files["token"], run.branch, lambda: trial_ground.is_pushed(lab, run)
    )
    try:
        address = trial_ground.folder(lab, trial) / "address"
        address.write_text(desk.address, encoding="utf-8")
        env = {**order.env, "LAB_ADDRESS_FILE": str(address)}
        lab.sessions.start(replace(order, env=env))
        _watch(lab, trial, run, desk, order)
    finally:
        desk.close()


def _watch(lab: Lab, trial: AgentTrial, run: Run, desk: Desk, order: Order) -> None:
    """Look until nothing more is to come; each change of a step is stored at once."""
    pull_at = None
    while True:
        lab.pause(LOOK_SECONDS)
        if desk.has_pull() and pull_at is None:
            pull_at = lab.now()
        since = lab.now() - pull_at if pull_at is not None else None
        facts = trial_ground.facts(lab, trial, run, desk, order)
        if since is not None:
            facts = replace(facts, has_pull=True, since_pull=since)
        _tell(trial, *trial_rules.steps_of(facts))
        trial.refresh_from_db(fields=["is_stop_wanted", "state"])
        if trial_rules.is_over(facts) or trial.is_stop_wanted or trial.is_over:
            return


def _tell(trial: AgentTrial, *changed: Tried) -> None:
    """Store steps that changed, while the trial is still ours."""
    after = trial_rules.stored(trial_rules.with_steps(steps(trial), changed))
    if after != trial.steps:
        trial.steps = after
        rows = AgentTrial.objects.filter(pk=trial.pk, state=TrialState.RUNNING)
        rows.update(steps=after, screen=trial.screen)


def _finish(lab: Lab, trial: AgentTrial, note: str) -> None:
    """Write down how a trial of ours ended."""
    trial.refresh_from_db(fields=["is_stop_wanted"])
    known = steps(trial)
    state = TrialState.FAILED if note else trial_rules.verdict(known)
    if trial.is_stop_wanted and state is not TrialState.PASSED:
        state, note = TrialState.STOPPED, note or "Stopped by a person."
    _tell(trial, *trial_rules.given_up(known))
    rows = AgentTrial.objects.filter(pk=trial.pk, state=TrialState.RUNNING)
    _end(lab, trial, rows, state, note)


def _end(
    lab: Lab, trial: AgentTrial, rows: QuerySet[AgentTrial], state: TrialState, note: str
) -> None:
    """Write the end down, once: `rows` is the trial if it stands as it was seen."""
    with transaction.atomic():
        if rows.update(
            state=state, note=note, ended_at=lab.now(), screen=trial.screen, steps=_final(trial)
        ):
            text = f"the trial of {trial.profile.name}: {state}"
            announce.tell(lab, NoticeKind.SETTING_CHANGED, text)
    trial.refresh_from_db()


def _final(trial: AgentTrial) -> list[dict[str, str]]:
    return trial_rules.stored(trial_rules.given_up(steps(trial)))


def _tidy(lab: Lab, trial: AgentTrial) -> bool:
    """End its session, and remove what it made; False while the session lives. Never raises."""
    try:
        lab.sessions.kill(trial.session, trial.mark)
    except SeamError as error:
        logger.warning("a session of a trial was not ended", extra={"error": str(error)})
        return False
    for folder in (lab.paths.run_folder(-trial.pk), trial_ground.folder(lab, trial)):
        shutil.rmtree(folder, ignore_errors=True)
    return True


def _remove_strays(lab: Lab) -> None:
    """Remove scratch folders that no open trial uses."""
    if not lab.paths.trials.is_dir():
        return
    used = {str(pk) for pk in _open_profiles()}
    for folder in lab.paths.trials.iterdir():
        if folder.name not in used:
            shutil.rmtree(folder, ignore_errors=True)


def _open_profiles() -> Sequence[int]:
    return list(AgentTrial.objects.filter(state__in=OPEN).values_list("profile_id", flat=True))
