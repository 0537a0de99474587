"""The output file that a worker must write before it may go idle, and whether it is there."""

from __future__ import annotations

import os
import re
import stat

from labctl.safe_files import Unfit, is_name

TYPE_CHECKING = False  # importing `typing` would take longer than all else in a hook
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

LEAST_BYTES = 50
LAST_BYTES = 4 * 1024 * 1024
SEALED = frozenset({"review", "audit"})

_SEAL = re.compile(rb"^SEAL:", re.MULTILINE)


def lacking(root: str, inscription: Mapping[str, Any], worker: str) -> str:
    """What the worker's output lacks below `root`, for the worker to read; empty: nothing.

    A worker without expected output lacks nothing. Raises Unfit for paths that lead elsewhere,
    OSError when the file could not be read.
    """
    file = _file_of(inscription, worker)
    if not file:
        return ""
    folder = inscription.get("output_dir") or "."
    name = os.path.normpath(os.path.join(_inside(folder), _inside(file)))  # noqa: PTH118
    bounds, path = os.path.realpath(root), os.path.realpath(os.path.join(root, name))  # noqa: PTH118
    if os.path.commonpath([bounds, path]) != bounds:
        raise Unfit(f"{name} leads out of the folder that the worker works in.")
    try:
        size, end = _end_of(path)
    except FileNotFoundError:
        return f"{name} is missing. Write what you found into it, then finish your task."
    if size < LEAST_BYTES:
        return f"{name} has {size} bytes only. Write what you found into it, then finish your task."
    if inscription.get("workflow") in SEALED and not _SEAL.search(end):
        return f"{name} is not sealed. Finish it with a line that begins with SEAL:"
    return ""


def _file_of(inscription: Mapping[str, Any], worker: str) -> str:
    listed = inscription.get("teammates")
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, dict) and one.get("name") == worker and is_name(worker):
            file = one.get("output_file")
            return file if isinstance(file, str) else ""
    return ""


def _inside(path: object) -> str:
    """A relative path that does not leave its folder. Raises Unfit."""
    if not isinstance(path, str) or path.startswith("/") or ".." in path.split("/") or "\0" in path:
        raise Unfit(f"{path!r} leads out of the folder that the worker works in.")
    return path


def _end_of(path: str) -> tuple[int, bytes]:
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode):
            raise Unfit(f"{path} is no plain file.")
        os.lseek(file, max(0, facts.st_size - LAST_BYTES), os.SEEK_SET)
        return facts.st_size, os.read(file, LAST_BYTES)
    finally:
        os.close(file)
