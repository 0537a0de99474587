"""Which sections of a file of settings differ between two texts of it. Pure."""

from __future__ import annotations

import configparser
import json
import posixpath
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

_ENDINGS = {".toml": "toml", ".cfg": "ini", ".ini": "ini", ".json": "json"}
_SHARED = frozenset(
    {"pyproject.toml", "setup.cfg", "tox.ini", "package.json", "cargo.toml", "composer.json"}
)
_MISSING = object()


def can_read(path: str) -> bool:
    """Return whether a path is a file at the top that holds settings of several programs."""
    return path.casefold() in _SHARED


def list_changed_sections(
    path: str, before: str, after: str, sections: Sequence[str]
) -> list[str] | None:
    """Return which of these sections differ, as a person would write them; None: could not tell.

    Args:
        path: the file, by whose ending its format is known.
        before: its text before the change, empty where it was not there.
        after: the same after it.
        sections: dotted names; in an INI file names that may hold a `*`.
    """
    kind = _ENDINGS.get(posixpath.splitext(path.casefold())[1], "")
    try:
        old, new = _read(kind, before), _read(kind, after)
    except (ValueError, configparser.Error, RecursionError):
        return None
    if kind == "ini":
        names = sorted(_matching([*old, *new], sections))
        return [f"[{name}]" for name in names if old.get(name) != new.get(name)]
    found = [name for name in sections if _at(old, name) != _at(new, name)]
    return [f"[{name}]" if kind == "toml" else f"“{name}”" for name in found]


def _read(kind: str, text: str) -> Mapping[str, Any]:
    """Raises ValueError, configparser.Error."""
    if not text.strip():
        return {}
    if kind == "toml":
        return tomllib.loads(text)
    if kind == "json":
        found = json.loads(text)
        if not isinstance(found, dict):
            raise ValueError("it is no object")
        return found
    parser = configparser.RawConfigParser(allow_no_value=True, strict=False)
    parser.read_string(text)
    return {name: dict(parser.items(name)) for name in parser.sections()}


def _matching(names: Sequence[str], patterns: Sequence[str]) -> Iterator[str]:
    yield from {name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)}


def _at(values: Mapping[str, Any], dotted: str) -> Any:
    """What stands at a dotted name; a value of its own where nothing does."""
    found: Any = values
    for part in dotted.split("."):
        if not isinstance(found, Mapping) or part not in found:
            return _MISSING
        found = found[part]
    return found
