"""The third gate: reviewers who did not write the work agree with it.

One after the other is asked. What a predecessor that died had heard is kept: the commit is the same.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import Sum

from runs.accounts import holds, logins
from runs.agents import orders
from runs.core.ports import Lab, UnremovableError
from runs.core.states import Gate, NoticeKind, Trouble
from runs.gates import review_publishing
from runs.gates.hold import Hold, PostponedError
from runs.gates.rules import Decision
from runs.jobs.runner import LostError
from runs.models import AgentProfile, Attempt, Review, Reviewer, Run, Settings
from runs.reviewers import programs, prompt, rules, workplace
from runs.reviewers.programs import Answer, Kind, Papers, Printed
from runs.reviewers.round_rules import ReviewTime
from runs.reviewers.rules import ReviewState, Vote
from runs.reviewers.workplace import Material
from runs.setup import other_worktrees
from runs.setup.other_worktrees import OtherWorktree
from runs.setup.preparation import CalledOffError, SetUpFailedError
from runs.spending import day_rules, gathering, limit_rules
from runs.spending.day_rules import Used
from runs.timeline import announce
from runs.validation import specs
from runs.validation.command_rules import Check
from runs.validation.spec_models import CheckTerms
from runs.validation.specs import Switch, Switches

logger = logging.getLogger(__name__)

ANSWER_BYTES = 1_000_000
ASKS = 2
LONGEST_WAIT = timedelta(hours=24)  # since the attempt began, for a reviewer whose account is held
_SPENT = ("seconds", "spent_days", "spent_on")
AGENT_FOR_PEOPLE = "it is an interactive program; a reviewer has to end by itself"
INSIDE = "its program is named by a path inside the work that it reviews"


def judge(lab: Lab, hold: Hold) -> Decision:
    """Ask every reviewer of the project. Raises LostError, SeamError, and PostponedError while all are away.

    Findings become comments and, where wanted, an issue before the decision is given: whoever is
    called again after a killed worker finds them there.
    """
    project = hold.run.project
    terms = CheckTerms.objects.filter(project=project).first() or CheckTerms(project=project)
    if Switch.REVIEW in _disabled(hold, terms):
        return Decision(Gate.REVIEW, True, ("review is turned off",), is_skipped=True)
    if workplace.tidy(lab, hold.attempt):
        _tell(lab, hold, "review: the copy of a reviewer that was interrupted was removed")
    rows = Reviewer.objects.filter(project=project, is_on=True).select_related("profile")
    asking = _Asking(lab, hold, terms)
    votes = [asking.vote_of(one) for one in rows]
    skips = terms.skip_without_reviewers
    latest = hold.attempt.began_at + LONGEST_WAIT
    at = rules.wait_until(votes, latest, skips_without_reviewers=skips)
    if at is not None:
        why = "; ".join(one.reason for one in votes if one.until is not None)
        raise PostponedError(f"not reviewed yet: {why}", at, is_new=asking.has_told)
    _end_waiting(lab, hold.attempt)
    decision = rules.decide(votes, skips_without_reviewers=skips, out_of_time=asking.time().words)
    if decision.is_skipped:
        text = f"{decision.unreviewed.words}: {decision.reasons[0]}"
        before = hold.attempt.warning
        hold.store(warning=before if text in before else f"{before} {text}".strip())
        _tell(lab, hold, text)
    review_publishing.publish(
        lab, hold, votes, tracks_low=terms.track_low_findings and decision.passed
    )
    return decision


def _disabled(hold: Hold, terms: CheckTerms) -> frozenset[Switch]:
    watch = hold.run.watch
    own = Switches.stored(watch.switches) if watch is not None else Switches()
    return specs.over(terms.terms(()), own).disabled


def _tell(lab: Lab, hold: Hold, text: str) -> None:
    with transaction.atomic():
        announce.tell(lab, NoticeKind.GATE_STEP, text, run=hold.run)


@dataclass(slots=True)
class _Asking:
    """Asks the reviewers of one attempt. The material is gathered when somebody is asked."""

    lab: Lab
    hold: Hold
    terms: CheckTerms
    has_told: bool = False
    _material: Material | None = None

    def time(self) -> ReviewTime:
        """How much time reviews of the run have taken, in all its attempts, and may take."""
        rows = Review.objects.filter(attempt__run=self.hold.run)
        used = rows.aggregate(total=Sum("seconds"))["total"] or 0.0
        return ReviewTime(
            one=timedelta(minutes=self.terms.review_minutes),
            whole=timedelta(minutes=self.terms.review_total_minutes),
            used=timedelta(seconds=used),
        )

    def vote_of(self, reviewer: Reviewer) -> Vote:
        """How one reviewer votes; asked only if nobody has heard it yet. Raises LostError, SeamError."""
        attempt = self.hold.attempt
        row = Review.objects.filter(attempt=attempt, reviewer=reviewer.name).first()
        if row is not None and row.state != ReviewState.RUNNING:
            return _vote(row)
        away = find_unavailability(self.lab, reviewer, self.hold.run)
        if row is not None and away is not None and row.reason == away.reason:
            return Vote(row.reviewer, ReviewState.UNAVAILABLE, (), row.reason, away.until)
        time = self.time()
        row = self._begin(reviewer, row, is_told=away is None and not time.is_used_up)
        try:
            if away is None:
                answer = Answer(why=time.words) if time.is_used_up else self._ask(reviewer, row)
                away = _hold_account(self.lab, reviewer, answer)
            if away is not None:
                answer = Answer(why=away.reason, is_unavailable=True)
        except BaseException:
            with contextlib.suppress(Exception):
                self._drop(row)
            raise
        return self._end(row, answer, away.until if away is not None else None)

    def _begin(self, reviewer: Reviewer, before: Review | None, *, is_told: bool) -> Review:
        """A new row, with what was used by the program that nobody heard to its end."""
        attempt, lab = self.hold.attempt, self.lab
        if not self.hold.is_held():
            raise LostError
        spent: dict[str, Any] = {}
        with transaction.atomic():
            if before is not None:
                spent = {name: getattr(before, name) for name in _SPENT}
                before.delete()
            if before is not None and not before.is_waiting:
                text = f"{reviewer.name} is asked again: the process that heard it has ended"
                announce.tell(lab, NoticeKind.GATE_STEP, text, run=self.hold.run)
            made = Review.objects.create(
                attempt=attempt,
                reviewer=reviewer.name,
                state=ReviewState.RUNNING,
                began_at=lab.now(),
                **spent,
            )
            if is_told:
                text = f"{reviewer.name} reviews commit {attempt.commit[:12]}"
                announce.tell(lab, NoticeKind.GATE_STEP, text, run=self.hold.run)
        return made

    def _drop(self, row: Review) -> None:
        """Nobody has heard it: a row that says it runs would do so for ever.

        What it used counts, and the time it took, so that such a row waits to be asked again, or
        for the attempt's end.
        """
        if row.used == Used() and not row.seconds:
            row.delete()

    def _ask(self, reviewer: Reviewer, row: Review) -> Answer:
        """Ask, and once more where what came was no answer."""
        lab, attempt = self.lab, self.hold.attempt
        if self._material is None:
            self._material = workplace.gather(lab, attempt)
        material = self._material
        papers = workplace.papers(lab, attempt, reviewer, material)
        answer, left = Answer(why="it was not asked"), self.time().left
        with workplace.copy(
            lab, attempt, reviewer, lambda root: self._prepare(reviewer, root)
        ) as root:
            for number in range(1, ASKS + 1):
                row.log_name = _log(reviewer, number)
                self._write(row, log_name=row.log_name)
                found, took = self._ask_once(reviewer, papers, number, left, answer.why)
                if found.unnamed and workplace.is_quotation(root, material, found.unnamed):
                    found = programs.refuse_quotation(found)
                code = workplace.code_of(root, found.findings or (), material.changed)
                answer = programs.held_against(found, code, str(root))
                row.seconds = round(row.seconds + took.total_seconds(), 2)
                self._write(row, seconds=row.seconds)
                self._count(row, found.used)
                left -= took
                if not answer.may_ask_again or left <= timedelta(0):
                    break
        if answer.findings is None:
            why = ": ".join(filter(None, (answer.why, self.time().words)))
            return answer if answer.is_unavailable else replace(answer, why=why)
        part = prompt.left_unread(material.matter, is_whole_file=reviewer.profile is None)
        return replace(answer, why=part)

    def _prepare(self, reviewer: Reviewer, root: Path) -> None:
        """Set the copy up as a worktree is. Without it the work can still be read, so it is told.

        Raises LostError, SeamError.
        """
        folder, mark = self.hold.attempt.folder(self.lab.paths), self.hold.attempt.mark
        worktree = OtherWorktree(root, folder, f"review-{reviewer.pk}-setup", mark)
        try:
            other_worktrees.prepare(self.lab, self.hold.run.project, worktree, self.hold.is_held)
        except CalledOffError as error:
            raise LostError from error
        except SetUpFailedError as error:
            _tell(self.lab, self.hold, f"{reviewer.name} reviews without the set-up: {error}")

    def _count(self, row: Review, used: Used) -> None:
        """Add what was told to have been used, which counts for its day also when it is cut short."""
        if used == Used():
            return
        now, on = day_rules.more(row.used, used), day_rules.day_of(self.lab.now())
        row.spent_days = day_rules.noted([], Used(), now, on)
        row.spent_on = day_rules.newest(row.spent_days)
        self._write(row, spent_days=row.spent_days, spent_on=row.spent_on)

    def _write(self, row: Review, **changed: Any) -> None:
        """In the middle of a review: what was asked already costs money, and waits for the database."""
        self.hold.persist(lambda: Review.objects.filter(pk=row.pk).update(**changed))

    def _ask_once(
        self, reviewer: Reviewer, papers: Papers, number: int, limit: timedelta, before: str
    ) -> tuple[Answer, timedelta]:
        lab, attempt = self.lab, self.hold.attempt
        assert self._material is not None  # noqa: S101
        profile = reviewer.profile
        kind = programs.kind_of(profile.argv) if profile is not None else Kind.OTHER
        words = prompt.text(
            self._material.matter,
            papers.review,
            reviewer.instructions,
            has_schema=programs.has_schema(kind),
            again=before if number > 1 else "",
        )
        given = workplace.write_prompt(papers, words)
        argv, own = reviewer.command, dict[str, str]()
        if profile is not None:
            own = {**orders.switches_of(profile), **profile.env}
            chosen = (reviewer.model, reviewer.effort)
            argv = programs.agent_argv(profile.argv, papers, words, *chosen)
        check = Check(
            argv=argv,
            cwd=workplace.worktree(lab, attempt, reviewer),
            folder=attempt.folder(lab.paths),
            name=_log(reviewer, number),
            mark=attempt.mark,
            limit=limit,
            errors=_errors(reviewer, number),
            given=given,
            env={
                **programs.own_path(argv),
                **programs.environment(papers, own),
            },
            without=programs.NOT_GIVEN,
        )
        done = lab.checks.run(check, self.hold.is_held)
        if done.is_given_up:
            raise LostError
        took = timedelta(seconds=done.seconds)
        if done.trouble:
            why = f"its program could not be started: {done.trouble}"
            return Answer(why=why, is_unavailable=True), took
        said = lab.checks.output(check.folder, check.name, -ANSWER_BYTES, ANSWER_BYTES)
        data = said.data if said is not None else b""
        printed = Printed(
            done.status,
            data,
            said is None or said.size <= len(data),
            done.signal,
            done.is_over_time,
        )
        output = programs.output_of(kind, profile.output if profile is not None else "")
        return programs.answer(printed, output, papers.review, lab.now()), took

    def _end(self, row: Review, answer: Answer, until: datetime | None) -> Vote:
        """Store how a review ended, while the attempt is ours. Raises LostError.

        One that can be asked at a known time has not ended before the gate decides without it.
        """
        if not self.hold.is_held():
            self._drop(row)
            raise LostError
        findings = answer.findings or ()
        state = rules.state_of(findings)
        if answer.findings is None:
            state = ReviewState.UNAVAILABLE if answer.is_unavailable else ReviewState.ERROR
        changed: dict[str, Any] = {
            "state": state,
            "reason": self.lab.mask(answer.why)[:1000],
            "findings": [self._masked(one.to_json()) for one in findings],
            "seconds": row.seconds,
            "ended_at": self.lab.now(),
        }
        if until is not None:
            changed |= {"state": ReviewState.RUNNING, "ended_at": None}
            self.has_told = True
        text = _told(row.reviewer, state, changed["findings"], changed["reason"])

        def keep() -> None:
            with transaction.atomic():
                Review.objects.filter(pk=row.pk).update(**changed)
                announce.tell(self.lab, NoticeKind.GATE_STEP, text, run=self.hold.run)

        self.hold.persist(keep)
        for name, value in changed.items():
            setattr(row, name, value)
        return replace(_vote(row), state=state, until=until)

    def _masked(self, stored: dict[str, Any]) -> dict[str, Any]:
        return {
            name: self.lab.mask(value) if isinstance(value, str) else value
            for name, value in stored.items()
        }


@dataclass(frozen=True, slots=True)
class Away:
    """Why a reviewer cannot be asked now, and when it can; None where nobody knows."""

    reason: str
    until: datetime | None = None


def find_unavailability(lab: Lab, reviewer: Reviewer, run: Run) -> Away | None:
    """Return why a reviewer cannot be asked now, known without asking it; None when nothing is known."""
    profile = reviewer.profile
    if profile is None:
        missing = _program(lab, reviewer.command, {})
        return Away(missing) if missing else None
    is_known = programs.kind_of(profile.argv) is not Kind.OTHER
    if profile.mode == AgentProfile.Mode.INTERACTIVE and not is_known:
        return Away(AGENT_FOR_PEOPLE)
    missing = _program(lab, profile.argv, profile.env)
    if missing:
        return Away(missing)
    waits = _held(lab, profile) or _limited(lab, run)
    if waits is None and logins.ask(lab, profile) is False:
        return Away(f"{profile.name} is not logged in")
    return waits


def _held(lab: Lab, profile: AgentProfile) -> Away | None:
    """The hold of its account as it is now: a run or another reviewer may have met it meanwhile."""
    with contextlib.suppress(AgentProfile.DoesNotExist):
        profile.refresh_from_db(fields=holds.COLUMNS)
    why = holds.words(profile, lab.now())
    return Away(why, profile.held_until) if why else None


def _hold_account(lab: Lab, reviewer: Reviewer, answer: Answer) -> Away | None:
    """Hold the account that its service turned away, for runs too; None where nothing is held.

    A model that the reviewer alone is to use is no trouble of the account.
    """
    profile, refused = reviewer.profile, answer.refused
    if profile is None or refused is None:
        return None
    if refused.trouble is Trouble.MODEL and reviewer.model:
        return None
    holds.hold_start(lab, profile, refused)
    return _held(lab, profile)


def _limited(lab: Lab, run: Run) -> Away | None:
    """The limit of tokens or money that keeps an agent from being asked: of the run, or of the day."""
    now = lab.now()
    found = gathering.spending(Settings.current(), [run.project], now)
    meter = limit_rules.reached(found.of_run(run, gathering.of_reviews(run)))
    if meter is None:
        return None
    why = f"the limit of {meter.limit.words} is reached"
    if not meter.limit.is_of_day:
        return Away(f"{why}: {meter.numbers}")
    day_ends = datetime.combine(day_rules.day_of(now) + timedelta(days=1), time(), UTC)
    return Away(f"{why}; it can be asked {limit_rules.AGAIN}", day_ends)


def _program(lab: Lab, argv: Sequence[str], env: dict[str, str]) -> str:
    """Why its program is none to be started. One inside the work would be of the author's making."""
    program = argv[0] if argv else ""
    found = lab.programs.find(program, env) if program else ""
    if found is None or programs.is_inside(argv):
        return f"{INSIDE}: {' '.join(argv[:3])[:200]}"
    return "" if found else f"{program or 'its program'} is not installed on this machine"


def _log(reviewer: Reviewer, number: int) -> str:
    return f"review-{reviewer.pk}-{number}.txt"


def _errors(reviewer: Reviewer, number: int) -> str:
    return f"review-{reviewer.pk}-{number}.err.txt"


def _vote(row: Review) -> Vote:
    findings = tuple(rules.finding(one) for one in row.findings)
    return Vote(row.reviewer, ReviewState(row.state), findings, row.reason)


def _told(reviewer: str, state: ReviewState, findings: Sequence[Any], reason: str) -> str:
    if state is ReviewState.UNAVAILABLE:
        return f"{reviewer} is not available and has no vote: {reason}"
    if state is ReviewState.ERROR:
        return f"{reviewer} gave no answer: {reason}"
    urgent = sum(one["priority"] <= rules.BLOCKING for one in findings)
    count = len(findings)
    many = f"{count} finding{'' if count == 1 else 's'}, {urgent} of them P0 or P1"
    return f"{reviewer} {state}: {many if findings else 'no findings'}"


def _end_waiting(lab: Lab, attempt: Attempt) -> None:
    """Who is waited for no longer was not available; the reason stays."""
    rows = Review.objects.filter(attempt=attempt, state=ReviewState.RUNNING).exclude(reason="")
    rows.update(state=ReviewState.UNAVAILABLE, ended_at=lab.now())


def end_reviews(lab: Lab, attempt: Attempt) -> None:
    """End and remove what the review of an ended attempt left, and say which was cut short.

    Raises SeamError when something is left.
    """
    stuck = None
    try:
        workplace.tidy(lab, attempt)
    except UnremovableError as error:
        stuck = error
    _end_waiting(lab, attempt)
    rows = Review.objects.filter(attempt=attempt, state=ReviewState.RUNNING)
    rows.update(state=ReviewState.ERROR, reason="it was cut short", ended_at=lab.now())
    if stuck is not None:
        raise stuck
