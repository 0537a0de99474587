"""Reports that the commands of a clean room write into its worktree: found, trusted, judged, kept."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runs.core.ports import Lab, SeamError
from runs.pulls import patches
from runs.validation import reports, specs
from runs.validation.reports import UnfitReport
from runs.validation.rooms import Result, Room
from runs.validation.specs import Spec

logger = logging.getLogger(__name__)

PATCH_BYTES = 4_000_000
REPORT_NAME = "coverage-report"
WAY_OUT = (
    "A test command has to write it. On the project's page Checks somebody can give one arguments "
    "for coverage, name the report's path, or turn coverage off"
)


class ReportFile:
    """A report below a worktree, and whether a command has written it: a committed one proves nothing."""

    def __init__(self, lab: Lab, path: Path, name: str) -> None:
        self.name = name
        self._lab = lab
        self._path = path
        self._before = self._look()

    def read(self) -> bytes:
        """Its content. Raises UnfitReport when it is missing, unreadable, old or too large."""
        now = self._look()
        if now is None:
            raise UnfitReport("it is missing")
        if now == self._before:
            raise UnfitReport("it lay there before, and no command has written it")
        found = self._lab.checks.output(self._path, self.name, 0, reports.MOST_BYTES + 1)
        if found is None:
            raise UnfitReport("it cannot be read")
        if len(found.data) > reports.MOST_BYTES:
            raise UnfitReport(f"it is larger than {reports.MOST_BYTES // 1_000_000} MB")
        return found.data

    def _look(self) -> object:
        """When it was written and how large it is; None for what is no file of the worktree."""
        if not self.name or not _is_below(self._path, self.name):
            return None
        found = self._lab.checks.output(self._path, self.name, 0, 0)
        return None if found is None else (found.size, found.written_at)


def _is_below(folder: Path, name: str) -> bool:
    """Whether a path leads nowhere else, by way of links neither."""
    try:
        return (folder / name).resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):
        return False


class CoverageGate:
    """The coverage that the commands of a room are to report."""

    def __init__(self, lab: Lab, room: Room, spec: Spec) -> None:
        self._lab = lab
        self._room = room
        self._terms = spec.coverage
        # Where nothing tests, there is nothing that could measure.
        tests = [one for one in spec.commands if one.kind is specs.Kind.TEST]
        self._is_wanted = spec.coverage.enabled and bool(tests)
        names = reports.coverage_paths([one.argv for one in tests], spec.coverage)
        self._reports = [
            ReportFile(lab, room.path, name) for name in (names if self._is_wanted else ())
        ]

    def judge(self, found: Result) -> dict[str, Any] | None:
        """What was measured beside what is needed; a failure of `found` when it is not enough.

        Where a command failed before anything was measured, that is no failure of its own.
        """
        if not self._is_wanted:
            return None
        needed = self._terms.min_percent
        answer: dict[str, Any] = {
            "percent": None,
            "needed": needed,
            "passed": False,
            "report_path": None,
            "changed_percent": None,
            "reason": "",
        }
        try:
            report, measured, changed = self._read(found)
        except UnfitReport as error:
            if found.failures:
                return None
            answer["reason"] = f"coverage cannot be told: {error}"
        else:
            percent = reports.percent_of(measured, self._terms)
            answer |= {
                "percent": percent,
                "report_path": report.name,
                "passed": reports.is_enough(percent, needed),
                "changed_percent": reports.changed_percent(measured, changed),
            }
            if not answer["passed"]:
                answer["reason"] = (
                    f"coverage is {reports.shown(percent)}, and {reports.shown(needed)} is needed"
                )
        if answer["reason"]:
            found.failures.append(answer["reason"])
        return answer

    def _read(
        self, found: Result
    ) -> tuple[ReportFile, reports.Measured, Mapping[str, frozenset[int]]]:
        trouble = UnfitReport("")
        for report in self._reports:
            try:
                data = report.read()
            except UnfitReport as error:
                trouble = error
                continue
            changed = self._changed_lines()
            try:
                measured = reports.read_coverage(data, str(self._room.path), changed)
            except UnfitReport as error:
                raise UnfitReport(f"the report {report.name}: {error}") from error
            found.artifacts["coverage_report"] = _keep(self._room, report.name, data)
            return report, measured, changed
        if len(self._reports) == 1:
            raise UnfitReport(f"the report {self._reports[0].name}: {trouble}. {WAY_OUT}")
        raise UnfitReport(
            f"no command has written a report that labsite knows, such as coverage.xml. {WAY_OUT}"
        )

    def _changed_lines(self) -> Mapping[str, frozenset[int]]:
        """The lines that the commit has and its base has not; none where they cannot be told."""
        room = self._room
        if not room.base:
            return {}
        try:
            repo = room.project.repo(self._lab.paths)
            patch = self._lab.repos.patch(repo, room.base, PATCH_BYTES, room.commit)
            return {
                name: frozenset(
                    line.new
                    for line in patches.lines(section)
                    if line.kind == "plus" and line.new is not None
                )
                for name, section in patches.sections(patch).items()
            }
        except (SeamError, ValueError) as error:
            logger.info("changed lines are unknown", extra={"error": str(error)})
            return {}


def _keep(room: Room, name: str, data: bytes) -> str | None:
    """Keep a report beside what commands printed, since its worktree goes; where it is kept."""
    path = room.folder / f"{room.attempt}-{REPORT_NAME}{Path(name).suffix[:10]}"
    try:
        room.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(data)
        path.chmod(0o600)
    except OSError as error:
        logger.warning("a coverage report was not kept", extra={"error": str(error)})
        return None
    return str(path)
