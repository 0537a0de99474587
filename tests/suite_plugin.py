"""The pytest plugin behind `./lab test`: chooses the tests of a suite, limits each, writes outcomes down."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import programs, suites
from tests.suites import TestFacts

ROOT = Path(__file__).resolve().parent.parent
NEED, SUITE = pytest.StashKey[str](), pytest.StashKey[str]()
# Python itself looks for a C library by these, once in a process: whose test that is is chance.
OF_PYTHON = ("ldconfig", "gcc", "cc", "ld", "objdump")
REASON_LENGTH = 400  # characters of a failure's reason that a report shows


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("suites")
    group.addoption("--suite", choices=(suites.QUICK, suites.LONG), help="only tests of this suite")
    group.addoption("--part", type=suites.parse_part, help="only this part of them, such as 2/4")
    group.addoption(
        "--touched", action="store_true", help="only of rooms that differ from the branch main"
    )
    group.addoption("--outcomes", metavar="FILE", help="write down there how each test ended")


def pytest_configure(config: pytest.Config) -> None:
    is_worker = hasattr(config, "workerinput")
    if config.getoption("--outcomes") and not is_worker:
        config.pluginmanager.register(OutcomeWriter(Path(config.getoption("--outcomes"))))


# After the project's own ordering, which this one keeps.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wrong = [text for item in items if (text := _classify(item))]
    if wrong:
        raise pytest.UsageError("These tests belong to no suite:\n" + "\n".join(wrong))
    suite = config.getoption("--suite")
    chosen = [item for item in items if suite in (None, item.stash[SUITE])]
    if config.getoption("--touched"):
        folders = suites.find_touched_folders(list_changed_files())
        chosen = [item for item in chosen if folders is None or item.path.parent.name in folders]
    if config.getoption("--part"):
        chosen = _take_part(chosen, *config.getoption("--part"))
    kept = {*chosen}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = chosen
    for item in items if suite else ():
        if item.get_closest_marker("timeout") is None:
            is_on_server = bool(os.environ.get("LAB_DATABASE_URL"))
            limit = suites.find_limit(item.stash[NEED], suite, is_on_server=is_on_server)
            item.add_marker(pytest.mark.timeout(limit))


def _classify(item: pytest.Item) -> str:
    """Store need and suite of a test; the text of what is wrong with its marks, else empty."""
    quick = item.get_closest_marker("quick")
    reason = None if quick is None else str(quick.args[0]) if quick.args else ""
    facts = TestFacts(
        frozenset(getattr(item, "fixturenames", ())),
        frozenset(mark.name for mark in item.iter_markers()),
        reason,
    )
    try:
        item.stash[NEED], item.stash[SUITE] = suites.find_need(facts), suites.find_suite(facts)
    except suites.SuiteError as error:
        return f"{item.nodeid}: {error}"
    return ""


def _take_part(items: list[pytest.Item], number: int, count: int) -> list[pytest.Item]:
    weights: dict[Path, float] = {}
    for item in items:
        weights[item.path] = weights.get(item.path, 0.0) + suites.WEIGHTS[item.stash[NEED]]
    mine = suites.split_files(weights, count)[number - 1]
    return [item for item in items if item.path in mine]


def list_changed_files() -> list[str]:
    """Return the files in which the working tree differs from the branch main, untracked ones included."""
    asked = (["diff", "--name-only", "main"], ["ls-files", "--others", "--exclude-standard"])
    found: set[str] = set()
    for arguments in asked:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True
        )
        found |= {*done.stdout.splitlines()}
    return sorted(found)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a test that starts a program without saying so: it would slow every change unseen."""
    if item.stash.get(NEED, suites.REAL) in (suites.REAL, suites.BROWSER):
        return (yield)
    with programs.started() as started:
        result = yield
    found = [program for program in started if Path(program.split()[0]).name not in OF_PYTHON]
    if found:
        pytest.fail(f"starts {', '.join(sorted({*found}))}: mark it real", pytrace=False)
    return result


class OutcomeWriter:
    """Writes one JSON line for each phase of each test: name, phase, outcome, seconds, reason."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        reason = ""
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            reason = str(getattr(crash, "message", None) or report.longrepr)[:REASON_LENGTH]
        with self._path.open("a") as file:
            entry = (report.nodeid, report.when, report.outcome, report.duration, reason)
            file.write(json.dumps(entry) + "\n")
