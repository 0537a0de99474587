"""The prompt of a turn, composed from stored facts alone, so that each can be made again. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from runs.loops.events import Event
from runs.loops.roles import Role
from runs.loops.rules import End

MOST_NOTE_CHARACTERS = 16_000
MOST_HEADINGS = 20
HEADING = re.compile(r"^#{1,6}\s+(?P<text>.*\S)\s*$", re.MULTILINE)
MOST_MEMORY_CHARACTERS = 8_000
MOST_TASK_CHARACTERS = 8_000
LISTED = ("ready", "open")  # states of tasks that a prompt lists
MARKS = 3  # what a line of a list has beside its text
WORKFLOW = (
    "1. Read the notes above and look at the state of the work.\n"
    "2. Do the next piece of it, one thing at a time, and commit it.\n"
    "3. Write what the next turn must know into the scratchpad, the file `$LAB_SCRATCHPAD`: it starts "
    "with nothing else.\n"
    "4. End the turn with an event: `labctl emit TOPIC TEXT`. What only a person can say is asked with "
    "`labctl ask TEXT`: end the turn then, and the next prompt says what they answered."
)


@dataclass(frozen=True, slots=True)
class Task:
    """A task of a loop. `state` is *ready*, *open* (blocked or being worked on) or *closed*."""

    key: str
    text: str
    state: str


@dataclass(frozen=True, slots=True)
class PromptFacts:
    """All that a prompt is made of. `nearing` is told once a limit.

    `unanswered` is what the turn before asked a person who did not answer.

    `memories` begin with the newest; of `older_memories` only the number is told.

    `scratchpad` are the notes as `notes_tail` has cut them. `tasks` is None where tasks are not in use.
    `uncommitted` are files with changes that are in no commit; of `more_uncommitted` only the number
    is told. `commits` are those of an earlier run on its branch, the newest first; of `more_commits`
    only the number is told. `stands_on` is where the worktree stands when it is not on `branch`, that of the run.
    `stays`: the loop takes issue after issue.
    """

    objective: str
    completion: str
    scratchpad: str = ""
    memories: Sequence[str] = ()
    older_memories: int = 0
    guidance: Sequence[str] = ()
    unanswered: str = ""
    events: Sequence[Event] = ()
    tasks: Sequence[Task] | None = None
    role: Role | None = None
    nearing: Mapping[End, str] = field(default_factory=dict)
    stays: bool = False
    uncommitted: Sequence[str] = ()
    more_uncommitted: int = 0
    commits: Sequence[str] = ()
    more_commits: int = 0
    stands_on: str = ""
    branch: str = ""


def compose(facts: PromptFacts) -> str:
    """The prompt: notes, objective, what people and events say, tasks, then role or workflow and DONE."""
    return "\n\n".join(part for part in _parts(facts) if part) + "\n"


def notes_tail(text: str, most: int = MOST_NOTE_CHARACTERS) -> str:
    """The newest whole lines of the notes, at most `most` characters, and what was left out.

    A single line that is longer is cut at its start. Empty for blank notes.
    """
    if not text.strip():
        return ""
    if len(text) <= most:
        return text.strip("\n")
    kept = text[-most:]
    begins_line = text[-most - 1] == "\n"
    line_end = kept.find("\n")
    if not begins_line and 0 <= line_end < len(kept) - 1:
        kept = kept[line_end + 1 :]
    dropped = text[: len(text) - len(kept)]
    return f"{_notice(dropped)}\n\n{kept.strip(chr(10))}"


def for_issue(key: str, title: str, body: str, labels: Sequence[str]) -> str:
    """The objective of a run that works on one issue."""
    told = ", ".join(f"`{label}`" for label in labels)
    done = (
        "## When done\n- All tests pass\n"
        f"- A pull request that references #{key} is open\n"
        "- The issue has a comment with the link of the pull request"
    )
    parts = [f"# Implement: {title} (#{key})", body.strip()]
    parts += [f"**Labels of the issue:** {told}"] if told else []
    return "\n\n".join(part for part in (*parts, done) if part)


def for_next(completion: str) -> str:
    """The objective between two issues of a loop that stays."""
    return (
        "# Take the next issue\n\n"
        "The issue before is done, and no other one is open. Run `labctl next`: it claims the next "
        "ready issue for this loop, puts the worktree on a branch of its own and prints the issue, "
        "which is the objective from then on. Do not pick an issue yourself. Where it says that "
        f"there is none, end the turn with `labctl emit {completion}`: the loop then waits, and is "
        "given the next issue when there is one."
    )


def _parts(facts: PromptFacts) -> Iterator[str]:
    notes = facts.scratchpad.strip("\n")
    if notes.strip():
        yield f"## NOTES OF THE TURNS BEFORE\n\n{notes}"
    yield _memories(facts.memories, facts.older_memories)
    yield (
        "## OBJECTIVE\n\nThis is what all work of this turn is for:\n\n"
        f"{_quoted(facts.objective)}\n\nKeep it in mind until the end of the turn."
    )
    if facts.nearing:
        left = "\n".join(f"- {text}" for text in facts.nearing.values())
        yield f"## WHAT IS LEFT\n\nThe loop ends soon. Finish and commit what is begun. Left are:\n{left}"
    if facts.guidance:
        said = "\n\n".join(_quoted(text) for text in facts.guidance)
        yield (
            "## GUIDANCE\n\nA person who watches this loop says:\n\n"
            f"{said}\n\nFollow it, and confirm with `labctl ack`."
        )
    if facts.unanswered:
        yield (
            f"## NO ANSWER\n\nThe turn before asked a person:\n\n{_quoted(facts.unanswered)}\n\n"
            "Nobody answered in time. Go on without: decide what can be undone, note what you decided "
            "and why, and leave alone what cannot."
        )
    if facts.events:
        told = "\n".join(_event(event) for event in facts.events)
        yield f"## PENDING EVENTS\n\n{told}"
    if facts.stands_on:
        yield (
            f"## ANOTHER BRANCH\n\nThe worktree is on {facts.stands_on}. Only what is committed on "
            f"`{facts.branch}` counts: bring the work there first."
        )
    yield _commits(facts)
    yield _uncommitted(facts.uncommitted, facts.more_uncommitted)
    if facts.tasks is not None:
        yield _tasks(facts.tasks)
    yield from _how(facts)


def _how(facts: PromptFacts) -> Iterator[str]:
    """What the turn does, and when the work is done."""
    if facts.stays:
        yield (
            "## ISSUE AFTER ISSUE\n\nThis loop stays. `"
            f"{facts.completion}` says that the issue at hand is done; the one after it is taken with "
            "`labctl next`, which claims it and prints it."
        )
    if facts.role is not None:
        yield f"## YOUR ROLE: {facts.role.name}\n\n{facts.role.instructions.strip()}{_publishes(facts.role)}"
        return
    yield f"## HOW TO WORK\n\n{WORKFLOW}"
    yield (
        f"## DONE\n\nWhen the objective is met and no task is open, end with `labctl emit "
        f"{facts.completion}`. The objective was:\n\n{_quoted(facts.objective)}\n\n"
        "Do not say so before it is met in full."
    )


def _quoted(text: str) -> str:
    """As a quotation, so that no line of it is taken for a section of the prompt."""
    return "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines())


def _event(event: Event) -> str:
    first, *more = event.payload.strip().splitlines() or [""]
    told = f"- `{event.topic}`{': ' + first if first else ''}"
    return "\n".join([told, *(f"  {line}".rstrip() for line in more)])


def indented(text: str) -> str:
    """As a part of a list, so that no line of it is taken for a section of the prompt."""
    return text.replace("\n", "\n  ")


def shown_tasks(tasks: Sequence[Task]) -> list[Task]:
    """The tasks in their order, without the texts of those for which a prompt has no room."""
    ordered = [task for state in LISTED for task in tasks if task.state == state]
    room, shown = MOST_TASK_CHARACTERS, set()
    for task in ordered:
        shown.add(task.key)  # with the first one that does not fit, behind which none is listed
        room -= len(task.text)
        if room < 0:
            break
    return [task if task.key in shown else replace(task, text="") for task in tasks]


def fitting_memories(sizes: Sequence[int]) -> int:
    """How many memories of these sizes, from the first on, fit into a prompt together."""
    totals = accumulate(size + MARKS for size in sizes)
    return sum(1 for total in totals if total <= MOST_MEMORY_CHARACTERS)


def _memories(memories: Sequence[str], older: int) -> str:
    """The newest that fit, in the order in which they were written."""
    kept = memories[: fitting_memories([len(memory) for memory in memories])]
    more = older + len(memories) - len(kept)
    left = f"{more} older ones: `labctl memory search WORD`." if more else ""
    told = "\n".join(f"- {indented(memory.strip())}" for memory in reversed(kept))
    parts = [part for part in (told, left) if part]
    return "\n\n".join(["## MEMORIES", *parts]) if parts else ""


def _commits(facts: PromptFacts) -> str:
    """What is on the branch already; empty where nothing is."""
    if not facts.commits:
        return ""
    lines = [f"- {commit}" for commit in facts.commits]
    lines += [f"- {facts.more_commits} more: `git log`"] if facts.more_commits else []
    told = (
        f"An earlier run left these commits on `{facts.branch}`, the newest first. Build on them:"
    )
    return "\n".join(["## COMMITS OF AN EARLIER RUN", "", told, *lines])


def _uncommitted(paths: Sequence[str], more: int) -> str:
    """What a turn left in the worktree; empty where everything is committed."""
    lines = [f"- {path}" for path in paths]
    lines += [f"- {more} more: `git status`"] if more else []
    told = "These files of the worktree have changes that are in no commit. Look at them first:"
    return "\n".join(["## NOT COMMITTED", "", told, *lines]) if lines else ""


def _tasks(tasks: Sequence[Task]) -> str:
    by_state = {state: [task for task in tasks if task.state == state] for state in _STATES}
    counts = ", ".join(f"{len(by_state[state])} {state}" for state in _STATES)
    lines = [
        f"- [{task.key}] {indented(task.text)} ({state})"
        for state in LISTED
        for task in by_state[state]
    ]
    kept = list(_that_fit(lines, MOST_TASK_CHARACTERS))
    more = len(lines) - len(kept)
    kept += [f"- {more} more: `labctl task list`"] if more else []
    return "\n\n".join([f"## TASKS: {counts}", *(["\n".join(kept)] if kept else [])])


def _that_fit(lines: Sequence[str], room: int) -> Iterator[str]:
    """The first lines that have so many characters together."""
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            return
        yield line


def _publishes(role: Role) -> str:
    if not role.publishes:
        return "\n\nEnd the turn with an event: `labctl emit TOPIC TEXT`."
    topics = ", ".join(f"`{topic}`" for topic in role.publishes)
    return f"\n\nEnd the turn with one of these events: {topics} (`labctl emit TOPIC TEXT`)."


def _notice(dropped: str) -> str:
    headings = [found["text"][:80] for found in HEADING.finditer(dropped)]
    told = f"[The first {len(dropped)} characters of these notes are left out here."
    if headings:
        more = len(headings) - MOST_HEADINGS
        told += " They were about: " + "; ".join(headings[:MOST_HEADINGS])
        told += f" and {more} more." if more > 0 else "."
    return told + "]"


_STATES = ("ready", "open", "closed")
