"""`python -m labsite.doctor.facts`: what only Django can tell, as one JSON object.

A process of its own, so that settings which fail, or a database that hangs, cost the doctor one
line. Each fact is asked alone: {"value": …} or {"error": …}.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

AGENTS_AT_ONCE = 8
BD_SECONDS = 3.0  # three commands a project, well within the time of all facts


def main() -> int:
    """Print the facts. 3 and one sentence when a setting cannot be meant."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "labsite.looking"
    from labsite import loading
    from labsite.env import WrongSetting

    try:
        loading.set_up()
    except WrongSetting as error:
        print(error, file=sys.stderr)
        return 3
    print(json.dumps(told()))
    return 0


def told() -> dict[str, dict[str, Any]]:
    """Every fact. Without a database only that; what waiting changes may break is left out."""
    facts = {"database": _answer(_database)}
    if "error" in facts["database"]:
        return facts
    facts["migrations"] = _answer(_migrations)
    is_behind = bool(facts["migrations"].get("value", {}).get("waiting"))
    asked = (
        *(_tick, _open_files, _committer, _runs, _beside),
        *(_projects, _set_up, _secrets, _agents, _beads, _forges),
    )
    answers = {question.__name__.strip("_"): _answer(question) for question in asked}
    return facts | {
        name: answer for name, answer in answers.items() if not (is_behind and "error" in answer)
    }


def _answer(question: Callable[[], Any]) -> dict[str, Any]:
    try:
        return {"value": question()}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def _database() -> str:
    """Which engine answers a query."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return str(connection.vendor)


def _migrations() -> dict[str, list[str]]:
    """Steps that wait, and those that keep this version from the database."""
    from django.db import connection
    from django.db.migrations.loader import MigrationLoader

    from runs.management.tables import in_the_way

    loader = MigrationLoader(connection)
    known, applied = set(loader.disk_migrations), set(loader.applied_migrations)
    found = in_the_way(loader)
    return {
        "waiting": sorted(".".join(step) for step in known - applied),
        "newer": found.newer,
        "older": found.older,
    }


def _tick() -> dict[str, Any]:
    """The last tick as the health page tells it."""
    from runs.core import lease
    from runs.models import Settings
    from runs.overview.worker_health import last_tick
    from runs.wiring import lab

    try:
        lease.check_name(lab())
        lease.check_not_removed(lab().host)
        removed = ""
    except (lease.Removed, lease.OtherMachine) as error:
        removed = str(error)
    seconds = Settings.objects.values_list("tick_seconds", flat=True).first() or 30
    from datetime import timedelta

    now = lab().now()
    seen = last_tick(now, lab().host, timedelta(seconds=seconds))
    return {
        "age": None if seen.at is None else (now - seen.at).total_seconds(),
        "is_late": seen.is_late,
        "error": seen.error,
        "removed": removed,
        "interval": seconds,
    }


def _open_files() -> int:
    from runs.models import Settings

    return Settings.objects.values_list("nofile_limit", flat=True).first() or 0


def _committer() -> str:
    from runs.models import Settings

    return Settings.objects.values_list("committer", flat=True).first() or ""


def _runs() -> dict[str, Any]:
    """Sessions and worktrees that rows of this host stand for."""
    from django.conf import settings

    from runs.models import Project, Run
    from trackers.keys import KeyRule

    ours = Run.objects.filter(host=settings.SESSION_HOST)
    return {
        "working": sorted(ours.working().values_list("session", flat=True)),
        "known": sorted(
            {*ours.active().values_list("session", flat=True)}
            | {*ours.unsettled().values_list("session", flat=True)}
        ),
        "worktrees": sorted({*ours.exclude(worktree="").values_list("worktree", flat=True)}),
        "words": sorted(p.slug for p in Project.objects.all() if p.keys is KeyRule.WORD),
    }


def _beside() -> list[str]:
    """Folders beside the runs for which nothing stands."""
    from django.conf import settings

    from labsite.doctor import beside

    return beside.orphans(settings.PATHS)


def _projects() -> dict[str, str]:
    """Name and reference repository of every project that should have one."""
    from django.conf import settings

    from runs.models import Project

    return {
        project.name: str(project.repo(settings.PATHS))
        for project in Project.objects.usable().only("name", "slug")
    }


def _set_up() -> list[dict[str, Any]]:
    """What a look at the set-up of each project needs."""
    from django.conf import settings

    from runs.models import Project

    names = ("name", "slug", "url", "default_branch", "has_submodules")
    return [
        {
            "name": one.name,
            "repo": str(one.repo(settings.PATHS)),
            "url": one.url,
            "branch": one.default_branch,
            "has_submodules": one.has_submodules,
        }
        for one in Project.objects.usable().only(*names)
    ]


def _secrets() -> int:
    """How many stored secrets the present key does not open."""
    from django.db import connection

    from runs.core.encrypted import decrypted

    stored: list[str] = []
    with connection.cursor() as cursor:
        for question in (
            "SELECT token FROM runs_project WHERE token <> ''",
            "SELECT env FROM runs_agentprofile WHERE env <> ''",
            "SELECT url FROM runs_noticeaddress WHERE url <> ''",
            "SELECT private FROM runs_pushkeys WHERE private <> ''",
        ):
            cursor.execute(question)
            stored += [row[0] for row in cursor.fetchall()]
    return sum(decrypted(text) is None for text in stored)


def _agents() -> list[dict[str, Any]]:
    """Per profile: its program, why it cannot start, who uses it, version and login.

    As a session would find it that is started from this environment; labsite itself may have been
    started from another one.
    """
    from runs.accounts import credentials
    from runs.agents import check_rules, checks, trial
    from runs.models import AgentProfile, Project, Settings
    from runs.wiring import real_lab

    lab = real_lab()
    used = {
        *Settings.objects.values_list("agent_id", flat=True),
        *Project.objects.values_list("agent_id", flat=True),
    }

    tried = trial.versions()

    def odd_payment(profile: AgentProfile) -> str:
        paid = checks.payment(lab, profile)
        return paid.text if paid.is_odd else ""

    def look(profile: AgentProfile) -> dict[str, Any]:
        found, unfit = checks.inspect(lab, profile)
        is_asked = bool(profile.login_command) and bool(found)
        version = checks.version(lab, profile) if found else ""
        return {
            "name": profile.name,
            "program": str(profile.argv[0]) if profile.argv else "",
            "found": found or None,
            "found_by_worker": profile.is_found,
            "unfit": unfit.text if unfit is not None and found else "",
            "version": version,
            # Of a program that labsite does not know no version was ever tried.
            "untried": check_rules.untried(profile.argv, version, tried.get(profile.pk, ()))
            if check_rules.is_known(profile.argv)
            else "",
            "used": profile.pk in used,
            "odd_payment": odd_payment(profile),
            "asked": is_asked,
            "logged_in": credentials.is_logged_in(lab, profile) if is_asked else None,
        }

    profiles: Iterable[AgentProfile] = list(AgentProfile.objects.all())
    with ThreadPoolExecutor(AGENTS_AT_ONCE) as pool:
        return list(pool.map(look, profiles))


def _forges() -> list[dict[str, Any]]:
    """Each account that a project uses, asked once whether it is accepted; nothing is kept."""
    from datetime import UTC, datetime

    from django.db.models import Count

    from runs.models import Forge
    from trackers import registry
    from trackers.http.client import over_network
    from trackers.registry import Tools

    used = list(Forge.objects.annotate(projects=Count("project")).filter(projects__gt=0))
    if not used:
        return []

    def now() -> datetime:
        return datetime.now(UTC)

    client = over_network(None, now)

    def greet(forge: Forge) -> dict[str, Any]:
        tools = Tools(now=now, client=lambda: client, accounts=lambda: {"0": forge.account})
        tracker: Any = registry.tracker(forge.kind, tools)
        found = tracker.greet("0")
        told = {"name": forge.name, "projects": getattr(forge, "projects", 0)}
        return {**told, "ok": found.ok, "said": found.text}

    try:
        with ThreadPoolExecutor(AGENTS_AT_ONCE) as pool:
            return list(pool.map(greet, used))
    finally:
        client.close()


def _beads() -> dict[str, Any]:
    """What `bd` calls itself, how many projects are on it, and why some cannot be read."""
    from datetime import UTC, datetime

    from runs.core.states import TrackerKind
    from runs.forges.bd import BdCommand
    from runs.models import Project
    from trackers.base import Finding
    from trackers.beads.adapter import BeadsTracker
    from trackers.beads.command import Ended

    run = BdCommand(os.environ)

    def soon(argv: Sequence[str], cwd: Path, seconds: float, env: Mapping[str, str]) -> Ended:
        return run(argv, cwd, min(seconds, BD_SECONDS), env)

    tracker = BeadsTracker(soon, lambda: datetime.now(UTC))

    def look(project: Project) -> Sequence[Finding]:
        return tracker.examine(project.tracker_root, project.ready_label)

    projects = list(Project.objects.usable().filter(tracker=TrackerKind.BEADS).order_by("name"))
    with ThreadPoolExecutor(AGENTS_AT_ONCE) as pool:
        found = dict(zip([one.name for one in projects], pool.map(look, projects), strict=True))
    bad = {
        name: [one.text for one in seen if one.ok is False and one.name != "keys"]
        for name, seen in found.items()
    }
    said = [one.text for seen in found.values() for one in seen if one.name == "bd" and one.ok]
    return {
        "said": said[0].rpartition("answers: ")[2] if said else "",
        "projects": len(projects),
        "trouble": {name: texts[0] for name, texts in bad.items() if texts},
    }


if __name__ == "__main__":
    sys.exit(main())
