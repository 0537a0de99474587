"""What the product asks of the machine that it runs on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Vitals:
    """How a machine is doing; None for what it does not tell."""

    load: float | None = None
    cores: int | None = None
    disk_free_mb: int | None = None


class Machine(Protocol):
    """The machine of this process, and the state folder on it."""

    @property
    def identity(self) -> str:
        """What no other state folder has; empty where the database is this one's alone."""

    def is_other(self, identity: str) -> bool:
        """Whether another state folder has this identity; nobody has an empty one. Makes none."""

    @property
    def version(self) -> str:
        """The version of labsite that runs here; a newer one has greater numbers."""

    def vitals(self) -> Vitals:
        """Load and free disk space now. Never raises."""

    def warm(self) -> Sequence[str]:
        """The projects (slugs) whose clone is complete here, in order. Never raises."""


class Unknown:
    """A machine that tells nothing of itself."""

    identity = ""
    version = ""

    def is_other(self, identity: str) -> bool:
        return False

    def vitals(self) -> Vitals:
        return Vitals()

    def warm(self) -> Sequence[str]:
        return ()


UNKNOWN = Unknown()
