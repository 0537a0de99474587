"""Gate 1: whether an agent's claim is backed by a commit and by commands that really ran. Pure.

A command is proven by what labsite ran itself for exactly the files that were committed, else by
what the agent's own record shows of this attempt. What is not shown for sure is not proven:
`labctl check` is always there to prove it.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Protocol

from runs.core.states import Claim, Gate
from runs.evidence import command_match, shell_lines
from runs.evidence.shown_commands import Marker, Shown
from runs.gates.rules import Decision, Resolution
from runs.lifecycle import delivery_rules
from runs.lifecycle.delivery_rules import SHORT, Said
from runs.validation import specs
from runs.validation.specs import Command, Spec

SHOWN = 160  # letters of a command in a sentence


@dataclass(frozen=True, slots=True)
class Check:
    """A command that labsite ran in the worktree: for which tree of files, and how it ended.

    `tree` is empty where the files changed meanwhile. `trouble` says why it has no status.
    """

    command: str
    argv: tuple[str, ...]
    status: int | None
    tree: str = ""
    at: str = ""
    seconds: float | None = None
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Made:
    """One commit of the run's branch beyond its fork point."""

    id: str
    message: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Branch:
    """The branch of a run: its newest commit, and those since the fork point, newest first.

    Without `is_read` git could not tell. `tip` is empty for a branch that is gone. Commits from
    before `since` are no work of this run. `named_before`: a commit from before the fork point that
    names the issue. `is_of_issue`: the branch itself names the issue, and that is enough here.
    `head`: where the worktree stands, on which branch; empty for none.
    """

    name: str
    is_read: bool = True
    tip: str = ""
    commits: tuple[Made, ...] = ()
    since: datetime | None = None
    named_before: str = ""
    is_of_issue: bool = False
    head: str = ""
    head_branch: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of an attempt. `is_clean` None: git could not tell.

    `has_record`: the agent keeps a record that can be read. `places`: every name of its worktree.
    `tree` is the one of the branch's newest commit. `changed`: files that its commits change.
    """

    claim: Claim
    rationale: str
    branch: Branch
    words: tuple[str, ...]
    is_clean: bool | None
    tree: str = ""
    marker: Marker | None = None
    shown: tuple[Shown, ...] = ()
    checks: tuple[Check, ...] = ()
    changed: frozenset[str] = frozenset()
    has_record: bool = True
    places: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of one expected command, as an attempt keeps it. `word` is a sentence."""

    command: str
    argv: str
    source: str
    status: int | None
    seconds: float | None
    tree: str
    at: str
    needed: bool
    proven: bool
    word: str

    def to_json(self) -> dict[str, Any]:
        """As it is stored with its attempt."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the gate says, and what is kept with the attempt."""

    decision: Decision
    resolution: Resolution | None = None
    rationale: str = ""
    commit: str = ""
    entries: tuple[Entry, ...] = ()


def judge(spec: Spec, facts: Facts) -> Judgement:
    """Gate 1. With a commit the commands have to be shown; without one, why none is needed."""
    claim, rationale = _claimed(facts)
    if claim is not Claim.DONE:
        return _without_commit(claim, rationale, facts)
    entries = tuple(prove(one, facts) for one in spec.commands)
    reasons = [*_commit_reasons(facts.branch, facts.words), *_missing(entries)]
    commit = facts.branch.tip if facts.branch.commits else ""
    passed = Decision(Gate.EVIDENCE, not reasons, tuple(reasons))
    resolution = None if reasons else Resolution.SUCCESS
    return Judgement(passed, resolution, facts.rationale, commit, entries)


def _claimed(facts: Facts) -> tuple[Claim, str]:
    """What the agent says: by a command, else by a marker where it has committed nothing."""
    if facts.claim is Claim.DONE and facts.marker is not None and not facts.branch.commits:
        return facts.marker.claim, facts.marker.rationale
    return facts.claim, facts.rationale


def _without_commit(claim: Claim, rationale: str, facts: Facts) -> Judgement:
    """No commit is needed if it says why, and has changed nothing."""
    word, verb = claim.replace("_", " "), claim.replace("_", "-")
    reasons = []
    if not rationale.strip():
        reasons.append(
            f'it says {word} without a reason: run `labctl issue {verb} -m "why"`, or write the '
            f"reason on the line, ISSUE_{claim.upper()}: why"
        )
    if facts.branch.commits:
        count = len(facts.branch.commits)
        reasons.append(
            f"it says {word}, and {facts.branch.name} holds {count} commit{'s' * (count > 1)}: run "
            "`labctl done` if they are to be delivered, else take them off the branch"
        )
    if facts.is_clean is None or not facts.branch.is_read:
        reasons.append(
            f"git could not read the worktree, which counts as not clean: {word} needs a worktree "
            "in which `git status --porcelain` prints nothing"
        )
    elif not facts.is_clean:
        reasons.append(
            f"it says {word}, and its worktree holds changes that are not committed: remove them, "
            "or commit them and run `labctl done`; `git status --porcelain` has to print nothing"
        )
    passed = Decision(Gate.EVIDENCE, not reasons, tuple(reasons))
    resolution = None if reasons else Resolution(claim.value)
    return Judgement(passed, resolution, rationale)


def _commit_reasons(branch: Branch, words: Collection[str]) -> list[str]:
    """What keeps the branch's newest commit from being this run's work on the issue."""
    naming = " or ".join(words)
    if not branch.is_read:
        return [f"git could not read {branch.name}: see that the worktree is whole"]
    if not branch.tip:
        return [
            f"the branch {branch.name} is gone: make it again where your work is "
            f"(`git branch {branch.name} HEAD`)"
        ]
    fresh = [one for one in branch.commits if branch.since is None or one.at >= branch.since]
    if not fresh:
        return [_no_commit(branch, naming)]
    named = delivery_rules.naming_commit((Said(one.id, one.message) for one in fresh), words)
    if named or branch.is_of_issue:
        return []
    old = delivery_rules.naming_commit((Said(one.id, one.message) for one in branch.commits), words)
    more = f" (commit {old[:SHORT]} is stale: it is older than this run)" if old else ""
    return [
        f"no commit on {branch.name} names the issue{more}: put {naming} into the message "
        "(`git commit --amend`)"
    ]


def _no_commit(branch: Branch, naming: str) -> str:
    stale = branch.commits[0].id if branch.commits else branch.named_before
    if stale:
        return (
            f"no commit on {branch.name} since this run began: commit {stale[:SHORT]} is stale, as "
            f"it is older. Commit your work and name {naming} in the message"
        )
    if branch.head and branch.head_branch != branch.name:
        where = branch.head_branch or "no branch"
        return (
            f"no commit on {branch.name} since this run began: its worktree is on {where} at "
            f"{branch.head[:SHORT]}. Bring the work to {branch.name} "
            f"(`git switch {branch.name} && git merge {branch.head[:SHORT]}`)"
        )
    return (
        f"no commit on {branch.name} since this run began: commit your work and name {naming} in "
        "the message"
    )


def _missing(entries: Sequence[Entry]) -> list[str]:
    """A sentence for each command that is needed and not proven."""
    open_ = [one for one in entries if one.needed and not one.proven]
    return [f"{one.command}: {one.word}. {_way_out(one.command)}" for one in open_]


def _way_out(name: str) -> str:
    return f"Run `labctl check {shlex.quote(name)}` when everything is committed"


def prove(command: Command, facts: Facts) -> Entry:
    """What is known of one expected command."""
    if not specs.is_wanted(command, facts.changed):
        word = f"not needed: {', '.join(command.lock_files)} did not change"
        return _entry(command, "transcript", word, needed=False, proven=True)
    own = [one for one in facts.checks if one.command == command.name]
    same = [one for one in own if one.argv == command.argv]
    exact = [one for one in same if one.tree and one.tree == facts.tree]
    if exact:
        return _checked(command, exact[-1])
    last = _last_run(command, facts)
    if last is not None and last.is_proof(command):
        return _of_run(command, last)
    if own:
        return _checked_else(command, own[-1], last)
    if last is not None:
        return _of_run(command, last)
    if not facts.has_record:
        word = "this agent keeps no record that shows its commands, so only `labctl check` counts"
        return _entry(command, "check", word)
    return _entry(command, "transcript", "it was not run in this attempt")


def _entry(
    command: Command,
    source: str,
    word: str,
    of: Mapping[str, Any] | None = None,
    *,
    needed: bool = True,
    proven: bool = False,
) -> Entry:
    known = {"status": None, "seconds": None, "tree": "", "at": "", **(of or {})}
    word = "".join(one if one.isprintable() else " " for one in word)  # it quotes an agent's record
    shown = shlex.join(command.argv)
    return Entry(
        command=command.name,
        argv=shown,
        source=source,
        needed=needed,
        proven=proven,
        word=word,
        **known,
    )


def _checked(command: Command, check: Check) -> Entry:
    """By labsite itself, for exactly the committed files: what it says is so."""
    known = {name: getattr(check, name) for name in ("status", "seconds", "tree", "at")}
    if check.status == 0 and not check.trouble:
        word = "passed in `labctl check` for exactly the committed files"
        return _entry(command, "check", word, known, proven=True)
    how = check.trouble or _status(check.status)
    word = f"failed in `labctl check` for the committed files ({how})"
    if command.allow_fail:
        return _entry(command, "check", f"{word}, which it may", known, proven=True)
    return _entry(command, "check", f"{word}: mend the cause and commit", known)


def _checked_else(command: Command, check: Check, last: _Run | None) -> Entry:
    """By labsite for other files, or another command; the agent's record proves it neither."""
    known = {name: getattr(check, name) for name in ("status", "seconds", "tree", "at")}
    if check.argv != command.argv:
        word = "`labctl check` ran another command of that name, which has been changed since"
    elif not check.tree:
        word = "files changed while `labctl check` ran it, so it proves none of them"
    else:
        word = "`labctl check` ran it for other files than were committed"
    more = f", and {last.word}" if last is not None else ""
    return _entry(command, "check", f"{word}{more}", known)


@dataclass(frozen=True, slots=True)
class _Run:
    """The last run of a command in the agent's record. `lacks`: it is no proof, and why.

    `is_part`: of the command, or in another folder, so that it undoes a proof only if it failed.
    """

    status: int | None
    at: str
    line: str
    lacks: str = ""
    is_part: bool = False

    def is_proof(self, command: Command) -> bool:
        return not self.lacks and (self.status == 0 or command.allow_fail)

    @property
    def word(self) -> str:
        return f"its last run, `{self.line}`, is no proof: {self.lacks or _status(self.status)}"


def _of_run(command: Command, run: _Run) -> Entry:
    known = {"status": run.status, "at": run.at}
    if not run.lacks and run.status == 0:
        return _entry(command, "transcript", "passed at its last run", known, proven=True)
    if not run.lacks and command.allow_fail:
        word = f"ended with {_status(run.status)}, which it may"
        return _entry(command, "transcript", word, known, proven=True)
    if not run.lacks:
        word = f"failed at its last run ({_status(run.status)}): mend the cause and commit"
        return _entry(command, "transcript", word, known)
    return _entry(command, "transcript", run.word, known)


def _last_run(command: Command, facts: Facts) -> _Run | None:
    """The last run that says something: a part of a command that passed does not undo the whole."""
    found: _Run | None = None
    for shown in facts.shown:
        for run in _runs_in(command, shown, facts.places):
            is_weak = run.is_part and not run.status
            if found is None or found.is_part or not is_weak:
                found = run
    return found


def _runs_in(command: Command, shown: Shown, places: Sequence[str]) -> list[_Run]:
    """Every run of a command in one line."""
    line = " ".join(shown.line.split())
    text = line if len(line) <= SHOWN else f"{line[: SHOWN - 1]}…"
    root = places[0] if places else ""
    begun = shown.folder or root
    script = command_match.script(command.argv)
    if script is not None and script == line:
        return [_run(shown.status, shown.hidden, begun, shown.at, text, places)]
    simples = shell_lines.read(shown.line, shown.status, begun)
    if simples is None:
        return _unclear(command, shown, text)
    found = []
    for one in simples:
        match = command_match.match(command.argv, one.argv, command.kind)
        if script is not None and script == command_match.script(one.argv):
            match = command_match.Match()
        if match is None:
            continue
        hidden = shown.hidden or one.hidden
        run = _run(one.status, hidden, one.folder, shown.at, text, places)
        if match.lacks:
            run = _Run(one.status, shown.at, text, match.lacks, is_part=True)
        found.append(run)
    return found


def _run(
    status: int | None, hidden: str, folder: str | None, at: str, text: str, places: Sequence[str]
) -> _Run:
    if folder is None:
        return _Run(status, at, text, "it is not told in which folder it ran", is_part=True)
    if folder not in places:
        lacks = f"it ran in {folder or 'another folder'}, and not at the top of the worktree"
        return _Run(status, at, text, lacks, is_part=True)
    return _Run(status, at, text, hidden)


def _unclear(command: Command, shown: Shown, text: str) -> list[_Run]:
    """A line that cannot be read proves nothing; it undoes a proof if it failed and names it whole."""
    if shown.status in (0, None) or shlex.join(command.argv) not in shown.line:
        return []
    return [_Run(shown.status, shown.at, text, "the line failed, and not for sure by this command")]


def _status(status: int | None) -> str:
    return "its exit status is not known" if status is None else f"exit status {status}"


class Attempted(Protocol):
    """What is kept of an attempt, as far as progress goes."""

    commit: str
    tree: str
    evidence: Any
    evidence_from: Any


def has_progress(before: Attempted, now: Attempted) -> bool:
    """Whether an attempt differs from the one before in commit, files of the worktree or evidence.

    What could not be read counts as different.
    """
    files = [_files(one) for one in (before, now)]
    if before.commit != now.commit or not all(files) or files[0] != files[1]:
        return True
    return bool(_shown_in(now) - _shown_in(before))


def _files(attempt: Attempted) -> str:
    return str((attempt.evidence_from or {}).get("files") or "")


def _shown_in(attempt: Attempted) -> set[tuple[Any, ...]]:
    """Which commands were shown to have run, and how they ended."""
    names = ("command", "source", "status", "tree", "proven")
    listed = [one for one in attempt.evidence or [] if one.get("at")]
    return {tuple(one.get(name) for name in names) for one in listed}
