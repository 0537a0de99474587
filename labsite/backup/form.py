"""What a backup file looks like: its members, its first and its last one. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import PurePosixPath
from typing import Any

FORMAT = 2  # 2: repositories inside of folders and worktrees are saved as such
HEAD, SUMS = "labsite-backup.json", "checksums.json"
HEAD_BYTES, ABOUT_BYTES = 1024**2, 256 * 1024**2


class Unfit(Exception):
    """Nothing was saved or restored; the text is one sentence that says why and what to do."""


@dataclass(frozen=True, slots=True)
class Head:
    """The first member: what made the file, when, where from, and what its database is.

    `state` is the state folder that was saved; `steps` are the applied migrations.
    """

    format: int
    product: str
    made_at: str
    host: str
    state: str
    engine: str
    has_key: bool
    steps: list[str] = field(default_factory=list)

    def as_bytes(self) -> bytes:
        return json.dumps(asdict(self), indent=1).encode()


def read_head(raw: bytes) -> Head:
    """The head of a backup. Raises Unfit for another file, and for a newer format."""
    try:
        told = json.loads(raw)
        if told["format"] > FORMAT:
            raise Unfit(
                f"This backup was made by a newer labsite (format {told['format']}, this one reads "
                f"{FORMAT}): update labsite first. Nothing was changed."
            )
        head = Head(**told)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Unfit("This file is not a backup of labsite. Nothing was changed.") from error
    if not _is_meant(head):
        raise Unfit("The head of this backup cannot be meant. Nothing was changed.")
    return head


def _is_meant(head: Head) -> bool:
    texts = (head.product, head.made_at, head.host, head.state, head.engine)
    return (
        all(type(text) is str for text in texts)
        and PurePosixPath(head.state).is_absolute()
        and isinstance(head.steps, list)
        and all(type(step) is str for step in head.steps)
    )


def safe(name: str) -> PurePosixPath:
    """A path inside the file or a folder, as it stands. Raises Unfit for one that leads out."""
    path = PurePosixPath(name)
    leads_out = path.is_absolute() or ".." in path.parts or not path.parts
    if leads_out or not _can_be_kept(name):
        raise Unfit(f"The backup holds a path that leads outside ({name!r}). Nothing was changed.")
    return path


def _can_be_kept(name: str) -> bool:
    """Whether a disk can have this as a name; one that is no text comes with surrogate escapes."""
    try:
        raw = name.encode("utf-8", "surrogateescape")
    except ValueError:
        return False
    return bool(raw) and b"\0" not in raw


def moved(text: str, old: str, new: str) -> str:
    """`text` with each path below the old state folder put below the new one."""
    return text.replace(f"{old}/", f"{new}/")


def lines_of(about: Mapping[str, Any], name: str) -> list[str]:
    """A list of paths in an `about` member. Raises Unfit when it is something else."""
    found = about.get(name, [])
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise Unfit(f"The backup's list {name!r} cannot be meant. Nothing was changed.")
    return found


def links_of(about: Mapping[str, Any]) -> dict[str, str]:
    """Symbolic links by path. Raises Unfit when the member is something else."""
    found = about.get("links", {})
    if not isinstance(found, dict) or not all(
        isinstance(item, str) and _can_be_kept(item) for item in found.values()
    ):
        raise Unfit("The backup's links cannot be meant. Nothing was changed.")
    return found
