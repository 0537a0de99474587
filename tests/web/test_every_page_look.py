"""Every address of ours that answers with a page: axe finds nothing, nothing is cut, in all four forms.

The list is derived from the addresses: a new page is looked at from its first day, or is red for want
of something to show. States of pages that are rarer are looked at where those states are shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLResolver, get_resolver, reverse

from runs.core.states import CompletionPolicy
from runs.kept import rescue
from runs.loop_settings import settings_acts as loop_settings
from runs.models import AgentTrial, Host, LoopTerms, Project, Run
from runs.people import invites
from runs.project_settings import pages as setting_pages
from runs.run_pages import tabs
from runs.specs import acts as spec_acts
from runs.transcript import frames
from runs.web import fragments
from tests import make
from tests.fakes import START, World
from tests.gates import attempt_rows as attempts
from tests.run_pages.test_recording import TAKEN
from tests.web import people
from tests.web.browsing import OpenPage
from tests.web.looking import looks
from tests.web.people import text_of
from tests.web.test_acts import LOOP_ROLE, Stage

pytestmark = pytest.mark.django_db(transaction=True)

OURS = {"agent-login", "agent-trial", "agent-try"}
NOT_OURS = ("admin", "api", "agent-", "hook")  # Django's own, and what programs ask
# Where pages are looked at whose state no product has beside all the others.
ELSEWHERE = {
    "confirm": "tests/people/test_people_look.py",
    "invite": "tests/people/test_people_look.py",
    "login": "tests/people/test_people_look.py",
    "offline": "tests/phone/test_installable_browser.py",
    "pull-closed": "tests/forges/test_forge_look.py",
    "push-act": "tests/phone/test_push_look.py",
    "run-pull": "tests/forges/test_forge_look.py",
    "run-turn": "tests/loops/test_loop_browser.py",
    "run-turns": "tests/loops/test_loop_browser.py",
    "setup": "tests/people/test_people_look.py",
}
# Files, parts of pages and addresses that lead on, of which there is none here.
NO_PAGES = {
    *("conversation-text", "run-check-line", "run-check-output", "run-pull-live", "history-feed"),
    *(
        "runs",
        "pull-file",
        "icon",
        "spec-json",
        "run-turns-live",
        "run-turn-prompt",
    ),
    *("digest-today", "metrics", "validation-output"),
}


def _named(patterns: Any, taken: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The names of addresses, each with what stands in it."""
    for one in patterns:
        names = (*taken, *one.pattern.converters)
        if isinstance(one, URLResolver) and one.namespace:
            continue
        if isinstance(one, URLResolver):
            yield from _named(one.url_patterns, names)
        elif one.name:
            yield one.name, names


@pytest.fixture
def things(world: World, client: Client, operator: User) -> dict[str, Any]:
    """One product with something of everything, and its ids by the names that addresses have for them."""
    stage = Stage(world, client, operator)
    project, lab = stage.project, world.lab
    Project.objects.filter(pk=project.pk).update(policy=CompletionPolicy.GATES)
    run = attempts.checking(project, worktree="/nowhere", fork_point="abc")
    world.live(run)
    attempts.failed_in_clean_room(run, 1)
    folder = lab.paths.run_folder(run.pk)
    for name, taken in zip(frames.FILES, TAKEN, strict=True):
        world.sessions.files[folder / name] = b"".join(one.written() for one in taken)
    group = make.a_group(project, "tasks", tasks=2)
    workflow = stage.workflow()
    command = spec_acts.add_command(lab, project, attempts.COMMANDS[0], by="anna")
    reader = {"name": "reader", "command": ["read"]}
    reviewer = spec_acts.add_reviewer(lab, project, reader, by="anna")
    LoopTerms.objects.get_or_create(project=project)
    kept = rescue.keep(lab, project, "afk/77", "a" * 40, None, why="a test", always=True)
    assert kept is not None
    moments = {"asked_at": START, "deadline": START, "ended_at": START}
    trial = AgentTrial.objects.create(
        profile=stage.agent, by="anna", mark="m", state="passed", **moments
    )
    invited = make.a_user("ines", operator=False)
    ended = {"run_id": make.a_run(project, "88", slot=5, outcome="died").pk}
    given = {**LOOP_ROLE, "subscriptions": ["build.done"]}
    role = loop_settings.add_role(lab, project, given, by="anna")
    host = Host.objects.create(name="gpu-1", labels=["gpu"], load=2.5, cores=8, disk_free_mb=900)
    make.a_run(project, "89", slot=6)
    Run.objects.filter(issue_key="89").update(host="gpu-1")
    return {
        "host_id": host.pk,
        "project_id": project.pk, "run_id": run.pk, "group_id": group.pk, "workflow_id": workflow.pk,
        "command_id": command.pk, "reviewer_id": reviewer.pk, "rescue_id": kept.pk,
        "trial_id": trial.pk, "file_id": 1, "profile_id": stage.agent.pk, "role_id": role.pk,
        "person_id": invited.pk, "forge_id": stage.forge().pk, "address_id": stage.address().pk,
        "session_id": stage.watch().pk, "token": invites.link_token(lab, invited),
        "number": stage.review.number, "commit": stage.review.first, "file_number": 1, "day": f"{START:%Y-%m-%d}",
        "issue": {"number": stage.issue()}, "act": "dismiss", "scope": "per_run",
        **dict.fromkeys(("resume", "retry", "changes"), ended), "bulk-pulls": {"act": "merge"}, "bulk-parked": {"act": "discard"},
        "project-settings-of": {"group": setting_pages.ALL[0].key}, "generation_number": 1, "name": "x", "validation_id": 1, "phase_number": 1, "task_id": 1,
        "memory_id": 1, "token_id": 1, "passkey_id": 1, "key": "x",
    }  # fmt: skip


def _address(name: str, taken: tuple[str, ...], things: dict[str, Any]) -> str:
    own = things["issue"] if name.startswith("issue-") else things.get(name, {})
    query = f"?item={things['run_id']}" if name.startswith("bulk-") else ""
    return reverse(f"runs:{name}", kwargs={one: {**things, **own}[one] for one in taken}) + query


def _is_page(answer: Any) -> bool:
    is_shown = "Content-Disposition" not in answer.headers
    return (
        is_shown and answer["Content-Type"].startswith("text/html") and b"<main" in answer.content
    )


# Pages of which only the frame is live, each with why.
FORM = "a form: nobody's typing is changed, and storing says who changed the thing meanwhile"
ASKS = "a question before an act, which looks again before it does anything"
STILL = {
    **dict.fromkeys(
        (
            *("agent-login", "agent-try", "changes", "checks", "device-new", "forge", "forge-new"),
            *("group-from-issues", "group-new", "issue-edit", "issue-new", "loop-import"),
            *("loop-role", "loop-role-new", "monitor-start", "notice-address", "resume"),
            *("notice-address-new", "notice-times", "passkey-new", "password", "person"),
            *("person-new", "project-new", "project-settings", "project-settings-of"),
            *("spec-command", "spec-command-new", "spec-import", "spec-propose", "spec-reviewer"),
            *("spec-reviewer-new", "token-new", "tracker"),
        ),
        FORM,
    ),
    **dict.fromkeys(("bulk-parked", "bulk-pulls", "bulk-runs", "project-remove", "retry"), ASKS),
    **dict.fromkeys(("host-give-up", "host-remove"), ASKS),
    "hosts": "what each host told with its last tick; one looks at it to drain or remove one",
    "badge": "the badge as it is to be copied; whoever shows it asks for it anew",
    "group-feed": "older entries, which stay as they are",
    "group-tasks": "the whole list, which stands still while somebody reads it; the group's page is live",
    "rescue": "what was kept of a commit, which stays as it is",
    "search": "answers to what was typed, asked for anew with each letter",
    "shortcuts": "which keys there are",
}


def _is_live(page: str) -> bool:
    """Whether a page has parts of its own that are pushed or asked for, beside its frame."""
    asks = re.search(r'data-asks="(\w*)"', page)
    topic = re.search(r'hx-ws:connect="/ws/([\w:-]+)"', page)
    assert asks is not None
    assert topic is not None
    kind = topic[1].partition(":")[0]
    files = {**fragments.OF.get(kind, {}), **tabs.PARTS.get(kind, {}), **tabs.HEAD}
    return bool(asks[1]) or any(f'id="{name}"' in page for name in files)


def test_every_page_is_live_or_says_why_not_and_is_accessible_and_fits(
    open_page: OpenPage, operator: User, client: Client, things: dict[str, Any]
) -> None:
    pages, others, still = {}, set(), set()
    for name, taken in _named(get_resolver("runs.urls").url_patterns):
        if name.startswith(NOT_OURS) and name not in OURS:
            continue
        address = _address(name, taken, things)
        answer = client.get(address)
        if answer.status_code == 200 and name not in ELSEWHERE:
            if not answer.streaming and _is_page(answer):
                pages[name] = address
                still |= set() if _is_live(text_of(answer)) else {name}
        elif answer.status_code != 405:
            others.add(name)
    for group in setting_pages.ALL[1:]:
        ids = {"project_id": things["project_id"], "group": group.key}
        pages[f"settings {group.key}"] = reverse("runs:project-settings-of", kwargs=ids)
    assert others == ELSEWHERE.keys() | NO_PAGES
    assert len(pages) > 70
    assert not still - STILL.keys(), " ".join(sorted(still - STILL.keys()))
    assert not STILL.keys() - still, " ".join(sorted(STILL.keys() - still))
    page = open_page("/", operator)
    people.confirm_everybody()
    wrong: list[object] = []
    for name, address in pages.items():
        page.goto(address)
        wrong += looks(page, name)
    assert wrong == []
