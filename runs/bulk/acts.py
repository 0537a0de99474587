"""What may be done to many rows at once. Every row goes through the door that its own button has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from runs.bulk.rules import Result
from runs.core.ports import Lab, SeamError
from runs.core.refusal import ActRefused
from runs.core.states import TrackerKind
from runs.followups import acts as followups
from runs.followups import facts as followup_facts
from runs.followups import rules as followup_rules
from runs.kept import discard as kept_discard
from runs.models import Discarding, Project, Run
from runs.overview import attention
from runs.pulls import mergeable, merging, proofs, rules
from trackers.base import TrackerError
from trackers.builtin.models import PullRequest

LONGEST = timedelta(seconds=60)  # what is not begun by then is left for another press
GONE = "It is not there any more. Nothing was done."
LATE = "Its turn did not come. Nothing was done; press again for what is left."
NO_PULL = "It has no pull request that labsite keeps itself."


class BulkRefused(ActRefused):
    """Nothing was done to this row; the text says why."""


@dataclass(frozen=True, slots=True)
class Item:
    """One chosen row: its run, the number of its pull request or its branch, as far as it has them."""

    key: str
    label: str
    project: Project
    run: Run | None = None
    number: int | None = None
    branch: str = ""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What will be done to a row, or why nothing will; `seen` is what the person has before them."""

    can: bool
    text: str = ""
    seen: str = ""


@dataclass(frozen=True, slots=True)
class Act:
    """One act on rows: its verb, what it does in a sentence, and who is asked for a password again."""

    verb: str
    will: str
    foresee: Callable[[Lab, Item], Forecast]
    do: Callable[[Lab, Item, str, str], str]
    asks_again: bool = False
    ends: bool = False


def of_runs(keys: Sequence[str]) -> Mapping[str, Item]:
    """Runs by their numbers, with what their acts read. One query."""
    ids = [int(key) for key in keys if _is_number(key)]
    rows = Run.objects.select_related("project__agent", "project__forge", "profile").light()
    found = {str(run.pk): run for run in rows.filter(pk__in=ids)}
    return {
        key: Item(
            key,
            f"Run {run.pk}: #{run.issue_key} {run.short_title}",
            run.project,
            run,
            run.pull_number,
            run.branch,
        )
        for key, run in ((key, found[key]) for key in keys if key in found)
    }


def of_pulls(project: Project, keys: Sequence[str]) -> Mapping[str, Item]:
    """Pull requests of the built-in tracker by their numbers. One query."""
    numbers = [int(key) for key in keys if _is_number(key)]
    if not _is_kept_here(project):
        return {}
    rows = PullRequest.objects.filter(root_id=int(project.tracker_root), number__in=numbers)
    names = dict(rows.values_list("number", "title"))
    return {
        key: Item(key, f"#{key} {names[int(key)][:160]}", project, number=int(key))
        for key in keys
        if _is_number(key) and int(key) in names
    }


def of_parked(project: Project, keys: Sequence[str]) -> Mapping[str, Item]:
    """Branches of a project; whether they are there, discarding tells."""
    return {key: Item(key, key, project, branch=key) for key in keys}


def foresee(lab: Lab, act: Act, items: Sequence[Item]) -> Sequence[Forecast]:
    """What pressing would do to each row as things stand. What cannot be told is tried all the same."""
    found = []
    for item in items:
        try:
            found.append(act.foresee(lab, item))
        except (SeamError, TrackerError) as error:
            found.append(Forecast(True, f"Could not be looked at now: {error}"))
    return found


def carry_out(
    lab: Lab,
    act: Act,
    keys: Sequence[str],
    items: Mapping[str, Item],
    seen: Mapping[str, str],
    by: str,
) -> Sequence[Result]:
    """Do it to one row after the other; what refuses one row keeps no other from its turn.

    Sent twice, what was done refuses: each door says that it was. After a minute the rest is left.
    """
    began = lab.now()
    results = []
    for key in keys:
        item = items.get(key)
        if item is None:
            results.append(Result(key, False, GONE))
        elif lab.now() - began > LONGEST:
            results.append(Result(key, None, LATE))
        else:
            results.append(_one(lab, act, item, seen.get(key, ""), by))
    return results


def _one(lab: Lab, act: Act, item: Item, seen: str, by: str) -> Result:
    try:
        return Result(item.key, True, act.do(lab, item, seen, by))
    except ActRefused as refused:
        return Result(item.key, False, refused.text)
    except (SeamError, TrackerError) as error:
        return Result(item.key, False, str(error))


def _foresee_merge(lab: Lab, item: Item) -> Forecast:
    pull = _pull(item)
    if pull is None:
        return Forecast(False, NO_PULL)
    found = mergeable.facts_of(lab, item.project, pull)
    said = rules.verdict(found)
    head = found.head_tip or ""
    proof = proofs.load_proof(item.project, pull.head, found.head_tip)
    if not said.can_merge or not proof.state.needs_consent:
        return Forecast(said.can_merge, said.text, head)
    # Who reads the forecast and presses has been asked.
    text = f"{proof.text} {said.text}"
    if item.project.merges_only_passed:
        return Forecast(False, f"{proof.text} This project merges only what its checks passed.")
    return Forecast(True, text, f"{head}:{proof.state}")


def _merge(lab: Lab, item: Item, seen: str, by: str) -> str:
    if item.number is None or not _is_kept_here(item.project):
        raise BulkRefused(NO_PULL)
    head, _, checks = seen.partition(":")
    wanted = merging.Seen(head, checks=checks)
    done = merging.merge(lab, item.project, item.number, by=by, seen=wanted)
    closed = "".join(f" Issue {one} is closed." for one in done.closed)
    return f"Pull request {item.number} was merged into {done.into}.{closed}"


def _foresee_discard(lab: Lab, item: Item) -> Forecast:
    said = kept_discard.accepted(item.project, item.branch)
    return Forecast(not said, f"{said} Discard it by itself if you want that." if said else "")


def _discard(lab: Lab, item: Item, seen: str, by: str) -> str:
    done = kept_discard.begin(lab, item.project, item.branch, by)
    if isinstance(done, Discarding):
        return kept_discard.describe_wait(item.project, item.branch)
    return f"Discarded; it is kept under Rescued. {done.on_origin}".strip()


def _foresee_retry(lab: Lab, item: Item) -> Forecast:
    why = followup_rules.why_not_retry(followup_facts.stored(lab, _run(item)))
    return Forecast(not why, why)


def _retry(lab: Lab, item: Item, seen: str, by: str) -> str:
    followups.retry(lab, _run(item), by=by)
    return "What it left is being discarded. Then its issue starts anew, as soon as a slot is free."


def _foresee_dismiss(lab: Lab, item: Item) -> Forecast:
    why = _why_not_dismiss(lab, _run(item))
    return Forecast(not why, why)


def _dismiss(lab: Lab, item: Item, seen: str, by: str) -> str:
    run = _run(item)
    why = _why_not_dismiss(lab, run)
    if why:
        raise BulkRefused(why)
    attention.dismiss(lab, run, by)
    return "Dismissed. The run and its work stay."


def _why_not_dismiss(lab: Lab, run: Run) -> str:
    if run.is_active:
        return "This run has not ended, so there is nothing to dismiss."
    if run.seen_until is not None and run.seen_until <= lab.now():
        return "It was dismissed already."
    return ""


def _run(item: Item) -> Run:
    assert item.run is not None  # noqa: S101  (acts on runs alone ask)
    return item.run


def _pull(item: Item) -> PullRequest | None:
    if item.number is None or not _is_kept_here(item.project):
        return None
    root = int(item.project.tracker_root)
    return PullRequest.objects.filter(root_id=root, number=item.number).first()


def _is_kept_here(project: Project) -> bool:
    return project.tracker == TrackerKind.BUILTIN and project.tracker_root.isdigit()


def _is_number(key: str) -> bool:
    return key.isascii() and key.isdigit() and len(key) < 10


MERGE = Act(
    "Merge",
    "Each pull request is merged into its base as it is now. One to which commits come meanwhile, or "
    "that cannot be merged, is left as it is.",
    _foresee_merge,
    _merge,
)
DISCARD = Act(
    "Discard",
    "Each branch and its worktree are removed, here and on origin, and its issue can be claimed again. "
    "Open pull requests of them are closed. What they hold is rescued first and can be restored for "
    "some days; files that git ignores are gone.",
    _foresee_discard,
    _discard,
    asks_again=True,
    ends=True,
)
RETRY = Act(
    "Retry",
    "What each run left is discarded, here and on origin, and rescued first. Then a new run starts on "
    "its issue, with nothing of the old one.",
    _foresee_retry,
    _retry,
    asks_again=True,
    ends=True,
)
DISMISS = Act(
    "Dismiss",
    "Each run leaves what needs you. The run, its work and its page stay.",
    _foresee_dismiss,
    _dismiss,
)
OF_RUNS = {"merge": MERGE, "retry": RETRY, "dismiss": DISMISS}
OF_PULLS = {"merge": MERGE}
OF_PARKED = {"discard": DISCARD}
