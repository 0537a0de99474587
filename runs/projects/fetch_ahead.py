"""Fetches origin as soon as somebody asks for a run, beside the decision whether one starts.

A fetch mostly waits for the other side, the decision for the processor. A start takes what a fetch
found that began after it was asked for, and fetches by itself where there is none.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.db.models import Q, QuerySet

from runs.core.database import prepared, run_beside
from runs.core.ports import Lab, SeamError
from runs.core.states import ProjectState
from runs.models import Project, StartRequest
from runs.projects import git_credentials


@dataclass(frozen=True, slots=True)
class Fetched:
    """What git said of an origin: the name of its default branch, and a warning or ''."""

    branch: str
    warning: str = ""


@dataclass(frozen=True, slots=True)
class _Fetch:
    """A fetch of one project for a start request, begun at a moment of the lab's clock."""

    request: int
    began: datetime
    result: Future[Fetched]


class FetchesAhead:
    """The newest fetch of each project that was begun ahead, in one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fetches: dict[int, _Fetch] = {}

    def begin(
        self, project_id: int, request: int, now: datetime, fetch: Callable[[], Fetched]
    ) -> None:
        """Run a fetch in a thread of its own: one for each request, and one at a time."""
        with self._lock:
            known = self._fetches.get(project_id)
            if known is None or (known.request != request and known.result.done()):
                result = run_beside("fetch-ahead", fetch)
                self._fetches[project_id] = _Fetch(request, now, result)

    def wait(self, project_id: int, since: datetime) -> Fetched | None:
        """Return what a fetch found that began at that moment or later, waiting until it is over.

        None where there is none, or it ended by a mistake of ours. Raises SeamError when origin could
        not be read: whoever hangs is not waited for twice.
        """
        with self._lock:
            known = self._fetches.get(project_id)
        if known is None or known.began < since:
            return None
        error = known.result.exception()
        if isinstance(error, SeamError):
            raise error
        return None if error is not None else known.result.result()


fetches = FetchesAhead()


def begin(lab: Lab, slug: str, check: Callable[[Lab, Project], object]) -> None:
    """Begin to fetch for the start of a project that waits for its answer.

    `check` puts right what programs may have changed in the shared repository: git reads its settings.
    """
    asked = _waiting(lab.host, slug).rows()
    if not asked:
        return
    project, request = asked[-1].project, asked[-1].pk
    if git_credentials.is_asked_for(project) or not project.repo(lab.paths).is_dir():
        return  # a short-lived token would be bought, or the clone is made first
    check(lab, project)
    token = str(project.git_token)
    fetches.begin(project.pk, request, lab.now(), lambda: fetch(lab, project, token))


@prepared
def _waiting(_now: datetime, host: str, slug: str) -> QuerySet[StartRequest]:
    ours = Q(project__home__in=("", host), project__state=ProjectState.READY, project__slug=slug)
    rows = StartRequest.objects.filter(ours, answer="", continues=None, takes_for=None)
    return rows.select_related("project__forge").order_by("pk")


def fetch(lab: Lab, project: Project, token: str) -> Fetched:
    """Fetch a project's origin into its clone; one that labsite keeps takes in the checkout first.

    Raises SeamError when origin cannot be read.
    """
    warning = ""
    if project.is_hosted:
        try:
            warning = lab.repos.refill(project.origin(lab.paths), Path(project.source))
        except SeamError as error:
            warning = f"the checkout could not be read, so labsite's own origin was used: {error}"
    branch = lab.repos.fetch_default(project.repo(lab.paths), token, project.url)
    return Fetched(branch, warning)
