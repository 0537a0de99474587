"""The pages of the product and what may be done in a project, as search finds them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from runs.core.states import ProjectState, TrackerKind
from runs.models import Project, Run
from runs.search.rules import Hit, Kind


@dataclass(frozen=True, slots=True)
class Reader:
    """What whoever searches may do."""

    can_act: bool
    is_admin: bool


# Title, page, further words; who may not open it does not find it.
FOR_ALL = (
    ("Overview", "overview", "home start running"),
    ("Needs you", "needs", "waiting failed attention"),
    ("History", "history", "runs all past"),
    ("Last 24 hours", "night", "history slots lanes spend"),
    ("Settings", "settings", "agents limits session cap budget schedules"),
    ("Forge accounts", "forges", "settings github gitlab gitea tokens"),
    ("Your account", "account", "tokens passkeys password log out"),
    ("Task groups", "groups-all", "tasks monitors projects"),
    ("Change password", "password", "account"),
    ("Notices", "notices", "account devices push addresses notification channels"),
    ("Make a token", "token-new", "account api"),
    ("Add a passkey", "passkey-new", "account"),
    ("Keyboard shortcuts", "shortcuts", "keys help"),
    ("Search", "search", "find"),
)
FOR_ACTORS = (
    ("Add a project", "project-new", "new clone repository"),
    ("Audit log", "audit", "who did what people"),
)
FOR_ADMINS = (
    ("People", "people", "users roles invite"),
    ("Add a person", "person-new", "people user invite"),
    ("Add a forge account", "forge-new", "settings github gitlab gitea"),
)
OF_PROJECT = (
    ("Issues", "issues", "", TrackerKind.BUILTIN),
    ("Pull requests", "pulls", "reviews merge", TrackerKind.BUILTIN),
    ("Parked work", "parked", "branches worktrees rescued disk", ""),
    ("Why not running", "waiting", "ready issues blocked", ""),
    ("Checks", "spec", "settings gates reviewers commands completion policy", ""),
    ("Loops", "loop-settings", "settings roles memories", ""),
    ("Watch sessions", "watches", "work by itself", ""),
    ("Validation commands", "checks", "settings", ""),
    ("Task groups", "groups", "tasks monitors", ""),
    ("Workflows", "workflows", "phases", ""),
    ("Tracker", "tracker", "settings issues webhook label", ""),
)


def pages(reader: Reader) -> Iterator[Hit]:
    """Pages that are no project's."""
    named = (*FOR_ALL, *(FOR_ACTORS if reader.can_act else ()))
    for title, page, words in (*named, *(FOR_ADMINS if reader.is_admin else ())):
        yield Hit(Kind.PAGE, title, page, words=words)


def of_project(project: Project, reader: Reader) -> Iterator[Hit]:
    """A project, its pages, and what may be done in it."""
    name, at = project.name, (project.pk,)
    yield Hit(Kind.PROJECT, name, "project", at, note=_state(project), at=project.last_opened_at)
    for title, page, words, tracker in OF_PROJECT:
        if tracker in ("", project.tracker):
            yield Hit(Kind.PAGE, f"{title} of {name}", page, at, words=words)
    if not reader.can_act:
        return
    if project.tracker == TrackerKind.BUILTIN:
        yield Hit(Kind.PAGE, f"New issue in {name}", "issue-new", at, words="write add create")
    if project.state == ProjectState.READY:
        yield from _acts(project)
    yield Hit(Kind.PAGE, f"Remove {name}", "project-remove", at, words="delete project")


def start(project: Project, key: str, title: str) -> Hit:
    """The act that starts one ready issue."""
    sends = (("issue", key),)
    at = (project.pk,)
    words = f"#{key} {title} run work"
    return Hit(
        Kind.ACT, f"Start issue {key}", "start", at, words=words, note=project.name, sends=sends
    )


def stop(run: Run, project: str) -> Hit:
    """The act that stops a run, after a page has asked."""
    title, words = f"Stop run {run.pk}…", f"{run.short_title} end #{run.issue_key} kill"
    note = f"issue {run.issue_key}, {project}"
    return Hit(Kind.ACT, title, "stop", (run.pk,), words=words, note=note, sends=())


def _acts(project: Project) -> Iterator[Hit]:
    name, at = project.name, (project.pk,)
    if project.tracker:
        words = "start run next lowest ready issue"
        yield Hit(Kind.ACT, f"Start next issue of {name}", "start", at, words=words, sends=())
        if project.is_auto:
            yield Hit(
                Kind.ACT, f"Turn off automatic work in {name}", "auto", at,
                words="pause project", sends=(("is_on", "off"),),
            )  # fmt: skip
        else:
            yield Hit(
                Kind.ACT, f"Turn on automatic work in {name}", "auto", at,
                words="unpause start project", sends=(("is_on", "on"),),
            )  # fmt: skip
        if project.is_paused:
            words = "reset failure streak unpause paused project"
            title = f"Resume automatic work in {name}"
            yield Hit(Kind.ACT, title, "streak-reset", at, words=words, sends=())
    words = "end kill runs"
    yield Hit(Kind.ACT, f"Stop all sessions of {name}…", "stop-all", at, words=words, sends=())


def _state(project: Project) -> str:
    if project.state == ProjectState.FAILED:
        return "clone failed"
    if project.state != ProjectState.READY:
        return str(project.state)
    return "paused" if project.is_paused else ""
