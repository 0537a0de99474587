"""Jobs of GitHub's and Gitea's Actions with their logs, beside what the descriptions hold.

From GitHub's documentation: a check run of Actions has its job's number and address, its log is a
redirect to a file. From Gitea's source (services/actions/commit_status.go, routers/api/v1/repo): a
status links to run and job by a path alone, and both have to be looked for by their pages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.trackers.forge.asking import Asked, Told
from tests.trackers.forge.state import Check

if TYPE_CHECKING:
    from tests.trackers.forge.double import Double
    from tests.trackers.forge.repo import Repo

TEXT = {"content-type": "text/plain; charset=utf-8"}
_PATH = re.compile(r"/repos/([^/]+/[^/]+)/(?:actions|check-runs)/(.+)")


@dataclass
class Job:
    """A job that has ended: its page as a path, and what it printed; None where that is gone."""

    id: int
    run: int
    commit: str
    page: str
    log: str | None


def end_job(repo: Repo, commit: str, name: str, *, is_red: bool, log: str | None = "") -> Job:
    """A job of a commit ends, and reports."""
    forge = repo.forge
    known, run = forge.next_id(), forge.next_id()
    if forge.style == "github":
        page = f"/{repo.full_name}/actions/runs/{run}/job/{known}"
        end = "failure" if is_red else "success"
        check = Check(known, name, "completed", forge.web + page, is_run=True, conclusion=end)
    else:
        page = f"/{repo.full_name}/actions/runs/{run}/jobs/0"
        check = Check(known, name, "failure" if is_red else "success", page)
        check.summary = "Failing after 3s" if is_red else "Successful in 3s"
    repo.checks.setdefault(commit, []).append(check)
    made = Job(known, run, commit, page, log)
    repo.jobs.append(made)
    return made


def answer(forge: Double, asked: Asked, path: str) -> Told | None:
    """What is asked of a job, a run or the notes of a check run; None for anything else."""
    found = _PATH.fullmatch(path)
    repo = forge.find_repo(found[1]) if found else None
    if found is None or repo is None or asked.method != "GET":
        return None
    token = forge.tokens.get(asked.token)
    if repo.is_private and (token is None or repo.role(token.person) == "none"):
        return forge.error(404)
    is_log, jobs = found[2].endswith("/logs"), {str(one.id): one for one in repo.jobs}
    if "check-runs" in path:
        return Told(200, repo.notes)
    if forge.style == "gitea" and not forge.has_actions:
        return forge.error(404)
    job = jobs.get(found[2].split("/")[1]) if "/" in found[2] else None
    if is_log and forge.style == "github":
        if token is not None and not token.may("actions", "read"):
            return forge.error(403, "Resource not accessible by personal access token")
        if job is None:
            return forge.error(404)
        return Told(302, raw=b"", headers={"location": f"{forge.api}{path}/file"})
    if is_log or path.endswith("/logs/file"):
        return _log(forge, job)
    return Told(200, _entries(forge, repo, found[2], asked))


def _log(forge: Double, job: Job | None) -> Told:
    if job is None or job.log is None:
        return forge.error(404)
    return Told(200, raw=job.log.encode(), headers=TEXT)


def _entries(forge: Double, repo: Repo, what: str, asked: Asked) -> dict[str, Any]:
    if what == "runs":
        rows = [one for one in repo.jobs if one.commit == asked.query.get("head_sha")]
        shown = [
            {"id": one.run, "html_url": forge.web + one.page.rpartition("/jobs/")[0]}
            for one in rows
        ]
        return {"workflow_runs": shown, "total_count": len(shown)}
    rows = [one for one in repo.jobs if str(one.run) == what.split("/")[1]]
    shown = [{"id": one.id, "html_url": forge.web + one.page} for one in rows]
    return {"jobs": shown, "total_count": len(shown)}
