"""What has to be put right in the repository that the runs of a project share.

Settings and hooks there count for all runs, and only labsite and its operator have a reason to
change them. So whatever has changed while runs worked is put back as it was.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from runs.core.kept_ports import SharedState

CONFIG = "config"
HOOKS = "hooks"
FILES = (
    CONFIG,
    "config.worktree",
    "HEAD",
    "commondir",
    "objects/info/alternates",
    "info/attributes",
    "info/grafts",
)
# Linked worktrees store there what their branches follow, and git deletes it with the branch.
_BRANCHES = "branch."
_YES = frozenset({"true", "yes", "on"})
_NUMBER = re.compile(r"[+-]?(0x[0-9a-f]+|[0-9]+)[kmg]?")
_BLANK = " \t\r\n"
_ESCAPED = {"n": "\n", "t": "\t", "b": "\b"}
_PLAIN = re.compile(r"[A-Za-z0-9.-]+")
_VERSIONS = ("0", "1")
_OF_ALL = frozenset({"extensions.objectformat", "extensions.refstorage", "extensions.partialclone"})
# Those that git itself writes where it is asked for such a thing; any other it refuses to work with.
_OF_OWN = _OF_ALL | {
    *("extensions.noop", "extensions.preciousobjects", "extensions.worktreeconfig"),
    *("extensions.relativeworktrees", "extensions.compatobjectformat"),
}
_HEADER = re.compile(r'\s*\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
_SETTING = re.compile(r"\s*([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?", re.DOTALL)
# One that ends with a backslash goes on in the next, unless that stands in a remark.
_AFTER = r"\\(?:\r\n|(?s:.)|\Z)"
_PIECE = rf'(?:[^\\"#;\n]|{_AFTER}|"(?:[^"\\\n]|{_AFTER})*+"?|[#;][^\n]*+)'
_WHOLE_LINE = re.compile(rf"{_PIECE}*+\n|{_PIECE}++")
_BARE = "\n[core]\n\tbare = true\n"
_MOST_NAMES = 8


@dataclass(frozen=True, slots=True)
class Repair:
    """What to write back, and which hooks to take away; `state` is how things are after it.

    `names`: what had been changed, for a person. A file whose text is None is removed.
    """

    state: SharedState
    names: tuple[str, ...] = ()
    files: Mapping[str, str | None] = field(default_factory=dict)
    hooks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of settings with its continuations; `name` is empty where it sets nothing."""

    raw: str
    name: str = ""
    value: str = ""


def plan_repair(found: SharedState, accepted: SharedState | None) -> Repair:
    """Return what to put right. `accepted` is None where a person may have changed things.

    Then only what no shared repository can work with is put right, and all has been read. While
    runs work, what cannot be read counts as changed: else an agent could hide behind that.
    """
    before = accepted or found
    files: dict[str, str | None] = {}
    names: list[str] = []
    for name in FILES:
        has, wanted = found.files.get(name), before.files.get(name)
        if name == CONFIG:
            wanted = _wanted_settings(has, wanted)
        if has != wanted or name in found.unread:
            files[name] = wanted
            names += _differing(has, wanted) if name == CONFIG else [name]
    hooks = tuple(
        sorted(name for name, mark in found.hooks.items() if before.hooks.get(name) != mark)
    )
    names += [f"hook {name}" for name in hooks]
    if HOOKS in found.unread:
        hooks, names = (".",), [*names, "hooks"]
    kept = {name: text for name, text in {**found.files, **files}.items() if text is not None}
    left = {name: mark for name, mark in found.hooks.items() if name not in hooks}
    return Repair(SharedState(kept, left), tuple(names), files, hooks)


def _wanted_settings(has: str | None, wanted: str | None) -> str | None:
    """Return how the settings have to be: as they were, and such that git can work with them."""
    if has is not None and wanted is not None and _compared(has) == _compared(wanted):
        wanted = has
    if wanted is None:
        return None
    bad = {line.name for line in _lines(wanted) if _breaks_shared(line.name, line.value)}
    if not bad:
        return wanted
    text = "".join(line.raw for line in _lines(wanted) if line.name not in bad)
    return text + _BARE if "core.bare" in bad else text


def _breaks_shared(name: str, value: str) -> bool:
    if name == "core.bare":
        return not _is_yes(value)
    return name == "core.hookspath" or _is_foreign_shape(name, value, _OF_ALL)


def _is_foreign_shape(name: str, value: str, extensions: Collection[str]) -> bool:
    """Return whether a setting gives a repository a form that labsite's do not have."""
    if name == "core.repositoryformatversion":
        return value not in _VERSIONS
    is_extension = name.startswith("extensions.") and name not in extensions
    return name == "core.worktree" or is_extension


def find_own_trouble(text: str) -> tuple[str, ...]:
    """Return the settings of a run's own repository with which git works there no more."""
    found = {
        line.name
        for line in _lines(text)
        if (line.name == "core.bare" and _is_yes(line.value))
        or _is_foreign_shape(line.name, line.value, _OF_OWN)
    }
    return tuple(sorted(found))


def describe_own_trouble(names: Sequence[str]) -> str:
    """Say what a run did to its own repository."""
    plain = [name for name in names if _PLAIN.fullmatch(name)]
    what, advice = "A setting", "look into .git/config of its worktree"
    if len(plain) == len(names):  # nothing else that an agent wrote belongs in a command to copy
        what = _listed(names)
        # git uses no repository with such settings, nor a core.worktree that is not there.
        unset = f"git --work-tree=. config --file .git/config --unset-all {names[0]}"
        advice = unset
    return (
        f"{what} was set in this run's own git repository, where git may refuse to work; no other run "
        f"and no commit is affected. To undo it: {advice}"
    )


def describe_repair(names: Sequence[str], others: int) -> str:
    """Say on a run what was changed beside it, and that it was put right."""
    also = ""
    if others:
        also = f" {others} other run{'s' if others > 1 else ''} worked then, too."
    return (
        f"While this run worked, the shared repository was changed: {_listed(names)}. labsite put it "
        f"back; branches and commits are as they were.{also}"
    )


def describe_repair_beside_checks(names: Sequence[str]) -> str:
    """Say on a project what was put right while no run worked, but its checks or a fixer did."""
    return (
        f"While checks or a fixer worked, the shared repository was changed: {_listed(names)}. labsite "
        "put it back; branches and commits are as they were."
    )


def describe_found(names: Sequence[str]) -> str:
    """Say on a project what was put right while no run worked."""
    return (
        f"The shared repository could not be used with {_listed(names)}. labsite put that right; "
        "branches and commits are as they were."
    )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(clean_name(name)[:100] for name in names[:_MOST_NAMES])
    return shown if len(names) <= _MOST_NAMES else f"{shown} and {len(names) - _MOST_NAMES} more"


def clean_name(name: str) -> str:
    """Return a name that can be stored and shown: other bytes and control characters are escaped."""
    text = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode() for one in text
    )


def _is_yes(value: str) -> bool:
    """Return whether git takes a value for true."""
    if number := _NUMBER.fullmatch(value.lower()):
        return any(digit in "123456789abcdef" for digit in number[1])
    return value.lower() in _YES


def _compared(text: str) -> list[tuple[str, str]]:
    """Return what of settings counts: all but those of branches, and lines that set nothing."""
    lines = ((line.name, line.value) for line in _lines(text) if line.name)
    return sorted(one for one in lines if not one[0].startswith(_BRANCHES))


def _differing(has: str | None, wanted: str | None) -> list[str]:
    """Return the names of settings that differ; the file itself where it is not there."""
    if has is None or wanted is None:
        return [CONFIG]
    return _names({*_compared(has)} ^ {*_compared(wanted)}) or [CONFIG]


def _names(settings: Collection[tuple[str, str]]) -> list[str]:
    return sorted({name for name, _ in settings})


def _lines(text: str) -> Iterator[_Line]:
    """Read settings as git writes them; a line that is not understood counts by its whole text."""
    section = ""
    for raw in _WHOLE_LINE.findall(text):
        rest = raw
        if header := _HEADER.match(raw):
            section = header[1].lower() + (f".{header[2]}" if header[2] is not None else "")
            rest = raw[header.end() :]
            if not rest.strip() or rest.strip()[0] in "#;":
                yield _Line(raw)
                continue
            yield _Line(raw[: header.end()] + "\n")
        if not rest.strip() or rest.strip()[0] in "#;":
            yield _Line(rest)
            continue
        found = _SETTING.fullmatch(rest.rstrip("\n"))
        if found is None:
            yield _Line(rest, rest.strip(), "")
        else:
            value = "true" if found[2] is None else _read_value(found[2])
            yield _Line(rest, f"{section}.{found[1].lower()}", value)


def _read_value(text: str) -> str:
    """Return a value without quotes, escapes and remark, as git reads it."""
    value, end, is_quoted = "", 0, False
    chars = iter(text.replace("\r\n", "\n"))
    for char in chars:
        if char == "\\":
            after = next(chars, "\n")
            value += "" if after == "\n" else _ESCAPED.get(after, after)
        elif char == '"':
            is_quoted = not is_quoted
        elif char in "#;" and not is_quoted:
            break
        else:
            value += char
            if char in _BLANK and not is_quoted:
                continue
        end = len(value)
    return value[:end].lstrip(_BLANK)
