"""The live parts of each page: what the page, the answer to an action and a push all render."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import Resolver404, resolve

from runs import schedule, wiring
from runs.agents import pages as agent_pages
from runs.core.ports import Lab
from runs.core.states import NoticeKind, Outcome, Wait, WorktreeFate
from runs.dispatch import why
from runs.followups import pages as follow_up_pages
from runs.groups import pages as group_pages
from runs.lifecycle import observe, steps
from runs.lifecycle import rows as run_rows
from runs.lifecycle.observe import Screen
from runs.models import AgentProfile, AgentTrial, Notice, Project, Run, Settings
from runs.overview import board, queries
from runs.overview.board import Facts
from runs.pulls import diff
from runs.spending import pages as spending_pages
from runs.timeline import audit_page
from runs.transcript import panel
from runs.waits import acts as wait_acts
from runs.waits import rules as wait_rules
from runs.watch import pages as watch_pages
from runs.watch import summaries
from runs.web import access, addresses, answers, chrome, terminal
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
    "running": "overview/_running",
    "up-next": "overview/_up_next",
    "activity": "overview/_activity",
    "projects": "overview/_projects",
    "start-menu": "overview/_start_menu",
}
PROJECT = {
    "project-head": "projects/_head",
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
RUN = {
    "run-head": "lifecycle/_head",
    "run-act": "lifecycle/_act",
    "run-wait": "waits/_wait",
    "attach-box": "lifecycle/_attach",
    "steps": "lifecycle/_steps",
    "budget": "lifecycle/_budget",
    "agent-box": "lifecycle/_agent",
    "run-limits": "spending/_run_limits",
    "timeline": "lifecycle/_timeline",
    "prompt": "lifecycle/_prompt",
    "exit": "lifecycle/_exit",
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
SEEN = {
    "terminal": "lifecycle/_terminal",
    "answering": "waits/_answering",
    "changes": "lifecycle/_changes",
    "resume": "followups/_resume",
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
RUNS = {"runs-rows": "lifecycle/_rows"}
AUDIT = {"audit-rows": "timeline/_audit_rows"}
WATCHES = {"watch-rows": "watch/_rows"}
OF = {
    "overview": OVERVIEW,
    "needs": {"needs-you": "overview/_needs_you"},
    "project": PROJECT,
    "watch": WATCH,
    "group": GROUP,
    "settings": SETTINGS,
    "trial": {"trial": "agents/_trial"},
    "talk": {"run-head": "lifecycle/_head"},
    "runs": RUNS,
    "audit": AUDIT,
    "watches": WATCHES,
}
WITHIN = {"project-driven": "project-sessions", "webhook": "hook-deliveries"}
ASKED = {"project": PROJECT_ASKED, "settings": SETTINGS_ASKED}


Context = dict[str, Any]
Shown = AgentProfile | AgentTrial | Project | Run | Screen | Settings | None

FOR_ACTORS = {"audit"}
SECONDS = 600  # what a page says of the last day is looked at anew this often


def regions(topic: str, can_act: bool, request: HttpRequest | None = None) -> dict[str, str] | None:
    """The HTML of each live region of a page by its element's id; None when the page is gone.

    Terminal and changes of a running session are asked from tmux and git, so they come only
    with a request; a push, which is rendered for every event, leaves them to the next refresh.
    """
    context = page_context(topic, can_act, request)
    return _rendered(topic, context) if context is not None else None


def page_context(topic: str, can_act: bool, request: HttpRequest | None = None) -> Context | None:
    """What the templates of a page need, with a fixed number of queries; None when it is gone."""
    kind, ident = _split(topic)
    make = _MAKERS.get(kind) if can_act or kind not in FOR_ACTORS else None
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
    if kind == "run":
        context |= _of_run(wiring.lab(), page, asked=request is not None)
    elif kind == "talk":
        context |= _of_run(wiring.lab(), page, asked=False)
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
        return {"is_asked": True, "form": form}
    return {}


def version(topic: str) -> str:
    """A tag that changes whenever a page's regions may have changed. At most two queries.

    It serves the 304 of a refresh and nothing else. For a running session it includes the
    screen, so that each new line of the agent is shown at the next refresh.
    """
    lab = wiring.lab()
    facts = board.load_facts(lab)
    kind, ident = _split(topic)
    if kind == "run":
        run = Run.objects.filter(pk=ident).first()
        screen = observe.terminal(lab, run) if run is not None else None
        return _tag(topic, facts, run, screen)
    if kind == "talk":
        return _tag(topic, facts, Run.objects.filter(pk=ident).first())
    if kind == "settings":
        return _tag(topic, facts, *agent_pages.rows(), facts.settings)
    if kind == "trial":
        return _tag(topic, facts, AgentTrial.objects.filter(pk=ident).first())
    rows = summaries.with_open(Project.objects.defer("token", "hook_secret"))
    return _tag(topic, facts, *rows.order_by("pk"))


def version_of(topic: str, context: Context) -> str:
    """The same tag for a page whose facts were loaded already."""
    picture = context["page"].board
    kind, _ = _split(topic)
    if kind == "run":
        return _tag(topic, picture.facts, context["page"].run, context.get("terminal"))
    if kind == "talk":
        return _tag(topic, picture.facts, context["page"].run)
    if kind == "settings":
        return _tag(topic, picture.facts, *context["page"].rows, picture.facts.settings)
    if kind == "trial":
        return _tag(topic, picture.facts, context["page"].trial)
    return _tag(topic, picture.facts, *sorted(picture.projects, key=lambda one: one.pk))


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
        topics |= {f"run:{notice.run_id}", f"talk:{notice.run_id}", "runs"}
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
    if match.url_name == "run":
        return f"run:{match.kwargs['run_id']}"
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


def _rendered(topic: str, context: Context) -> dict[str, str]:
    return {
        name: render_to_string(f"{template}.html", context)
        for name, template in {**CHROME, **_templates(topic, context)}.items()
    }


def _split(topic: str) -> tuple[str, int]:
    kind, _, ident = topic.partition(":")
    return kind, int(ident) if ident.isdigit() else 0


def _templates(topic: str, context: Context) -> dict[str, str]:
    kind, _ = _split(topic)
    if kind == "run":
        return RUN | {name: made for name, made in SEEN.items() if name in context}
    found = OF.get(kind, {})
    if "is_asked" not in context or kind not in ASKED:
        return found
    asked = ASKED[kind]
    inner = {WITHIN.get(name) for name in asked}
    return {name: file for name, file in found.items() if name not in inner} | asked


def _of_run(lab: Lab, page: queries.RunPage, asked: bool) -> Context:
    """A run's steps, screen and changes; a push leaves out what would have to be asked outside."""
    run = page.run
    context: Context = {
        "steps": steps.of(run, page.row.spent),
        "agent": panel.panel(run, page.board.facts.now),
        "spending": spending_pages.of_run(page.board, run),
        "agent_pill": panel.pill(run, page.board.facts.now),
        "wait": wait_words(run),
        "waited": run.waited(page.board.facts.now),
        "may_interrupt": wait_acts.may_interrupt(lab, run),
        "has_obeyed": run.has_changed_since(run.turn_interrupted_at),
        "attach": _attach(lab, run),
        "went_on": (went_on := follow_up_pages.went_on(run)),
        # What another run works on is nothing that somebody should discard.
        "has_claim": went_on is None and _has_claim(run),
    }
    if asked or run.settled_at is not None:
        screen = observe.terminal(lab, run)
        context |= {"terminal": screen, "screen_html": terminal.render(screen.text)}
    if asked:
        changes = observe.changes(lab, run)
        context["answering"] = wait_acts.form(lab, run)
        context["resume"] = follow_up_pages.resume_box(lab, run)
        context |= {"changes": changes, "files": diff.files(changes.files, changes.patch)}
    return context


def wait_words(run: Run) -> Mapping[str, object] | None:
    """For what a run waits that only a person can give, and what they can do; None while it works."""
    if not run.is_waiting:
        return None
    kind = Wait(run.waits)
    what = wait_rules.sentence(kind, run.agent, "")
    has_changed = run.has_changed_since(run.answered_at)
    return {"what": what, "note": run.waits_note, "has_changed": has_changed}


def _attach(lab: Lab, run: Run) -> str:
    """How to attach to the run's session, while it has one."""
    is_there = run.is_active and not run.is_held
    return shlex.join(lab.sessions.attach_command(run.session)) if is_there else ""


def _has_claim(run: Run) -> bool:
    """Whether an ended run still keeps its issue from others, until a person discards."""
    fates = (WorktreeFate.KEPT, WorktreeFate.GONE)
    return run.worktree_fate in fates and run.outcome != Outcome.SUCCEEDED


def _tag(topic: str, facts: Facts, *parts: Shown) -> str:
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


def _told(part: Shown) -> object:
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
            link = (part.link_waits, part.deep_link)
            pull = (part.pull_number, part.pull_state)
            return (*ended, *cut, *link, *pull, part.head, part.reading.report)
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
            return (*limits, *more, *spent, *day, part.quiet_minutes, part.nudges)
        case Screen():
            return (part.text, part.live, part.error)
    return None


_MAKERS: Mapping[str, Callable[[Lab, int], Any]] = {
    "overview": lambda lab, _: queries.overview(lab),
    "needs": lambda lab, _: queries.needs(lab),
    "project": queries.project,
    "run": queries.run,
    "talk": queries.run,
    "group": group_pages.group,
    "issues": queries.frame_of_project,
    "watch": watch_pages.pushed,
    "chrome": lambda lab, _: queries.frame(lab),
    "settings": lambda lab, _: agent_pages.page(lab),
    "runs": lambda lab, _: queries.runs(lab),
    "audit": lambda lab, _: audit_page.pushed(lab),
    "watches": watch_pages.pushed_list,
    "trial": agent_pages.trial_page,
}
