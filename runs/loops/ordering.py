"""What a turn is ordered with: the facts of its prompt, its agent, and the order for its runner."""

from __future__ import annotations

from typing import Any

from django.db.models.functions import Length

from runs.agents import commands, orders
from runs.core.ports import Lab
from runs.loops import beginning, issue_of_loop, prompts, results, stored
from runs.loops.prompts import PromptFacts, Task, compose
from runs.loops.roles import Role, Turn
from runs.models import AgentProfile, Loop, LoopMemory, LoopTurn

PROMPT = "prompt.md"
# A program is given no longer argument than this by Linux.
MOST_ARGUMENT = 120_000
IN_FILE = "Your task is in the file {}. Read it whole, then do what it says."


def facts(lab: Lab, loop: Loop, given: Turn, guidance: list[str]) -> PromptFacts:
    """All that the prompt of the next turn is made of, but what is left of its limits."""
    memories, older = _memories(loop)
    left = results.uncommitted(lab, loop.run)
    commits = _earlier_commits(lab, loop)
    return PromptFacts(
        objective=loop.objective,
        completion=stored.terms(loop.terms["rules"]).completion,
        scratchpad=prompts.notes_tail(_notes(lab, loop)),
        memories=memories,
        older_memories=older,
        guidance=guidance,
        events=given.given,
        tasks=_tasks(loop),
        role=given.role,
        stays=issue_of_loop.is_staying(loop),
        uncommitted=left[: results.MOST_FILES],
        more_uncommitted=len(left[results.MOST_FILES :]),
        commits=commits[: results.MOST_TOLD_COMMITS],
        more_commits=len(commits[results.MOST_TOLD_COMMITS :]),
        stands_on=results.stands_on(lab, loop.run),
        branch=loop.run.branch,
    )


def _earlier_commits(lab: Lab, loop: Loop) -> list[str]:
    """What the run that it goes on with has committed, until a turn was worked off."""
    has_worked = stored.counters(loop.counters).turns > 0
    return results.commits(lab, loop.run) if loop.run.continues_id and not has_worked else []


def content(lab: Lab, turn: LoopTurn, profile: AgentProfile) -> dict[str, Any]:
    """The order of a turn as its runner reads it, made of what is stored: the same each time."""
    run = turn.loop.run
    prompt = compose(stored.facts(turn.facts))
    file = turn.folder(lab.paths) / PROMPT
    is_long = len(prompt.encode()) > MOST_ARGUMENT
    values = {
        "prompt": IN_FILE.format(file) if is_long else prompt,
        "prompt_file": str(file),
        "model": turn.model,
        "effort": _effort(turn, profile),
        "worktree": run.worktree,
        "settings": "",
        "session": "",
    }
    own = {str(name): str(value) for name, value in profile.env.items()}
    env = {**orders.switches_of(profile), **own}
    if turn.issue_id is not None:  # the session began with another one
        env |= {"LAB_ISSUE": run.issue_key, "LAB_BRANCH": run.branch}
    if "BASH_ENV" in env:
        env["LAB_BASH_ENV"] = env.pop("BASH_ENV")
    return {
        **{"generation": turn.generation, "number": turn.number, "wait_seconds": 0.0, "why": ""},
        "argv": commands.fill(orders.template_of(profile), values),
        "env": env,
        "prompt": prompt,
        "has_stdin": False,
        "role": turn.role,
        "output": turn.output,
        "notes": turn.loop.notes,
        "notes_number": turn.loop.notes_number,
        "limit_seconds": turn.loop.terms["max_turn_seconds"],
    }


def _effort(turn: LoopTurn, profile: AgentProfile) -> str:
    """The effort of its role, else that of the run where its agent is the run's."""
    role = turn.facts.get("role") or {}
    run = turn.loop.run
    return role.get("effort") or (run.effort if profile.pk == run.profile_id else "")


def profile(loop: Loop, role: Role | None) -> AgentProfile | None:
    """The agent of a role, else of the loop; where that was deleted, what its project has now."""
    if role is not None and role.profile:
        own = AgentProfile.objects.filter(pk=int(role.profile)).first()
        if own is not None:
            return own
    if loop.run.profile is not None:
        return loop.run.profile
    terms = beginning.stored_terms(loop.run.project_id)
    return beginning.profile_of(terms) if terms is not None else None


def model(loop: Loop, role: Role | None) -> str:
    """The model of a turn: that of its role, where that has one or an agent of its own."""
    if role is not None and (role.model or role.profile):
        return role.model
    return loop.run.model


def _memories(loop: Loop) -> tuple[list[str], int]:
    """The newest that fit into a prompt, and how many older ones there are; no other text is read."""
    if not loop.terms["has_memories"]:
        return [], 0
    rows = LoopMemory.objects.filter(project_id=loop.run.project_id)
    sizes = list(rows.values_list(Length("text"), flat=True))
    fitting = prompts.fitting_memories(sizes)
    kept = list(rows.values_list("text", flat=True)[:fitting]) if fitting else []
    return kept, len(sizes) - len(kept)


def _notes(lab: Lab, loop: Loop) -> str:
    """The scratchpad; before the first turn of all that of the loop that this one goes on with.

    After an issue it is what the runner puts in its place before the turn.
    """
    if loop.are_notes_new:
        return loop.notes
    folder = loop.folder(lab.paths)
    written = lab.mask(results.tail(lab, folder, results.NOTES, results.MOST_NOTES))
    return written or ("" if loop.turns.exists() else loop.notes)


def _tasks(loop: Loop) -> list[Task] | None:
    if not loop.terms["has_tasks"]:
        return None
    rows = loop.tasks.values_list("number", "text", "state")
    return prompts.shown_tasks([Task(str(number), text, state) for number, text, state in rows])
