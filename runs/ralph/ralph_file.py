"""The files of a Ralph project read as settings, roles and memories of loops here. Pure.

What could not be taken is listed by its place in the file, with the reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import PurePosixPath
from typing import Any

from runs.core import writing
from runs.loops import events
from runs.loops.events import Event
from runs.ralph import role_file
from runs.ralph.role_file import FoundRole

SETTINGS, PROMPT = "ralph.yml", "PROMPT.md"
SETTINGS_NAMES = (SETTINGS, "ralph.yaml")
# Newer versions first.
MEMORIES = (".ralph/agent/memories.md", ".agent/memories.md")
TASKS = (".ralph/agent/tasks.jsonl", ".agent/tasks.jsonl")
MOST_TASKS = 200
NO_SUCH = "labsite has no such setting"
OF_AGENT = "agents are set up in the settings"
_FLAT = {
    "completion_promise": "completion_promise",
    "max_iterations": "max_iterations",
    "max_runtime": "max_runtime_seconds",
    "max_cost": "max_cost_usd",
    "prompt_file": "prompt_file",
}
_NUMBERS = {
    "max_iterations": "max_turns",
    "max_runtime_seconds": "max_seconds",
    "max_consecutive_failures": "failures",
    "cooldown_delay_seconds": "cooldown_seconds",
}
_WORDS = {"completion_promise": "completion", "cancellation_promise": "cancellation"}
_REASONS = {
    "event_loop.idle_timeout_secs": "a turn has its own most time in the loop settings",
    "event_loop.checkpoint_interval": "agents commit by themselves",
    "core.scratchpad": "the scratchpad of a loop is made for it",
    "core.specs_dir": "agents read the repository",
    "memories.budget": "a prompt has the newest memories, at most 8,000 characters",
    "memories.filter": "a prompt has the newest memories of the project",
    "adapters": OF_AGENT,
    "agent_priority": OF_AGENT,
    "max_tokens": OF_AGENT,
    "events": "what an event means stands in the instructions of roles",
    "tui": "the page of a run shows its loop",
    "hooks": "notices tell what happens",
    "features": "worktrees and merges are settings of the project",
    "RObot.telegram": "notices are set up for each person",
}
_MEMORY_HEAD = re.compile(r"###\s+mem-\S+")
_TAGS = re.compile(r"<!--\s*tags:\s*([^|>]*?)\s*(?:\|.*)?-->")


@dataclass(frozen=True, slots=True)
class Files:
    """The texts of the files; empty: there is none."""

    settings: str
    prompt: str = ""
    memories: str = ""
    tasks: str = ""


@dataclass(frozen=True, slots=True)
class Taken:
    """What was found. `values` are loop settings by their columns, `places` where each stood.

    `roles` is None where the file has no hats. `backend` is what the file calls its agent. `objective`
    is the prompt with the tasks that are open.
    """

    values: Mapping[str, Any]
    places: Mapping[str, str]
    roles: tuple[FoundRole, ...] | None = None
    backend: str = ""
    memories: tuple[str, ...] = ()
    objective: str = ""
    changed: tuple[str, ...] = ()
    not_taken: tuple[str, ...] = ()


def prompt_file(text: str) -> str:
    """Where the prompt lies, from the folder of a `ralph.yml`. Raises UnfitFile."""
    about = role_file.parsed(text, SETTINGS)
    inner = about.get("event_loop")
    named = about.get("prompt_file") or (
        inner.get("prompt_file") if isinstance(inner, dict) else ""
    )
    path = PurePosixPath(str(named or PROMPT))
    return PROMPT if path.is_absolute() or ".." in path.parts else str(path)


def read(files: Files) -> Taken:
    """Everything of these files that loops here can have. Raises UnfitFile."""
    reading = _Reading(role_file.parsed(files.settings, SETTINGS))
    reading.settings()
    found = reading.hats()
    # The newest stand in each prompt.
    kept = [*_memories(writing.clean(files.memories)), *reading.guardrails]
    return Taken(
        reading.values,
        reading.places,
        found,
        reading.backend,
        tuple(dict.fromkeys(role_file.translated(one) for one in kept if one)),
        reading.objective(files),
        tuple(reading.changed),
        tuple(reading.left),
    )


@dataclass(slots=True)
class _Reading:
    """Goes through the file, and keeps what is to be said."""

    about: dict[str, Any]
    values: dict[str, Any] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    guardrails: list[str] = field(default_factory=list)
    backend: str = ""
    inline: str = ""
    starts: list[str] = field(default_factory=list)

    def settings(self) -> None:
        """All sections but the hats."""
        loop = self._section("event_loop")
        for flat, name in _FLAT.items():  # a flat name of version 1 is over the nested one
            if flat in self.about:
                loop[name] = self.about[flat]
        self._event_loop(loop)
        sections: Mapping[str, Callable[[str, dict[str, Any]], None]] = {
            "cli": self._cli,
            "core": self._core,
            "memories": self._switch,
            "tasks": self._switch,
            "RObot": self._robot,
        }
        for name, look in sections.items():
            if name in self.about:
                look(name, self._section(name))
        if isinstance(self.about.get("agent"), str):
            self.backend = self.about["agent"]
        known = {"event_loop", "hats", "agent", *_FLAT, *sections}
        for other in [name for name in self.about if name not in known]:
            self.leave(other, NO_SUCH)
        if self.backend in ("auto", "custom"):
            self.leave("cli.backend", OF_AGENT)
            self.backend = ""

    def hats(self) -> tuple[FoundRole, ...] | None:
        """The roles; None where there are no hats. Raises UnfitFile."""
        if not self.about.get("hats"):
            return None
        completion = self.values.get("completion", "LOOP_COMPLETE")
        found = role_file.of_hats(self.about["hats"], completion, self.starts)
        self.changed += found.changed
        self.left += found.not_taken
        resumed = any(
            events.subscribes(one.values["subscriptions"], Event(events.RESUME))
            for one in found.roles
        )
        if self.values.get("is_persistent") and not resumed:
            self.values["is_persistent"] = False
            why = f"no hat takes {events.RESUME}, so that nobody would look for the next work"
            self.leave("event_loop.persistent", why)
        return found.roles

    def objective(self, files: Files) -> str:
        """The prompt and the open tasks as one text."""
        prompt = role_file.translated(writing.clean(files.prompt or self.inline)).strip()
        tasks = self._tasks(files.tasks)
        if not tasks:
            return prompt
        listed = "\n".join(f"- [ ] {one}" for one in tasks)
        self.changed.append(
            "tasks.jsonl: its open tasks stand in the issue, since tasks here are of a loop"
        )
        return f"{prompt or '# Open tasks'}\n\n## Open tasks\n\n{listed}"

    def leave(self, place: str, why: str) -> None:
        """Note what is not taken; a place that is known has its own reason."""
        self.left.append(f"{place}: {_REASONS.get(place, why)}")

    def _event_loop(self, loop: dict[str, Any]) -> None:
        self._put("is_persistent", "event_loop.persistent", loop.get("persistent") is True)
        looks: Mapping[str, Callable[[Any], None]] = {
            "max_cost_usd": self._cost,
            "required_events": self._topics,
            "starting_event": self._start,
            "starting_hat": self._first_hat,
            "prompt": self._prompt,
        }
        for name, given in loop.items():
            place = f"event_loop.{name}"
            if name in _NUMBERS:
                self._whole(_NUMBERS[name], place, given)
            elif name in _WORDS:
                self._word(_WORDS[name], place, given)
            elif name in looks:
                looks[name](given)
            elif name not in ("persistent", "prompt_file"):
                self.leave(place, NO_SUCH)

    def _start(self, given: Any) -> None:
        if isinstance(given, str):
            self.starts.append(given)

    def _first_hat(self, given: Any) -> None:
        if given:
            self.leave("event_loop.starting_hat", "the hat that takes the first event begins")

    def _prompt(self, given: Any) -> None:
        if isinstance(given, str):
            self.inline = given

    def _cli(self, name: str, given: dict[str, Any]) -> None:
        if isinstance(given.get("backend"), str):
            self.backend = given["backend"]
        for other in [one for one in given if one != "backend"]:
            self.leave(f"{name}.{other}", OF_AGENT)

    def _core(self, name: str, given: dict[str, Any]) -> None:
        rules = given.get("guardrails") or []
        if isinstance(rules, list) and rules:
            self.guardrails = [one.strip() for one in rules if isinstance(one, str)]
            self.changed.append("core.guardrails: they are memories, which stand in each prompt")
        for other in [one for one in given if one != "guardrails"]:
            self.leave(f"{name}.{other}", NO_SUCH)

    def _switch(self, name: str, given: dict[str, Any]) -> None:
        is_on = given.get("enabled", True) is not False and given.get("inject") != "none"
        self._put(f"has_{name}", name, is_on)
        if given.get("inject") == "manual":
            self.leave(f"{name}.inject", "memories stand in each prompt, or are off")
        for other in [one for one in given if one not in ("enabled", "inject")]:
            self.leave(f"{name}.{other}", NO_SUCH)

    def _robot(self, name: str, given: dict[str, Any]) -> None:
        if given.get("enabled") is not True:
            return
        columns = {
            "checkin_interval_seconds": "check_in_seconds",
            "timeout_seconds": "answer_seconds",
        }
        for theirs, ours in columns.items():
            if theirs in given:
                self._whole(ours, f"{name}.{theirs}", given[theirs])
        for other in [one for one in given if one not in ("enabled", *columns)]:
            self.leave(f"{name}.{other}", NO_SUCH)

    def _section(self, name: str) -> dict[str, Any]:
        given = self.about.get(name)
        if given is None:
            return {}
        if not isinstance(given, dict):
            self.leave(name, "it is no section")
            return {}
        return {str(key): value for key, value in given.items()}

    def _put(self, column: str, place: str, value: Any) -> None:
        self.values[column] = value
        self.places[column] = place

    def _whole(self, column: str, place: str, given: Any) -> None:
        if given is None:
            return
        is_whole = isinstance(given, int) or (isinstance(given, float) and given.is_integer())
        if isinstance(given, bool) or not is_whole or given < 0:
            self.leave(place, "it is no whole number")
        else:
            self._put(column, place, int(given))

    def _word(self, column: str, place: str, given: Any) -> None:
        if not given:
            return
        if isinstance(given, str) and events.is_topic(given.strip()):
            self._put(column, place, given.strip())
        else:
            self.leave(place, "it is no topic: letters, digits, - and _, joined by dots")

    def _cost(self, given: Any) -> None:
        if given is None:
            return
        try:
            found = Decimal(str(given)) if not isinstance(given, bool) else Decimal("NaN")
        except InvalidOperation:
            found = Decimal("NaN")
        if found.is_finite() and 0 < found < Decimal(10) ** 9:
            self._put("max_cost", "event_loop.max_cost_usd", found.quantize(Decimal("0.01")))
        else:
            self.leave("event_loop.max_cost_usd", "it is no amount of dollars")

    def _topics(self, given: Any) -> None:
        if not given:
            return
        place = "event_loop.required_events"
        topics = given if isinstance(given, list) else [given]
        kept = [one for one in topics if isinstance(one, str) and events.is_topic(one)]
        self._put("required", place, kept)
        if len(kept) < len(topics):
            self.leave(place, "some are no topics")

    def _tasks(self, text: str) -> list[str]:
        """The titles of open tasks, the most urgent first."""
        rows, broken, closed = [], 0, 0
        for line in writing.clean(text).splitlines():
            task = _task(line)
            if task is None:
                broken += bool(line.strip())
            elif task[2]:
                closed += 1
            else:
                rows.append(task[:2])
        if broken:
            self.leave("tasks.jsonl", f"{broken} lines are no tasks")
        if closed:
            self.leave("tasks.jsonl", f"{closed} tasks that are closed")
        if len(rows) > MOST_TASKS:
            self.leave("tasks.jsonl", f"the first {MOST_TASKS} of {len(rows)} are taken")
        return [title for _, title in sorted(rows, key=lambda row: row[0])[:MOST_TASKS]]


def _task(line: str) -> tuple[int, str, bool] | None:
    """Priority, title, and whether it is over; None: no task."""
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        return None
    title = told.get("title") if isinstance(told, dict) else None
    if not isinstance(title, str) or not title.strip():
        return None
    priority = told.get("priority")
    urgency = priority if isinstance(priority, int) and not isinstance(priority, bool) else 9
    return urgency, writing.one_line(title, 300), told.get("status") in ("closed", "failed", "done")


def _memories(text: str) -> Iterator[str]:
    """The quoted text of each entry; of a file without entries each paragraph."""
    if not _MEMORY_HEAD.search(text):
        for part in text.split("\n\n"):
            lines = [
                line for line in part.splitlines() if not line.lstrip().startswith(("#", "<!--"))
            ]
            yield "\n".join(line.removeprefix("- ") for line in lines).strip()
        return
    for entry in _MEMORY_HEAD.split(text)[1:]:
        body = entry.split("\n## ")[0]
        quoted = [line[1:].strip() for line in body.splitlines() if line.startswith(">")]
        tags = _TAGS.search(body)
        told = f" (tags: {tags[1]})" if tags and tags[1] else ""
        said = "\n".join(quoted).strip()
        yield f"{said}{told}" if said else ""
