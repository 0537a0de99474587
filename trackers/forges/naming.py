"""Names of repositories and issues on forges, and how they become parts of a path.

Whatever a root or a key says, it can never make another path than the one that was meant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote

from trackers.errors import NotFound

_WORD = re.compile(r"[A-Za-z0-9._-]{1,100}")
_FORGE = re.compile(r"[0-9]{1,9}")
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository on one forge, as a root names it."""

    forge: str
    owner: str
    name: str

    def __str__(self) -> str:
        return f"{self.owner}/{self.name}"

    def path(self, *parts: str | int) -> str:
        """The path of something in this repository, each part quoted."""
        told = "".join(f"/{quote(str(part), safe='')}" for part in parts)
        return f"/repos/{quote(self.owner, safe='')}/{quote(self.name, safe='')}{told}"


def repository_of(root: str) -> Repository | None:
    """The repository that a root `<forge>/<owner>/<name>` names; None for any other text."""
    forge, _, rest = root.partition("/")
    owner, _, name = rest.partition("/")
    is_one = _FORGE.fullmatch(forge) and _is_word(owner) and _is_word(name)
    return Repository(forge, owner, name) if is_one else None


def number_of(key: str) -> int:
    """The number that a key stands for. Raises NotFound for anything else (LAB-34)."""
    if not is_number(key):
        raise NotFound(f"There is no issue {key[:60]}.")
    return int(key)


def is_number(key: str) -> bool:
    """Whether a key can be an issue of a forge: a positive number without zeros before it."""
    return bool(_NUMBER.fullmatch(key))


def is_commit(text: str) -> bool:
    """Whether a text is the whole name of a commit."""
    return bool(_COMMIT.fullmatch(text))


def _is_word(part: str) -> bool:
    return bool(_WORD.fullmatch(part)) and part not in (".", "..")
