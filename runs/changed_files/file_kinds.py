"""Whether a changed file is code or documentation. Recorded with each attempt; it skips nothing."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from pathlib import PurePosixPath

CODE_FOLDERS = frozenset({"src", "tests", "commands"})
CODE_FILES = frozenset({"pyproject.toml", "uv.lock"})
CODE_ENDINGS = frozenset({".py", ".sh", ".toml", ".yml", ".yaml", ".json"})


class FileKind(StrEnum):
    """What a changed file counts as."""

    CODE = "code"
    DOCS = "docs"


def kind_of(path: str) -> FileKind:
    """The kind of a file by its path in the repository; what nobody named counts as docs."""
    file = PurePosixPath(path)
    is_code = (
        (file.parts[:1] and file.parts[0] in CODE_FOLDERS and len(file.parts) > 1)
        or file.name in CODE_FILES
        or file.name == ".env"
        or file.name.startswith(".env.")
        or file.suffix.lower() in CODE_ENDINGS
    )
    return FileKind.CODE if is_code else FileKind.DOCS


def first(paths: Iterable[str], most: int) -> list[str]:
    """So many of these paths at most, in their order; where not all fit, code is among them."""
    found = sorted(paths)
    if len(found) > most:
        found = sorted(sorted(found, key=lambda path: kind_of(path) is not FileKind.CODE)[:most])
    return found


def labels(paths: Iterable[str]) -> list[dict[str, str]]:
    """Each path with its kind, as an attempt stores it."""
    return [{"path": path, "label": kind_of(path).value} for path in paths]


def has_code(paths: Iterable[str]) -> bool:
    """Whether any of them is code, so that a spec has to have tests."""
    return any(kind_of(path) is FileKind.CODE for path in paths)
