"""Reads what failed checks printed, or what the forge itself says of them.

GitHub: a check run of Actions links to its job (`…/actions/runs/<run>/job/<job>`), and
`GET /repos/{owner}/{repo}/actions/jobs/{job_id}/logs` answers with a redirect to a plain text that
stays for a minute (docs.github.com, REST API endpoints for workflow jobs). The text is kept in
Azure's blob storage, whose hosts GitHub lists for networks with an allow list (docs.github.com,
communicating with self-hosted runners). Other check runs have `output` and annotations
(docs.github.com, REST API endpoints for check runs).

Gitea: the status of a job links to `…/actions/runs/<run>/jobs/<job>`, where both numbers are ids or
indexes, depending on the version (its source: services/actions/commit_status.go,
services/convert/convert.go). So the job is looked for by that address among the jobs of the commit's
runs: `…/actions/runs?head_sha=`, `…/actions/runs/{run}/jobs`, then `…/actions/jobs/{job_id}/logs`
(its description: listWorkflowRunJobs, downloadActionsRunJobLogs). Older servers, and Forgejo, answer
404 there: then the description of the status is all there is.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from trackers.account import Purpose
from trackers.base import Check, CheckOutput, NotFound, TrackerError
from trackers.forges import reading
from trackers.forges.repository import Need, RepositoryClient

GITHUB_STORAGE = (".blob.core.windows.net", ".actions.githubusercontent.com")
MOST_ANNOTATIONS = 20
NO_LOG = "the forge keeps no log of it"
_GITHUB_JOB = re.compile(r"/runs/[0-9]+/jobs?/([0-9]{1,19})$")
_GITEA_JOB = re.compile(r"(.+/actions/runs/[0-9]{1,19})/jobs/[0-9]{1,19}$")


def read_from_github(repo: RepositoryClient, check: Check) -> CheckOutput:
    """Read the log of the job that a check belongs to; without one, its own words and annotations."""
    found = _GITHUB_JOB.search(urlsplit(check.url).path)
    why = NO_LOG
    if found is not None:
        try:
            return CheckOutput(log=_log(repo, found[1], GITHUB_STORAGE))
        except TrackerError as error:
            why = _why(error)
    return CheckOutput(
        why=why, summary="\n".join(filter(None, [check.summary, *_notes(repo, check)]))
    )


def read_from_gitea(repo: RepositoryClient, commit: str, check: Check) -> CheckOutput:
    """Read the log of the job that a status belongs to; without one, its description."""
    try:
        return CheckOutput(log=_log(repo, _gitea_job(repo, commit, check), ()))
    except TrackerError as error:
        return CheckOutput(why=_why(error), summary=check.summary)


def _why(error: TrackerError) -> str:
    return NO_LOG if isinstance(error, NotFound) else str(error)


def _log(repo: RepositoryClient, job: str | int, hosts: tuple[str, ...]) -> str:
    return repo.text(
        "actions", "jobs", job, "logs", purpose=Purpose.READ, need=Need.READ_LOGS, hosts=hosts
    )


def _notes(repo: RepositoryClient, check: Check) -> list[str]:
    """Return the annotations of a check run, one a line; none where they cannot be read."""
    if not check.run_id:
        return []
    parts = ("check-runs", check.run_id, "annotations")
    try:
        page = repo.page(
            *parts,
            purpose=Purpose.READ,
            need=Need.READ_CHECKS,
            params={},
            size=MOST_ANNOTATIONS,
        )
    except TrackerError:
        return []
    return [note for entry in page.items if (note := _note(entry))]


def _note(entry: Any) -> str:
    path, number = reading.text(entry, "path"), reading.number(entry, "start_line")
    said = reading.text(entry, "message") or reading.text(entry, "title")
    return f"{path}:{number}: {said}" if path and number and said else said


def _gitea_job(repo: RepositoryClient, commit: str, check: Check) -> int:
    """Return the id of a status's job. Raises NotFound where it has none, or the server tells none."""
    place = urlsplit(check.url).path
    found = _GITEA_JOB.search(place)
    if found is None:
        raise NotFound(NO_LOG)
    runs = _list(repo, ("actions", "runs"), {"head_sha": commit}, "workflow_runs")
    run = _find(runs, found[1])
    # The name of the list has changed between versions.
    jobs = _list(repo, ("actions", "runs", run, "jobs"), {}, "jobs", "workflow_jobs")
    return _find(jobs, place)


def _list(
    repo: RepositoryClient, parts: tuple[str | int, ...], params: dict[str, str], *names: str
) -> list[Any]:
    data = repo.get(*parts, purpose=Purpose.READ, need=Need.READ_LOGS, params=params)
    found = next(
        (one for name in names if isinstance(one := reading.value(data, name), list)), None
    )
    return found or []


def _find(entries: list[Any], place: str) -> int:
    """Return the id of the entry whose page is at this path. Raises NotFound."""
    for entry in entries:
        known = reading.number(entry, "id")
        if known is not None and urlsplit(reading.text(entry, "html_url")).path == place:
            return known
    raise NotFound(NO_LOG)
