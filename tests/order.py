"""In which order files of tests run: those that wait for programs beside those that compute."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

File = TypeVar("File")

# Their tests start programs by themselves, and few of them take long: they begin first.
OF_PROGRAMS = ("story", "walk", "house", "agents", "ops", "baddays", "hosts", "remote")

# What takes longest, by the record of a run. Whoever took one of them late would work on alone at the end.
LONG = (
    "web/test_every_page_look.py",
    "agents/test_gates.py",
    "agents/test_going_on.py",
    "overview/test_night.py",
    "watch/test_watch_pages.py",
    "api/test_fuzz.py",
    "ops/test_backup_bad.py",
    "hosts/test_two_machines_real.py",
    "kept/test_parked_work.py",
    "agents/test_waits.py",
    "agents/test_limits.py",
    "web/test_browser_look.py",
    "pulls/test_review_browser.py",
    "ops/test_doctor.py",
    "validation/test_validations.py",
    "validation/test_run_level.py",
    "validation/test_checks_contract.py",
    "web/test_browser_refresh.py",
    "web/test_browser_actions.py",
    "web/test_live_browser.py",
    "web/test_feed_browser.py",
    "web/test_feed_served.py",
    "web/test_bounds_served.py",
    "accounts/test_held_runs.py",
    "followups/test_changes.py",
)


def interleaved(waiting: Sequence[File], computing: Sequence[File]) -> Iterator[File]:
    """Both in their order, spread evenly over each other.

    Files of one kind stand together in the order of folders. Each process of the tests takes the
    next file, so for minutes all of them waited for programs, and then all of them wanted a core.
    """
    at = 0
    for n, one in enumerate(waiting, 1):
        yield one
        until = n * len(computing) // len(waiting)
        yield from computing[at:until]
        at = until
    yield from computing[at:]


def place(folder: str, name: str = "") -> tuple[int, int]:
    """How early a file of tests begins among those of its kind, by its folder and its own name."""
    file = f"{folder}/{name}"
    if file in LONG:
        return 0, LONG.index(file)
    return 1, OF_PROGRAMS.index(folder) if folder in OF_PROGRAMS else len(OF_PROGRAMS)
