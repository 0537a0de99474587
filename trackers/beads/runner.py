"""How `bd` is run: the one thing that this tracker needs of the machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that ended by itself; any status is an answer.

    `is_cut`: it printed more than is read, so `out` is not all of it.
    """

    status: int
    out: str
    err: str
    is_cut: bool = False


class Runner(Protocol):
    """Runs one command in a folder, without a shell."""

    def __call__(
        self, argv: Sequence[str], cwd: Path, seconds: float, env: Mapping[str, str]
    ) -> Ended:
        """Run it with these additions to the environment.

        Raises Refused when the program is not there, Unreachable when it gave no answer in time.
        """
