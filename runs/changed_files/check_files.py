"""Looks for what an attempt changes of the very checks that are to prove it, and keeps it with the attempt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from runs.changed_files import check_file_rules
from runs.changed_files.check_file_rules import Changed, CheckFile, Checks, Guarded, Part, Texts
from runs.core import writing
from runs.core.ports import Lab, SeamError
from runs.models import Attempt
from runs.validation import specs
from runs.validation.specs import Command, Kind, Scope, Terms

KEY = "check_files"
MOST_KEPT, MOST_TOLD = 200, 5
MOST_BYTES = 500_000  # of a file of settings


def list_guarded_commands(terms: Terms, reviewers: Iterable[Sequence[str]]) -> list[dict[str, Any]]:
    """Return the commands that prove the work of a project at any gate, as an attempt stores them.

    Args:
        terms: what the project runs, also at the run level.
        reviewers: the commands that review its work.
    """
    found = [command for scope in Scope for command in specs.effective(terms, scope).commands]
    lines = [(command.argv, command.kind is Kind.DEPS) for command in found]
    lines += [(tuple(argv), False) for argv in (terms.e2e.command, *reviewers) if argv]
    return [{"argv": list(argv), "prepares": is_deps} for argv, is_deps in dict.fromkeys(lines)]


def find_check_files(lab: Lab, attempt: Attempt, base: str, commit: str) -> list[CheckFile]:
    """Return what the commits from `base` to `commit` change of the checks. Raises SeamError."""
    repo = attempt.project.repo(lab.paths)
    listed = lab.repos.changes(repo, base, commit)
    changed = [Changed(one.path, one.kind, one.old_path) for one in listed]
    texts = _texts(lab, repo, (base, commit), check_file_rules.list_wanted_texts(changed))
    return check_file_rules.find_check_files(_checks(attempt), changed, texts)


def serialize_check_files(lab: Lab, found: Sequence[CheckFile]) -> list[dict[str, str]]:
    """Return what is stored of them; of very many the first ones."""
    stored = [one.to_json() for one in found[:MOST_KEPT]]
    return [{**one, "why": lab.mask(one["why"])} for one in stored]


def describe_check_files(found: Sequence[CheckFile]) -> str:
    """Return the sentence of the timeline. It holds no command, in which a secret may stand."""
    names = [writing.one_line(one.path, 100) for one in found[:MOST_TOLD]]
    more = len(found) - len(names)
    listed = f"{', '.join(names)}{f' and {more} more' if more else ''}"
    removed = sum(one.part is Part.REMOVED_TEST for one in found)
    tests = f", {removed} removed test{'s' * (removed > 1)}" if removed else ""
    count = f"{len(found)} file{'s' * (len(found) > 1)}"
    return f"it changes {count} of the checks themselves{tests}: {listed}"


def _checks(attempt: Attempt) -> Checks:
    spec = specs.from_json(attempt.spec)
    stored = attempt.spec.get("guarded")
    commands = (
        [Guarded(tuple(one["argv"]), bool(one["prepares"])) for one in stored]
        if stored is not None  # None: of an attempt from before
        else [_guarded(one) for one in spec.commands]
    )
    coverage = spec.coverage
    report = coverage.report_path if coverage.enabled else None
    return Checks(tuple(commands), coverage.enabled, report or "")


def _guarded(command: Command) -> Guarded:
    return Guarded(command.argv, command.kind is Kind.DEPS)


def _texts(
    lab: Lab, repo: Path, commits: tuple[str, str], names: Sequence[str]
) -> Mapping[str, Texts]:
    """Both sides of these files; without those that are no files, or could not be read."""
    if not names:
        return {}
    try:
        before, after = (lab.repos.texts(repo, one, names, MOST_BYTES) for one in commits)
    except SeamError:
        return {}  # the rule says of them that it is not known what changed
    both = {name: Texts(before.get(name, ""), after.get(name, "")) for name in names}
    return {name: one for name, one in both.items() if one.before or one.after}
