"""Follows one monitor: finds it or starts it, reads its row and the timeline, and decides nothing."""

from __future__ import annotations

from runs import wiring
from runs.core.refusal import ActRefused
from runs.core.states import NoticeKind
from runs.core.terminal import CODE_INTERRUPTED, say, who
from runs.groups import monitors
from runs.groups.command import LEFT, Command, Lines
from runs.groups.terms import MonitorState
from runs.models import Monitor, TaskGroup
from runs.projects import acts as projects
from runs.timeline import queries as timeline

TOLD = ("monitor.", NoticeKind.TASK_RELEASED)
CODE_COMPLETE, CODE_TIMED_OUT, CODE_FAILED = 0, 1, Command.failed


class Follower:
    """One monitor as the command sees it. The database may go and come back meanwhile."""

    def __init__(self, group: TaskGroup, monitor: Monitor, lines: Lines, last: int) -> None:
        self._group = group
        self._monitor = monitor
        self._lines = lines
        self._last = last

    @classmethod
    def begin(cls, wanted: Command) -> Follower:
        """Follow the running monitor of a group, or start one. Raises ActRefused."""
        group = group_named(wanted.group, wanted.project)
        last = timeline.newest()
        running = monitors.running_of(group)
        if running is None:
            try:
                started = monitors.start(
                    wiring.lab(),
                    group,
                    by=who(),
                    preset=wanted.preset,
                    given=wanted.options,
                    expected=wanted.expected,
                )
                return cls(group, started, wanted.lines, last)
            except monitors.AlreadyWatched as error:
                running = error.monitor
            except monitors.MonitorRefused as error:
                raise ActRefused(f"Error: {error} Nothing was started.") from error
        is_told = wanted.preset or wanted.options or wanted.expected is not None
        own = ", with its own options" if is_told else ""
        say(f"Monitor {running.pk} watches this group already; it is followed{own}.")
        return cls(group, running, wanted.lines, last)

    def press(self, times: int) -> int:
        """The command ends, and the monitor goes on."""
        say(LEFT)
        return CODE_INTERRUPTED

    def news(self) -> int | None:
        """Tell what is new; the exit code once the monitor has ended."""
        found = Monitor.objects.filter(pk=self._monitor.pk).first()
        if found is None:
            say("The group was deleted, and its monitor with it. There is no result.")
            return CODE_FAILED
        for notice in timeline.all_after(self._last, self._group.project):
            self._last = notice.pk
            if notice.group_id == self._group.pk and notice.kind.startswith(TOLD):
                self._lines.told(notice.at, notice.text)
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


def group_named(text: str, project: str) -> TaskGroup:
    """The open group that was named: PROJECT/GROUP, or a name that one open group has.

    Raises ActRefused, which says what there is.
    """
    named, _, name = text.rpartition("/")
    rows = TaskGroup.objects.filter(closed_at=None, name=name).select_related("project")
    if named and project and named.lower() != project.lower():
        raise ActRefused(
            f"Error: {text} and --project {project} name two projects. Nothing was started."
        )
    wanted = project or named
    if wanted:
        owner = projects.named(wanted)
        found = rows.filter(project=owner).first()
        if found is None:
            raise ActRefused(
                f"Error: there is no open group {name} in {owner.name}. Nothing was started."
            )
        return found
    some = list(rows.order_by("project__name")[:12])
    if len(some) == 1:
        return some[0]
    if not some:
        raise ActRefused(f"Error: there is no open group {name}. Nothing was started.")
    places = ", ".join(f"{one.project.name}/{name}" for one in some)
    raise ActRefused(f"Error: {name} is in several projects: {places}. Nothing was started.")
