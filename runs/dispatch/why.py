"""What start controls show: how many issues could start, and buttons for what stands in the way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from runs.core.ports import Lab
from runs.core.states import TrackerKind
from runs.dispatch.eligibility import Act, Candidate, Change, Obstacle
from runs.dispatch.rules import Waiting
from runs.issues.remote_pages import WEB
from runs.models import Project, Settings
from runs.watch import auto_dispatch
from runs.web import addresses
from trackers.builtin.adapter import number_of


@dataclass(frozen=True, slots=True)
class Button:
    """A press (with what it sends) or a link; without an address there is only waiting."""

    text: str
    url: str = ""
    is_post: bool = False
    name: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One failed condition with its button."""

    text: str
    why: str
    button: Button


@dataclass(frozen=True, slots=True)
class Row:
    """One ready issue: what it fails, and the fewest changes after which it starts."""

    key: str
    title: str
    lines: Sequence[Line]
    changes: Sequence[Button]


def rows(project: Project, settings: Settings, waiting: Sequence[Waiting]) -> list[Row]:
    """What the page shows of each issue."""
    agent = project.agent_id or settings.agent_id
    return [
        Row(
            one.issue.key,
            one.issue.title,
            [_line(project, agent, one.issue, failed) for failed in one.failed],
            [button(project, agent, one.issue, change) for change in one.changes],
        )
        for one in waiting
    ]


def button(project: Project, agent: int | None, issue: Candidate, change: Change) -> Button:
    """The button that makes a change, or leads to where it is made."""
    if change.act is Act.TRY_AGAIN and agent is not None:
        return Button(change.text, addresses.of("runs:agent-try-again", agent), True)
    press = _PRESSES.get(change.act)
    if press is not None:
        url, name, value = press
        sent = value or change.target
        return Button(change.text, addresses.of(url, project.pk), True, name, sent if name else "")
    if change.act is Act.REVIEW:
        return Button(change.text, _pull(project, issue))
    if change.act in (Act.CLOSE, Act.EDIT) and project.tracker != TrackerKind.BUILTIN:
        return Button(change.text, _elsewhere(issue, change.target))
    return Button(change.text, _link(project, agent, change))


def _line(project: Project, agent: int | None, issue: Candidate, failed: Obstacle) -> Line:
    return Line(failed.text, failed.why, button(project, agent, issue, failed.change))


def _pull(project: Project, issue: Candidate) -> str:
    """Where its open pull request is; empty for one elsewhere without an address."""
    if project.tracker != TrackerKind.BUILTIN or issue.pull is None:
        return issue.pull_url
    return addresses.of("runs:pull", project.pk, issue.pull)


def _elsewhere(issue: Candidate, key: str) -> str:
    """Where an issue of the same tracker is, when addresses there end in the key."""
    place, _, last = issue.url.rpartition("/")
    if not place or last != issue.key:
        return ""
    repository, mark, number = key.rpartition("#")
    if not mark:
        return f"{place}/{key}"
    web, *_, kind = place.rsplit("/", 3)  # https://forge, owner, name, issues
    return f"{web}/{repository}/{kind}/{number}" if web.startswith(WEB) else ""


def _link(project: Project, agent: int | None, change: Change) -> str:
    match change.act:
        case Act.CLOSE if project.tracker == "builtin":
            return addresses.of("runs:issue", project.pk, number_of(change.target))
        case Act.EDIT if project.tracker == "builtin":
            return addresses.of("runs:issue-edit", project.pk, number_of(change.target))
        case Act.DISCARD | Act.SET_CHECKS:
            return addresses.of(_PAGES[change.act], project.pk)
        case Act.LOG_IN if agent is not None:
            return addresses.of("runs:agent-login", agent)
        case Act.RAISE_PARALLEL:
            return f"{addresses.of('runs:project-settings', project.pk)}starting/"
        case Act.RAISE_CAP:
            return addresses.of("admin:runs_settings_change", 1)
    return addresses.of(_PLACES[change.act]) if change.act in _PLACES else ""


# Pages of the project itself.
_PAGES: Mapping[Act, str] = {Act.DISCARD: "runs:parked", Act.SET_CHECKS: "runs:spec"}
# Pages of all projects.
_PLACES: Mapping[Act, str] = {
    Act.CHOOSE_AGENT: "runs:settings",
    Act.RAISE_LIMIT: "runs:settings",
    Act.SEE_HOSTS: "runs:hosts",
}
# The address that is posted to, the field that is sent, and what is sent in place of the target.
_PRESSES: Mapping[Act, tuple[str, str, str]] = {
    Act.START: ("runs:start", "issue", ""),
    Act.TURN_ON: ("runs:auto", "is_on", "on"),
    Act.RESET: ("runs:streak-reset", "", ""),
    Act.CLONE: ("runs:project-retry", "", ""),
}


def of(lab: Lab, projects: Iterable[Project]) -> Mapping[int, int]:
    """The counts that are known, by project. Each worker is looked for once."""
    alive: dict[str, bool | None] = {}
    found = {}
    for project in projects:
        count = auto_dispatch.hint_of(project)
        if count is None:
            continue
        if project.counted_by not in alive:
            alive[project.counted_by] = lab.is_process_alive(project.counted_by)
        if alive[project.counted_by]:
            found[project.pk] = count
    return found
