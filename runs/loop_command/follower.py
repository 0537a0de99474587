"""Follows the loop of one start request: reads its rows and the timeline, and never decides anything."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from runs import wiring
from runs.core import writing
from runs.core.refusal import ActRefused
from runs.core.states import AnswerCode, NoticeKind, ProjectState
from runs.core.terminal import CODE_ARGUMENTS, CODE_INTERRUPTED, Printer, say, who
from runs.dispatch import start_requests
from runs.followups import acts as followups
from runs.followups import rules as followup_rules
from runs.issues import remote as issues
from runs.lifecycle import stop
from runs.loop_command.command import Command, Lines, Summary, Told, Turn
from runs.loop_settings import settings_acts, unfit
from runs.loop_settings.settings_acts import LoopSettingsRefused
from runs.loops import acts, beginning, options, stored
from runs.loops.acts import LoopRefused
from runs.loops.rules import End
from runs.models import Loop, LoopRole, LoopTerms, LoopTurn, Notice, Project, Run, StartRequest
from runs.projects import acts as projects
from runs.ralph import acts as ralph
from runs.ralph import agents
from runs.ralph.role_file import Roles
from runs.timeline import queries as timeline
from trackers.base import TrackerError

CODE_GONE = 1
TIDY_SECONDS = 30.0
NO_LOOPS = "Error: {} does not work in loops; turn on *Work in loops* on its page Loops."
NOTHING = "Nothing was started."
RUNS_ALREADY = "It runs already, with the settings that it began with; it is followed from now on."
GOES_ON = "A restart was asked for: the loop begins anew and goes on. --continue follows it."
NO_EARLIER = (
    "Error: no loop of {} ended before it was completed and could be gone on with. "
    "Nothing was started."
)
SAID = (
    "Stopping after this turn, which may finish. Ctrl-C again ends it at once.",
    "Ending the turn that runs.",
)


class Follower:
    """One loop as the command sees it. The database may go and come back meanwhile.

    `asked` is the request that it was begun with; one that ran already has none. `written`: the
    issue that was made for its prompt alone. `goes_on`: it is asked for again where it is refused.
    """

    def __init__(
        self,
        project: Project,
        lines: Lines,
        asked: StartRequest | None = None,
        *,
        written: str = "",
        goes_on: bool = False,
        last: int = 0,
    ) -> None:
        self._asked = asked
        self._project = project
        self._lines = lines
        self._last = last
        self._written = written
        self._goes_on = goes_on
        self._run: Run | None = None
        self._generation: int | None = None
        self._last_turn = 0
        self._pressed = 0
        self._is_handed_on = True
        self._waits = ""
        self._ended_at: float | None = None

    @classmethod
    def begin(cls, wanted: Command) -> Follower | None:
        """Ask for a loop of the named project; None while that is being cloned.

        Raises ActRefused; then nothing was asked for.
        """
        project = projects.named(wanted.project)
        if project.state == ProjectState.CLONING:
            return None
        last = timeline.newest()
        if wanted.continues and (running := _running(project, wanted.issue)) is not None:
            return cls._on(running, wanted.lines, last)
        terms = beginning.terms_of(project.pk)
        if terms is None:
            raise ActRefused(f"{NO_LOOPS.format(project.name)} {NOTHING}")
        if why := beginning.why_not(terms):
            raise ActRefused(f"Error: {why} {NOTHING}")
        given = _checked(terms, wanted)
        lab, by = wiring.lab(), who()
        if wanted.continues:
            before = _earlier(project, wanted.issue)
            text = followup_rules.GO_ON
            try:
                found = followups.resume(lab, before, text, by=by, loop_options=given)
            except ActRefused as error:
                raise ActRefused(f"Error: {error} {NOTHING}") from error
            return cls(project, wanted.lines, found, last=last)
        written = ""
        if wanted.prompt:
            given[options.OBJECTIVE] = lab.mask(wanted.prompt)
            written = wanted.written or _written(project, wanted.prompt, by)
        found = start_requests.request(lab, project, by, written or wanted.issue, given)
        goes_on = wanted.goes_on
        return cls(project, wanted.lines, found, written=written, goes_on=goes_on, last=last)

    @classmethod
    def _on(cls, run: Run, lines: Lines, last: int) -> Follower:
        """Follow a loop that runs already, from now on."""
        say(RUNS_ALREADY)
        made = cls(run.project, lines, last=last)
        made._run = run
        ended = LoopTurn.objects.filter(loop__run=run, ended_at__isnull=False)
        made._last_turn = ended.values_list("pk", flat=True).first() or 0
        lines.opened(run.pk, run.issue_key, run.project.name)
        return made

    @property
    def issue(self) -> str:
        """The issue that it works on, or would go on with; empty while that is not known."""
        if self._run is not None:
            return self._run.issue_key
        before = self._asked.continues if self._asked is not None else None
        return before.issue_key if before is not None else ""

    @property
    def written(self) -> str:
        """The issue that was made of its prompt, while no loop has come of it."""
        return self._written if self._run is None else ""

    def leave(self) -> None:
        """Nothing more is asked for: close the issue that was made for a prompt of which no loop came."""
        if not self.written or _run_of(self._project, self.written) is not None:
            return
        try:
            issues.close(wiring.lab(), self._project, self.written, by=who())
        except (TrackerError, ActRefused) as error:
            say(f"Issue {self.written} holds the prompt and stays open: {error}")
        else:
            say(f"Issue {self.written}, which held the prompt, was closed.")

    def press(self, times: int) -> int | None:
        """Stop after the turn, then at once; asked again with the next news while the database is away."""
        self._pressed, self._is_handed_on = times, False
        return self._hand_on()

    def news(self) -> int | None:
        """Tell what is new; the exit code once the loop has ended and is tidied up."""
        if not self._is_handed_on and (code := self._hand_on()) is not None:
            return code
        if self._run is None:
            code = self._look_for_run()
            if code is not None or self._run is None:
                return code
        run = Run.objects.select_related("project").filter(pk=self._run.pk).first()
        generation = Loop.objects.filter(run=self._run.pk).values_list("generation", flat=True)
        now = generation.first()  # before the timeline, which then has told of it
        self._tell()
        if run is None:
            say("The project was removed, and its loop with it.")
            return CODE_GONE
        self._run = run
        if run.is_active:
            return self._restarted(run, now)
        return self._summary(run) if self._is_tidy(run) else None

    def _hand_on(self) -> int | None:
        """Do what was pressed for; the exit code where no run has begun."""
        lab, by = wiring.lab(), who()
        if self._run is None:
            if self._asked is not None and start_requests.withdraw(self._asked):
                self.leave()
                say(f"Interrupted before anything began. {NOTHING}")
                return CODE_INTERRUPTED
            self._look_for_run()
        if self._run is None:  # refused in the same moment, which the news tell
            self._is_handed_on = True
            return None
        run = Run.objects.select_related("project").filter(pk=self._run.pk).first()
        if run is not None and run.is_active:
            say(SAID[min(self._pressed, len(SAID)) - 1])
            if self._pressed > 1:
                stop.interrupt(lab, run, by)
            else:
                _ask_stop(run, by)
        self._is_handed_on = True
        return None

    def _look_for_run(self) -> int | None:
        """Find the run that was asked for; the exit code where none was started."""
        assert self._asked is not None  # noqa: S101  (what has no request has a run)
        rows = StartRequest.objects.select_related("run__project")
        asked = rows.filter(pk=self._asked.pk).first()
        if asked is None:
            say(f"The project was removed. {NOTHING}")
            return CODE_GONE
        found = asked.run
        if found is None and self._written and asked.answer != AnswerCode.PENDING:
            found = _run_of(self._project, self._written)
        if found is not None:
            self._run = found
            self._lines.opened(found.pk, found.issue_key, self._project.name)
        elif asked.answer != AnswerCode.PENDING:
            say(f"Error: {asked.text}")
            if not self._goes_on or self._pressed:
                self.leave()
            return CODE_ARGUMENTS
        elif asked.text != self._waits:
            self._waits = asked.text
            say(asked.text)
        return None

    def _restarted(self, run: Run, now: int | None) -> int | None:
        """The code of a restart, once the loop has begun anew; it goes on."""
        before, self._generation = self._generation, now
        if now is None or before is None or now == before or self._pressed:
            return None
        self._lines.restarted(run.pk, now)
        say(GOES_ON)
        return End.RESTART.code

    def _tell(self) -> None:
        assert self._run is not None  # noqa: S101  (news come of a run)
        for notice in timeline.all_after(self._last, self._project):
            self._last = notice.pk
            if notice.run_id != self._run.pk:
                continue
            self._lines.told(_told(notice))
            if notice.kind == NoticeKind.LOOP_TURN:
                self._tell_turns(self._run.pk)

    def _tell_turns(self, run_id: int) -> None:
        turns = LoopTurn.objects.filter(loop__run=run_id, ended_at__isnull=False)
        for turn in turns.filter(pk__gt=self._last_turn).order_by("pk"):
            self._last_turn = turn.pk
            self._lines.turn(
                Turn(
                    turn.generation,
                    turn.number,
                    turn.role,
                    turn.exit_code,
                    turn.seconds,
                    turn.commits,
                    turn.cost,
                )
            )

    def _is_tidy(self, run: Run) -> bool:
        """Whether its session is gone, its slot free, or that takes too long to wait for."""
        if self._ended_at is None:
            self._ended_at = time.monotonic()
        if run.settled_at is not None:
            return True
        if time.monotonic() - self._ended_at < TIDY_SECONDS:
            return False
        say("Its session is not cleaned up yet; labsite goes on trying while it runs.")
        return True

    def _summary(self, run: Run) -> int:
        loop = Loop.objects.filter(run=run).first()
        self._tell_turns(run.pk)
        if loop is None:
            say("It was no loop: the project's loop settings were changed meanwhile.")
        end = End(loop.end) if loop is not None and loop.end else End.LOST
        is_ours = self._pressed > 0 and end is End.STOPPED
        code = CODE_INTERRUPTED if is_ours else end.code
        counters = stored.counters(loop.counters if loop is not None else {})
        took = (run.ended_at or run.requested_at) - (run.started_at or run.requested_at)
        summary = Summary(run.pk, code, run.reason, counters.turns, run.commits, run.cost_usd, took)
        self._lines.summary(summary)
        return code


def _checked(terms: LoopTerms, wanted: Command) -> dict[str, Any]:
    """The options as a start request keeps them, once they fit the project. Raises ActRefused."""
    given = dict(wanted.options)
    if why := _unfit(terms, given):
        raise ActRefused(f"Error: {why}. {NOTHING}")
    for name, value in options.values(given).items():
        setattr(terms, name, value)  # not stored
    try:
        rows = _rows(terms, wanted.roles)
    except LoopSettingsRefused as refused:
        names = [str(one.values["name"]) for one in wanted.roles.roles] if wanted.roles else []
        said = settings_acts.role_words(refused, names)
        raise ActRefused(f"Error: these roles cannot be used: {said} {NOTHING}") from refused
    if wrong := unfit.wrong_terms(terms, rows):
        raise ActRefused(f"Error: {' '.join(wrong.values())} {NOTHING}")
    if wanted.roles is not None:
        given[options.ROLES] = stored.of_roles([one.role for one in rows])
    return given


def _rows(terms: LoopTerms, roles: Roles | None) -> list[LoopRole]:
    """The roles of the file, or those of the project. Raises LoopSettingsRefused."""
    if roles is None:
        return list(LoopRole.objects.filter(project=terms.project))
    known, left = agents.known(one.agent for one in roles.roles)
    for name in left:
        say(agents.UNKNOWN.format(name))
    values = [{**one.values, "profile_id": known.get(str(one.agent))} for one in roles.roles]
    return settings_acts.role_rows(terms.project, [], values, terms)


def _written(project: Project, prompt: str, by: str) -> str:
    """The key of a new issue that holds a prompt. Raises ActRefused."""
    labels = [project.ready_label] if project.ready_label else []
    try:
        made = issues.of_prompt(wiring.lab(), project, prompt, labels=labels, by=by)
    except (TrackerError, writing.WrongText, ActRefused) as error:
        text = f"Error: no issue could be made of the prompt: {error}. {NOTHING}"
        raise ActRefused(text) from error
    say(f"The prompt is issue {made.key} of {project.name}.")
    return made.key


def _unfit(terms: LoopTerms, options: Mapping[str, Any]) -> str:
    """Why these options do not go with the project's loop settings; empty when they do."""
    profile = beginning.profile_of(terms)
    if options.get("max_cost") and profile is not None and not unfit.tells_cost(profile):
        return (
            f"{profile.name} does not tell what a turn costs, so --max-cost would never be reached"
        )
    if terms.cancellation and options.get("completion") == terms.cancellation:
        return f"{terms.cancellation} is the word that cancels the loops of this project"
    return ""


def _ask_stop(run: Run, by: str) -> None:
    try:
        acts.ask_stop(wiring.lab(), run, by=by)
    except LoopRefused as error:
        say(error.text)


def _run_of(project: Project, written: str) -> Run | None:
    """The run of an issue that was made for a prompt: automatic work may have been first."""
    rows = Run.objects.filter(project=project, issue_key=written)
    return rows.select_related("project").order_by("-pk").first()


def _running(project: Project, issue: str) -> Run | None:
    """The newest loop that runs."""
    rows = Run.objects.active().filter(project=project, is_loop=True)
    if issue:
        rows = rows.filter(issue_key=issue)
    return rows.select_related("project").order_by("-pk").first()


def _earlier(project: Project, issue: str) -> Run:
    """The loop that is gone on with. Raises ActRefused."""
    rows = Run.objects.filter(project=project, is_loop=True, outcome__in=followup_rules.UNFINISHED)
    if issue:
        rows = rows.filter(issue_key=issue)
    found = rows.filter(continued_by=None).select_related("project", "profile").first()
    if found is None:
        raise ActRefused(NO_EARLIER.format(project.name))
    return found


def _told(notice: Notice) -> Told:
    return Told(notice.at, notice.kind, notice.text)


def import_files(name: str, folder: Path, out: IO[str], *, is_dry: bool) -> int | None:
    """Take the files of a folder over, and print what became of them; None while it is being cloned.

    Raises ActRefused.
    """
    project, lab = projects.named(name), wiring.lab()
    if project.state == ProjectState.CLONING:
        return None
    try:
        found = ralph.preview(lab, project, ralph.of_folder(folder))
        printer = Printer(out)
        for line in _shown(found):
            printer.line(line)
        if is_dry:
            printer.line("Nothing was imported.")
            return 0
        done = ralph.take(lab, project, found, by=who())
    except ActRefused as error:
        raise ActRefused(f"Error: {error}") from error
    issue = f"; the prompt is issue {done.issue}" if done.issue else ""
    printer.line(f"Imported into {project.name}, {done.memories} memories were new{issue}.")
    if not found.is_on:
        printer.line("Work in loops is off there; turn it on on the page Loops.")
    return 0


def _shown(found: ralph.Preview) -> Iterator[str]:
    yield from (f"setting   {one}: {value}" for one, value in found.settings)
    for role in found.roles or ():
        yield f"role      {role['name']}: takes {', '.join(role['subscriptions'])}"
    yield from (f"removed   role {one}" for one in found.removed)
    yield f"memories  {len(found.memories)}"
    if found.objective:
        yield f"issue     {found.title}"
    yield from (f"changed   {one}" for one in found.changed)
    yield from (f"not taken {one}" for one in found.not_taken)
