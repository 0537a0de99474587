"""The temporary repository of the end-to-end check, and the labsite of its own that works on it.

The repository is a minimal Python package with one tiny issue. `make`, `look` and `end` run in the
second labsite, whose state folder lies beside the repository: see `manage.py e2e_fixture`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runs.core.ports import Lab, SeamError
from runs.core.states import CompletionPolicy
from runs.issues import acts as issues
from runs.models import AgentProfile, CheckTerms, Project, Run, Settings
from runs.projects import acts as projects
from runs.validation.specs import Switch

PROJECT = "e2e"
BY = "labsite"
ARTIFACT = "GREETING.txt"
ISSUE_FILE = ".issue.json"
TITLE = "Add a greeting"
BODY = (
    f"Create the file `{ARTIFACT}` in the top folder, with the one line `hello`, and commit it. "
    "Change nothing else."
)
PROFILE = (
    *("name", "mode", "output", "argv", "env", "trust", "login_command"),
    *("resume_argv", "model_names", "efforts"),
)
_FILES = {
    "pyproject.toml": '[project]\nname = "tiny"\nversion = "0.1.0"\nrequires-python = ">=3.9"\n',
    "README.md": "# tiny\n\nA package on which labsite tries a real run. It is removed afterwards.\n",
    "src/tiny/__init__.py": 'def greet():\n    return "hello"\n',
    "tests/test_tiny.py": "from tiny import greet\n\n\ndef test_greets():\n    assert greet()\n",
    ".gitignore": f"__pycache__/\n/{ISSUE_FILE}\n",
}


def write(lab: Lab, repo: Path) -> None:
    """Make the repository with its issue, in place of whatever is there. Raises SeamError."""
    shutil.rmtree(repo, ignore_errors=True)
    try:
        for name, text in _FILES.items():
            (repo / name).parent.mkdir(parents=True, exist_ok=True)
            (repo / name).write_text(text, encoding="utf-8")
        lab.repos.found(repo, "feat: a tiny package")
        issue = {"key": "1", "title": TITLE, "body": BODY, "status": "open"}
        (repo / ISSUE_FILE).write_text(json.dumps(issue, indent=2), encoding="utf-8")
    except OSError as error:
        raise SeamError(f"{repo} could not be written: {error.strerror}") from error


def seen(lab: Lab, repo: Path) -> dict[str, bool]:
    """What a command of the project's own left: whether its issue is closed and the artifact there.

    It closes the issue by writing the status *closed* into the issue's file.
    """
    found = lab.checks.output(repo, ISSUE_FILE, 0, 100_000)
    try:
        kept: Any = json.loads(found.data) if found is not None else {}
    except ValueError:
        kept = {}
    is_closed = isinstance(kept, dict) and kept.get("status") == "closed"
    return {"closed": is_closed, "artifact": lab.checks.output(repo, ARTIFACT, 0, 0) is not None}


def agent_of(profile: AgentProfile, settings: Settings) -> dict[str, Any]:
    """What the second labsite needs to know of the agent; holds its secrets."""
    return {
        "profile": {name: getattr(profile, name) for name in PROFILE},
        "settings": {"model": settings.model, "effort": settings.effort},
    }


def make(lab: Lab, repo: Path, given: Mapping[str, Any], minutes: int) -> Project:
    """In the second labsite: the project, its one issue, its agent; one at a time, nothing nested.

    Its gates ask for the commit alone, so that the issue is closed by labsite and by nothing else.
    """
    profile = AgentProfile.objects.create(**given["profile"])
    Settings.current()
    Settings.objects.update(agent=profile, **given["settings"])
    project = projects.add(lab, name=PROJECT, source=str(repo), token="", by=BY)
    Project.objects.filter(pk=project.pk).update(
        agent=profile,
        policy=CompletionPolicy.GATES,
        parallel_runs=1,
        run_budget_minutes=minutes,
        fix_attempts=0,
    )
    off = [one for one in Switch if one is not Switch.INTEGRATION_TESTS]
    CheckTerms.objects.create(project=project, disabled=off)
    labels = [project.ready_label]
    issues.create(lab, project, title=TITLE, body=BODY, labels=labels, by=BY)
    return project


def look(lab: Lab) -> dict[str, bool]:
    """In the second labsite: whether the issue is closed and the delivered work has the artifact."""
    project = Project.objects.get(name=PROJECT)
    tracker = lab.tracker_for(project.tracker)
    is_closed = tracker is not None and not tracker.issue(project.tracker_root, "1").is_open
    run = Run.objects.filter(project=project).order_by("-pk").first()
    return {"closed": is_closed, "artifact": run is not None and _has_artifact(lab, project, run)}


def _has_artifact(lab: Lab, project: Project, run: Run) -> bool:
    repo = project.repo(lab.paths)
    commit = run.accepted_commit or lab.repos.tip(repo, f"refs/heads/{run.branch}")
    return bool(commit and ARTIFACT in lab.repos.texts(repo, commit, [ARTIFACT], 1000))


def end(lab: Lab) -> None:
    """In the second labsite: end every session with all that it started. Raises SeamError."""
    for name, sighting in lab.sessions.look().items():
        lab.sessions.kill(name, sighting.marker)
