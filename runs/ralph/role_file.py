"""Roles of loops as files have them: the hats of a `ralph.yml`, or the roles of our own API. Pure."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runs.core import writing
from runs.loops import events
from runs.loops.events import Event
from runs.loops.roles import COORDINATOR

MOST_BYTES = 256_000
DEEPEST = 12
RENAMED = f"{COORDINATOR} role"
COMMANDS = (
    ("ralph emit", "labctl emit"),
    ("ralph tools memory", "labctl memory"),
    ("ralph tools task close", "labctl task done"),
    ("ralph tools task ready", "labctl task list"),
    ("ralph tools task", "labctl task"),
)
_TOPICS = {"triggers": "subscriptions", "publishes": "publishes"}
_OWN = ("name", "instructions", "subscriptions", "publishes", "agent", "model", "effort")
_HAT = (
    *("name", "description", "instructions", "extra_instructions", *_TOPICS),
    *("backend", "default_publishes"),
)


class UnfitFile(ValueError):
    """The text is nothing that can be taken; says why."""


@dataclass(frozen=True, slots=True)
class FoundRole:
    """A role of a file by the names of its columns. `agent` is what the file calls its agent."""

    values: Mapping[str, Any]
    agent: str | int | None = None


@dataclass(frozen=True, slots=True)
class Roles:
    """The roles of a file in their order, what became something else, and what could not be taken."""

    roles: tuple[FoundRole, ...] = ()
    changed: tuple[str, ...] = ()
    not_taken: tuple[str, ...] = ()


def read(text: str, name: str = "", completion: str = "") -> Roles:
    """Roles of a text in YAML, JSON or TOML; `name` is that of its file. Raises UnfitFile."""
    about = parsed(text, name)
    if "hats" in about:
        return of_hats(about["hats"], completion)
    if "roles" not in about:
        raise UnfitFile("It has neither hats (as a ralph.yml) nor roles (as the API shows them)")
    given = about["roles"]
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise UnfitFile("Its roles are no list of roles")
    return Roles(tuple(_own(one) for one in given))


def parsed(text: str, name: str = "") -> dict[str, Any]:
    """The mapping that a text holds, without aliases, which could make a small file huge.

    Raises UnfitFile.
    """
    if len(text.encode("utf-8", "replace")) > MOST_BYTES:
        raise UnfitFile(f"It is larger than {MOST_BYTES // 1000} kB")
    import yaml

    try:
        about = tomllib.loads(text) if name.endswith(".toml") else _yaml(text)
    except UnfitFile:
        raise
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        said = " ".join(str(error).split())[:200]
        kind = "TOML" if name.endswith(".toml") else "YAML or JSON"
        raise UnfitFile(f"It is no {kind}: {said}") from error
    if not isinstance(about, dict):
        raise UnfitFile("It holds no settings")
    return {str(key): value for key, value in _clean(about).items()}


def of_hats(given: object, completion: str = "", starts: Sequence[str] = ()) -> Roles:
    """Roles of the `hats` of a `ralph.yml`. `starts` are topics with which its loops began."""
    reading = _Hats(completion, tuple(starts))
    return Roles(tuple(reading.roles(given)), tuple(reading.changed), tuple(reading.left))


def translated(text: str) -> str:
    """Instructions with the commands of labctl in place of those of Ralph."""
    for theirs, ours in COMMANDS:
        text = text.replace(theirs, ours)
    return text


def _clean(value: Any) -> Any:
    """What a file holds, keys too, without letters that a database would refuse."""
    if isinstance(value, str):
        return writing.clean(value)
    if isinstance(value, dict):
        return {_clean(key): _clean(one) for key, one in value.items()}
    return [_clean(one) for one in value] if isinstance(value, list) else value


def _yaml(text: str) -> Any:
    """YAML, of which JSON is a part."""
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise UnfitFile("It uses an alias (*name). Write its contents out in full")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise UnfitFile(f"It is nested deeper than {DEEPEST} levels")
    return yaml.load(text, Loader=yaml.SafeLoader)


def _own(given: Mapping[str, Any]) -> FoundRole:
    """A role as our API has it. Raises UnfitFile."""
    unknown = [str(name) for name in given if name not in _OWN]
    if unknown:
        raise UnfitFile(f"A role has no {', '.join(unknown)[:100]}; it has {', '.join(_OWN)}")
    agent = given.get("agent")
    if isinstance(agent, bool) or not isinstance(agent, str | int | None):
        raise UnfitFile("The agent of a role is the name of an agent")
    values: dict[str, Any] = {}
    for name in ("name", "instructions", "model", "effort"):
        text = given.get(name) or ""
        if not isinstance(text, str):
            raise UnfitFile(f"The {name} of a role is no text")
        values[name] = text
    for name in ("subscriptions", "publishes"):
        topics = given.get(name) or []
        if not isinstance(topics, list) or not all(isinstance(one, str) for one in topics):
            raise UnfitFile(f"The {name} of a role are no list of topics")
        values[name] = topics
    return FoundRole(values, agent)


class _Hats:
    """Reads hats one by one, and keeps what is to be said of them."""

    def __init__(self, completion: str, starts: tuple[str, ...]) -> None:
        self._completion = completion
        self._starts = starts
        self.changed: list[str] = []
        self.left: list[str] = []

    def roles(self, given: object) -> Iterator[FoundRole]:
        if not given:
            return
        for key, hat in self._listed(given):
            place = f"hats.{key}"
            if not isinstance(hat, Mapping):
                self.left.append(f"{place}: it is no hat")
                continue
            yield self._role(key, place, hat)

    def _listed(self, given: object) -> list[tuple[str, Any]]:
        """Hats by their keys; older versions have them as a list."""
        if isinstance(given, Mapping):
            return [(str(key), hat) for key, hat in given.items()]
        if isinstance(given, list):
            names = [one.get("name") if isinstance(one, Mapping) else None for one in given]
            return [
                (str(name or place), hat)
                for place, (name, hat) in enumerate(zip(names, given, strict=True))
            ]
        raise UnfitFile("Its hats are neither a mapping nor a list")

    def _role(self, key: str, place: str, hat: Mapping[Any, Any]) -> FoundRole:
        name = self._text(place, hat, "name") or key
        if name.casefold() == COORDINATOR:
            self.changed.append(
                f"{place}: it is called {RENAMED}, since {COORDINATOR} is who works when no role does"
            )
            name = RENAMED
        values: dict[str, Any] = {"name": name[:60], "model": ""}
        values["instructions"] = self._instructions(place, hat)
        for theirs, ours in _TOPICS.items():
            values[ours] = self._topics(place, hat, theirs)
        started = [one for one in self._starts if one in values["subscriptions"]]
        if started and events.STARTS[0] not in values["subscriptions"]:
            values["subscriptions"].append(events.STARTS[0])
            self.changed.append(
                f"{place}: it takes {events.STARTS[0]} too, with which loops begin here"
            )
        default = self._text(place, hat, "default_publishes")
        if default and default not in values["publishes"] and events.is_topic(default):
            values["publishes"].append(default)
        for other in [str(one) for one in hat if one not in _HAT]:
            self.left.append(f"{place}.{other}: a role here has no such setting")
        return FoundRole(values, self._backend(place, hat.get("backend")))

    def _instructions(self, place: str, hat: Mapping[Any, Any]) -> str:
        more = hat.get("extra_instructions") or []
        parts = [self._text(place, hat, "description"), self._text(place, hat, "instructions")]
        parts += [one for one in more if isinstance(one, str)] if isinstance(more, list) else []
        text = "\n\n".join(part.strip() for part in parts if part.strip())
        found = translated(text)
        if found != text:
            self.changed.append(f"{place}: its instructions name the commands of labctl now")
        return found

    def _topics(self, place: str, hat: Mapping[Any, Any], name: str) -> list[str]:
        given = hat.get(name) or []
        given = [given] if isinstance(given, str) else given
        if not isinstance(given, list):
            self.left.append(f"{place}.{name}: it is no list of topics")
            return []
        kept: list[str] = []
        for one in given:
            topic = str(one).strip()
            if name == "triggers" and self._is_completion(topic):
                self.left.append(f"{place}.{name}: {topic} ends the loop and reaches no role")
            elif not events.is_topic(topic.replace("*", "any") if name == "triggers" else topic):
                self.left.append(f"{place}.{name}: “{topic[:60]}” is no topic")
            elif topic not in kept:
                kept.append(topic)
        return kept

    def _is_completion(self, topic: str) -> bool:
        word = self._completion
        return bool(word) and events.subscribes([topic], Event(word))

    def _backend(self, place: str, given: object) -> str | None:
        if isinstance(given, Mapping):
            named = given.get("type") or given.get("command")
            if given.get("args") or given.get("agent"):
                self.left.append(f"{place}.backend: agents have their arguments in the settings")
            given = named
        return str(given)[:100] if given else None

    def _text(self, place: str, hat: Mapping[Any, Any], name: str) -> str:
        given = hat.get(name)
        if given is None:
            return ""
        if not isinstance(given, str):
            self.left.append(f"{place}.{name}: it is no text")
            return ""
        return given
