"""A crowd on the real outside: many live sessions in many projects, real tmux, git and worktrees."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runs.models import Run
    from tests.real import RealWorld

AGENT = ["cat"]  # prints what is typed into its pane, and costs nothing


def begin() -> None:
    """Django on a state folder of its own, which goes away with this process's folder."""
    folder = tempfile.mkdtemp(prefix="lab-bench-")
    os.environ["LAB_STATE_DIR"] = folder
    os.environ["DJANGO_SETTINGS_MODULE"] = "labsite.settings"
    os.environ.setdefault("LAB_LOG_LEVEL", "ERROR")
    import django

    django.setup()
    from django.core.management import call_command

    with contextlib.redirect_stdout(None):
        call_command("prepare")


@contextlib.contextmanager
def crowd(projects: int, each: int) -> Iterator[tuple[RealWorld, list[Run]]]:
    """`projects` projects with `each` working runs: a session, a claim and a worktree for every one."""
    from tests.real import RealWorld

    with tempfile.TemporaryDirectory(prefix="lab-crowd-") as folder:
        world = RealWorld(Path(folder))
        try:
            yield world, _fill(world, projects, each)
        finally:
            world.close()


def _fill(world: RealWorld, projects: int, each: int) -> list[Run]:
    from runs.issues import acts as issues
    from runs.models import Project, Settings
    from runs.projects import acts as project_verbs
    from tests.repositories import a_checkout

    settings = Settings.current()
    settings.session_cap = projects * each + 10
    settings.run_budget_minutes = 10080
    settings.save()
    source = a_checkout(world.folder / "checkout", world.folder / "origin.git")
    runs = []
    for number in range(projects):
        made = project_verbs.add(
            world.lab, name=f"p{number:02}", source=str(source), token="", by="anna"
        )
        world.work()
        project = Project.objects.get(pk=made.pk)
        for count in range(each):
            issue = issues.create(
                world.lab, project, title=f"Issue {count}", body="", labels=[], by="anna"
            )
            runs.append(_run(world, project, str(issue), len(runs) + 1))
        print(f"\r{len(runs)} sessions", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return runs


def _run(world: RealWorld, project: object, key: str, slot: int) -> Run:
    from runs.core import naming
    from runs.core.ports import Order
    from tests.make import a_run

    lab = world.lab
    repo = project.repo(lab.paths)  # type: ignore[attr-defined]
    tree = lab.paths.worktrees / naming.worktree_name(project.slug, key)  # type: ignore[attr-defined]
    commit = lab.repos.upstream(repo, project.default_branch)  # type: ignore[attr-defined]
    now = datetime.now(UTC) - timedelta(minutes=5)
    run: Run = a_run(
        project,  # type: ignore[arg-type]
        key,
        slot=slot,
        worktree=str(tree),
        fork_point=commit,
        requested_at=now,
        started_at=now,
    )
    lab.repos.add_worktree(repo, tree, run.branch, commit)
    mark = naming.marker(str(lab.paths.state), run.pk)
    folder = lab.paths.run_folder(run.pk)
    lab.sessions.start(Order(run.session, folder, tree, AGENT, marker=mark))
    return run


def type_into(world: RealWorld, runs: list[Run], text: str) -> None:
    """Have every agent print a line; in pieces, since tmux takes 16 KB at once."""
    for begin in range(0, len(runs), 100):
        argv: list[str] = []
        for run in runs[begin : begin + 100]:
            argv += ["send-keys", "-t", f"={run.session}:", text, "Enter", ";"]
        world.tmux(*argv[:-1])


def write_history(rows: int, project_id: int, run_id: int) -> None:
    """That many timeline rows, spread over a year, without a minute of ORM."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %s)
            INSERT INTO runs_notice (at, kind, project_id, run_id, issue_key, text, "by", outcome, is_news)
            SELECT %s, 'run.step', %s, CASE WHEN i %% 50 = 0 THEN CAST(%s AS bigint) END,
                   '7', 'commit ' || i || ' of long ago', '', '', i %% 1000 = 0 FROM n
            """,
            [rows, datetime.now(UTC) - timedelta(days=30), project_id, run_id],
        )
        cursor.execute("ANALYZE")
