"""What a project wants started by itself, as its watch session says it."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Want:
    """What a project wants started by itself: nothing, everything that is ready, or only these.

    `without`: what its watch session has worked on already. `most`: how many more it
    may start, None: as many as the caps allow.
    """

    is_on: bool = False
    only: frozenset[str] | None = None
    without: frozenset[str] = frozenset()
    most: int | None = None

    def includes(self, key: str) -> bool:
        """Whether this issue is among what is wanted."""
        return key not in self.without and (self.only is None or key in self.only)

    def after_one(self) -> Want:
        """What is wanted still when one run more was started."""
        return self if self.most is None else replace(self, most=self.most - 1)


NOTHING = Want()
