"""Which commands that an agent ran are the project's own ones, wholly or in part."""

from __future__ import annotations

import shlex

import pytest

from runs.evidence import command_match
from runs.validation.specs import Kind


def match(expected: str, ran: str, kind: Kind = Kind.TEST) -> str | None:
    """None for another command, else what it lacks."""
    found = command_match.match(shlex.split(expected), shlex.split(ran), kind)
    return None if found is None else found.lacks


@pytest.mark.parametrize(
    ("expected", "ran"),
    [
        ("pytest", "pytest"),
        ("uv run pytest", "pytest -q"),
        ("pytest", "uv run --all-extras --group dev pytest -x"),
        ("pytest", "poetry run pytest"),
        ("pytest", "python3.12 -m pytest -vv"),
        ("pytest", ".venv/bin/python -m pytest"),
        ("pytest", "/w/.venv/bin/pytest --tb=short --tb short"),
        ("pytest", "pytest -n 4 --maxfail 1 -p no:randomly -W error"),
        ("pytest --cov=src --cov-branch", "pytest -q --cov-branch --cov=src"),
        ("pytest -m 'not slow' --ignore=x", "pytest"),
        ("pytest tests", "pytest -q tests"),
        ("npm test", "npm run test -- --silent"),
        ("npx eslint .", "./node_modules/.bin/eslint ."),
        ("cargo test", "cargo test --all -- --nocapture"),
        ("go test ./...", "go test -count=1 ./..."),
        ("go test ./...", "go test -v -race -coverprofile=c.out -mod=vendor ./..."),
        ("pytest", "pytest -vvx -rA -n4 -s -pno:randomly -Werror --cov-report=xml:k.xml"),
        ("cargo test", "cargo test -q -j4"),
        ("make test", "make -j4 test"),
        ("./scripts/test.sh", "scripts/test.sh"),
    ],
)
def test_the_same_command_however_it_is_started(expected, ran):
    assert match(expected, ran) == ""


@pytest.mark.parametrize(
    ("expected", "ran", "lacks"),
    [
        ("pytest", "pytest tests/test_one.py", "tests/test_one.py"),
        ("pytest tests", "pytest tests tests/test_one.py", "tests/test_one.py"),
        ("pytest", "pytest $ARGS", "$ARGS"),
        ("pytest", "pytest -k one", "-k"),
        ("pytest", "pytest --lf", "--lf"),
        ("pytest", "pytest --collect-only", "--collect-only"),
        ("pytest", "pytest --version", "--version"),
        ("pytest --cov=src", "pytest", "--cov=src"),
        ("pytest --cov-fail-under=85", "pytest --cov-fail-under=10", "--cov-fail-under=85"),
        ("pytest --cov=src", "pytest --cov=src --no-cov", "--no-cov"),
        ("pytest -n 2", "pytest", "-n 2"),
        ("pytest tests", "pytest", "tests"),
        ("cargo test", "cargo test parser", "parser"),
        ("go test ./...", "go test ./... -run TestOne", "-run"),
        ("make test", "make -n test", "-n"),
        ("pytest", "pytest -kone", "-kone"),
        ("pytest", "pytest -qxkone", "-qxkone"),
        ("pytest", "pytest -oaddopts=-kone", "-oaddopts"),
        ("pytest", "pytest 'tests/test_one.py::test_two[a=1]'", "tests/test_one.py"),
        ("make test", "make test PYTEST=true", "PYTEST=true"),
        ("make test", "make -nk test", "-nk"),
        ("make test", "make --touch test", "--touch"),
        ("cargo test", "cargo test -p parser", "-p"),
        ("cargo test", "cargo test -pparser", "-pparser"),
        ("go test ./...", "go test -short ./...", "-short"),
        ("go test ./...", "go test -test.run=TestOne ./...", "-test.run"),
        ("npm test", "npm test --workspace=web", "--workspace"),
        ("npm test", "npm test --if-present", "--if-present"),
    ],
)
def test_a_part_of_a_command_says_which_part(expected, ran, lacks):
    found = match(expected, ran)
    assert found
    assert lacks in found


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        ("uv run pytest -q", "pytest"),
        ("python3.12 -m mypy src", "mypy"),
        ("./scripts/check.sh", "check.sh"),
        ("python3 tool.py", "python"),
        ("bash -c 'cd web && npm test'", "cd"),
        ("npm test", "npm"),
    ],
)
def test_a_word_stands_in_every_line_that_runs_the_command(argv, word):
    assert command_match.word(shlex.split(argv)) == word


@pytest.mark.parametrize(
    ("expected", "ran", "kind"),
    [
        ("pytest", "ruff check .", Kind.TEST),
        ("ruff check .", "ruff format .", Kind.LINT),
        ("npm test", "npm install", Kind.TEST),
        ("cargo test", "cargo build", Kind.TEST),
        ("uv sync --all-extras", "uv run pytest", Kind.DEPS),
        ("./test.sh", "other/test.sh", Kind.TEST),
        ("pytest", "echo pytest", Kind.TEST),
        ("pytest", "uv run --unknown-flag pytest", Kind.TEST),
        ("pytest", "grep -rn pytest .", Kind.TEST),
    ],
)
def test_another_command_is_no_run_of_it(expected, ran, kind):
    assert match(expected, ran, kind) is None


@pytest.mark.parametrize(
    ("expected", "ran", "is_whole"),
    [
        ("ruff check .", "ruff check --fix .", True),
        ("ruff check .", "ruff check . src", True),
        ("ruff check", "ruff check src/one.py", False),
        ("ruff check .", "ruff check src", False),
        ("ruff check .", "ruff check . --exit-zero", False),
        ("ruff check .", "ruff check . -e", False),
        ("make lint", "make lint RUFF=true", False),
        ("ruff check .", "ruff check . -n -q", True),
        ("ruff check .", "ruff check . --select E", False),
        ("ruff format --check .", "ruff format .", False),
        ("mypy", "mypy one.py", False),
        ("mypy src", "mypy src tests", True),
    ],
)
def test_linters_may_be_given_more_but_never_less(expected, ran, is_whole):
    assert (match(expected, ran, Kind.LINT) == "") is is_whole
