"""One turn of a loop in full: its prompt and what changed in it, its answer, its events, its diff."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import Http404
from django.utils.safestring import SafeString

from runs.core.ports import Lab
from runs.loop_pages.run_card import TurnRow
from runs.loops import prompts, stored
from runs.models import LoopTurn, Run
from runs.pulls import comparing, diff, diff_rows
from runs.pulls.diff import Line
from runs.pulls.rules import Ends
from runs.web import code

MOST_LINES = 2000
MOST_LINE = 2000
# Of a longer prompt its beginning and its end are shown; what is compared has a most, since that
# takes the square of its length.
MOST_SHOWN, END_SHOWN = 60_000, 20_000
MOST_COMPARED = 500_000
MOST_TASKS = 100
CONTEXT = 3


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A text as a page shows it. `left_out`: how many characters there are between begin and end."""

    begin: str
    end: str = ""
    left_out: int = 0

    @property
    def left_out_words(self) -> str:
        return f"{self.left_out:,}"


@dataclass(frozen=True, slots=True)
class PromptDiff:
    """What changed in a prompt since the turn before."""

    lines: Sequence[Line]
    is_cut: bool
    is_too_long: bool = False

    @property
    def rows(self) -> SafeString:
        return diff_rows.rows(self.lines, 0, {}, is_split=False)


def of(lab: Lab, run: Run, generation: int, number: int) -> dict[str, Any]:
    """Everything of the page beside its frame. Three queries and what git is asked. Raises Http404."""
    turn = turn_of(run.pk, generation, number)
    turns = LoopTurn.objects.filter(loop__run=run)
    before = turns.filter(pk__lt=turn.pk).order_by("-pk").first()
    after = turns.filter(pk__gt=turn.pk).order_by("pk").only("generation", "number").first()
    facts = stored.facts(turn.facts)
    prompt = prompts.compose(facts)
    return {
        "run": run,
        "turn": turn,
        "row": TurnRow(turn),
        "before": before,
        "after": after,
        "facts": facts,
        "prompt": excerpt(prompt),
        "tasks": [task for task in facts.tasks or () if task.text],
        "most_tasks": MOST_TASKS,
        "prompt_diff": changed(prompt_of(before), prompt) if before is not None else None,
        **_changes(lab, run, turn),
    }


def turn_of(run_id: int, generation: int, number: int) -> LoopTurn:
    """A turn of a run. Raises Http404."""
    turns = LoopTurn.objects.filter(loop__run_id=run_id)
    turn = turns.filter(generation=generation, number=number).first()
    if turn is None:
        raise Http404("This run has no such turn.")
    return turn


def excerpt(text: str) -> Excerpt:
    """A text whole, or of one that is too long for a page its beginning and its end."""
    left_out = len(text) - MOST_SHOWN
    if left_out <= 0:
        return Excerpt(text)
    return Excerpt(text[: MOST_SHOWN - END_SHOWN], text[-END_SHOWN:], left_out)


def prompt_of(turn: LoopTurn) -> str:
    """The prompt that a turn was given, composed again."""
    return prompts.compose(stored.facts(turn.facts))


def changed(before: str, after: str) -> PromptDiff:
    """Two prompts compared, line by line; not where that would take too long."""
    if len(before) + len(after) > MOST_COMPARED and before != after:
        return PromptDiff((), is_cut=False, is_too_long=True)
    old, new = before.splitlines(), after.splitlines()
    groups = difflib.SequenceMatcher(None, old, new).get_grouped_opcodes(CONTEXT)
    lines = [line for group in groups for line in _hunk(group, old, new)]
    return PromptDiff(lines[:MOST_LINES], len(lines) > MOST_LINES)


def _hunk(
    group: Sequence[tuple[str, int, int, int, int]], old: Sequence[str], new: Sequence[str]
) -> Iterator[Line]:
    first, last = group[0], group[-1]
    head = f"@@ -{first[1] + 1},{last[2] - first[1]} +{first[3] + 1},{last[4] - first[3]} @@"
    yield Line("hunk", None, None, code.visible(head))
    for kind, old_from, old_to, new_from, new_to in group:
        if kind == "equal":
            for place in range(old_to - old_from):
                text = _cut(old[old_from + place])
                yield Line("", old_from + place + 1, new_from + place + 1, text)
            continue
        for place in range(old_from, old_to):
            yield Line("minus", place + 1, None, _cut(old[place]))
        for place in range(new_from, new_to):
            yield Line("plus", None, place + 1, _cut(new[place]))


def _cut(line: str) -> SafeString:
    """A line as it is shown, of a longer one its beginning."""
    return code.visible(line if len(line) <= MOST_LINE else f"{line[:MOST_LINE]}…")


def _changes(lab: Lab, run: Run, turn: LoopTurn) -> dict[str, Any]:
    """What the turn committed; nothing where it did not."""
    if not turn.head_before or not turn.head or turn.head_before == turn.head:
        return {"files": (), "changes_error": ""}
    ends = Ends(turn.head_before, turn.head)
    found = comparing.between(lab, run.project, ends)
    if found.error:
        return {"files": (), "changes_error": found.error}
    patch = comparing.patch(lab, run.project, ends)
    return {"files": diff.files(found.files, patch), "changes_error": ""}
