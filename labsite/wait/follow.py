"""Follows one monitor: finds it or starts it, reads its row and the timeline, and decides nothing."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import DatabaseError

from labsite.beside.person import project_named, who
from labsite.beside.refused import Refusal
from labsite.supervisor import say
from labsite.wait.lines import Lines
from runs import wiring
from runs.core import connections
from runs.core.states import NoticeKind
from runs.groups import monitors
from runs.groups.terms import MonitorState
from runs.models import Monitor, TaskGroup
from runs.timeline import queries as timeline

MOST_ENTRIES = 500
TOLD = ("monitor.", NoticeKind.TASK_RELEASED)
CODE_COMPLETE, CODE_TIMED_OUT, CODE_FAILED = 0, 1, 3


class Follower:
    """One monitor as the command sees it. The database may go and come back meanwhile."""

    def __init__(self, group: TaskGroup, monitor: Monitor, lines: Lines, last: int) -> None:
        self._group = group
        self._monitor = monitor
        self._lines = lines
        self._last = last

    @classmethod
    def begin(
        cls,
        group: TaskGroup,
        lines: Lines,
        preset: str | None,
        given: Mapping[str, object],
        expected: int | None,
    ) -> Follower:
        """Follow the running monitor of a group, or start one. Raises Refusal."""
        last = timeline.newest()
        running = monitors.running_of(group)
        if running is None:
            try:
                running = monitors.start(
                    wiring.lab(), group, by=who(), preset=preset, given=given, expected=expected
                )
            except monitors.AlreadyWatched as error:
                running = error.monitor
            except monitors.MonitorRefused as error:
                raise Refusal(f"Error: {error} Nothing was started.") from error
            else:
                return cls(group, running, lines, last)
        own = ", with its own options" if preset or given or expected is not None else ""
        say(f"Monitor {running.pk} watches this group already; it is followed{own}.")
        return cls(group, running, lines, last)

    def news(self) -> int | None:
        """Tell what is new; the exit code once the monitor has ended."""
        try:
            found = Monitor.objects.filter(pk=self._monitor.pk).first()
            if found is None:
                say("The group was deleted, and its monitor with it. There is no result.")
                return CODE_FAILED
            self._tell()
        except DatabaseError:
            connections.renew()
            return None
        return None if found.is_running else self._ended(found)

    def _ended(self, monitor: Monitor) -> int:
        if monitor.result is not None:
            self._lines.result(monitor.result)
            return CODE_TIMED_OUT if monitor.result.timed_out else CODE_COMPLETE
        if monitor.state == MonitorState.ERROR:
            say(f"The monitor failed: {monitor.error} There is no result.")
        else:
            say(f"The monitor was stopped by {monitor.ended_by or 'labsite'}. There is no result.")
        return CODE_FAILED

    def _tell(self) -> None:
        group = self._group
        for notice in timeline.after(self._last, MOST_ENTRIES, group.project):
            self._last = notice.pk
            if notice.group_id == group.pk and notice.kind.startswith(TOLD):
                self._lines.told(notice.at, notice.text)


def group_named(text: str, project: str) -> TaskGroup:
    """The open group that was named: PROJECT/GROUP, or a name that one open group has.

    Raises Refusal, which says what there is.
    """
    named, _, name = text.rpartition("/")
    rows = TaskGroup.objects.filter(closed_at=None, name=name).select_related("project")
    if named and project and named.lower() != project.lower():
        raise Refusal(
            f"Error: {text} and --project {project} name two projects. Nothing was started."
        )
    wanted = project or named
    if wanted:
        owner = project_named(wanted)
        found = rows.filter(project=owner).first()
        if found is None:
            raise Refusal(
                f"Error: there is no open group {name} in {owner.name}. Nothing was started."
            )
        return found
    some = list(rows.order_by("project__name")[:12])
    if len(some) == 1:
        return some[0]
    if not some:
        raise Refusal(f"Error: there is no open group {name}. Nothing was started.")
    places = ", ".join(f"{one.project.name}/{name}" for one in some)
    raise Refusal(f"Error: {name} is in several projects: {places}. Nothing was started.")
