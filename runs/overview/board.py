"""What every page knows: the settings in force, the projects, the active runs, the ready issues.

Four queries whatever the number of rows. Ready issues are read from the built-in tracker's own
tables, those of forges from what was heard last; nobody is asked while a page is rendered.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

from django.db import connection
from django.db.models import (
    BooleanField,
    Exists,
    ExpressionWrapper,
    F,
    Field,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Value,
)
from django.db.models.expressions import RawSQL

from runs.accounts import held
from runs.core import budgets
from runs.core.database import Compiled, prepared
from runs.core.ports import Lab
from runs.core.states import PersonState, ProjectState, RunState, TrackerKind
from runs.dispatch.eligibility import UNTRUSTED
from runs.gate_pages import check_words
from runs.groups import needs as group_needs
from runs.hosts import queries as host_queries
from runs.hosts.queries import SilentHost
from runs.hosts.rules import SILENT_INTERVALS
from runs.kept.models import Parked
from runs.models import Host, ManualSession, Project, Run, Settings
from runs.overview import waiting
from runs.overview.need_facts import PullNeeds
from runs.timeline import queries as timeline
from runs.watch import auto_dispatch, summaries
from runs.web import addresses
from runs.workflows import needs as workflow_needs

RECENT = 200
MOST_UNSEEN = 200
RUNNING, KEPT = "running", "earlier work kept"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Facts:
    """One row of everything that is the same on all pages.

    `silent_hosts`: how many other hosts have given no sign of life for too long.
    """

    now: datetime
    settings: Settings
    last_tick_at: datetime | None
    last_error: str
    looked: int
    last_notice: int
    driven: int = 0
    silent_hosts: int = 0

    @property
    def is_late(self) -> bool:
        """Whether nobody has looked for two intervals."""
        return budgets.is_late(self.now, self.last_tick_at, self.settings.tick_interval)


@dataclass(frozen=True, slots=True)
class ReadyIssue:
    """An open issue that carries its project's ready label; of a forge, as it was heard last.

    `why` says in a few words what keeps it from starting, as far as stored facts say.
    """

    project: Project
    key: str
    title: str
    why: str = ""
    elsewhere: str = ""

    @property
    def ref(self) -> str:
        return f"{self.project.name} #{self.key}"

    @property
    def url(self) -> str:
        """Its page: on the forge, or ours; beads have none, so there is why it does not run."""
        if self.project.tracker == TrackerKind.BUILTIN:
            return addresses.of("runs:issue", self.project.pk, int(self.key))
        return self.elsewhere or addresses.of("runs:waiting", self.project.pk)

    @property
    def start_url(self) -> str:
        return addresses.of("runs:start", self.project.pk)

    @property
    def is_blocked(self) -> bool:
        """Whether it waits for something other than the run that works on it."""
        return self.why not in ("", RUNNING)

    @property
    def may_start(self) -> bool:
        """Whether a person who names it may start it, as far as stored facts say."""
        return self.why in ("", UNTRUSTED)


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run with what its row shows of the budget."""

    run: Run
    spent: budgets.Spent

    @property
    def tone(self) -> str:
        """The colour of an active run's mark."""
        if self.run.state == RunState.STARTING:
            return ""
        if self.run.is_checking:
            return "live"
        if self.run.is_held or self.run.is_waiting:
            return "warn"
        is_held_up = self.spent.is_low or self.run.state_of_agent.is_waiting
        return "warn" if is_held_up else "live"

    @property
    def limit_seconds(self) -> int:
        return int(self.spent.limit.total_seconds())

    @property
    def used_seconds(self) -> int:
        """What the meter shows: never beyond its end."""
        return min(int(self.spent.used.total_seconds()), self.limit_seconds)


@dataclass(frozen=True)
class Board:
    """The shared picture. `runs` are the active ones first, then as many ended as were asked for."""

    facts: Facts
    projects: Sequence[Project]
    runs: Sequence[Run]
    ready: Sequence[ReadyIssue]
    by_id: Mapping[int, Project] = field(default_factory=dict)
    pulls: Sequence[PullNeeds] = ()
    silent: Sequence[SilentHost] = ()

    @cached_property
    def active(self) -> list[Run]:
        return sorted((run for run in self.runs if run.is_active), key=lambda run: run.pk)

    @cached_property
    def occupying(self) -> list[Run]:
        """Active runs that have or get a session; a held one has none and takes no slot."""
        return [run for run in self.active if not run.is_held]

    @cached_property
    def free(self) -> list[ReadyIssue]:
        """Ready issues that nothing of their own is known to keep from starting."""
        return [issue for issue in self.ready if not issue.why]

    def row(self, run: Run) -> RunRow:
        settings = self.facts.settings
        return RunRow(run, run.spent(self.facts.now, run.budget(settings)))

    @cached_property
    def _active_by_project(self) -> Mapping[int, list[Run]]:
        return _grouped((run.project_id, run) for run in self.active)

    @cached_property
    def _ready_by_project(self) -> Mapping[int, list[ReadyIssue]]:
        return _grouped((issue.project.pk, issue) for issue in self.ready)

    def active_of(self, project: Project) -> list[Run]:
        return self._active_by_project.get(project.pk, [])

    def ready_of(self, project: Project) -> list[ReadyIssue]:
        return self._ready_by_project.get(project.pk, [])

    def free_of(self, project: Project) -> list[ReadyIssue]:
        return [issue for issue in self.ready_of(project) if not issue.why]

    def free_count(self, project: Project) -> int:
        """How many ready issues can start, also those that were counted and not listed."""
        return len(self.free_of(project)) + _unlisted(project)

    @property
    def all_free(self) -> int:
        """The same for all projects."""
        return len(self.free) + sum(_unlisted(one) for one in self.projects)


def _unlisted(project: Project) -> int:
    """Ready issues of a forge beyond the first, whose titles are not kept."""
    if project.tracker == TrackerKind.BUILTIN or project.state != ProjectState.READY:
        return 0
    return max(0, (project.queue_count or 0) - len(project.queue_seen))


def _grouped(pairs: Iterable[tuple[int, T]]) -> Mapping[int, list[T]]:
    groups: dict[int, list[T]] = {}
    for key, one in pairs:
        groups.setdefault(key, []).append(one)
    return groups


def load(lab: Lab, recent: int = 0, *, with_waiting: bool = False) -> Board:
    """The shared picture, with the `recent` newest runs of any state. Four queries.

    `with_waiting`: also open pull requests, what parked branches hold that origin does not, how
    watch sessions ended, and whether a task group or a workflow may need somebody.
    """
    facts = load_facts(lab)
    projects = _projects(with_waiting, connection.vendor).rows()
    by_id = {project.pk: project for project in projects}
    issues, pulls = waiting.of_trackers(projects, with_pulls=with_waiting)
    runs = _runs(recent, issues, with_unseen=with_waiting)
    for run in runs:
        if run.project_id in by_id:
            run.project = by_id[run.project_id]
    taken: dict[tuple[int, str], str] = {}
    for run in runs:
        if why := _claim(run):
            taken.setdefault((run.project_id, run.issue_key), why)
    ready = [
        ReadyIssue(
            one.project,
            one.key,
            one.title,
            _why(one, taken.get((one.project.pk, one.key), "")),
            one.url,
        )
        for one in issues
    ]
    silent = host_queries.silent(facts.settings, runs) if facts.silent_hosts else ()
    return Board(facts, projects, runs, ready, by_id, pulls, silent)


def _claim(run: Run) -> str:
    """How a run keeps others from its issue; empty once its branch was merged or discarded."""
    if run.is_active:
        return RUNNING
    is_unsettled = run.did_start and run.settled_at is None
    return KEPT if is_unsettled or getattr(run, "is_kept", False) else ""


def _why(issue: waiting.Ready, claim: str) -> str:
    """What keeps an issue from starting: who works on it, what was delivered, what it waits for."""
    if claim == RUNNING:
        return claim
    heard = auto_dispatch.hint_of(issue.project) is not None
    return issue.why(claim) or (issue.project.held_seen.get(issue.key, "") if heard else "")


@functools.lru_cache(maxsize=8)
def _projects(with_waiting: bool, _vendor: str) -> Compiled:
    """All projects; kept, since every open page asks this every few seconds."""
    rows = _heard()
    if with_waiting:
        rows = group_needs.with_suspects(summaries.with_last(waiting.with_unpushed(rows)))
        rows = workflow_needs.with_held(rows)
    return Compiled(lambda _now: rows)


def _heard() -> QuerySet[Project]:
    """Last opened first, each with what was heard last of its own agent's program and login."""
    agent = {"agent_name": F("agent__name"), "agent_logged_in": F("agent__is_logged_in")}
    agent["agent_found"] = F("agent__is_found")
    agent |= {f"agent_{name}": F(f"agent__{name}") for name in ("mode", "output", "argv")}
    agent |= held.columns("agent")
    secret = ExpressionWrapper(~Q(hook_secret=""), BooleanField())
    rows = Project.objects.defer("token", "hook_secret").recent_first()
    return summaries.with_open(rows.annotate(**agent, has_hook_secret=secret))


def load_facts(lab: Lab) -> Facts:
    """Settings, last tick and newest timeline entry in one query."""
    asked = _facts(lab.host, connection.vendor)
    found = asked.rows()
    if not found:
        Settings.current()
        found = asked.rows()
    settings = found[0]
    return Facts(
        now=lab.now(),
        settings=settings,
        last_tick_at=settings.last_tick_at,
        last_error=settings.last_error or "",
        looked=settings.looked or 0,
        last_notice=settings.last_notice or 0,
        driven=settings.driven,
        silent_hosts=settings.silent_hosts,
    )


@functools.lru_cache(maxsize=8)
def _facts(host: str, _vendor: str) -> Compiled:
    rows = Settings.objects.select_related("agent").annotate(
        last_tick_at=_last_tick(host),
        last_error=_of_host("last_error", host),
        looked=_of_host("looked", host),
        last_notice=timeline.last_id(),
        driven=_driven(host),
        silent_hosts=_silent(host),
    )
    return Compiled(lambda _now: rows.filter(pk=1))


def _of_host(column: str, host: str, more: str = "") -> RawSQL:
    """A column of this host's row."""
    field = Host._meta.get_field(column)
    assert isinstance(field, Field)  # noqa: S101
    sql = f"SELECT {field.column} FROM {Host._meta.db_table} WHERE name = %s{more}"  # noqa: S608
    return RawSQL(sql, [host], field)  # noqa: S611


def _last_tick(host: str) -> RawSQL:
    """When this host ticked last; of a web process without a worker beside it, any host."""
    own = _of_host("last_tick_at", host, " AND removed_at IS NULL")
    newest = f"SELECT max(last_tick_at) FROM {Host._meta.db_table} WHERE removed_at IS NULL"  # noqa: S608
    return RawSQL(f"COALESCE(({own.sql}), ({newest}))", own.params, own.output_field)  # noqa: S611


def _silent(host: str) -> RawSQL | Value:
    """How many other hosts are silent, by the clock of the database; with SQLite there are none."""
    if connection.vendor != "postgresql":
        return Value(0)
    limit = f"make_interval(secs => %s * {Settings._meta.db_table}.tick_seconds)"
    sql = (
        f"SELECT count(*) FROM {Host._meta.db_table} WHERE removed_at IS NULL AND name <> %s "  # noqa: S608
        f"AND seen_at < statement_timestamp() - {limit}"
    )
    return RawSQL(sql, [host, SILENT_INTERVALS], IntegerField())  # noqa: S611


def _driven(host: str) -> RawSQL:
    """How many slots sessions hold that people drive."""
    sql = f"SELECT count(*) FROM {ManualSession._meta.db_table} WHERE host = %s AND state <> %s"  # noqa: S608
    return RawSQL(sql, [host, PersonState.ENDED], IntegerField())  # noqa: S611


def _runs(recent: int, issues: Sequence[waiting.Ready], *, with_unseen: bool) -> list[Run]:
    """Active runs, the newest ones, and those that claim one of these issues, in one query.

    `with_unseen`: also what ended badly and nobody has opened, however long ago, each with
    whether its issue was started again since.

    Each part is found by its own index, so that the query does not grow with history.
    """
    projects = frozenset(one.project.pk for one in issues)
    keys = frozenset(one.key for one in issues)
    found: list[Run] = _wanted(recent, with_unseen, projects, keys).rows()
    return found


@prepared
def _wanted(
    _now: datetime,
    recent: int,
    with_unseen: bool,
    projects: Collection[int],
    keys: Collection[str],
) -> QuerySet[Run]:
    """Which issues are ready changes seldom, while a page asks for every event."""
    wanted = Q(pk__in=Run.objects.active().values("pk"))
    if keys:
        claims = Run.objects.filter(project__in=projects, issue_key__in=keys)
        wanted |= Q(pk__in=claims.values("pk"))
    if recent:
        wanted |= Q(pk__in=Run.objects.order_by("-pk").values("pk")[:recent])
    parked = Parked.objects.filter(project=OuterRef("project"), branch=OuterRef("branch"))
    about: dict[str, Any] = {**held.columns("profile"), "is_kept": Exists(parked)}
    about["gate_at"] = check_words.gate_at()
    if with_unseen:
        unseen = Run.objects.unseen().order_by("-pk")
        wanted |= Q(pk__in=unseen.values("pk")[:MOST_UNSEEN])
        same = Run.objects.filter(project=OuterRef("project"), issue_key=OuterRef("issue_key"))
        about["is_retried"] = Exists(same.filter(pk__gt=OuterRef("pk"), started_at__isnull=False))
    return Run.objects.rows().filter(wanted).annotate(**about).order_by("-pk")
