"""The part of the connection test that is about pushing: branches by their name, workflow files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from trackers.account import Purpose
from trackers.base import Finding, NotFound, NotUnderstood, TrackerError
from trackers.forges import branch_rules, reading
from trackers.forges.repository import Need, RepositoryClient

NAME = "branch names"
MOST_RULESETS = 10


def examine_github(
    repo_of: Callable[[], RepositoryClient], prefix: str, key: str
) -> Sequence[Finding]:
    """Whether GitHub's rulesets let branches with this prefix be pushed; never raises."""
    try:
        repo = repo_of()
        rules = _list(repo, "rules", "branches", f"{prefix}{key}")
        passes = [one for one in branch_rules.rulesets_of(rules) if _may_pass(repo, one)]
    except TrackerError as error:
        return [_untold(prefix, error)]
    return [Finding(NAME, *branch_rules.from_github(rules, passes, prefix, key))]


def examine_gitea(
    repo_of: Callable[[], RepositoryClient], prefix: str, key: str
) -> Sequence[Finding]:
    """The same by the protections of Gitea and Forgejo, which admins alone may read; never raises."""
    try:
        repo = repo_of()
        rules = _list(repo, "branch_protections")
    except TrackerError as error:
        return [_untold(prefix, error, " Only admins of a repository may read its rules.")]
    return [Finding(NAME, *branch_rules.from_gitea(rules, _person(repo), prefix, key))]


def workflow_files(repo: RepositoryClient, *, may_change: bool) -> Iterator[Finding]:
    """Say that the token may not change workflow files, where there are some."""
    if may_change:
        return
    try:
        repo.get("contents", ".github", "workflows", purpose=Purpose.SETUP, need=Need.SEE)
    except NotFound:
        return
    except TrackerError as error:
        text = f"Whether there are workflow files, which the token may not change: {error}"
        yield Finding("workflow files", None, text)
        return
    text = "The forge refuses a push that changes a file in .github/workflows: the token lacks "
    yield Finding("workflow files", False, f"{text}“workflow” (App: “Workflows: read and write”).")


def _list(repo: RepositoryClient, *parts: str) -> Sequence[object]:
    found = repo.get(*parts, purpose=Purpose.SETUP, need=Need.SEE)
    if not isinstance(found, list):
        raise NotUnderstood(f"{repo.host} answered with something that is no list.")
    return found


def _may_pass(repo: RepositoryClient, ruleset: int) -> bool:
    """Whether the account may go past a ruleset; one that cannot be read counts."""
    try:
        found = repo.get("rulesets", ruleset, purpose=Purpose.SETUP, need=Need.SEE)
    except TrackerError:
        return False
    return branch_rules.is_passed_over(found)


def _person(repo: RepositoryClient) -> str:
    """Whose the token is; empty where it does not say."""
    try:
        return reading.text(repo.outside("/user", purpose=Purpose.SETUP).data, "login")
    except TrackerError:
        return ""


def _untold(prefix: str, error: TrackerError, more: str = "") -> Finding:
    text = f"Whether branches named {prefix}… may be pushed could not be told: {error}{more}"
    return Finding(NAME, None, text)
