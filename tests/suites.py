"""Which suite a test belongs to, how long it may take, and which part of a suite a process runs.

The line is drawn by what a test needs, which its fixtures and marks say; CONTRIBUTING.md explains it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

# What a test needs, from the least to the most. A fixture or a mark of that name asks for it.
PURE, DATABASE, REAL, BROWSER = NEEDS = ("pure", "database", "real", "browser")
FIXTURE_NEEDS: Mapping[str, str] = {
    "db": DATABASE,
    "transactional_db": DATABASE,
    "django_db_setup": DATABASE,
    # A server in this process, real git and tmux, or a product as an operator starts it.
    "live_server": REAL,
    "page_server": REAL,
    "real": REAL,
    "served": REAL,
    "once_served": REAL,
    "own_served": REAL,
    "prepared_state": REAL,
    "once_used": REAL,
    "used": REAL,
    "story": REAL,
    "redis_server": REAL,
    "agents": REAL,
    "browser": BROWSER,
    "chromium": BROWSER,
}

QUICK, LONG = "quick", "long"
# Seconds after which a test counts as hanging, setup included. In the quick suite a test that needs
# more than the least says so with `@pytest.mark.timeout(60)`; the long suite only catches hangs.
LIMITS: Mapping[str, int] = {PURE: 10, DATABASE: 10, REAL: 60, BROWSER: 60}
LONG_LIMIT = 600
# On PostgreSQL the first tests wait until one of the processes has made the tables for all.
SERVER_LIMIT = 60
# A test beyond this is printed, unless its `quick` mark says why it stays.
SLOW_SECONDS = 2.0

# What a test of each kind takes on average, in seconds: parts of a suite are made equal by it.
WEIGHTS: Mapping[str, float] = {PURE: 0.02, DATABASE: 0.15, REAL: 1.5, BROWSER: 3.0}


@dataclass(frozen=True)
class TestFacts:
    """What collection knows about one test: names of its fixtures and of its marks."""

    __test__ = False

    fixtures: frozenset[str]
    marks: frozenset[str]
    # Whether the `quick` mark names a reason; None without such a mark.
    quick_reason: str | None = None


class SuiteError(Exception):
    """Raised when the marks of a test leave open where it belongs."""


def find_need(facts: TestFacts) -> str:
    """Return the greatest need that fixtures and marks of a test ask for.

    Raises:
        SuiteError: a test is marked `pure` and asks for a fixture that is not.
    """
    asked = {FIXTURE_NEEDS[name] for name in facts.fixtures if name in FIXTURE_NEEDS}
    if "django_db" in facts.marks:
        asked.add(DATABASE)
    marked = [need for need in NEEDS if need in facts.marks]
    if PURE in marked and (asked or len(marked) > 1):
        raise SuiteError(f"marked pure, but it needs {', '.join(sorted(asked | set(marked[1:])))}")
    return max([*asked, *marked], key=NEEDS.index, default=PURE)


def find_suite(facts: TestFacts) -> str:
    """Return the suite of a test: `quick` or `long`.

    What needs no program is quick unless it is marked `long`; what starts programs or a browser is
    long unless its `quick` mark says why every change has to pass it.

    Raises:
        SuiteError: the marks contradict each other, or a `quick` mark has no reason.
    """
    need = find_need(facts)
    is_quick, is_long = QUICK in facts.marks, LONG in facts.marks
    if is_quick and is_long:
        raise SuiteError("marked quick and long")
    if is_quick and not facts.quick_reason:
        raise SuiteError('a quick mark says why: @pytest.mark.quick("…")')
    if is_quick:
        return QUICK
    return LONG if is_long or need in (REAL, BROWSER) else QUICK


def find_limit(need: str, suite: str, *, is_on_server: bool) -> int:
    """Return after how many seconds a test of that need and suite counts as hanging."""
    if suite == LONG:
        return LONG_LIMIT
    return max(LIMITS[need], SERVER_LIMIT if is_on_server else 0)


def split_files(weights: Mapping[Path, float], parts: int) -> list[set[Path]]:
    """Split files into parts of about equal weight, the same way on every machine.

    Args:
        weights: the estimated seconds of each file.
        parts: how many parts to make, at least 1.

    Returns:
        One set of files per part. Longest processing time first: Graham, 1969.
    """
    made: list[set[Path]] = [set() for _ in range(parts)]
    sums = [0.0] * parts
    for path, weight in sorted(weights.items(), key=lambda item: (-item[1], str(item[0]))):
        least = sums.index(min(sums))
        made[least].add(path)
        sums[least] += weight
    return made


# Tests that stand for the whole product belong to every change.
WHOLE_PRODUCT = frozenset({"story", "baddays", "walk"})
# Folders of the product whose tests have another name.
TEST_FOLDERS: Mapping[str, tuple[str, ...]] = {
    "labsite": ("house", "ops"),
    "labctl": ("labctl",),
    "trackers": ("trackers",),
    "static": ("web",),
}


def find_touched_folders(changed: Iterable[str]) -> set[str] | None:
    """Return the folders of tests/ that changed files belong to.

    Args:
        changed: paths below the project's folder, with slashes.

    Returns:
        Names of folders; None when a change concerns all of them, such as one of conftest.py.
    """
    touched: set[str] = set()
    for path in changed:
        first, *rest = path.split("/")
        if first in ("docs", "bench") or path.endswith(".md"):
            continue
        if first in TEST_FOLDERS:
            touched |= {*TEST_FOLDERS[first]}
        elif first in ("runs", "templates", "tests") and len(rest) > 1:
            touched.add(rest[0])
        else:
            return None
    if touched & {"core", "migrations", "world"}:
        return None
    return touched | WHOLE_PRODUCT if touched else touched


def parse_part(text: str) -> tuple[int, int]:
    """Return number and count of a part such as `2/4`.

    Raises:
        ValueError: the text is no such part.
    """
    number, _, count = text.partition("/")
    if not (number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count)):
        raise ValueError(f"a part is written like 2/4, not {text!r}")
    return int(number), int(count)
