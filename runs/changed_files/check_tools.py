"""The files by which known programs decide what they check, and how. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

PYPROJECT, SETUP_CFG, TOX_INI = "pyproject.toml", "setup.cfg", "tox.ini"
PACKAGE_JSON, CARGO_TOML = "package.json", "cargo.toml"


@dataclass(frozen=True, slots=True)
class Tool:
    """A program and the names of its files; a `*` stands for any letters.

    `sections`: of files which hold much else too, what the program reads there. One `is_recipe` when
    its file says which other programs are run.
    """

    name: str
    files: tuple[str, ...] = ()
    sections: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    is_recipe: bool = False

    def sections_of(self, name: str) -> tuple[str, ...]:
        """Return what it reads in a file of this name; nothing for a file that is its own."""
        return self.sections.get(name, ())


def _python(name: str, *files: str, ini: tuple[str, ...] = (), tool: str = "") -> Tool:
    """A checker that keeps its settings in the files that Python projects share."""
    found: dict[str, tuple[str, ...]] = {PYPROJECT: (f"tool.{tool or name}",)}
    if ini:
        found |= {SETUP_CFG: ini, TOX_INI: ini}
    return Tool(name, files, found)


def _node(name: str, *files: str, keys: tuple[str, ...] = ()) -> Tool:
    return Tool(name, files, {PACKAGE_JSON: keys or (name,)})


_SCRIPTS = ("scripts", "config", "wireit", "nx", "workspaces")
_CHECKERS = (
    _python("pytest", "pytest.ini", ".pytest.ini", "conftest.py", ini=("tool:pytest", "pytest")),
    _python("coverage", ".coveragerc", ini=("coverage:*",)),
    _python("ruff", "ruff.toml", ".ruff.toml"),
    _python("mypy", "mypy.ini", ".mypy.ini", ini=("mypy", "mypy-*")),
    _python("pyright", "pyrightconfig.json"),
    _python("ty", "ty.toml"),
    _python("flake8", ".flake8", ini=("flake8", "flake8:*")),
    _python("pylint", "pylintrc", ".pylintrc", "pylintrc.toml", ini=("pylint*",)),
    _python("black"),
    _python("isort", ".isort.cfg", ini=("isort", "tool:isort")),
    _python("bandit", ".bandit", "bandit.yaml", ini=("bandit",)),
    _python("lint-imports", ".importlinter", ini=("importlinter*",), tool="importlinter"),
    _python("djlint", ".djlintrc", "djlint.toml"),
    _python("codespell", ".codespellrc", ini=("codespell",)),
    _python("vulture"),
    _python("deptry"),
    _node("eslint", "eslint.config.*", ".eslintrc*", ".eslintignore", keys=("eslintConfig",)),
    _node("jest", "jest.config.*", "jest.setup.*", "jest-setup.*"),
    _node("vitest", "vitest.config.*", "vitest.workspace.*", "vitest.setup.*", "vite.config.*"),
    _node("mocha", ".mocharc*"),
    _node("ava", "ava.config.*"),
    _node("nyc", ".nycrc*", "nyc.config.*"),
    _node("c8", ".c8rc*"),
    _node("prettier", ".prettierrc*", "prettier.config.*", ".prettierignore"),
    _node("stylelint", ".stylelintrc*", "stylelint.config.*"),
    _node("playwright", "playwright.config.*"),
    _node("cypress", "cypress.config.*"),
    Tool("tsc", ("tsconfig*.json",)),
    Tool("biome", ("biome.json", "biome.jsonc")),
    Tool("deno", ("deno.json", "deno.jsonc")),
    Tool(
        "cargo",
        (
            *("clippy.toml", ".clippy.toml", "rustfmt.toml", ".rustfmt.toml", "build.rs"),
            *("rust-toolchain", "rust-toolchain.toml", "nextest.toml", "tarpaulin.toml"),
            *("deny.toml", ".cargo/config.toml", ".cargo/config"),
        ),
        {CARGO_TOML: ("lints", "profile", "test", "workspace.lints", "workspace.members")},
    ),
    Tool("go", ("go.work",)),
    Tool("golangci-lint", (".golangci.*",)),
    Tool("staticcheck", ("staticcheck.conf",)),
    Tool("rspec", (".rspec", "spec_helper.rb", "rails_helper.rb")),
    Tool("rubocop", (".rubocop*.yml",)),
    Tool("phpunit", ("phpunit.xml*", "phpunit.dist.xml")),
    Tool("phpstan", ("phpstan*.neon*",)),
    Tool("swiftlint", (".swiftlint.yml",)),
    Tool("ctest", ("cmakelists.txt", "ctestconfig.cmake")),
    Tool("dotnet", ("*.runsettings", "directory.build.props", "directory.build.targets")),
    Tool("shellcheck", (".shellcheckrc",)),
    Tool("yamllint", (".yamllint*",)),
    Tool("markdownlint", (".markdownlint*",)),
    Tool("hadolint", (".hadolint.*",)),
    Tool("semgrep", (".semgrep*",)),
)
_RECIPES = (
    Tool("make", ("makefile", "gnumakefile", "*.mk"), is_recipe=True),
    Tool("just", ("justfile", ".justfile", "*.just"), is_recipe=True),
    Tool("task", ("taskfile*.yml", "taskfile*.yaml"), is_recipe=True),
    Tool("npm", (), {PACKAGE_JSON: _SCRIPTS}, is_recipe=True),
    Tool(
        "tox",
        (TOX_INI, "tox.toml"),
        {PYPROJECT: ("tool.tox",), SETUP_CFG: ("tox*",)},
        is_recipe=True,
    ),
    Tool("nox", ("noxfile.py",), is_recipe=True),
    Tool("docker", ("compose*.y*ml", "docker-compose*.y*ml", "dockerfile*"), is_recipe=True),
    Tool("pre-commit", (".pre-commit-config.yaml", ".pre-commit-hooks.yaml"), is_recipe=True),
    Tool("poe", ("poe_tasks.*",), {PYPROJECT: ("tool.poe",)}, is_recipe=True),
    Tool("hatch", ("hatch.toml",), {PYPROJECT: ("tool.hatch.envs",)}, is_recipe=True),
    Tool("pdm", (), {PYPROJECT: ("tool.pdm.scripts",)}, is_recipe=True),
    Tool("poetry", (), {PYPROJECT: ("tool.poetry.scripts",)}, is_recipe=True),
    Tool("rake", ("rakefile", "*.rake"), is_recipe=True),
    Tool("gradle", ("build.gradle*", "settings.gradle*", "gradle.properties"), is_recipe=True),
    Tool("mvn", ("pom.xml",), is_recipe=True),
    Tool("mix", ("mix.exs", ".credo.exs", ".formatter.exs"), is_recipe=True),
    Tool("composer", (), {"composer.json": ("scripts",)}, is_recipe=True),
    Tool("swift", ("package.swift",), is_recipe=True),
    Tool("bazel", ("build", "build.bazel", ".bazelrc", "module.bazel"), is_recipe=True),
    Tool("turbo", ("turbo.json",), {PACKAGE_JSON: _SCRIPTS}, is_recipe=True),
    Tool("nx", ("nx.json", "project.json"), {PACKAGE_JSON: _SCRIPTS}, is_recipe=True),
)
TOOLS: Mapping[str, Tool] = {one.name: one for one in (*_CHECKERS, *_RECIPES)}
OF_CHECKERS = frozenset(one.name for one in _CHECKERS)
_ALIASES = {
    **dict.fromkeys(("py.test", "pytest-xdist"), "pytest"),
    **dict.fromkeys(("gmake", "nmake"), "make"),
    **dict.fromkeys(("pnpm", "yarn", "bun"), "npm"),
    **dict.fromkeys(("docker-compose", "podman", "podman-compose"), "docker"),
    **dict.fromkeys(("gradlew", "./gradlew"), "gradle"),
    **dict.fromkeys(("mvnw", "./mvnw"), "mvn"),
    **dict.fromkeys(("cargo-nextest", "nextest", "clippy"), "cargo"),
    **dict.fromkeys(("vue-tsc", "tsgo"), "tsc"),
    **dict.fromkeys(("basedpyright",), "pyright"),
    **dict.fromkeys(("dmypy",), "mypy"),
    **dict.fromkeys(("go-task",), "task"),
    **dict.fromkeys(("prek",), "pre-commit"),
}


def plain_name(word: str) -> str:
    """Return the known program that a word of a command names; empty for any other word."""
    name = _ALIASES.get(word, word)
    return name if name in TOOLS else ""


@cache
def _patterns() -> tuple[Mapping[str, tuple[str, ...]], tuple[tuple[re.Pattern[str], str], ...]]:
    """Which programs read a file by its whole name, and by a name with any letters in it."""
    whole: dict[str, list[str]] = {}
    open_: list[tuple[re.Pattern[str], str]] = []
    for tool in TOOLS.values():
        for name in (*tool.files, *tool.sections):
            if "*" in name:
                text = re.escape(name).replace(r"\*", ".*")
                open_.append((re.compile(text), tool.name))
            else:
                whole.setdefault(name, []).append(tool.name)
    return {name: tuple(dict.fromkeys(names)) for name, names in whole.items()}, tuple(open_)


def readers(path: str) -> tuple[str, ...]:
    """Return the programs that read a file of this name, wherever it lies."""
    folder, name = posixpath.split(path.casefold())
    whole, open_ = _patterns()
    # Some files are known by their folder too.
    found = [*whole.get(name, ()), *whole.get(f"{posixpath.basename(folder)}/{name}", ())]
    found += [tool for pattern, tool in open_ if pattern.fullmatch(name)]
    return tuple(dict.fromkeys(found))
