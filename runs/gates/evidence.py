"""Gate 1: gathers what git, the agent's own record and `labctl check` show of an attempt.

It reads, and runs nothing of the project. Where the records ended is kept with each attempt, so that
the next one counts only what is new.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.db import transaction

from runs.changed_files import check_files, file_kinds
from runs.core.history_ports import EMPTY_TREE, Commit
from runs.core.ports import Lab, SeamError
from runs.core.states import Claim, NoticeKind
from runs.evidence import command_match, records, shown_commands
from runs.evidence.records import Seen
from runs.gates import evidence_rules
from runs.gates.evidence_rules import Branch, Check, Facts, Judgement, Made, has_progress
from runs.gates.hold import Hold
from runs.gates.rules import Decision
from runs.jobs.runner import LostError
from runs.lifecycle import delivery_rules
from runs.lifecycle.delivery_rules import Said
from runs.models import Attempt, CheckRun, Run
from runs.timeline import announce
from runs.validation import specs
from trackers.keys import evidence_of

__all__ = ["has_progress", "judge"]

MOST_COMMITS = 500
MOST_BEFORE = 200  # commits before the fork point in which an older one is looked for
MOST_FILES = 5000
MOST_CONTINUED = 50
# A program may tell that its turn has ended before the last lines of its record are there.
FRESH = timedelta(seconds=3)
PAUSE, PAUSES = 0.5, 6


def judge(lab: Lab, hold: Hold) -> Decision:
    """Look at the commit and the evidence of an attempt, and store both. Safe to call twice.

    Raises SeamError where git could not be asked, LostError when the attempt is not ours any more.
    """
    attempt = hold.attempt
    begun, spec = _begun(attempt), specs.from_json(attempt.spec)
    checks, last_check = _checks(hold.run, int(begun.get("checks") or 0))
    places = records.from_json(begun.get("places"))
    words = tuple(dict.fromkeys(command_match.word(one.argv) for one in spec.commands))
    for left in range(PAUSES, -1, -1):
        seen = records.read(lab, hold.run, places, words, lambda: _keep_hold(hold))
        facts, base = _facts(lab, hold, seen, checks)
        found = evidence_rules.judge(spec, facts)
        if found.decision.passed or not left or not _is_fresh(lab, seen):
            break
        lab.pause(PAUSE)
        _keep_hold(hold)
    end = {"places": records.to_json(seen.places), "checks": last_check}
    of_checks = (
        check_files.find_check_files(lab, attempt, base, found.commit) if found.commit else []
    )
    context = _context(lab, hold.run, found, facts, seen)
    columns = {
        **_columns(lab, hold, found, facts),
        "base": base,
        "context": {**context, check_files.KEY: check_files.serialize_check_files(lab, of_checks)},
        "evidence_from": {
            "number": attempt.number,
            "from": begun,
            "end": end,
            "files": _files(lab, hold.run),
        },
    }
    is_first = check_files.KEY not in attempt.context
    with transaction.atomic():
        hold.store(**columns)
        if of_checks and is_first:
            text = f"attempt {attempt.number}: {check_files.describe_check_files(of_checks)}"
            announce.tell(lab, NoticeKind.CHECKS_CHANGED, text, run=hold.run)
    reasons = tuple(lab.mask(one) for one in found.decision.reasons)
    return Decision(found.decision.gate, found.decision.passed, reasons)


def _keep_hold(hold: Hold) -> None:
    if not hold.is_held():
        raise LostError


def _begun(attempt: Attempt) -> Mapping[str, Any]:
    """Where this attempt begins. A new one was given what is kept with the one before."""
    given = attempt.evidence_from or {}
    is_own = given.get("number") == attempt.number
    return given.get("from" if is_own else "end") or {}


def _is_fresh(lab: Lab, seen: Seen) -> bool:
    """Whether a record was added to just now, so that more may come."""
    return seen.written_at is not None and abs(lab.now() - seen.written_at) < FRESH


def _columns(lab: Lab, hold: Hold, found: Judgement, facts: Facts) -> dict[str, Any]:
    """The columns that keep what was found."""
    resolution = found.resolution.value if found.resolution else ""
    entries = [one.to_json() for one in found.entries]
    return {
        "commit": found.commit,
        "tree": facts.tree if found.commit else "",
        "resolution": resolution,
        "rationale": lab.mask(found.rationale)[: shown_commands.RATIONALE],
        "claim": resolution if resolution in set(Claim) else hold.attempt.claim,
        "evidence": [{**one, "word": lab.mask(one["word"])} for one in entries],
    }


def _context(lab: Lab, run: Run, found: Judgement, facts: Facts, seen: Seen) -> dict[str, Any]:
    """What the attempt is about, fixed from now on."""
    return {
        "issue_id": run.issue_key,
        "repo_path": str(run.project.repo(lab.paths)),
        "commit_hash": found.commit,
        "log_path": seen.path,
        "changed_files": file_kinds.labels(file_kinds.first(facts.changed, MOST_FILES)),
        "scope": specs.Scope.PER_ISSUE.value,
    }


def _files(lab: Lab, run: Run) -> str:
    """The tree of the worktree's files, by which progress is told; empty when git cannot tell."""
    try:
        return lab.repos.worktree_tree(Path(run.worktree))
    except SeamError:
        return ""


def _facts(lab: Lab, hold: Hold, seen: Seen, checks: Sequence[Check]) -> tuple[Facts, str]:
    """Everything that the rule asks for, and the commit from which changes are counted."""
    run, attempt = hold.run, hold.attempt
    claim = Claim(attempt.claim)
    is_without = claim is not Claim.DONE or seen.marker is not None
    words = evidence_of(run.project.tracker, run.issue_key)
    branch, base, tree, changed = Branch(run.branch, is_read=False), "", "", frozenset[str]()
    try:
        branch, base = _branch(lab, run, words)
        if branch.commits:
            tree, changed = _of_commit(lab, run, branch, base)
    except SeamError:
        if not is_without:
            raise  # asked again; what says that it needs no commit has no worktree to be clean
    facts = Facts(
        claim=claim,
        rationale=attempt.rationale,
        branch=branch,
        words=words,
        is_clean=_is_clean(lab, run) if is_without else None,
        tree=tree,
        marker=seen.marker,
        shown=seen.shown,
        checks=tuple(checks),
        changed=changed,
        has_record=seen.has_record,
        places=_names(run.worktree),
    )
    return facts, base


def _is_clean(lab: Lab, run: Run) -> bool | None:
    try:
        return not lab.repos.is_dirty(Path(run.worktree))
    except SeamError:
        return None


def _names(worktree: str) -> tuple[str, ...]:
    """A folder as we call it, and as a program does that was started in it."""
    return tuple(dict.fromkeys([worktree, os.path.realpath(worktree)])) if worktree else ()


def _of_commit(lab: Lab, run: Run, branch: Branch, base: str) -> tuple[str, frozenset[str]]:
    """The tree of the newest commit, and the files that the branch changes."""
    repo = run.project.repo(lab.paths)
    found = lab.repos.changes(repo, base, branch.tip)
    changed = {one.path for one in found} | {one.old_path for one in found if one.old_path}
    return lab.repos.tree_of(repo, branch.tip), frozenset(changed)


def _branch(lab: Lab, run: Run, words: Sequence[str]) -> tuple[Branch, str]:
    """The run's branch as git tells it, and the commit from which its changes are counted."""
    project, repos = run.project, lab.repos
    repo = project.repo(lab.paths)
    tip = repos.tip(repo, f"refs/heads/{run.branch}") or ""
    origin = repos.tip(repo, f"refs/remotes/origin/{project.default_branch}") or ""
    fork = run.fork_point or origin
    if not fork:
        raise SeamError(f"nothing is known of where {run.branch} began")
    if not tip:
        repos.tree_of(repo, fork)  # raises where it is the repository that is gone
    made: Sequence[Commit] = repos.commits(repo, fork, tip, MOST_COMMITS) if tip else ()
    base = fork
    if made and origin not in ("", fork):
        # Commits of others that came in by a merge or a rebase are no work of this run.
        own = {one.id for one in repos.commits(repo, origin, tip, MOST_COMMITS)}
        base = fork if own.issuperset(one.id for one in made) else origin
        made = [one for one in made if one.id in own]
    standing = ("", "") if made or not tip else _standing(lab, run)
    branch = Branch(
        name=run.branch,
        tip=tip,
        commits=tuple(Made(one.id, f"{one.subject}\n\n{one.body}", one.at) for one in made),
        since=_since(run),
        named_before="" if made or not tip else _named_before(lab, repo, fork, words),
        is_of_issue=project.tracker != "beads" and project.claimed_key(run.branch) == run.issue_key,
        head=standing[0],
        head_branch=standing[1],
    )
    return branch, base


def _since(run: Run) -> datetime | None:
    """When the work on the branch began; a run that goes on with another one goes on with its work.

    An adopted one began before it was known. Git keeps whole seconds.
    """
    first = run
    for _ in range(MOST_CONTINUED):
        if first.continues is None:
            break
        first = first.continues
    return None if first.is_adopted else first.requested_at.replace(microsecond=0)


def _standing(lab: Lab, run: Run) -> tuple[str, str]:
    """Where the worktree stands, for a sentence."""
    try:
        found = lab.repos.standing(run.project.repo(lab.paths), Path(run.worktree))
    except SeamError:
        return "", ""
    return found.head, found.branch


def _named_before(lab: Lab, repo: Path, fork: str, words: Sequence[str]) -> str:
    """A commit from before the run that names the issue, which is stale; empty for none."""
    found = lab.repos.commits(repo, EMPTY_TREE, fork, MOST_BEFORE)
    told = (Said(one.id, f"{one.subject}\n\n{one.body}") for one in found)
    return delivery_rules.naming_commit(told, words)


def _checks(run: Run, after: int) -> tuple[list[Check], int]:
    """What labsite ran for the agent since the attempt before, and the last of it."""
    rows = list(CheckRun.objects.filter(run=run, is_running=False, pk__gt=after).order_by("pk"))
    found = [
        _check(row, one)
        for row in rows
        for one in row.results
        if not one.get("is_running") and not one.get("skipped")
    ]
    return found, rows[-1].pk if rows else after


def _check(row: CheckRun, result: Mapping[str, Any]) -> Check:
    # Those of an older version have no word on tests.
    no_tests = str(result.get("no_tests") or "").removeprefix("passed, but ")
    trouble = str(result.get("trouble") or no_tests)
    if result.get("is_over_time"):
        trouble = trouble or "it took too long and was ended"
    if result.get("signal"):
        trouble = trouble or f"it was ended by signal {result['signal']}"
    return Check(
        command=str(result.get("command") or ""),
        argv=tuple(str(word) for word in result.get("argv") or ()),
        status=result.get("status"),
        tree=row.tree,
        at=row.ended_at.isoformat() if row.ended_at else "",
        seconds=result.get("seconds"),
        trouble=trouble,
    )
