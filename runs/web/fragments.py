"""The live parts of each page: what the page, the answer to an action and a push all render."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import Resolver404, resolve

from runs import schedule, wiring
from runs.agents import pages as agent_pages
from runs.core.ports import Lab
from runs.core.states import NoticeKind
from runs.dispatch import why
from runs.groups import pages as group_pages
from runs.lifecycle import rows as run_rows
from runs.models import (
    AgentProfile,
    AgentTrial,
    CheckDefaults,
    Notice,
    Project,
    Run,
    Settings,
)
from runs.notices import deliveries
from runs.overview import attention, board, hiding_rules, queries
from runs.overview.board import Facts
from runs.overview.hiding_rules import Hidden
from runs.projects import frame
from runs.run_pages import tabs
from runs.spending import pages as spending_pages
from runs.timeline import audit_page
from runs.watch import pages as watch_pages
from runs.watch import summaries
from runs.web import access, addresses, answers, chrome
from runs.web.forms import ChoiceForm

CHROME = {
    "nav-projects": "web/_nav_projects",
    "nav-live": "web/_nav_live",
    "tick-age": "web/_tick_age",
    "worker-late": "web/_worker_late",
    "logged-out": "web/_logged_out",
}
OVERVIEW = {
    "stats": "overview/_stats",
    "watching": "overview/_watching",
    "needs-you": "overview/_needs_you",
    "running-line": "overview/_running_line",
    "running": "overview/_running",
    "up-next": "overview/_up_next",
    "activity": "overview/_activity",
    "projects": "overview/_projects",
    "start-menu": "overview/_start_menu",
}
PROJECT = {
    "start-control": "dispatch/_start_control",
    "project-state": "projects/_state",
    "project-auto": "dispatch/_auto",
    "project-watch": "watch/_project_watch",
    "project-groups": "groups/_project_groups",
    "project-tracker": "forges/_project_tracker",
    "project-facts": "projects/_facts",
    "project-fetch": "projects/_fetch",
    "hook-deliveries": "forges/_hook_deliveries",
    "project-running": "projects/_running",
    "project-sessions": "projects/_sessions",
    "project-ready": "projects/_ready",
    "project-recent": "projects/_recent",
    "project-activity": "projects/_activity",
    "parked-count": "kept/_parked_count",
}
WATCH = {
    "watch-head": "watch/_head",
    "watch-act": "watch/_act",
    "watch-state": "watch/_state",
    "watch-validations": "validation/_validations",
    "watch-runs": "watch/_runs",
    "watch-entries": "watch/_entries",
}
# Parts with a form or for one person alone: a push, which is the same for many, leaves them out and
# brings what is live within them.
PROJECT_ASKED = {
    "project-driven": "projects/_driven",
    "watch-new": "projects/_new_watch",
    "webhook": "forges/_project_hook",
}
GROUP = {
    "group-head": "groups/_head",
    "group-progress": "groups/_progress",
    "group-blockers": "groups/_blockers",
    "group-checkpoints": "groups/_checkpoints",
    "group-tasks": "groups/_tasks",
    "group-result": "groups/_result",
    "group-monitor": "groups/_monitor",
    "group-workers": "groups/_workers",
    "group-end": "groups/_end",
    "group-feed": "groups/_feed",
}
SETTINGS = {"agents": "agents/_cards", "limits": "projects/_limits", "turns": "projects/_turns"}
SETTINGS_ASKED = {"settings-form": "projects/_settings_form"}
AUDIT = {"audit-rows": "timeline/_audit_rows"}
WATCHES = {"watch-rows": "watch/_rows", "project-auto": "dispatch/_switch"}
OF = {
    "overview": OVERVIEW,
    "needs": {"needs-you": "overview/_needs_you"},
    "project": PROJECT,
    "watch": WATCH,
    "group": GROUP,
    "settings": SETTINGS,
    "trial": {"trial": "agents/_trial"},
    "audit": AUDIT,
    "watches": WATCHES,
}
WITHIN = {"project-driven": "project-sessions", "webhook": "hook-deliveries"}
ASKED = {"project": PROJECT_ASKED, "settings": SETTINGS_ASKED}


Context = dict[str, Any]


class Mark(NamedTuple):
    """What a page shows beside the timeline: its rows, and when the worker looked last."""

    rows: str
    looked: str


FOR_ACTORS = {"audit"}
# What a page says of the last day is looked at anew this often, and what was snoozed comes back then.
SECONDS = int(hiding_rules.STEP.total_seconds())


def asks(topic: str, context: Context) -> str:
    """What a page has to ask for although it is pushed to: nothing, `own` parts, or a `screen`.

    Own parts are for one person or one filter, or a diff; it asks for them when it hears of something.
    The screen of a run that works is told by nothing, except on the page *Terminal*, to which it is
    sent by itself; of what an agent asks there, the answers have to be asked for.
    """
    kind, _ = _split(topic)
    if kind in tabs.ALL:
        run: Run = context["page"].run
        is_sent = kind in (tabs.TERMINAL, tabs.CHANGES) and not run.is_waiting
        return "screen" if run.is_active and not is_sent else "own"
    return "own" if kind in ASKED else ""


def regions(topic: str, can_act: bool, request: HttpRequest | None = None) -> dict[str, str] | None:
    """The HTML of each live region of a page by its element's id; None when the page is gone.

    Terminal and changes of a running session are asked from tmux and git, so they come only
    with a request; a push, which is rendered for every event, leaves them to the next refresh.
    """
    context = page_context(topic, can_act, request)
    return _rendered(topic, context) if context is not None else None


def hidden_of(person: int) -> tuple[Hidden, ...]:
    """What a person has hidden of what needs them. One query."""
    return attention.hidden_of(person)


def pushed(
    topic: str, can_act: bool, hidden: Sequence[Hidden] = ()
) -> tuple[dict[str, str], Mark] | None:
    """The regions that are pushed to those who have hidden this, and the mark of what they show.

    None when the page is gone.
    """
    context = page_context(topic, can_act, hidden=hidden)
    if context is None:
        return None
    return _rendered(topic, context), _mark_of(topic, context)


def mark(topic: str) -> Mark:
    """Changes with what a page shows and no timeline entry tells. At most two queries.

    Asks no tmux, since screens are sent by themselves, and git for an open page *Changes* alone.
    """
    facts = board.load_facts(wiring.lab())
    kind, ident = _split(topic)
    is_run = kind in tabs.ALL
    parts = tabs.untold(wiring.lab(), kind, ident) if is_run else _rows(kind, ident, facts)
    return _mark(topic, facts, *parts)


def _mark_of(topic: str, context: Context) -> Mark:
    picture, kind = context["page"].board, _split(topic)[0]
    is_run = kind in tabs.ALL
    parts = tabs.untold_of(wiring.lab(), kind, context) if is_run else _rows_of(kind, context)
    return _mark(topic, picture.facts, *parts)


def _mark(topic: str, facts: Facts, *parts: object) -> Mark:
    bare = replace(facts, last_notice=0, last_tick_at=None)
    return Mark(_tag(topic, bare, *parts, facts.is_late), str(facts.last_tick_at))


def page_context(
    topic: str,
    can_act: bool,
    request: HttpRequest | None = None,
    loaded: Any = None,
    hidden: Sequence[Hidden] = (),
) -> Context | None:
    """What the templates of a page need, with a fixed number of queries; None when it is gone.

    Without them where the page is `loaded` already. `hidden`: of whom it is for; who asks has
    their own.
    """
    kind, ident = _split(topic)
    page = loaded
    if page is None and kind in _PERSONAL:
        if request is not None and can_act and request.user.pk:
            hidden = hidden_of(request.user.pk)
        page = _PERSONAL[kind](wiring.lab(), hidden)
    elif page is None and (can_act or kind not in FOR_ACTORS):
        make = _MAKERS.get(kind)
        page = make(wiring.lab(), ident) if make else None
    if page is None:
        return None
    picture: Facts = page.board.facts
    context: Context = {
        "page": page,
        "chrome": chrome.of(page.board, can_act, request),
        "now": picture.now,
        "can_act": can_act,
    }
    if kind in tabs.ALL:
        is_page = request is not None and not answers.is_htmx(request)
        asked = request is not None
        context |= tabs.context(wiring.lab(), kind, page, is_asked=asked, is_page=is_page)
    elif kind in ("watch", "watches", "audit"):
        context |= page.facts
    elif kind == "settings":
        context |= {
            "limits": picture.settings,
            "turns": schedule.turns(wiring.lab(), picture.settings),
            "spending": spending_pages.of_settings(
                picture.settings, [card.profile for card in page.cards]
            ),
        }
    return context | _asked(kind, page, request) if request is not None else context


def _asked(kind: str, page: Any, request: HttpRequest) -> Context:
    """What only the parts show that are for whoever asked."""
    if kind == "project":
        host = f"{request.scheme}://{request.get_host()}"
        is_admin = access.may_administer(request.user)
        return {"is_asked": True, "host": host, "is_admin": is_admin}
    if kind == "settings":
        profiles = [card.profile for card in page.cards]
        form = ChoiceForm.stored(profiles, page.board.facts.settings)
        return {"is_asked": True, "form": form, "check_defaults": CheckDefaults.stored()}
    return {}


def version(topic: str) -> str:
    """A tag that changes whenever a page's regions may have changed. At most two queries, and five
    more for the checks of a run.

    It serves the 304 of a refresh and nothing else. The screen of a running session is not in it:
    what changes there is sent by `runs.run_pages.screen_socket`.
    """
    lab = wiring.lab()
    facts = board.load_facts(lab)
    kind, ident = _split(topic)
    if kind in tabs.ALL:
        run = Run.objects.filter(pk=ident).first()
        return _tag(topic, facts, run, *tabs.seen(lab, kind, run))
    return _tag(topic, facts, *_rows(kind, ident, facts))


def _rows(kind: str, ident: int, facts: Facts) -> Sequence[object]:
    """The rows that a page shows of which something may change without a timeline entry."""
    if kind == "settings":
        return [*agent_pages.rows(), facts.settings]
    if kind == "trial":
        return [AgentTrial.objects.filter(pk=ident).first()]
    if kind == "notices":
        return deliveries.lately()
    rows = summaries.with_open(Project.objects.defer("token", "hook_secret"))
    return list(rows.order_by("pk"))


def version_of(topic: str, context: Context) -> str:
    """The same tag for a page whose facts were loaded already."""
    picture = context["page"].board
    kind, _ = _split(topic)
    if kind in tabs.ALL:
        run = context["page"].run
        seen = tabs.seen(wiring.lab(), kind, run, context)
        return _tag(topic, picture.facts, run, *seen)
    return _tag(topic, picture.facts, *_rows_of(kind, context))


def _rows_of(kind: str, context: Context) -> Sequence[object]:
    """The same rows of a page that was loaded already."""
    page = context["page"]
    if kind == "settings":
        return [*page.rows, page.board.facts.settings]
    if kind in ("trial", "notices"):
        return [page.trial] if kind == "trial" else deliveries.lately()
    return sorted(page.board.projects, key=lambda one: one.pk)


def seen_of(project: Project) -> str:
    """A tag for what is asked of git and tracker: it changes with what was told of the project, with
    which runs of it are active, and each minute. Three queries."""
    lab = wiring.lab()
    told = Notice.objects.filter(project=project).order_by("-pk").values_list("pk", flat=True)
    active = Run.objects.active().filter(project=project).order_by("pk").values_list("pk", "state")
    minute = int(lab.now().timestamp()) // 60
    facts = [_told(project), Settings.current().session_cap, list(told[:1]), list(active), minute]
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:20]


def topics_of(notice: Notice) -> set[str]:
    """The pages that a timeline entry concerns. The frame of every page counts as one.

    What each pass of a monitor repeats concerns the page of its group alone: a board of many
    groups would be rendered all the time, and show the same.
    """
    if notice.kind == NoticeKind.MONITOR_PROGRESS:
        return {f"group:{notice.group_id}"}
    topics = {"overview", "needs", "chrome", "settings"}
    if notice.by:
        topics.add("audit")
    if notice.project_id is not None:
        topics |= {f"project:{notice.project_id}", f"issues:{notice.project_id}"}
    if notice.run_id is not None:
        topics |= {f"{kind}:{notice.run_id}" for kind in tabs.ALL}
    if notice.watch_id is not None:
        topics |= {f"watch:{notice.watch_id}", f"watches:{notice.project_id}"}
    if notice.group_id is not None:
        topics.add(f"group:{notice.group_id}")
    return topics


def partials(found: Mapping[str, str]) -> str:
    """Each region wrapped so that htmx morphs it into its place."""
    return answers.partials(found)


def here(request: HttpRequest) -> str:
    """The topic of the page that an htmx request came from; the overview when unsure."""
    path = addresses.path_in(request.headers.get("HX-Current-URL", "/"))
    try:
        match = resolve(path)
    except Resolver404:
        return "overview"
    if match.url_name == "needs":
        return "needs"
    if match.url_name == "project":
        return f"project:{match.kwargs['project_id']}"
    if match.url_name in tabs.URLS:
        return f"{tabs.URLS[match.url_name]}:{match.kwargs['run_id']}"
    if match.url_name == "group":
        return f"group:{match.kwargs['group_id']}"
    return "overview"


def after_stop(request: HttpRequest, run: Run) -> dict[str, str]:
    """The answer to Stop: the run's row with its outcome, and what else changed on that page.

    The list around the row is left to the next refresh, so that the outcome is seen in place.
    """
    topic = here(request)
    context = page_context(topic, True, request)
    if context is None:
        return {}
    found = _rendered(topic, context)
    found.pop("running", None)
    found.pop("project-running", None)
    picture = context["page"].board
    return {f"run-{run.pk}": run_rows.html(picture.row(run), context["now"], can_act=True), **found}


def rendered(files: Mapping[str, str], context: Context) -> dict[str, str]:
    """The HTML of these templates by the ids of their elements."""
    return {name: render_to_string(f"{file}.html", context) for name, file in files.items()}


def _rendered(topic: str, context: Context) -> dict[str, str]:
    found = rendered({**CHROME, **_templates(topic, context)}, context)
    picture, project_id = context["page"].board, _project_of(topic, context)
    return found | frame.regions(picture, project_id, bool(context["can_act"]))


def _project_of(topic: str, context: Context) -> int | None:
    """The project whose page has this topic; None for the pages of none, and for those of a run."""
    kind, ident = _split(topic)
    if kind in ("project", "issues", "watches"):
        return ident
    if kind == "watch":
        return int(context["project"].pk)
    return int(context["page"].project.pk) if kind == "group" else None


def _split(topic: str) -> tuple[str, int]:
    kind, _, ident = topic.partition(":")
    return kind, int(ident) if ident.isdigit() else 0


def _templates(topic: str, context: Context) -> dict[str, str]:
    kind, _ = _split(topic)
    if kind in tabs.ALL:
        return tabs.templates(kind, context)
    found = OF.get(kind, {})
    if "is_asked" not in context or kind not in ASKED:
        return found
    asked = ASKED[kind]
    inner = {WITHIN.get(name) for name in asked}
    return {name: file for name, file in found.items() if name not in inner} | asked


def _tag(topic: str, facts: Facts, *parts: object) -> str:
    limits = facts.settings
    told = [
        topic,
        facts.last_notice,
        facts.looked,
        facts.last_tick_at,
        facts.last_error,
        facts.is_late,
        limits.session_cap,
        limits.run_budget_minutes,
        limits.tick_seconds,
        int(facts.now.timestamp()) // SECONDS,
        *map(_told, parts),
        why.of(wiring.lab(), [part for part in parts if isinstance(part, Project)]),
    ]
    return hashlib.sha256(repr(told).encode()).hexdigest()[:20]


def _told(part: object) -> object:
    """What of a row or a screen shows on a page and may change without a timeline entry."""
    match part:
        case Project():
            shown = (part.pk, part.state, part.clone_progress, part.warnings, part.ready_label)
            auto = (part.is_auto, part.streak, part.parallel_runs, part.retry_at)
            numbers = (part.run_budget_minutes, part.waits_stop_budget)
            opened = (*numbers, part.last_opened_at, part.parked)
            spent = (part.run_tokens_limit, part.run_cost_limit)
            of_day = (part.day_tokens_limit, part.day_cost_limit)
            watch = getattr(part, "watch_seen", None), getattr(part, "open_watch", None)
            return (*shown, *opened, *spent, *of_day, *auto, *watch, part.tracker, part.hooked_at)
        case Run():
            ended = (part.state, part.outcome, part.settled_at, part.waits_at, part.answered_at)
            cut = (part.turn_interrupted_at, part.budget_stopped_at)
            moved = [
                part.has_changed_since(at) for at in (part.answered_at, part.turn_interrupted_at)
            ]
            link = (part.link_waits, part.deep_link)
            gates = (part.gate_turn, part.attempts, part.close_asked_at, part.closed_at)
            pull = (part.pull_number, part.pull_state)
            return (*ended, *cut, *moved, *link, *gates, *pull, part.head, part.reading.report)
        case AgentProfile():
            held = (part.hold, part.hold_note, part.held_until)
            return (part.pk, part.is_found, part.is_logged_in, part.checked_at, *held)
        case AgentTrial():
            return (part.pk, part.state, part.steps, part.ended_at)
        case Settings():
            limits = (part.agent_id, part.model, part.effort, part.refresh_seconds)
            more = (part.git_timeout_seconds, part.people_percent, part.nofile_limit)
            spent = (part.run_tokens_limit, part.run_cost_limit)
            day = (part.day_tokens_limit, part.day_cost_limit)
            kept = (part.fold_days, part.delivery_days)
            return (*limits, *more, *spent, *day, *kept, part.quiet_minutes, part.nudges)
    return part


# Pages that show each person what they have not hidden.
_PERSONAL: Mapping[str, Callable[[Lab, Sequence[Hidden]], Any]] = {
    "overview": queries.overview,
    "needs": queries.needs,
}
_MAKERS: Mapping[str, Callable[[Lab, int], Any]] = {
    "project": queries.project,
    **dict.fromkeys(tabs.ALL, queries.run),
    "group": group_pages.group,
    "issues": queries.frame_of_project,
    "watch": watch_pages.pushed,
    "chrome": lambda lab, _: queries.frame(lab),
    "settings": lambda lab, _: agent_pages.page(lab),
    "notices": lambda lab, _: queries.frame(lab),
    "audit": lambda lab, _: audit_page.pushed(lab),
    "watches": watch_pages.pushed_list,
    "trial": agent_pages.trial_page,
}
