"""What a repository's own files suggest, a row for each."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping

import pytest

from runs.specs import proposals
from runs.specs.proposals import propose
from runs.validation import specs
from runs.validation.specs import Scope, Terms, effective

UV = """
[project]
name = "x"
dependencies = ["httpx>=0.27"]
[dependency-groups]
dev = ["pytest>=8", "pytest-cov", {include-group = "lint"}]
[tool.ruff]
[tool.mypy]
files = ["src"]
[tool.pytest.ini_options]
"""
NODE = json.dumps(
    {
        "scripts": {
            "lint": "eslint .",
            "format:check": "prettier --check .",
            "typecheck": "tsc",
            "test": "vitest run",
            "test:e2e": "playwright test",
        }
    }
)


def shown(texts: Mapping[str, str]) -> list[tuple[str, str]]:
    found = propose(texts)
    return [(one.command.kind.value, " ".join(one.command.argv)) for one in found.commands]


@pytest.mark.row("MALA-V-39", "MALA-V-79", level="pure")
def test_a_python_project_with_uv() -> None:
    found = propose({"pyproject.toml": UV, "uv.lock": ""})
    assert shown({"pyproject.toml": UV, "uv.lock": ""}) == [
        ("deps", "uv sync --all-extras"),
        ("lint", "uv run ruff check ."),
        ("format", "uv run ruff format --check ."),
        ("typecheck", "uv run mypy"),
        ("test", "uv run pytest"),
    ]
    deps, tests = found.commands[0].command, found.commands[-1].command
    assert deps.lock_files == ("pyproject.toml", "uv.lock")
    assert tests.use_test_mutex
    assert found.notes == ()
    terms = Terms(tuple(one.command for one in found.commands))
    assert effective(terms, Scope.PER_ISSUE).commands[-1].argv[2:] == (
        *("pytest", "--cov", "--cov-branch", "--cov-report=term-missing", "--cov-report=xml"),
        "--cov-fail-under=85",
    )
    assert specs.lacking(terms, Scope.PER_ISSUE) == ()


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        ({}, []),
        ({"pyproject.toml": ""}, []),
        ({"uv.lock": ""}, []),
        (
            {"pyproject.toml": '[project]\ndependencies = ["pytest", "mypy"]'},
            [("typecheck", "mypy ."), ("test", "pytest")],
        ),
        (
            {"pyproject.toml": "[tool.poetry.group.dev.dependencies]\nruff = '*'"},
            [("lint", "ruff check ."), ("format", "ruff format --check .")],
        ),
        (
            {"pyproject.toml": "[tool.uv]\ndev-dependencies = ['pytest']"},
            [("deps", "uv sync --all-extras"), ("test", "uv run pytest")],
        ),
        (
            {"package.json": NODE, "package-lock.json": ""},
            [
                ("deps", "npm ci"),
                ("lint", "npm run lint"),
                ("format", "npm run format:check"),
                ("typecheck", "npm run typecheck"),
                ("test", "npm run test"),
                ("e2e", "npm run test:e2e"),
            ],
        ),
        (
            {
                "package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\""}}',
                "pnpm-lock.yaml": "",
                "tsconfig.json": "",
            },
            [("deps", "pnpm install --frozen-lockfile"), ("typecheck", "npx tsc --noEmit")],
        ),
        (
            {"package.json": '{"packageManager": "yarn@4", "scripts": {"test": 1}}'},
            [("deps", "yarn install --frozen-lockfile")],
        ),
        (
            {"Cargo.toml": "[workspace]\nmembers = ['a']"},
            [
                ("deps", "cargo fetch"),
                ("lint", "cargo clippy --workspace --all-targets -- -D warnings"),
                ("format", "cargo fmt --all --check"),
                ("test", "cargo test --workspace"),
            ],
        ),
        (
            {"go.mod": "module x", ".golangci.yml": ""},
            [
                ("deps", "go mod download"),
                ("lint", "golangci-lint run"),
                ("lint", "go vet ./..."),
                ("format", 'sh -c test -z "$(gofmt -l .)"'),
                ("test", "go test ./..."),
            ],
        ),
        (
            {"Makefile": "X := 1\ntest: build\n\tpytest\nlint fmt-check:\n\truff\ncheck:: a\n"},
            [("lint", "make lint"), ("test", "make test")],
        ),
        (
            {"Makefile": "test :\n\tgo test\nlint:\n", "go.mod": ""},
            [
                ("deps", "go mod download"),
                ("lint", "go vet ./..."),
                ("format", 'sh -c test -z "$(gofmt -l .)"'),
                ("test", "go test ./..."),
            ],
        ),
    ],
)
def test_what_is_proposed(texts: Mapping[str, str], wanted: list[tuple[str, str]]) -> None:
    assert shown(texts) == wanted
    names = [one.command.name for one in propose(texts).commands]
    assert len(names) == len(set(names))
    assert all(specs.wrong(one.command) == {} for one in propose(texts).commands)


def test_two_languages_stand_beside_each_other_under_names_of_their_own() -> None:
    found = propose({"pyproject.toml": UV, "uv.lock": "", "package.json": NODE})
    names = [one.command.name for one in found.commands]
    assert names[:2] == ["dependencies", "package.json dependencies"]
    assert len(names) == len(set(names)) == 11


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ({"pyproject.toml": "[x"}, "pyproject.toml could not be read"),
        ({"pyproject.toml": "x = " + "[" * 5000}, "pyproject.toml could not be read"),
        ({"package.json": "[" * 60_000}, "package.json could not be read"),
        ({"package.json": "[]"}, "package.json could not be read: it is no object"),
        ({"Cargo.toml": "a = 1\na = 2"}, "Cargo.toml could not be read"),
        ({"pyproject.toml": "[tool]\npytest = 3"}, "pytest-cov"),
        ({"pyproject.toml": "tool = 1\n[project]\ndependencies = [1]\n"}, ""),
        ({"go.mod": ""}, "None of these test commands measures coverage"),
        ({"pyproject.toml": "[build-system]"}, "names no uv"),
    ],
)
def test_what_a_person_should_know_is_noted(texts: Mapping[str, str], said: str) -> None:
    notes = " ".join(propose(texts).notes)
    assert said in notes
    assert bool(notes) == bool(said)


def test_every_file_that_is_looked_at_is_read() -> None:
    assert {name for name, _ in proposals._LOOKS} <= set(proposals.FILES)
    assert propose({"mala.yaml": "preset: go"}).has_mala_file


def test_a_makefile_of_nothing_but_spaces_holds_nobody_up() -> None:
    """Whoever looks at the proposals waits for it, and with them the whole web process."""
    began = time.process_time()
    found = propose({"Makefile": f"a{' ' * 60_000}!\ntest{' ' * 1000}all:\n\tx\nlint := x\n"})
    assert time.process_time() - began < 5
    assert [one.command.argv for one in found.commands] == [("make", "test")]
