"""A mala.yaml becomes commands and terms; what could not be taken is listed, old names are refused."""

from __future__ import annotations

import pytest

from runs.specs import mala_file
from runs.specs.mala_file import Taken, UnfitFile, read
from runs.validation import specs
from runs.validation.specs import Command, Kind

FULL = """
preset: python-uv
coverage:
  command: "uv run pytest --cov=src --cov-report=xml"
  format: xml
  file: coverage.xml
  threshold: 72
commands:
  setup: "uv sync"
  typecheck: null
  lint:
    command: "uv run ruff check ."
    timeout: 61
  security-scan:
    command: "RULES=x bandit -r src | tee out"
    timeout: 120
    allow_fail: true
setup_files: [uv.lock, pyproject.toml]
code_patterns: ["*.py"]
evidence_check: {required: [test]}
per_issue_review:
  enabled: true
  reviewer_type: cerberus
  max_retries: 5
  track_review_issues: true
  agent_sdk_timeout: 300
  finding_threshold: P2
  failure_mode: abort
global_validation_commands:
  e2e: {command: "uv run pytest -m e2e"}
  test: "uv run pytest --slow"
coder: amp
surprise: 1
"""


def named(taken: Taken) -> dict[str, Command]:
    return {one.name: one for one in taken.commands}


def test_a_whole_file() -> None:
    taken = read(FULL)
    assert {one.name: (one.kind.value, one.argv) for one in taken.commands} == {
        "setup": ("deps", ("uv", "sync")),
        "lint": ("lint", ("uv", "run", "ruff", "check", ".")),
        "format": ("format", ("uvx", "ruff", "format", "--check", ".")),
        "test": ("test", ("uv", "run", "pytest")),
        "e2e": ("e2e", ("uv", "run", "pytest", "-m", "e2e")),
        "security-scan": ("lint", ("sh", "-c", "RULES=x bandit -r src | tee out")),
    }
    by_name = named(taken)
    assert by_name["setup"].lock_files == ("uv.lock", "pyproject.toml")
    assert (by_name["lint"].minutes, by_name["security-scan"].minutes) == (2, 2)
    assert by_name["security-scan"].allow_fail
    assert not by_name["lint"].allow_fail
    assert by_name["test"].use_test_mutex
    assert by_name["test"].coverage_args == ("--cov=src", "--cov-report=xml")
    assert taken.values == {
        "coverage_report_path": "coverage.xml",
        "coverage_min_percent": 72.0,
        "max_review_attempts": 5,
        "track_low_findings": True,
        "review_minutes": 5,
        "disabled": [],
    }
    assert all(specs.wrong(one) == {} for one in taken.commands)
    assert [one.partition(":")[0] for one in taken.not_taken] == [
        "test of the run level",
        "per_issue_review.finding_threshold",
        "per_issue_review.reviewer_type",
        "per_issue_review.failure_mode",
        *("code_patterns", "evidence_check", "coder", "surprise"),
    ]
    assert len(taken.changed) == 2


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "preset: go",
            {
                "setup": "go mod download",
                "lint": "golangci-lint run",
                "format": 'sh -c test -z "$(gofmt -l .)"',
                "test": "go test ./...",
            },
        ),
        ("commands: {test: make test}", {"test": "make test"}),
        ("commands: {test: 'cd a && make'}", {"test": "sh -c cd a && make"}),
        ("commands: {test: 'make \"x'}", {"test": 'sh -c make "x'}),
        ("preset: other\ncommands: {test: {command: a b}}", {"test": "a b"}),
        ("commands: {build: make}", {"build": "make"}),
    ],
)
def test_which_commands_are_taken(text: str, wanted: dict[str, str]) -> None:
    assert {one.name: " ".join(one.argv) for one in read(text).commands} == wanted


def test_without_coverage_in_the_file_coverage_is_turned_off() -> None:
    taken = read("preset: rust")
    assert taken.values == {"disabled": ["coverage"]}
    assert taken.changed == ("No coverage is asked for, so coverage is turned off.",)
    assert named(taken)["setup"].lock_files == ("Cargo.toml", "Cargo.lock")


def test_what_is_installed_into_the_worktree_is_installed_each_time() -> None:
    taken = read("preset: node-npm\nsetup_files: [package.json]")
    assert named(taken)["setup"].lock_files == ()
    assert taken.not_taken == (
        "setup_files: npm installs into the worktree, and a clean one begins empty.",
    )


def test_terms_of_the_command_line_are_taken_too() -> None:
    taken = read(
        "preset: go\ncoverage_threshold: 90.5\nkeep_worktrees: true\nmax_gate_retries: 2\n"
        "max_review_retries: 99\nreview_enabled: false\ndisable_validations: [e2e, coverage]\n"
    )
    assert taken.values == {
        "coverage_min_percent": 90.5,
        "keep_worktrees": True,
        "max_gate_attempts": 2,
        "disabled": ["coverage", "e2e", "review"],
    }
    assert taken.not_taken == ("max_review_retries: it has to be a number from 1 to 20.",)


@pytest.mark.row("MALA-V-68", "MALA-V-98", level="pure")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("preset: go\ncodex_review: true", "codex_review is an old name; it is review_enabled"),
        ("preset: go\ncodex_review_enabled: true", "it is review_enabled now"),
        ("runs: [{codex_review_log_path: x}]", "it is review_log_path now"),
        ("preset: go\ncodex_thinking_mode: high", "does not exist any more"),
        ("preset: go\ndisable_validations: 'e2e,codex-review'", "codex-review is called review"),
        ("preset: go\ndisable_validations: [lint]", "none of the switches"),
    ],
)
def test_old_names_are_refused_with_the_new_one(text: str, said: str) -> None:
    with pytest.raises(UnfitFile, match=said):
        read(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no settings"),
        ("- a", "holds no settings"),
        ("a: [", "is no YAML"),
        ("a: !!python/object/apply:os.system ['true']", "is no YAML"),
        ("a: 2026-99-99", "is no YAML"),
        ("a: &x [1]\nb: [*x, *x]", "uses an alias"),
        ("a: " + "[" * 3000, "nested deeper|no YAML"),
        ("a: " + "[" * 20 + "]" * 20, "nested deeper"),
        ("a: " + "x" * 64_000, "larger than 64 kB"),
        ("a: \0", "is no YAML"),
        ("coverage: {threshold: 80}", "names no command"),
        ("commands: [a]", "commands has to be"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(text: str, said: str) -> None:
    with pytest.raises(UnfitFile, match=said):
        read(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("coverage: 80", "coverage: it has to name"),
        ("coverage: {format: json, file: x.json, threshold: 1}", "coverage.format"),
        ("coverage: {file: ../x.xml}", "coverage.file"),
        ("coverage: {threshold: many}", "coverage.threshold: many is no percentage"),
        ("coverage: {command: ./cover}", "coverage.command"),
        ("per_issue_review: 1", "per_issue_review: it has to name"),
        ("setup_files: x", "setup_files: it has to be a list"),
        ("setup_files: [../x]", "setup_files: Write paths below"),
        ("validation_triggers: {run_end: {commands: []}}", "validation_triggers.run_end"),
        ("1: 2", "1: labsite has no such setting"),
        ("commands: {'../x': make}", "commands.../x: Write 1 to 60 letters"),
        (
            "commands: {lint: '" + "x" * 1001 + "'}",
            "commands.lint: Write arguments of at most 1000",
        ),
        ("commands: {lint: {command: '', timeout: 1}}", "commands.lint: it has no command"),
        ("commands: {lint: {command: a, timeout: x, colour: red}}", "commands.lint.colour"),
    ],
)
def test_what_does_not_fit_is_listed_and_the_rest_is_taken(text: str, said: str) -> None:
    taken = read(f"preset: go\n{text}")
    assert any(said in one for one in taken.not_taken), taken.not_taken
    assert named(taken)["test"].argv == ("go", "test", "./...")


@pytest.mark.parametrize(
    ("seconds", "minutes"),
    [(1, 1), (60, 1), (60.5, 2), (10**9, 1440), (float("inf"), 30), (True, 30), ("x", 30)],
)
def test_seconds_become_whole_minutes(seconds: object, minutes: int) -> None:
    assert mala_file._minutes(seconds) == minutes


def test_kinds_of_ours_are_kept() -> None:
    taken = read("commands: {deps: a, lint: b, format: c, typecheck: d, test: e, e2e: f}")
    assert [one.kind for one in taken.commands] == list(Kind)
