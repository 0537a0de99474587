"""The tabs of a run's page: which parts each one has, and what their templates need.

A topic of a push is a tab with the number of its run. Its head (state, what it waits for, what a
person can do) is the same on each.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from runs.core.ports import Lab
from runs.core.states import RUN_PAGES, Outcome, Wait, WorktreeFate
from runs.followups import pages as follow_up_pages
from runs.gate_pages import check_pages, check_words
from runs.lifecycle import observe, steps
from runs.lifecycle.observe import Screen
from runs.loop_pages import run_card
from runs.models import Host, Run
from runs.overview.queries import RunPage
from runs.pulls import diff
from runs.run_pages import live_changes, live_screen, recording, sent, story
from runs.setup import card as setup_card
from runs.spending import pages as spending_pages
from runs.transcript import panel
from runs.waits import acts as wait_acts
from runs.waits import closed_issues
from runs.waits import rules as wait_rules
from runs.web import terminal

Context = dict[str, Any]

FINAL_LINES = 8

STORY, TALK, TERMINAL, CHANGES, CHECKS, PROMPT, RAW = ALL = RUN_PAGES
URLS = {
    "run": STORY,
    "conversation": TALK,
    "run-turns": TALK,
    "run-turn": TALK,
    "run-terminal": TERMINAL,
    "run-changes": CHANGES,
    "run-checks": CHECKS,
    "run-prompt": PROMPT,
    "run-raw": RAW,
}
HEAD = {
    "run-head": "lifecycle/_head",
    "run-act": "lifecycle/_act",
    "run-wait": "waits/_wait",
}
# With a form, so that a push, which is the same for many, leaves them out.
HEAD_ASKED = {"answering": "waits/_answering", "resume": "followups/_resume"}
PARTS: Mapping[str, Mapping[str, str]] = {
    STORY: {
        "steps": "lifecycle/_steps",
        "run-setup": "setup/_card",
        "run-gates": "gates/_line",
        "run-loop": "loops/_run_card",
        "budget": "lifecycle/_budget",
        "agent-box": "lifecycle/_agent",
        "run-limits": "spending/_run_limits",
        "timeline": "run_pages/_story",
        "exit": "lifecycle/_exit",
    },
    TERMINAL: {"attach-box": "lifecycle/_attach"},
    CHECKS: {
        "check-attempts": "gates/_attempts",
        "check-shown": "gates/_shown",
        "check-issue": "gates/_issue",
    },
    PROMPT: {"prompt": "lifecycle/_prompt", "prompt-before": "run_pages/_prompt_before"},
    RAW: {"raw": "run_pages/_raw"},
}
ASKED: Mapping[str, Mapping[str, str]] = {
    STORY: {"loop-guide": "loops/_guide"},
    TERMINAL: {"terminal": "lifecycle/_terminal"},
    CHANGES: {"changes": "lifecycle/_changes"},
}


def templates(tab: str, context: Context) -> dict[str, str]:
    """The live parts of a tab by the ids of their elements, as far as the context holds them."""
    asked = {**HEAD_ASKED, **ASKED.get(tab, {})}
    shown = {name: file for name, file in asked.items() if name in context}
    return {**HEAD, **PARTS.get(tab, {}), **shown}


def context(lab: Lab, tab: str, page: RunPage, *, is_asked: bool, is_page: bool = False) -> Context:
    """What a tab shows; unless `is_asked` without what tmux or git would have to be asked for.

    The screen of a live session comes with the whole page only: after that its changes are sent by
    themselves (`runs.run_pages.screen_socket`).
    """
    run = page.run
    found = {"run_tab": tab, **_head(lab, page, is_asked=is_asked)}
    if tab == STORY:
        found |= _story(lab, page, found["went_on"], is_asked=is_asked)
    elif tab == TERMINAL and (is_page or run.settled_at is not None):
        screen = observe.terminal(lab, run)
        found |= {"terminal": screen, "shot": live_screen.shot_of(screen)}
        live_screen.remembered(found["shot"])
        found["recording"] = recording.of(lab, run)
    elif tab == CHANGES and is_asked:
        changes = live_changes.LIVE.of(lab, run)
        found |= {"changes": changes, "files": diff.files(changes.files, changes.patch)}
    elif tab == CHECKS:
        found |= check_pages.of(lab, run)
    elif tab == PROMPT:
        found |= sent.prompt(run)
    elif tab == RAW:
        found |= sent.raw(lab, page)
    return found


def seen(lab: Lab, tab: str, run: Run | None, shown: Context | None = None) -> list[object]:
    """What else than its row a tab shows and no timeline tells; of a page that was `shown`, that."""
    if run is None:
        return []
    if tab == CHECKS:
        return [check_pages.mark(lab, run.pk)]
    shown = shown or {}
    if tab == CHANGES:
        changes = shown.get("changes") or live_changes.LIVE.of(lab, run)
        return [changes.files, changes.commits, changes.patch, changes.error]
    told: list[object] = []
    if tab == STORY and run.is_active:
        told += shown["story"]["mark"] if shown else story.mark(lab, run)
    # A dialog may give way to another one while the run waits on.
    if run.is_waiting or (tab == TERMINAL and run.settled_at is not None):
        screen: Screen = shown.get("terminal") or observe.terminal(lab, run)
        return [*told, screen.text, screen.live, screen.error]
    return told


def untold(lab: Lab, tab: str, ident: int) -> list[object]:
    """What a tab shows that may change without a word: its row, and what an agent edits. One query."""
    rows = Run.objects.select_related("project").defer("project__token", "project__hook_secret")
    run = rows.filter(pk=ident).first()
    if run is None or tab != CHANGES:
        return [run]
    return [run, live_changes.LIVE.look(lab, run)]


def untold_of(lab: Lab, tab: str, shown: Context) -> list[object]:
    """The same as far as it is known, of a page that was loaded already."""
    run: Run = shown["page"].run
    return [run, live_changes.LIVE.known(lab, run)] if tab == CHANGES else [run]


def wait_words(run: Run) -> Mapping[str, object] | None:
    """For what a run waits that only a person can give, and what they can do; None while it works."""
    if not run.is_waiting:
        return None
    kind = Wait(run.waits)
    what = wait_rules.sentence(kind, run.agent, "")
    has_changed = run.has_changed_since(run.answered_at)
    return {"what": what, "note": run.waits_note, "has_changed": has_changed}


def _head(lab: Lab, page: RunPage, *, is_asked: bool) -> Context:
    run, now = page.run, page.board.facts.now
    found: Context = {
        "run": run,
        "checking": check_words.checking(run) if run.is_checking else "",
        "agent": panel.panel(run, now),
        "agent_pill": panel.pill(run, now),
        "wait": wait_words(run),
        "closed_issue": closed_issues.is_asked(run),
        "may_interrupt": wait_acts.may_interrupt(lab, run),
        "stops_agents": wait_acts.stops_agents(run),
        "has_obeyed": run.has_changed_since(run.turn_interrupted_at),
        "attach": _attach(lab, run),
        # Where there is one machine, its name says nothing.
        "host": run.host if lab.others is not None or run.host != lab.host else "",
        "went_on": follow_up_pages.went_on(run),
    }
    if is_asked:
        found["answering"] = wait_acts.form(lab, run)
        found["resume"] = follow_up_pages.resume_box(lab, run)
    return found


def _story(lab: Lab, page: RunPage, went_on: int | None, *, is_asked: bool) -> Context:
    run, now = page.run, page.board.facts.now
    return {
        "story": story.of(lab, run),
        "steps": steps.of(run, page.row.spent),
        "setup_cards": setup_card.all_of(lab, run),
        "gates": check_pages.line(run),
        "loop_card": run_card.of(run, now) if run.is_loop else None,
        **({"loop-guide": True} if is_asked and run.is_loop else {}),
        "spending": spending_pages.of_run(page.board, run),
        "waited": run.waited(now),
        "final_html": terminal.render(_end(run.last_words)) if run.outcome else "",
        # What another run works on is nothing that somebody should discard.
        "has_claim": went_on is None and _has_claim(run),
    }


def _end(text: str) -> str:
    """The last lines of a screen."""
    return "\n".join(text.rstrip().splitlines()[-FINAL_LINES:])


def _attach(lab: Lab, run: Run) -> str:
    """How to attach to the run's session while it has one; on another host by ssh, if that is known."""
    if not run.is_active or run.is_held:
        return ""
    if run.host == lab.host:
        return shlex.join(lab.sessions.attach_command(run.session))
    host = Host.objects.filter(name=run.host).only("tmux_socket", "ssh_address").first()
    if host is None or not host.tmux_socket or not host.ssh_address:
        return ""
    there = shlex.join(["tmux", "-S", host.tmux_socket, "attach", "-t", f"={run.session}"])
    return shlex.join(["ssh", "-t", host.ssh_address, there])


def _has_claim(run: Run) -> bool:
    """Whether an ended run still keeps its issue from others, until a person discards."""
    fates = (WorktreeFate.KEPT, WorktreeFate.GONE)
    return run.worktree_fate in fates and run.outcome != Outcome.SUCCEEDED
