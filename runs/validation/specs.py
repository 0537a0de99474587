"""What is run to prove a commit: a project's commands and terms, and the spec of one scope. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

MIN_PERCENT = 85.0
E2E_MINUTES = 5
COMMAND_MINUTES = 30
MOST_COMMANDS = 50
MOST_MINUTES = 1440
ARGUMENT_CHARACTERS = 1000
NAMES = (
    "Write 1 to 60 letters, digits, spaces or . _ : / ( ) + -, and begin with a letter or digit."
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._:/()+-]{0,59}")


class Kind(StrEnum):
    """What a command is for; they run in this order."""

    DEPS = "deps"
    LINT = "lint"
    FORMAT = "format"
    TYPECHECK = "typecheck"
    TEST = "test"
    E2E = "e2e"

    @property
    def words(self) -> str:
        return {
            "deps": "dependencies",
            "lint": "lint",
            "format": "format",
            "typecheck": "type check",
            "test": "tests",
            "e2e": "end to end",
        }[self.value]


class Scope(StrEnum):
    """What a validation is about: the commit of one issue, or all that a session delivered."""

    PER_ISSUE = "per_issue"
    RUN_LEVEL = "run_level"

    @property
    def words(self) -> str:
        return {"per_issue": "per issue", "run_level": "run level"}[self.value]


class Switch(StrEnum):
    """What can be turned off, by the names of `--disable-validations`."""

    POST_VALIDATE = "post-validate"
    RUN_LEVEL = "run-level-validate"
    INTEGRATION_TESTS = "integration-tests"
    COVERAGE = "coverage"
    E2E = "e2e"
    REVIEW = "review"
    FOLLOW_UP = "followup-on-run-validate-fail"


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a spec, run without a shell.

    With `use_test_mutex` it never runs at the same time as another such command of its project. A
    failure of one with `allow_fail` is told and fails nothing. `coverage_args` are added while
    coverage is measured ({threshold} in them is the least percentage), `unit_args` while
    integration tests are off; with `is_integration` it is left out then. With `lock_files` it runs
    only where one of these files has changed.
    """

    name: str
    argv: tuple[str, ...]
    kind: Kind
    use_test_mutex: bool = False
    allow_fail: bool = False
    coverage_args: tuple[str, ...] = ()
    unit_args: tuple[str, ...] = ()
    is_integration: bool = False
    lock_files: tuple[str, ...] = ()
    minutes: int = COMMAND_MINUTES


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of the lines (and branches) tests have to reach. `report_path` is below the worktree."""

    enabled: bool = True
    min_percent: float = MIN_PERCENT
    branch: bool = True
    report_path: str | None = None


@dataclass(frozen=True, slots=True)
class E2E:
    """A real run on a temporary repository. An empty `command` is labsite's own `./lab watch`."""

    enabled: bool = True
    fixture_root: str = ""
    command: tuple[str, ...] = ()
    required_env: tuple[str, ...] = ()
    minutes: int = E2E_MINUTES
    keep: bool = False


@dataclass(frozen=True, slots=True)
class WorktreePlan:
    """Where clean worktrees are made. With `keep_on_failure` one that failed stays."""

    root_dir: str = ""
    keep_on_failure: bool = False


@dataclass(frozen=True, slots=True)
class Terms:
    """Everything that a project's *Checks* page says of its commands, for both scopes."""

    commands: tuple[Command, ...] = ()
    require_clean_git: bool = True
    require_pytest_for_code_changes: bool = True
    coverage: Coverage = Coverage()
    e2e: E2E = E2E()
    disabled: frozenset[Switch] = frozenset()
    worktrees: WorktreePlan = WorktreePlan()


@dataclass(frozen=True, slots=True)
class Spec:
    """What is run for one scope. Its commands are as they will be run, in their order."""

    commands: tuple[Command, ...]
    require_clean_git: bool
    require_pytest_for_code_changes: bool
    coverage: Coverage
    e2e: E2E
    scope: Scope


@dataclass(frozen=True, slots=True)
class Switches:
    """What a session or a command turns off or sets over the terms of its project. None: as they say."""

    disabled: frozenset[Switch] = frozenset()
    coverage_threshold: float | None = None
    keep_worktrees: bool | None = None

    @classmethod
    def stored(cls, kept: Mapping[str, Any]) -> Switches:
        """Those of a session's row; names that nobody knows any more turn nothing off."""
        known = set(Switch)
        return cls(
            frozenset(Switch(one) for one in kept.get("disabled") or () if one in known),
            kept.get("coverage_threshold"),
            kept.get("keep_worktrees"),
        )

    def to_json(self) -> dict[str, Any]:
        """As a session's row keeps them; empty where they change nothing."""
        if self == UNCHANGED:
            return {}
        return {**asdict(self), "disabled": sorted(self.disabled)}


UNCHANGED = Switches()


class UnfitThreshold(ValueError):
    """It is no percentage; the text says what one is."""


class UnknownKind(ValueError):
    """A word that is no kind of command; the text says which are."""


class UnknownSwitch(ValueError):
    """A name that turns nothing off; the text says which names do."""


def switches(names: str | Collection[str]) -> frozenset[Switch]:
    """The switches of a comma-separated list, or of these names. Raises UnknownSwitch."""
    raw = names.split(",") if isinstance(names, str) else names
    return frozenset(_switch(name.strip()) for name in raw if name.strip())


def _switch(name: str) -> Switch:
    if name == "codex-review":
        raise UnknownSwitch("codex-review is called review now. Nothing was changed.")
    try:
        return Switch(name)
    except ValueError:
        known = ", ".join(Switch)
        raise UnknownSwitch(f"{name[:60]} is none of the switches: {known}.") from None


def threshold(text: str) -> float:
    """A percentage that somebody typed. Raises UnfitThreshold."""
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 100:  # neither is "nan"
        raise UnfitThreshold(f"{text[:40]} is no percentage from 0 to 100.")
    return found


def over(terms: Terms, switches: Switches) -> Terms:
    """A project's terms with these switches over them: more may be off, and nothing comes back on."""
    coverage, worktrees = terms.coverage, terms.worktrees
    if switches.coverage_threshold is not None:
        coverage = replace(coverage, min_percent=switches.coverage_threshold)
    if switches.keep_worktrees is not None:
        worktrees = replace(worktrees, keep_on_failure=switches.keep_worktrees)
    disabled = terms.disabled | switches.disabled
    return replace(terms, coverage=coverage, worktrees=worktrees, disabled=disabled)


def kind(name: str) -> Kind:
    """The kind of that name. Raises UnknownKind."""
    try:
        return Kind(name)
    except ValueError:
        known = ", ".join(Kind)
        raise UnknownKind(f"{name[:60]} is none of the kinds: {known}.") from None


def wrong(command: Command) -> dict[str, str]:
    """For each field of a command that cannot be used, why; empty when it can be run."""
    found = {}
    if not _NAME.fullmatch(command.name):
        found["name"] = NAMES
    found |= _wrong_arguments(command)
    if not 1 <= command.minutes <= MOST_MINUTES:
        found["minutes"] = f"Write a number from 1 to {MOST_MINUTES}."
    if any(not _is_below(path) for path in command.lock_files):
        found["lock_files"] = "Write paths below the repository, without .. and without a / before."
    if command.kind is not Kind.TEST:
        for name in ("coverage_args", "unit_args", "is_integration"):
            if getattr(command, name):
                found[name] = "Only commands of the kind test have this."
    return found


def _wrong_arguments(command: Command) -> dict[str, str]:
    long = f"Write arguments of at most {ARGUMENT_CHARACTERS} characters each."
    found = {
        name: long
        for name in ("argv", "coverage_args", "unit_args")
        if any(len(one) > ARGUMENT_CHARACTERS for one in getattr(command, name))
    }
    if not command.argv or not command.argv[0]:
        found["argv"] = "Write the program and its arguments."
    return found


def _is_below(path: str) -> bool:
    parts = path.split("/")
    return path.isprintable() and len(path) <= 300 and not {"", ".", ".."} & set(parts)


def is_report_path(path: str) -> bool:
    """Whether a report can lie there: a path below the worktree."""
    return _is_below(path)


def lacking(terms: Terms, scope: Scope) -> tuple[str, ...]:
    """What the spec of a scope would need before it can prove changed code, a sentence each.

    A configuration error wherever code has changed: it is told before anything runs.
    """
    spec = effective(terms, scope)
    if not spec.require_pytest_for_code_changes:
        return ()
    tests = [one for one in terms.commands if _is_run(one, terms.disabled, scope)]
    tests = [one for one in tests if one.kind is Kind.TEST]
    if not tests:
        return (
            f"No command of the kind test is run {scope.words}, and changed code needs one. Add one, "
            "or turn off “code changes need a test command”.",
        )
    if spec.coverage.enabled and not spec.coverage.report_path and not _measures(tests):
        return (
            f"No test command {scope.words} measures coverage, which is on. Give one arguments for "
            "coverage or say where its report is, or turn coverage off.",
        )
    return ()


def _measures(tests: Collection[Command]) -> bool:
    """Whether one of them is told to measure coverage, by us or in its own arguments."""
    return any(
        one.coverage_args or any("cov" in part.lower() for part in one.argv) for one in tests
    )


def effective(terms: Terms, scope: Scope) -> Spec:
    """What these terms run for a scope, with what is turned off left out.

    Where tests are turned off, code changes need none.
    """
    off = terms.disabled
    coverage = terms.coverage
    if Switch.COVERAGE in off or Switch.POST_VALIDATE in off:
        coverage = Coverage(False, coverage.min_percent, coverage.branch, coverage.report_path)
    is_e2e = terms.e2e.enabled and scope is Scope.RUN_LEVEL and Switch.E2E not in off
    e2e = E2E(
        is_e2e,
        terms.e2e.fixture_root,
        terms.e2e.command,
        terms.e2e.required_env,
        terms.e2e.minutes,
        terms.e2e.keep,
    )
    order = list(Kind)
    wanted = [one for one in terms.commands if _is_run(one, off, scope)]
    wanted.sort(key=lambda one: order.index(one.kind))
    return Spec(
        tuple(_as_run(one, off, coverage) for one in wanted),
        terms.require_clean_git,
        terms.require_pytest_for_code_changes and Switch.POST_VALIDATE not in off,
        coverage,
        e2e,
        scope,
    )


def _is_run(command: Command, off: Collection[Switch], scope: Scope) -> bool:
    if command.kind is Kind.TEST and Switch.POST_VALIDATE in off:
        return False
    if command.kind is Kind.E2E and (scope is Scope.PER_ISSUE or Switch.E2E in off):
        return False
    return not (command.is_integration and Switch.INTEGRATION_TESTS in off)


def _as_run(command: Command, off: Collection[Switch], coverage: Coverage) -> Command:
    more: list[str] = []
    if coverage.enabled:
        threshold = f"{coverage.min_percent:g}"
        more += [one.replace("{threshold}", threshold) for one in command.coverage_args]
    if Switch.INTEGRATION_TESTS in off:
        more += command.unit_args
    kept = {**asdict(command), "argv": (*command.argv, *more)}
    return Command(**{**kept, "coverage_args": (), "unit_args": ()})


def is_wanted(command: Command, changed: Collection[str]) -> bool:
    """Whether a command runs for these changed files: without lock files always."""
    return not command.lock_files or any(name in changed for name in command.lock_files)


def to_json(spec: Spec) -> dict[str, Any]:
    """A spec as it is stored and exported; `from_json` reads it again."""
    return asdict(spec)


def from_json(stored: Mapping[str, Any]) -> Spec:
    """A stored spec."""
    return Spec(
        tuple(command_from_json(one) for one in stored["commands"]),
        stored["require_clean_git"],
        stored["require_pytest_for_code_changes"],
        Coverage(**stored["coverage"]),
        E2E(**{**stored["e2e"], **_tuples(stored["e2e"], "command", "required_env")}),
        Scope(stored["scope"]),
    )


def command_from_json(stored: Mapping[str, Any]) -> Command:
    """A stored command."""
    lists = ("argv", "coverage_args", "unit_args", "lock_files")
    return Command(**{**stored, **_tuples(stored, *lists), "kind": Kind(stored["kind"])})


def _tuples(stored: Mapping[str, Any], *names: str) -> dict[str, tuple[str, ...]]:
    return {name: tuple(_texts(stored.get(name) or ())) for name in names}


def _texts(values: Sequence[Any]) -> list[str]:
    return [str(value) for value in values]
