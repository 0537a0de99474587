"""Commands that a repository's own files suggest. Nothing here runs, and nothing is stored. Pure."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from runs.validation.specs import Command, Kind

# What is looked at, at the top of the default branch. Of those that only have to be there, the
# beginning is enough.
FILES = (
    *("pyproject.toml", "uv.lock", "ruff.toml", ".ruff.toml", "mypy.ini", "pytest.ini"),
    *("package.json", "package-lock.json", "pnpm-lock.yaml", "yarn.lock", "tsconfig.json"),
    *("Cargo.toml", "Cargo.lock", "go.mod", "go.sum", ".golangci.yml", ".golangci.yaml"),
    *("Makefile", "mala.yaml"),
)
MOST_BYTES = 64_000

PYTEST_COVERAGE = (
    *("--cov", "--cov-branch", "--cov-report=term-missing", "--cov-report=xml"),
    "--cov-fail-under={threshold}",
)
UNIT_ONLY = ("-m", "not integration")
UV_DEPS = Command(
    "dependencies",
    ("uv", "sync", "--all-extras"),
    Kind.DEPS,
    lock_files=("pyproject.toml", "uv.lock"),
)
NO_COVERAGE = (
    "None of these test commands measures coverage. Give one arguments for it and say where its "
    "report is, or turn coverage off."
)


@dataclass(frozen=True, slots=True)
class Proposal:
    """One command, and which file suggests it."""

    command: Command
    because: str


@dataclass(frozen=True, slots=True)
class Proposed:
    """All that was found. `notes` say what a person should know before they accept it."""

    commands: tuple[Proposal, ...] = ()
    notes: tuple[str, ...] = ()
    has_mala_file: bool = False


@dataclass
class _Found:
    texts: Mapping[str, str]
    commands: list[Proposal] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, because: str, command: Command) -> None:
        """Names stay unique: the second of a name gets the file's name before it."""
        if any(one.command.name == command.name for one in self.commands):
            command = replace(command, name=f"{because.partition(',')[0]} {command.name}")
        self.commands.append(Proposal(command, because))

    def has(self, kind: Kind) -> bool:
        return any(one.command.kind is kind for one in self.commands)


def propose(texts: Mapping[str, str]) -> Proposed:
    """The commands that these files suggest, by their names; a file that cannot be read is noted."""
    found = _Found(texts)
    for file, look in _LOOKS:
        if file in texts:
            look(found)
    tests = [one.command for one in found.commands if one.command.kind is Kind.TEST]
    if tests and not any(one.coverage_args for one in tests):
        found.notes.append(NO_COVERAGE)
    order = list(Kind)
    found.commands.sort(key=lambda one: order.index(one.command.kind))
    return Proposed(tuple(found.commands), tuple(found.notes), "mala.yaml" in texts)


def _python(found: _Found) -> None:
    about = _toml(found, "pyproject.toml")
    if about is None:
        return
    start = _install_python(found, about)
    tools = _table(about, "tool")
    if why := _reason(found, about, "ruff", "ruff.toml", ".ruff.toml"):
        found.add(why, Command("ruff", (*start, "ruff", "check", "."), Kind.LINT))
        argv = (*start, "ruff", "format", "--check", ".")
        found.add(why, Command("ruff format", argv, Kind.FORMAT))
    if why := _reason(found, about, "mypy", "mypy.ini"):
        says_what = {"files", "packages", "modules"} & set(_table(tools, "mypy"))
        is_set = says_what or "mypy.ini" in found.texts
        argv = (*start, "mypy", *(() if is_set else (".",)))
        found.add(why, Command("mypy", argv, Kind.TYPECHECK))
    if why := _reason(found, about, "pytest", "pytest.ini"):
        found.add(why, _pytest(start))
        if "pytest-cov" not in _requirements(about):
            found.notes.append(
                "pytest measures coverage by pytest-cov, which pyproject.toml does not name. Add it "
                "there, or turn coverage off."
            )


def _install_python(found: _Found, about: Mapping[str, Any]) -> tuple[str, ...]:
    """Propose how its dependencies are installed; what every command then begins with."""
    if "uv.lock" in found.texts or "uv" in _table(about, "tool"):
        why = "uv.lock" if "uv.lock" in found.texts else "pyproject.toml, [tool.uv]"
        found.add(why, UV_DEPS)
        return ("uv", "run")
    if "build-system" in about or _requirements(about):
        found.notes.append(
            "pyproject.toml names no uv. Add the command that installs its dependencies into a clean "
            "worktree, or set up the programs on this machine."
        )
    return ()


def _reason(found: _Found, about: Mapping[str, Any], tool: str, *files: str) -> str:
    """Why a tool is used here; empty when nothing says so."""
    if tool in _table(about, "tool"):
        return f"pyproject.toml, [tool.{tool}]"
    file = next((one for one in files if one in found.texts), "")
    return file or (f"pyproject.toml, {tool}" if tool in _requirements(about) else "")


def _pytest(start: tuple[str, ...]) -> Command:
    return Command(
        "pytest",
        (*start, "pytest"),
        Kind.TEST,
        use_test_mutex=True,
        coverage_args=PYTEST_COVERAGE,
        unit_args=UNIT_ONLY,
    )


def _requirements(about: Mapping[str, Any]) -> set[str]:
    """The names of all that a pyproject.toml wants, in whatever group."""
    project = _table(about, "project")
    groups = [
        project.get("dependencies"),
        *_table(project, "optional-dependencies").values(),
        *_table(about, "dependency-groups").values(),
        _table(_table(about, "tool"), "uv").get("dev-dependencies"),
    ]
    poetry = _table(_table(about, "tool"), "poetry")
    named = [*_table(poetry, "dependencies")]
    for group in _table(poetry, "group").values():
        named += _table(group, "dependencies") if isinstance(group, dict) else ()
    texts = [one for group in groups if isinstance(group, list) for one in group]
    wanted = [one for one in [*texts, *named] if isinstance(one, str)]
    return {re.split(r"[^A-Za-z0-9._-]", one, maxsplit=1)[0].lower() for one in wanted}


def _node(found: _Found) -> None:
    about = _json(found, "package.json")
    if about is None:
        return
    program, install = _package_manager(found, about)
    # A clean worktree has no node_modules, so this is run whatever has changed.
    found.add(f"package.json, {program}", Command("dependencies", install, Kind.DEPS))
    scripts = _table(about, "scripts")
    for kind, names in _SCRIPTS.items():
        name = next((one for one in names if _is_script(scripts.get(one))), "")
        if name:
            argv = (program, "run", name)
            why = f"package.json, script {name}"
            found.add(why, Command(name, argv, kind, use_test_mutex=kind is Kind.TEST))
    if not found.has(Kind.TYPECHECK) and "tsconfig.json" in found.texts:
        argv = ("npx", "tsc", "--noEmit")
        found.add("tsconfig.json", Command("tsc", argv, Kind.TYPECHECK))


_SCRIPTS: Mapping[Kind, tuple[str, ...]] = {
    Kind.LINT: ("lint",),
    Kind.FORMAT: ("format:check", "check:format", "prettier:check", "fmt:check"),
    Kind.TYPECHECK: ("typecheck", "type-check", "check:types", "types"),
    Kind.TEST: ("test:ci", "test"),
    Kind.E2E: ("test:e2e", "e2e"),
}


def _is_script(text: object) -> bool:
    """What npm writes into a new package.json is no test."""
    return isinstance(text, str) and bool(text.strip()) and "no test specified" not in text


def _package_manager(found: _Found, about: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """The program that runs a package's scripts, and how it installs exactly what is locked."""
    named = str(about.get("packageManager", "")).partition("@")[0]
    if named == "pnpm" or "pnpm-lock.yaml" in found.texts:
        return "pnpm", ("pnpm", "install", "--frozen-lockfile")
    if named == "yarn" or "yarn.lock" in found.texts:
        return "yarn", ("yarn", "install", "--frozen-lockfile")
    return "npm", ("npm", "ci" if "package-lock.json" in found.texts else "install")


def _rust(found: _Found) -> None:
    about = _toml(found, "Cargo.toml")
    if about is None:
        return
    why = "Cargo.toml"
    all_of_it = ("--workspace",) if "workspace" in about else ()
    lock_files = ("Cargo.toml", "Cargo.lock")
    found.add(why, Command("cargo fetch", ("cargo", "fetch"), Kind.DEPS, lock_files=lock_files))
    clippy = ("cargo", "clippy", *all_of_it, "--all-targets", "--", "-D", "warnings")
    found.add(why, Command("clippy", clippy, Kind.LINT))
    argv = ("cargo", "fmt", *(("--all",) if all_of_it else ()), "--check")
    found.add(why, Command("cargo fmt", argv, Kind.FORMAT))
    argv = ("cargo", "test", *all_of_it)
    found.add(why, Command("cargo test", argv, Kind.TEST, use_test_mutex=True))


def _go(found: _Found) -> None:
    why, lock_files = "go.mod", ("go.mod", "go.sum")
    download = ("go", "mod", "download")
    found.add(why, Command("go mod", download, Kind.DEPS, lock_files=lock_files))
    linter = next((one for one in (".golangci.yml", ".golangci.yaml") if one in found.texts), "")
    if linter:
        found.add(linter, Command("golangci-lint", ("golangci-lint", "run"), Kind.LINT))
    found.add(why, Command("go vet", ("go", "vet", "./..."), Kind.LINT))
    # gofmt ends with 0 whatever it finds, so a shell looks whether it printed anything.
    argv = ("sh", "-c", 'test -z "$(gofmt -l .)"')
    found.add(why, Command("gofmt", argv, Kind.FORMAT))
    argv = ("go", "test", "./...")
    found.add(why, Command("go test", argv, Kind.TEST, use_test_mutex=True))


_TARGET = re.compile(r"[A-Za-z0-9][A-Za-z0-9_. \t-]*")
_TARGETS: Mapping[Kind, tuple[str, ...]] = {
    Kind.LINT: ("lint",),
    Kind.FORMAT: ("format-check", "fmt-check", "check-format"),
    Kind.TYPECHECK: ("typecheck", "type-check", "types"),
    Kind.TEST: ("test", "tests", "check"),
    Kind.E2E: ("e2e", "test-e2e"),
}


def _make(found: _Found) -> None:
    """Targets for what no other file suggests a command for."""
    there = set(_targets(found.texts["Makefile"]))
    for kind, names in _TARGETS.items():
        name = next((one for one in names if one in there), "")
        if name and not found.has(kind):
            command = Command(f"make {name}", ("make", name), kind)
            found.add("Makefile", replace(command, use_test_mutex=kind is Kind.TEST))


def _targets(text: str) -> Iterator[str]:
    """The first target of each rule; a variable is set by := and is none."""
    for line in text.split("\n"):
        names, mark, rest = line.partition(":")
        if mark and not rest.lstrip(":").startswith("=") and _TARGET.fullmatch(names):
            yield names.split()[0]


_LOOKS: tuple[tuple[str, Callable[[_Found], None]], ...] = (
    ("pyproject.toml", _python),
    ("package.json", _node),
    ("Cargo.toml", _rust),
    ("go.mod", _go),
    ("Makefile", _make),
)


def _toml(found: _Found, name: str) -> Mapping[str, Any] | None:
    try:
        return tomllib.loads(found.texts[name])
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        _unread(found, name, error)
        return None


def _json(found: _Found, name: str) -> Mapping[str, Any] | None:
    try:
        read = json.loads(found.texts[name])
    except (ValueError, RecursionError) as error:
        _unread(found, name, error)
        return None
    if isinstance(read, dict):
        return read
    _unread(found, name, "it is no object")
    return None


def _unread(found: _Found, name: str, why: object) -> None:
    said = "it is nested too deeply" if isinstance(why, RecursionError) else str(why)[:200]
    found.notes.append(f"{name} could not be read: {said}.")


def _table(about: object, name: str) -> Mapping[str, Any]:
    """A table within a table; empty when there is none, or something else."""
    value = about.get(name) if isinstance(about, Mapping) else None
    return value if isinstance(value, dict) else {}
