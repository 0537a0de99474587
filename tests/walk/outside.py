"""An outside that can die at any of its calls, around the fakes or around real tmux and git."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from runs.core.ports import Lab


class Killed(BaseException):
    """The process ended here: nothing after this line of it ever happened."""


@dataclass
class Fuse:
    """Kills the process before the n-th trace that it would leave from now on; never when 0."""

    left: int = 0
    is_dead: bool = False

    def light(self, traces: int) -> None:
        """From now on this many more; 0 lets the process live."""
        self.left, self.is_dead = traces, False

    def burn(self) -> None:
        """Something outside is about to be asked or changed. Raises Killed."""
        if self.is_dead:
            raise Killed
        if self.left:
            self.left -= 1
            self.is_dead = self.left == 0
            if self.is_dead:
                raise Killed


class Mortal:
    """Hands every call on to a seam, unless the process is dead by then."""

    def __init__(self, seam: object, fuse: Fuse) -> None:
        self._seam, self._fuse = seam, fuse

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._seam, name)
        if not callable(found):
            return found

        def call(*args: Any, **more: Any) -> Any:
            self._fuse.burn()
            return found(*args, **more)

        return call


def mortal(lab: Lab, fuse: Fuse) -> Lab:
    """The same outside, each of whose calls may be the last one of this process."""
    return replace(
        lab,
        sessions=Mortal(lab.sessions, fuse),
        repos=Mortal(lab.repos, fuse),
        queue=Mortal(lab.queue, fuse),
    )
