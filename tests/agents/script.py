"""What the scripted model does: steps of one conversation, and which conversation a request is of."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Say:
    """Answer with text. It ends the turn, as an answer without a tool does."""

    text: str


@dataclass(frozen=True, slots=True)
class Shell:
    """Call the agent's tool for shell commands; Codex asks a person for what has a `reason`."""

    command: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Tool:
    """Call a tool of Claude Code by its name; `Agent` (once called `Task`) starts a subagent."""

    name: str
    given: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer with an error, `times` requests long; 0 stands for ever."""

    status: int
    kind: str = "api_error"
    message: str = "Internal server error"
    headers: Mapping[str, str] = field(default_factory=dict)
    times: int = 0


@dataclass(frozen=True, slots=True)
class Wait:
    """Answer nothing until the test lets the script go on; it ends with the server too."""

    for_: threading.Event


Step = Say | Shell | Tool | Refuse | Wait


class Script:
    """The steps of one conversation; the last one is repeated for whatever is still asked."""

    def __init__(self, word: str, steps: Sequence[Step]) -> None:
        self.word = word
        self._steps = list(steps)
        self._at = 0
        self._refused = 0
        self._lock = threading.Lock()

    def next(self) -> Step:
        """The step that answers the next request."""
        with self._lock:
            step = self._steps[self._at]
            if isinstance(step, Refuse):
                self._refused += 1
                if not step.times or self._refused < step.times:
                    return step
                self._refused = 0
            if self._at + 1 < len(self._steps):
                self._at += 1
            return step

    def go_on(self, *steps: Step) -> None:
        """Forget what is left and answer with these from now on."""
        with self._lock:
            self._steps, self._at, self._refused = list(steps), 0, 0

    @property
    def is_at_end(self) -> bool:
        """Whether the last step is what would come now."""
        with self._lock:
            return self._at + 1 >= len(self._steps)
