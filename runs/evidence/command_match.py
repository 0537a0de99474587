"""Whether a command that an agent ran is one of its project's commands, wholly or in part. Pure.

What starts a program in its environment (`uv run`, `npx`, `python -m`) is left out on both sides.
More options are fine unless they are known to leave something out; other paths leave the rest out.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass

from runs.validation.specs import Kind

_PYTHON = re.compile(r"python(?:[0-9](?:\.[0-9]+)?)?")
_RUNNERS = {
    ("uv", "run"): ("--extra", "--group", "--with", "--python", "-p", "--package", "--env-file"),
    ("uvx",): (),
    ("poetry", "run"): (),
    ("pdm", "run"): (),
    ("pipenv", "run"): (),
    ("hatch", "run"): (),
    ("rye", "run"): (),
    ("npx",): (),
    ("bunx",): (),
    ("pnpm", "exec"): (),
    ("bundle", "exec"): (),
}
_FLAGS = frozenset(
    (
        *(
            "--all-extras",
            "--all-groups",
            "--frozen",
            "--locked",
            "--no-sync",
            "--dev",
            "--exact",
            "-q",
        ),
        *("--quiet", "--offline", "--active", "-y", "--yes", "--no-install", "--no"),
    )
)
# Their second word says what they do, so that another one is another command.
_WITH_VERBS = frozenset(
    (
        *(
            "ruff",
            "cargo",
            "go",
            "npm",
            "pnpm",
            "yarn",
            "bun",
            "deno",
            "uv",
            "poetry",
            "pip",
            "pdm",
        ),
        *("just", "task", "tox", "nox", "hatch", "dotnet", "mvn", "make", "rake", "mix", "swift"),
        *(
            "docker",
            "git",
            "composer",
            "bundle",
            "flutter",
            "dart",
            "gradle",
            "gradlew",
            "pre-commit",
        ),
    )
)
# Options that choose some of what would be looked at; with their value where they have one.
_CHOOSING = frozenset(
    (
        *(
            "-k",
            "-m",
            "--deselect",
            "--ignore",
            "--ignore-glob",
            "--filter",
            "--grep",
            "-g",
            "--only",
        ),
        *("-t", "--testNamePattern", "--testPathPattern", "--testPathPatterns", "-run", "--run"),
        *("-skip", "--skip", "--exclude", "--extend-exclude", "--select", "--changed", "--shard"),
        *("--onlyChanged", "--findRelatedTests", "--lf", "--last-failed", "--sw", "--stepwise"),
        *("--package", "--lib", "--bins", "--doc", "--since", "--affected", "--new-only"),
        *("-short", "--extend-ignore", "--per-file-ignores", "--extend-per-file-ignores"),
        *("--disable-error-code", "--follow-imports"),
    )
)
# Options with which nothing is run, or no failure is told.
_EMPTY = frozenset(
    (
        *(
            "-h",
            "--help",
            "-V",
            "--version",
            "--co",
            "--collect-only",
            "--dry-run",
            "--list",
            "-list",
        ),
        *("--no-run", "--setup-only", "--setup-plan", "--fixtures", "--markers", "--exit-zero"),
        *(
            "--no-cov",
            "--passWithNoTests",
            "--pass-with-no-tests",
            "--ignore-errors",
            "--just-print",
            "--add-noqa",
        ),
        *("--suppress-no-test-exit-code", "--cov-fail-under", "-o", "--override-ini", "-c"),
        *(
            "--config",
            "--config-file",
            "--rootdir",
            "--listTests",
            "--show-files",
            "--show-settings",
        ),
    )
)
_MAKE = frozenset(
    (
        *("--touch", "--question", "--recon", "--directory", "--file", "--makefile"),
        *("--old-file", "--assume-old", "--eval"),
    )
)
_PACKAGES = frozenset(
    ("-w", "--workspace", "--if-present", "--prefix", "-C", "--dir", "--cwd", "--ignore-scripts")
)
# Of one program alone: options of either kind.
_OWN = {
    "make": _MAKE,
    "gmake": _MAKE,
    "cargo": frozenset(["-p"]),
    "go": frozenset(["-n", "-exec", "-toolexec"]),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), _PACKAGES),
}
# The same as single letters, which may stand together and right before their value, and the letters
# behind which a value stands that says nothing of it.
_LETTERS = {
    "pytest": ("kmohcV", "pnrW"),
    "make": ("ntqiCfo", "jlIW"),
    "gmake": ("ntqiCfo", "jlIW"),
    "cargo": ("p", "jFZ"),
    "ruff": ("eh", ""),
}
# Options of which the next word is the value.
_VALUED = frozenset(
    (
        *(
            "-n",
            "--numprocesses",
            "--maxfail",
            "--tb",
            "-p",
            "-W",
            "--timeout",
            "--durations",
            "--dist",
        ),
        *("--color", "-j", "--jobs", "--parallel", "--verbosity", "--reporter", "--junitxml", "-r"),
        *("--junit-xml", "--cov-report", "--seed", "--workers", "--output-format", "--log-level"),
        *("--log-cli-level", "--capture", "--import-mode", "-count", "--retries", "-timeout"),
    )
)


@dataclass(frozen=True, slots=True)
class Match:
    """A command is the expected one. `lacks`: what keeps it from being the whole of it, in words."""

    lacks: str = ""

    @property
    def is_whole(self) -> bool:
        return not self.lacks


def match(expected: Sequence[str], ran: Sequence[str], kind: Kind) -> Match | None:
    """How a command that was run stands to an expected one; None when it is another one."""
    wanted, given = canonical(expected), canonical(ran)
    if not wanted or not given or wanted[0] != given[0]:
        return None
    used, missing = _found(wanted[1:], given[1:])
    verb = wanted[1] if len(wanted) > 1 and not wanted[1].startswith("-") else ""
    if verb in missing and wanted[0] in _WITH_VERBS:
        return None
    missing = _not_choosing(missing) if kind is Kind.TEST else missing
    if missing:
        return Match(f"it was run without `{' '.join(missing)[:200]}`")
    more = [None if at in used else word for at, word in enumerate(given[1:])]
    paths = [one for one in wanted[1:] if not one.startswith("-") and one != verb]
    if wanted[0] not in _WITH_VERBS and verb:
        paths.append(verb)
    return Match(_narrowed(more, kind, wanted[0], has_paths=bool(paths)))


def word(argv: Sequence[str]) -> str:
    """A word that stands in every line which runs a command."""
    line = script(argv)
    if line is not None:
        return (line.split() or [""])[0]
    found = canonical(argv)
    return posixpath.basename(found[0]) if found else ""


def script(argv: Sequence[str]) -> str | None:
    """The line that a command hands to a shell with -c; None for any other command."""
    if len(argv) < 3 or posixpath.basename(argv[0]) not in ("bash", "sh", "zsh", "dash"):
        return None
    flags = argv[1:-1]
    is_line = all(one.startswith("-") for one in flags) and any("c" in one for one in flags)
    return " ".join(argv[-1].split()) if is_line else None


def canonical(argv: Sequence[str]) -> tuple[str, ...]:
    """Return a command by the name of its program, without what only starts it."""
    words = [one for one in argv if one != "--"]
    while words:
        words[0] = _program(words[0])
        rest = _started(words)
        if rest is None:
            break
        words = rest
    if len(words) > 1 and words[0] in ("npm", "pnpm", "yarn", "bun"):
        if words[1] in ("test", "t", "tst"):
            words[1:2] = ["run", "test"]
        elif words[1] == "run-script":
            words[1] = "run"
    return tuple(words)


def _program(word: str) -> str:
    folder, name = posixpath.split(word)
    if posixpath.basename(folder) in ("bin", ".bin"):
        word = name
    word = posixpath.normpath(word) if word else word
    return "python" if _PYTHON.fullmatch(word) else word


def _started(words: list[str]) -> list[str] | None:
    """What a runner starts; None for what starts nothing else, or in a way that is not known."""
    if words[0] == "python":
        return words[2:] if len(words) > 2 and words[1] == "-m" else None
    for head, valued in _RUNNERS.items():
        if tuple(words[: len(head)]) != head:
            continue
        rest = words[len(head) :]
        while rest and rest[0].startswith("-"):
            if rest[0] in valued:
                rest = rest[2:]
            elif rest[0] in _FLAGS or rest[0].split("=")[0] in valued:
                rest = rest[1:]
            else:
                return None
        return rest or None
    return None


def _found(wanted: Sequence[str], given: Sequence[str]) -> tuple[set[int], list[str]]:
    """Which given words are wanted ones, and which wanted ones are missing.

    Options may stand anywhere, other words have to keep their order.
    """
    used: set[int] = set()
    missing: list[str] = []
    place = 0
    for word in wanted:
        is_option = word.startswith("-")
        begin = 0 if is_option else place
        at = next((n for n in range(begin, len(given)) if given[n] == word and n not in used), None)
        if at is None:
            missing.append(word)
            continue
        used.add(at)
        place = place if is_option else at + 1
    return used, missing


def _not_choosing(missing: Sequence[str]) -> list[str]:
    """What is missing and leaves more out than it should: without a choice of tests all are run."""
    left: list[str] = []
    is_value = False
    for word in missing:
        name, mark, _ = word.partition("=")
        if is_value and not word.startswith("-"):
            is_value = False
        elif name in _CHOOSING:
            is_value = not mark
        else:
            left.append(word)
    return left


def _narrowed(more: Sequence[str | None], kind: Kind, program: str, *, has_paths: bool) -> str:
    """Why words beside the wanted ones leave something out; empty when they do not."""
    is_value = False
    for word in more:
        if word is None or (is_value and not word.startswith("-")):
            is_value = False
            continue
        is_value = word in _VALUED
        is_variable = program in ("make", "gmake") and "=" in word
        if is_variable or _leaves_out(word, program):
            return f"it was run with `{word[:100]}`, which can leave something out"
        if not word.startswith("-") and (kind is Kind.TEST or not has_paths):
            return f"it was run for `{word[:100]}` alone"
    return ""


def _leaves_out(word: str, program: str) -> bool:
    """Whether an option can leave something out of what a program looks at, or of what it tells."""
    name = word.partition("=")[0]
    if program == "go" and name.startswith("-test."):
        name = f"-{name.removeprefix('-test.')}"
    if name in _EMPTY or name in _CHOOSING or name in _OWN.get(program, ()):
        return True
    letters, valued = _LETTERS.get(program, ("", ""))
    if not word.startswith("-") or word.startswith("--"):
        return False
    for letter in word[1:]:
        if letter in letters:
            return True
        if letter in valued:
            return False
    return False
