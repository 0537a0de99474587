"""Which changed files belong to the checks that are to prove the change, and why. Pure.

An agent can make a test command pass by editing what the command reads. What is named here is not
wrong: it is shown, so that nobody takes such a pass for a proof without having looked.

What a command runs behind a recipe or a script cannot be told, so that the configuration of every
known checker counts for it.
"""

from __future__ import annotations

import posixpath
import re
import shlex
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from functools import cached_property

from runs.changed_files import check_tools, settings_sections
from runs.changed_files.check_tools import OF_CHECKERS, TOOLS, Tool
from runs.core import writing
from runs.evidence import command_match, shell_lines

SHOWN = 80  # letters of a command in a sentence
_HOW = {"A": " It is new.", "D": " It was deleted.", "R": " It was renamed."}
# What a shell does itself, or what looks at nothing that a project configures.
_PLAIN = frozenset(
    (
        *(
            "cd",
            "set",
            "export",
            "echo",
            "printf",
            "true",
            "false",
            "test",
            "[",
            "mkdir",
            "rm",
            "cp",
        ),
        *("mv", "cat", "ls", "touch", "git", "grep", "diff", "sleep", "source", ".", "pwd", "tee"),
    )
)
_WORD = re.compile(r"[^\s;&|()<>'\"]+")


class Part(StrEnum):
    """What of the checks a changed file is."""

    COMMAND = "command"
    CONFIGURATION = "configuration"
    CI = "ci"
    REMOVED_TEST = "removed_test"

    @property
    def words(self) -> str:
        return _WORDS[self]


_WORDS = {
    Part.COMMAND: "run by a check",
    Part.CONFIGURATION: "configuration",
    Part.CI: "CI",
    Part.REMOVED_TEST: "test removed",
}


@dataclass(frozen=True, slots=True)
class Changed:
    """One changed file. `kind` is git's letter; a renamed one has its `old_path`."""

    path: str
    kind: str = "M"
    old_path: str = ""


@dataclass(frozen=True, slots=True)
class Guarded:
    """A command that proves the change. One that only `prepares` it checks nothing itself."""

    argv: tuple[str, ...]
    prepares: bool = False


@dataclass(frozen=True, slots=True)
class Checks:
    """What proves a change. `report`: where the coverage report is expected, if anywhere."""

    commands: tuple[Guarded, ...] = ()
    measures_coverage: bool = False
    report: str = ""


@dataclass(frozen=True, slots=True)
class Texts:
    """A file of settings before and after the change; empty where it was not there."""

    before: str
    after: str


@dataclass(frozen=True, slots=True)
class CheckFile:
    """A changed file that belongs to the checks, and why in a sentence."""

    path: str
    part: Part
    why: str
    old_path: str = ""

    def to_json(self) -> dict[str, str]:
        """As it is stored with its attempt."""
        return asdict(self)


def find_check_files(
    checks: Checks, changed: Collection[Changed], texts: Mapping[str, Texts]
) -> list[CheckFile]:
    """Return those of the changed files that belong to the checks, removed tests first.

    Args:
        checks: the commands and the coverage settings of the project.
        changed: the files of the diff.
        texts: files of settings by their path, where both sides are at hand. Of those only
            sections that a checker reads count; of others every change does.
    """
    guard = _Guard(checks, texts)
    found = [mark for one in changed if (mark := guard.mark(one)) is not None]
    return sorted(found, key=lambda mark: (_ORDER.index(mark.part), mark.path))


_ORDER = (Part.REMOVED_TEST, Part.COMMAND, Part.CONFIGURATION, Part.CI)


def list_wanted_texts(changed: Collection[Changed]) -> list[str]:
    """Return the changed files at the top whose content tells whether they belong to the checks."""
    return sorted({one.path for one in changed if settings_sections.can_read(one.path)})


@dataclass(frozen=True, slots=True)
class _Read:
    """One single command as far as it can be read: its own words, folder, known programs."""

    text: str
    words: tuple[str, ...]
    folder: str
    tools: tuple[Tool, ...]
    is_opaque: bool


class _Guard:
    """What the commands of a project name and read."""

    def __init__(self, checks: Checks, texts: Mapping[str, Texts]) -> None:
        self._texts = texts
        self._checks = checks
        self._read = [one for command in checks.commands for one in _singles(command)]
        self._named: dict[str, str] = {}
        for one in self._read:
            for path in _named(one):
                self._named.setdefault(_key(path), one.text)

    def mark(self, changed: Changed) -> CheckFile | None:
        """Return why a changed file belongs to the checks; None for one that does not."""
        path, old = changed.path, changed.old_path
        if why := _removed_test(changed):
            return CheckFile(path, Part.REMOVED_TEST, why, old)
        found = self._of(path) or (self._of(old) if old else None)
        if found is None:
            return None
        part, why = found
        return CheckFile(path, part, f"{why}{_HOW.get(changed.kind[:1], '')}", old)

    def _of(self, path: str) -> tuple[Part, str] | None:
        if is_ci(path):
            return Part.CI, "It says what runs on the forge."
        text = self._named.get(_key(path))
        if text is not None:
            return Part.COMMAND, f"Named in the command `{text}`."
        report = self._checks.report
        if report and _key(report) == _key(path):
            return (
                Part.CONFIGURATION,
                "Coverage is read from it, and a test command should write it.",
            )
        return self._of_tools(path)

    def _of_tools(self, path: str) -> tuple[Part, str] | None:
        """By the programs that read a file of this name."""
        names = check_tools.readers(path)
        for one in self._read:
            for tool in one.tools:
                more = self._is_touched(path, tool) if tool.name in names else None
                if more is not None:
                    part = Part.COMMAND if tool.is_recipe else Part.CONFIGURATION
                    verb = "reads" if _is_near(path, one.folder) else "may read"
                    return part, f"`{one.text}` {verb} it{more}."
        return self._behind(path, names)

    def _behind(self, path: str, names: Collection[str]) -> tuple[Part, str] | None:
        """By programs that no command names."""
        for name in names:
            is_coverage = name == "coverage" and self._checks.measures_coverage
            if not is_coverage and (self._opaque is None or name not in OF_CHECKERS):
                continue
            more = self._is_touched(path, TOOLS[name])
            if more is not None and is_coverage:
                return Part.CONFIGURATION, f"Coverage is measured by it{more}."
            if more is not None and self._opaque is not None:
                why = f"{name} reads it{more}, and `{self._opaque.text}` may run {name}."
                return Part.CONFIGURATION, why
        return None

    @cached_property
    def _opaque(self) -> _Read | None:
        """The first command of which nobody can tell what it runs."""
        return next((one for one in self._read if one.is_opaque), None)

    def _is_touched(self, path: str, tool: Tool) -> str | None:
        """What more is to be said of it; None where the change is in nothing that the tool reads."""
        sections = tool.sections_of(posixpath.basename(path).casefold())
        if not sections:
            return ""
        texts = self._texts.get(path)
        if texts is None:
            return " (which of its sections changed is not known)"
        found = settings_sections.list_changed_sections(path, texts.before, texts.after, sections)
        if found is None:
            return " (it could not be read, so nobody can tell which of its sections changed)"
        return f", and {', '.join(found)} changed" if found else None


def _singles(command: Guarded) -> list[_Read]:
    """The single commands of an argument list, also of one that hands a line to a shell."""
    line = shlex.join(command.argv)
    found = shell_lines.read(line, 0, "")
    if found is None:  # a line with loops or functions: what its words name counts
        words = tuple(_WORD.findall(" ".join(command.argv)))
        return [replace(_of_single(command, words, ""), is_opaque=not command.prepares)]
    # What a shell is given as a line follows on its own.
    plain = [one for one in found if command_match.script(one.argv) is None]
    return [_of_single(command, one.argv, one.folder) for one in plain]


def _of_single(command: Guarded, words: tuple[str, ...], begun: str | None) -> _Read:
    plain = command_match.canonical(words)
    names = (posixpath.basename(plain[0]), *plain[1:]) if plain else ()
    known = [name for name in map(check_tools.plain_name, names) if name]
    tools = tuple(TOOLS[name] for name in dict.fromkeys(known))
    is_known = any(not tool.is_recipe for tool in tools) or not _PLAIN.isdisjoint(words[:1])
    text = writing.one_line(shlex.join(command.argv), SHOWN)
    is_recipe = any(tool.is_recipe for tool in tools)
    is_opaque = not command.prepares and (is_recipe or not is_known)
    return _Read(text, words, _folder(begun, words), tools, is_opaque)


_INTO = ("-C", "--directory", "--prefix", "--cwd", "--dir", "--project-directory")


def _folder(begun: str | None, words: Sequence[str]) -> str:
    """Where a command works: what it changes to by its own option counts."""
    folder = begun or ""
    for at, word in enumerate(words):
        name, mark, value = word.partition("=")
        if name not in _INTO:
            continue
        value = value if mark else (words[at + 1] if at + 1 < len(words) else "")
        folder = posixpath.join(folder, value)
    return _plain(folder)


def _named(one: _Read) -> Iterator[str]:
    """Paths that a command may name, from the top of the repository."""
    before = ""
    for word in one.words:
        values = [word]
        if word.startswith("-"):
            values = [word.partition("=")[2], word[2:] if not word.startswith("--") else ""]
        elif before == "-m":
            module = word.replace(".", "/")
            values += [f"{module}.py", f"{module}/__main__.py"]
        for value in values:
            path = value.partition("::")[0]
            if path and not posixpath.isabs(path):
                yield posixpath.join(one.folder, path)
        before = word


def _is_near(path: str, folder: str) -> bool:
    """Whether a file lies where a command works, or above it."""
    home = _plain(posixpath.dirname(path))
    return not home or home == folder or folder.startswith(f"{home}/")


def _plain(path: str) -> str:
    found = posixpath.normpath(path) if path else ""
    return "" if found == "." else found


def _key(path: str) -> str:
    """A path by which two spellings of one file are the same."""
    return unicodedata.normalize("NFC", _plain(path)).casefold()


_CI_FOLDERS = (
    *(".github/workflows/", ".github/actions/", ".gitea/workflows/", ".forgejo/workflows/"),
    *(".circleci/", ".woodpecker/", ".buildkite/", ".gitlab/ci/", ".tekton/"),
)
_CI_FILES = re.compile(
    r"\.gitlab-ci.*\.ya?ml|\.woodpecker.*\.ya?ml|jenkinsfile.*|azure-pipelines.*\.ya?ml|\.travis\.yml"
    r"|\.drone\.ya?ml|bitbucket-pipelines\.yml|appveyor\.yml|\.cirrus\.ya?ml|\.build\.yml"
)


def is_ci(path: str) -> bool:
    """Return whether a path at the top of a repository is configuration of its CI."""
    key = _key(path)
    if key.startswith(_CI_FOLDERS):
        return True
    return "/" not in key and _CI_FILES.fullmatch(key) is not None


_TEST_FOLDERS = frozenset({"test", "tests", "spec", "specs", "__tests__", "e2e", "testing"})
_TEST_NAME = re.compile(
    r"test_.*\.py|.*_tests?\.(?:py|go|rs|dart|exs|cc|cpp|c)|.*[._-](?:test|spec|cy)\.[cm]?[jt]sx?"
    r"|.*_(?:spec|test)\.rb|.*tests?\.(?:java|kt|kts|scala|cs|fs|php|swift|groovy)|.*\.bats"
)
_CODE = re.compile(
    r".*\.(?:py|go|rs|[cm]?[jt]sx?|rb|java|kts?|scala|cs|fs|php|swift|groovy|exs?|dart|cc|cpp|c"
    r"|sh|bats|feature|robot|t|pl|lua|hs|ml|clj|jl|r)"
)


def _removed_test(changed: Changed) -> str:
    """Why a change takes a test away; empty when it does not."""
    old, new = changed.old_path, changed.path
    if check_tools.readers(old or new):
        return ""  # settings that lie beside the tests
    if changed.kind == "D" and (_is_named_test(new) or _is_in_tests(new)):
        return "A test file was deleted."
    if not changed.kind.startswith("R") or not old:
        return ""
    if _is_named_test(old) and not _is_named_test(new):
        return (
            f"A test file was renamed (it was `{old}`), and test runners may not find it any more."
        )
    if _is_in_tests(old) and not (_is_in_tests(new) or _is_named_test(new)):
        return f"A test file was moved out of the tests (it was `{old}`)."
    return ""


def _is_named_test(path: str) -> bool:
    return _TEST_NAME.fullmatch(posixpath.basename(_key(path))) is not None


def _is_in_tests(path: str) -> bool:
    *folders, name = _key(path).split("/")
    return not _TEST_FOLDERS.isdisjoint(folders) and _CODE.fullmatch(name) is not None
