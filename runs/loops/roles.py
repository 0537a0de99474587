"""The roles of a loop: who takes which event, and what has to hold before they are saved. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from runs.loops import events
from runs.loops.events import Event

COORDINATOR = "coordinator"  # who has the turn when no role has; no role may be called so


@dataclass(frozen=True, slots=True)
class Role:
    """Instructions that take the place of the general workflow while an event for them is pending."""

    name: str
    instructions: str
    subscriptions: tuple[str, ...]
    publishes: tuple[str, ...] = ()
    profile: str = ""
    model: str = ""
    effort: str = ""


# A template for a loop that stays; offered, never there by itself.
ISSUES = Role(
    "issues",
    """You work through the issues of this project, one at a time.

1. Run `labctl next`: it claims the next issue, puts the worktree on a branch for it, and prints it.
   When there is none, run `labctl emit issues.none` and end the turn.
2. Work on that issue alone, and finish it before you take another one. Commit as you go.
3. All tests have to pass.
4. Push the branch and open a pull request for it: `labctl pr create`.
5. Comment on the issue with the link of its pull request: `labctl issue comment`.
6. Keep what later issues should know: `labctl memory add TEXT`.
7. Run `labctl emit issue.done` with the number of the issue and end the turn.""",
    (events.RESUME,),
    ("issue.done", "issues.none"),
)


@dataclass(frozen=True, slots=True)
class Turn:
    """Who has the next turn and which pending events it is given; no role: the coordinator."""

    role: Role | None
    given: tuple[Event, ...]
    left: tuple[Event, ...] = ()


def next_turn(roles: Sequence[Role], pending: Sequence[Event]) -> Turn:
    """The role that takes the oldest event which any role takes, with all events for it.

    What no role takes is given to the coordinator, once no role has anything to do.
    """
    for event in pending:
        role = _taker(roles, event)
        if role is not None:
            given = tuple(one for one in pending if _taker(roles, one) is role)
            return Turn(role, given, tuple(one for one in pending if one not in given))
    return Turn(None, tuple(pending))


def first_events(roles: Sequence[Role]) -> tuple[Event, ...]:
    """What a fresh loop begins with: the first start event that any role takes, else nothing."""
    found = (Event(one) for one in events.STARTS)
    return tuple(one for one in found if _taker(roles, one) is not None)[:1]


def problems(roles: Sequence[Role], completion: str, *, is_persistent: bool) -> Iterator[str]:
    """Why these roles cannot be saved, a sentence each; nothing when they can."""
    names = [role.name.casefold() for role in roles]
    for name in sorted({role.name for role in roles if names.count(role.name.casefold()) > 1}):
        yield f"Two roles are called {name}. Give each a name of its own."
    for role in roles:
        yield from _of_role(role, completion)
    resumed = any(events.subscribes(role.subscriptions, Event(events.RESUME)) for role in roles)
    if is_persistent and roles and not resumed:
        yield (
            f"No role subscribes to {events.RESUME}. A loop that stays sends it after each finished "
            f"issue, and nobody would look for the next one. Add {events.RESUME} to one role."
        )


def _taker(roles: Sequence[Role], event: Event) -> Role | None:
    """The role for which an event is meant, or the first that subscribes to it."""
    if event.to:
        return next((role for role in roles if role.name == event.to), None)
    return next((role for role in roles if events.subscribes(role.subscriptions, event)), None)


def _of_role(role: Role, completion: str) -> Iterator[str]:
    if not role.name.strip():
        yield "A role has no name."
    if role.name.strip().casefold() == COORDINATOR:
        yield f"No role can be called {COORDINATOR}: that is who works when no role does."
    if not role.instructions.strip():
        yield f"{role.name} has no instructions, so its turns would have nothing to do."
    if not role.subscriptions:
        yield f"{role.name} subscribes to no event, so it would never have a turn."
    for topic in role.subscriptions:
        if not events.is_topic(topic.replace("*", "any")):
            yield (
                f"{role.name} subscribes to “{topic}”, which is no topic: use words joined by "
                "dots, such as build.done, or build.* for all of them."
            )
    if events.subscribes(role.subscriptions, Event(completion)):
        yield f"{role.name} subscribes to {completion}, which ends the loop and reaches no role."
