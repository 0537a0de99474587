"""A `mala.yaml` read as commands and terms, with a list of all that could not be taken. Pure."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from runs.specs.proposals import UNIT_ONLY, UV_DEPS
from runs.validation import specs
from runs.validation.specs import Command, Kind, Switch

MOST_BYTES = 64_000
DEEPEST = 12
MOST_ATTEMPTS = 20

_OLD_NAMES = {
    "codex_review": "review_enabled",
    "codex_review_enabled": "review_enabled",
    "codex_review_log_path": "review_log_path",
}
_GONE = ("codex_thinking_mode", "codex-thinking-mode")
_KINDS = {"setup": Kind.DEPS, **{one.value: one for one in Kind}}
# A shell reads these; without one they would be arguments.
_FOR_A_SHELL = re.compile(r"[$`|&;<>*?()\n]|^\s*\w+=|^\s*(if|for|while|!|cd|export|source)\s")
_PRESETS: Mapping[str, Mapping[str, str]] = {
    "python-uv": {
        "setup": "uv sync --all-extras",
        "lint": "uvx ruff check .",
        "format": "uvx ruff format --check .",
        "typecheck": "uvx ty check",
        "test": "uv run pytest",
        "e2e": "uv run pytest -m e2e",
    },
    "node-npm": {
        "setup": "npm install",
        "lint": "npx eslint .",
        "format": "npx prettier --check .",
        "typecheck": "npx tsc --noEmit",
        "test": "npm test",
    },
    "go": {
        "setup": "go mod download",
        "lint": "golangci-lint run",
        "format": 'test -z "$(gofmt -l .)"',
        "test": "go test ./...",
    },
    "rust": {
        "setup": "cargo fetch",
        "lint": "cargo clippy -- -D warnings",
        "format": "cargo fmt --check",
        "test": "cargo test",
    },
}
_LOCK_FILES = {
    "python-uv": UV_DEPS.lock_files,
    "go": ("go.mod", "go.sum"),
    "rust": ("Cargo.toml", "Cargo.lock"),
}
# These install into a place that every worktree shares. Whatever else is installed is not in a clean
# worktree, so it has to be there whatever has changed.
_SHARED = ("uv", "go", "cargo")
_NOT_HERE = {
    "code_patterns": "labsite runs the full suite for every change.",
    "config_files": "labsite keeps no cache of results that a file could make stale.",
    "evidence_check": "labsite expects evidence of every command of the spec.",
    "claude_settings_sources": "agents are set up in the settings.",
    "coder": "agents are set up in the settings.",
    "coder_options": "agents are set up in the settings.",
    "timeout_minutes": "the run budget is in the settings.",
    "max_idle_retries": "idle agents are told and not ended.",
    "idle_timeout_seconds": "idle agents are told and not ended.",
    "max_diff_size_kb": "labsite knows no epics.",
    "epic_verification": "labsite knows no epics.",
}
_RUN_LEVEL = ("global_validation_commands", "run_level_commands")
_SAME_FOR_BOTH = "the run level runs the same commands as an issue."


class UnfitFile(ValueError):
    """The text is no mala.yaml that can be taken; says why and what to do."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What was found. `values` are terms by the names of their columns."""

    commands: tuple[Command, ...]
    values: Mapping[str, Any]
    changed: tuple[str, ...]
    not_taken: tuple[str, ...]


def read(text: str) -> Taken:
    """Commands and terms of a `mala.yaml`. Raises UnfitFile."""
    about = _parsed(text)
    _refuse_old(about)
    reading = _Reading(about)
    for name, look in _FIELDS.items():
        if name in about:
            look(reading, about[name])
        elif name == "commands":
            look(reading, {})
    for other in [str(name) for name in about if name not in _FIELDS]:
        reading.leave(other, _NOT_HERE.get(other, "labsite has no such setting."))
    reading.finish()
    return Taken(
        tuple(reading.commands.values()),
        reading.values,
        tuple(reading.changed),
        tuple(reading.left),
    )


def _parsed(text: str) -> Mapping[str, Any]:
    """The mapping that the text holds, without aliases, which could make a small file huge."""
    if len(text.encode()) > MOST_BYTES:
        raise UnfitFile(f"The file is larger than {MOST_BYTES // 1000} kB. Nothing was changed.")
    import yaml

    depth = 0
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent):
                raise UnfitFile("The file uses an alias (*name). Write its contents out in full.")
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                raise UnfitFile(f"The file is nested deeper than {DEEPEST} levels.")
        about = yaml.load(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, ValueError) as error:
        if isinstance(error, UnfitFile):
            raise
        said = " ".join(str(error).split())[:300]
        raise UnfitFile(f"The file is no YAML: {said}") from error
    if not isinstance(about, dict) or not about:
        raise UnfitFile("The file holds no settings. A mala.yaml begins with a preset or commands.")
    return about


def _refuse_old(value: object) -> None:
    """Names of before the rename are neither taken nor translated, wherever they stand."""
    for name in value if isinstance(value, Mapping) else ():
        _refuse_name(str(name))
        _refuse_old(value[name])  # type: ignore[index]
    for one in value if isinstance(value, list) else ():
        _refuse_old(one)


def _refuse_name(name: str) -> None:
    if why := old_name(name):
        raise UnfitFile(f"{why} Import the file again then. Nothing was changed.")


def old_name(name: str) -> str:
    """What became of a name of before mala's rename, and what to do; empty for any other name."""
    if name in _OLD_NAMES:
        return (
            f"{name} is an old name; it is {_OLD_NAMES[name]} now. Files with old names are not "
            "taken: rename it."
        )
    return f"{name} does not exist any more: take it out." if name in _GONE else ""


@dataclass
class _Reading:
    about: Mapping[str, Any]
    commands: dict[str, Command] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    disabled: set[Switch] = field(default_factory=set)
    lock_files: tuple[str, ...] = ()

    def leave(self, name: str, why: str) -> None:
        self.left.append(f"{name[:60]}: {why}")

    def finish(self) -> None:
        """What hangs on several fields, and what is said by a field that is not there."""
        if self.about.get("coverage") is None:
            self.disabled.add(Switch.COVERAGE)
            self.changed.append("No coverage is asked for, so coverage is turned off.")
        self._set_lock_files()
        if not self.commands:
            raise UnfitFile("The file names no command and no preset. Nothing was changed.")
        self.values["disabled"] = [one.value for one in Switch if one in self.disabled]

    def take_commands(self, given: object) -> None:
        preset = self._preset()
        given = {} if given is None else given
        if not isinstance(given, Mapping):
            raise UnfitFile("commands has to be a list of names with a command each.")
        for name in {**preset, **given}:
            value = given.get(name, preset.get(name))
            if value is not None:
                self._take_command(str(name), value)

    def _preset(self) -> Mapping[str, str]:
        name = self.about.get("preset")
        if name is None:
            return {}
        if name not in _PRESETS:
            known = ", ".join(_PRESETS)
            self.leave("preset", f"{str(name)[:40]} is not known here. Known are {known}.")
            return {}
        self.lock_files = _LOCK_FILES.get(name, ())
        return _PRESETS[name]

    def _take_command(self, name: str, value: object) -> None:
        about = value if isinstance(value, Mapping) else {"command": value}
        text, kind = about.get("command"), _KINDS.get(name, Kind.LINT)
        if not isinstance(text, str) or not text.strip():
            self.leave(f"commands.{name}", "it has no command.")
            return
        minutes, allow_fail = _minutes(about.get("timeout")), about.get("allow_fail") is True
        made = Command(name, _argv(text), kind, kind is Kind.TEST, allow_fail, minutes=minutes)
        if kind is Kind.TEST and "pytest" in made.argv:
            made = replace(made, unit_args=UNIT_ONLY)
        if why := " ".join(specs.wrong(made).values()):
            self.leave(f"commands.{name}", why)
            return
        self.commands[name] = made
        if name not in _KINDS:
            self.changed.append(f"commands.{name} is taken as a command of the kind lint.")
        if made.argv[:2] == ("sh", "-c"):
            self.changed.append(f"commands.{name} needs a shell, so it is run by sh -c.")
        for other in sorted(set(map(str, about)) - {"command", "timeout", "allow_fail"}):
            self.leave(f"commands.{name}.{other}", "labsite has no such setting.")

    def take_run_level(self, given: object) -> None:
        """Commands of the run level alone: one of the kind e2e runs there anyway."""
        for name in given if isinstance(given, Mapping) else ():
            if name == "e2e" and isinstance(given, Mapping):
                self._take_command("e2e", given["e2e"])
            else:
                self.leave(f"{name!s} of the run level", _SAME_FOR_BOTH)

    def take_lock_files(self, given: object) -> None:
        if isinstance(given, list) and all(isinstance(one, str) for one in given):
            self.lock_files = tuple(given)
        else:
            self.leave("setup_files", "it has to be a list of paths.")

    def _set_lock_files(self) -> None:
        deps = self.commands.get("setup")
        if deps is None or not self.lock_files:
            return
        made = replace(deps, lock_files=self.lock_files)
        if deps.argv[0] not in _SHARED:
            why = f"{deps.argv[0]} installs into the worktree, and a clean one begins empty."
            self.leave("setup_files", why)
        elif why := specs.wrong(made).get("lock_files", ""):
            self.leave("setup_files", why)
        else:
            self.commands["setup"] = made

    def take_coverage(self, given: object) -> None:
        if given is None:
            return
        if not isinstance(given, Mapping):
            self.leave("coverage", "it has to name a file and a threshold.")
            return
        if given.get("format", "xml") not in ("xml", "lcov"):
            self.leave("coverage.format", "labsite reads xml (coverage.py, Cobertura) and lcov.")
        self._take_report(given.get("file"))
        self.take_threshold(given.get("threshold", specs.MIN_PERCENT))
        if given.get("command") is not None:
            self._take_coverage_command(given["command"])

    def _take_report(self, file: object) -> None:
        if isinstance(file, str) and specs.is_report_path(file):
            self.values["coverage_report_path"] = file
        elif file is not None:
            self.leave("coverage.file", "it has to be a path below the repository.")

    def take_threshold(self, given: object) -> None:
        try:
            self.values["coverage_min_percent"] = specs.threshold(str(given))
        except specs.UnfitThreshold as error:
            self.leave("coverage.threshold", str(error))

    def _take_coverage_command(self, given: object) -> None:
        """What it has beyond the test command are the arguments for coverage."""
        tests = self.commands.get("test")
        argv = _argv(given) if isinstance(given, str) else ()
        if tests is not None and argv[: len(tests.argv)] == tests.argv:
            more = argv[len(tests.argv) :]
            self.commands["test"] = replace(tests, coverage_args=more)
        else:
            why = "labsite adds arguments to the test command, and this is another command."
            self.leave("coverage.command", why)

    def take_review(self, given: object) -> None:
        if not isinstance(given, Mapping):
            self.leave("per_issue_review", "it has to name its settings.")
            return
        if given.get("enabled") is False:
            self.disabled.add(Switch.REVIEW)
        self._number("max_review_attempts", "max_retries", given, 1, MOST_ATTEMPTS)
        if isinstance(given.get("track_review_issues"), bool):
            self.values["track_low_findings"] = given["track_review_issues"]
        seconds = given.get("agent_sdk_timeout")
        if isinstance(seconds, int | float) and not isinstance(seconds, bool):
            self.values["review_minutes"] = min(_minutes(seconds), 240)
        if given.get("finding_threshold") not in (None, "P1"):
            why = "findings of P0 and P1 fail a review, those of P2 and P3 never."
            self.leave("per_issue_review.finding_threshold", why)
        if given.get("enabled") is True or "reviewer_type" in given:
            why = "reviewers are set up here. Add one below “Reviewers”."
            self.leave("per_issue_review.reviewer_type", why)
        known = {"enabled", "max_retries", "track_review_issues", "agent_sdk_timeout"}
        for name in sorted(set(map(str, given)) - known - {"finding_threshold", "reviewer_type"}):
            self.leave(f"per_issue_review.{name}", "labsite has no such setting.")

    def _number(
        self, column: str, name: str, given: Mapping[str, Any], least: int, most: int
    ) -> None:
        """A whole number within its bounds; another one is left out and said."""
        value = given.get(name)
        if value is None:
            return
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            self.values[column] = value
        else:
            self.leave(name, f"it has to be a number from {least} to {most}.")

    def take_attempts(self, name: str, column: str) -> None:
        self._number(column, name, self.about, 1, MOST_ATTEMPTS)

    def take_switches(self, given: object) -> None:
        names = ",".join(map(str, given)) if isinstance(given, list) else str(given)
        try:
            self.disabled |= specs.switches(names)
        except specs.UnknownSwitch as error:
            raise UnfitFile(f"disable_validations: {error}") from error

    def take_review_switch(self, given: object) -> None:
        if given is False:
            self.disabled.add(Switch.REVIEW)

    def take_keep(self, given: object) -> None:
        self.values["keep_worktrees"] = given is True

    def take_triggers(self, given: object) -> None:
        for name in given if isinstance(given, Mapping) else ("",):
            self.leave(f"validation_triggers.{name}".rstrip("."), _SAME_FOR_BOTH)


def _argv(text: str) -> tuple[str, ...]:
    """An argument list; a text that only a shell understands is handed to one."""
    try:
        words: Sequence[str] = shlex.split(text)
    except ValueError:
        words = ()
    return ("sh", "-c", text.strip()) if _FOR_A_SHELL.search(text) or not words else tuple(words)


def _minutes(seconds: object) -> int:
    """Whole minutes that hold so many seconds; what is no number is the usual time."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return specs.COMMAND_MINUTES
    if not math.isfinite(seconds):
        return specs.COMMAND_MINUTES
    return max(1, min(specs.MOST_MINUTES, math.ceil(seconds / 60)))


# In this order, whatever the order of the file: what comes later builds on the commands.
_FIELDS: Mapping[str, Callable[[_Reading, Any], None]] = {
    "preset": lambda reading, given: None,
    "commands": _Reading.take_commands,
    **dict.fromkeys(_RUN_LEVEL, _Reading.take_run_level),
    "setup_files": _Reading.take_lock_files,
    "coverage": _Reading.take_coverage,
    "coverage_threshold": _Reading.take_threshold,
    "per_issue_review": _Reading.take_review,
    "review_enabled": _Reading.take_review_switch,
    "max_gate_retries": lambda r, _: r.take_attempts("max_gate_retries", "max_gate_attempts"),
    "max_review_retries": lambda r, _: r.take_attempts("max_review_retries", "max_review_attempts"),
    "disable_validations": _Reading.take_switches,
    "keep_worktrees": _Reading.take_keep,
    "validation_triggers": _Reading.take_triggers,
}
