"""What lies beside the runs and has no row any more: clean worktrees, copies, fixtures, output.

Runs where Django is set up. Whatever has its row is removed by the product itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from django.db.models import Q

from runs.core.paths import Paths
from runs.machine import processes
from runs.models import Attempt, CheckRun, Validation
from runs.on_request import by_hand

# At work or to be tidied up, or kept to be looked at.
_STANDS = Q(settled_at=None) | Q(artifacts__worktree_state="kept")


def orphans(paths: Paths) -> list[str]:
    """Folders for which nothing stands, as paths in the state folder. Rows are older than folders."""
    there = sorted(_folders(paths))
    names = {
        *_clean_rooms(paths),
        *_copies(paths, there),
        *_fixtures(paths, there),
        *_outputs(paths),
    }
    found = [one for one in there if one not in names and one.exists()]
    return [str(one.relative_to(paths.state)) for one in found]


def _folders(paths: Paths) -> Iterator[Path]:
    for top in _in(paths.clean_rooms):
        if top.name in (by_hand.PLACE, by_hand.KEPT):
            yield from top.glob("*/*")
        elif top.name.startswith("run-level-"):
            yield top
        else:
            yield from top.glob("*/*")
    yield from _in(paths.reviews)
    yield from _in(paths.e2e_fixtures)
    yield from (one for one in _in(paths.gates) if one.name != by_hand.PLACE)


def _in(folder: Path) -> Iterable[Path]:
    return folder.iterdir() if folder.is_dir() else ()


def _clean_rooms(paths: Paths) -> Iterator[Path]:
    rows = Attempt.objects.filter(_STANDS).values_list("run_id", "run__issue_key", "number")
    for run, key, number in rows:
        yield paths.clean_rooms / str(run) / key / str(number)
    for number in Validation.objects.filter(_STANDS).values_list("pk", flat=True):
        yield paths.clean_rooms / f"run-level-{number}"
    left = set(by_hand.left(paths, processes.is_alive))
    for place in (by_hand.PLACE, by_hand.KEPT):
        yield from set((paths.clean_rooms / place).glob("*/*")) - left


def _copies(paths: Paths, there: Iterable[Path]) -> Iterator[Path]:
    at_work = Attempt.objects.filter(settled_at=None).values_list("pk", flat=True)
    numbers = {str(number) for number in at_work}
    yield from (
        one
        for one in there
        if one.parent == paths.reviews and one.name.partition("-")[0] in numbers
    )


def _fixtures(paths: Paths, there: Iterable[Path]) -> Iterator[Path]:
    """Of a run level that is at work, or kept; of `./lab validate` as long as its output is there."""
    at_work = Validation.objects.filter(settled_at=None).values_list("pk", flat=True)
    rooms = {f"run-level-{number}" for number in at_work}
    left = {one.name for one in by_hand.left(paths, processes.is_alive)}
    rooms |= {one.name for one in _in(paths.gates / by_hand.PLACE)} - left
    kept = Validation.objects.exclude(settled_at=None).values_list("artifacts", flat=True)
    places = {Path(one["e2e_fixture_path"]).parent for one in kept if one.get("e2e_fixture_path")}
    for one in there:
        if one.parent == paths.e2e_fixtures and (
            one in places or one.name.rpartition("-")[0] in rooms
        ):
            yield one


def _outputs(paths: Paths) -> Iterator[Path]:
    for number in Attempt.objects.values_list("pk", flat=True):
        yield paths.gates / str(number)
    for number in CheckRun.objects.values_list("pk", flat=True):
        yield paths.gates / f"check-{number}"
