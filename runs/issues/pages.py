"""What the pages of the built-in tracker show: one function per page, a fixed number of queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlencode

from django.http import Http404, QueryDict

from runs.core.states import ProjectState, TrackerKind
from runs.models import Project, Run
from trackers.base import TrackerError
from trackers.builtin import queries
from trackers.builtin.models import Issue

RUNS_SHOWN = 10
LAST_PAGE = 10_000

ISSUE_LIST = {"issue-rows": "issues/_rows"}
ISSUE = {
    "issue-state": "issues/_state",
    "issue-act": "issues/_act",
    "issue-thread": "issues/_thread",
    "issue-runs": "issues/_runs",
}
COMMENT = {"comment-form": "issues/_comment_form"}
LABELS = {"label-form": "issues/_label_form"}
FORM = {"issue-form": "issues/_form"}

Context = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Filter:
    """What a list is narrowed to, as its address says it."""

    state: str = "open"
    label: str = ""
    text: str = ""
    page: int = 1

    @property
    def is_plain(self) -> bool:
        """Whether this is the list as it first opens."""
        return self == Filter()

    @property
    def is_narrow(self) -> bool:
        return bool(self.label or self.text)

    def address(self, **changes: Any) -> str:
        """The query string of this filter with something changed; always starts with `?`."""
        values = {"state": self.state, "label": self.label, "text": self.text, "page": self.page}
        values |= changes
        default = {"state": "open", "label": "", "text": "", "page": 1}
        return "?" + urlencode({k: v for k, v in values.items() if v != default[k]})


def read_filter(sent: QueryDict) -> Filter:
    """The filter of an address; what makes no sense is as if it were not there."""
    page = sent.get("page", "1")
    return Filter(
        state="closed" if sent.get("state") == "closed" else "open",
        label=sent.get("label", "")[:60].replace("\0", ""),
        text=sent.get("text", "")[:200].replace("\0", "").strip(),
        page=max(1, min(LAST_PAGE, int(page))) if page.isascii() and page.isdigit() else 1,
    )


class Elsewhere(Http404):
    """The issues of this project are on a tracker that labsite keeps not itself."""

    def __init__(self, project: Project) -> None:
        super().__init__("labsite keeps no issues for this project.")
        self.project = project


def project_of(project_id: int) -> Project:
    """A project whose issues labsite keeps itself, else 404; for others as `Elsewhere`."""
    project = Project.objects.filter(pk=project_id).defer("token", "hook_secret").first()
    if project is None:
        raise Http404("There is no such project.")
    if project.tracker != TrackerKind.BUILTIN:
        raise Elsewhere(project)
    return project


def facts(ask: Callable[..., T], *arguments: Any) -> Callable[[], T]:
    """A question that is put later; what is not there is then 404, as is a tracker that is gone."""

    def put() -> T:
        try:
            return ask(*arguments)
        except TrackerError as error:
            raise Http404(str(error)) from error

    return put


def issue_list(project: Project, chosen: Filter) -> Context:
    """One page of issues."""
    root = project.tracker_root
    page = queries.issues(
        root,
        is_open=chosen.state == "open",
        label=chosen.label,
        text=chosen.text,
        page=chosen.page,
    )
    working = _active(project)
    for row in page.rows:
        row.run = working.get(str(row.number))  # type: ignore[attr-defined]
    return {
        "project": project,
        "chosen": chosen,
        "page": page,
        "labels": queries.labels(root),
        **counts(project),
        **pages(chosen, page.has_next),
    }


def issue_detail(project: Project, number: int) -> Context:
    """One issue with its comments, runs and what may be done with it. Raises NotFound."""
    issue = queries.issue(project.tracker_root, number)
    runs = list(Run.objects.light().filter(project=project, issue_key=str(number))[:RUNS_SHOWN])
    pull = queries.open_pull_of(project.tracker_root, project.branches_for(str(number)))
    claimed = f"Pull request #{pull} of it is open." if pull is not None else ""
    return {
        "project": project,
        "issue": issue,
        "labels": queries.labels(project.tracker_root),
        "chosen_labels": {label.name for label in issue.labels.all()},
        "runs": runs,
        "pull": pull,
        "why_not": why_not(project, issue, runs) or claimed,
    }


def form_labels(project: Project) -> Sequence[str]:
    """The labels that a new issue may carry."""
    return queries.labels(project.tracker_root)


def stored(project: Project, number: int) -> Issue:
    """An issue as it is stored. Raises NotFound."""
    return queries.issue(project.tracker_root, number)


def why_not(project: Project, issue: Issue, runs: Sequence[Run]) -> str:
    """Why this issue cannot be started, or '' when it can be tried (design.md 4.9)."""
    if any(run.is_active for run in runs):
        return "A run works on it."
    if not issue.is_open:
        return "A closed issue is not started. Open it again first."
    if project.ready_label not in {label.name for label in issue.labels.all()}:
        return f"Give it the label {project.ready_label} first."
    if project.state != ProjectState.READY:
        return "The project has not been cloned yet."
    return ""


def counts(project: Project) -> Context:
    """How many of each there are, for the tabs of both lists."""
    issues = queries.issue_counts(project.tracker_root)
    pulls = queries.pull_counts(project.tracker_root)
    return {"issue_counts": issues, "pull_counts": pulls}


def pages(chosen: Filter, has_next: bool) -> Context:
    """Where the pages before and after are."""
    return {
        "previous": chosen.address(page=chosen.page - 1) if chosen.page > 1 else "",
        "next": chosen.address(page=chosen.page + 1) if has_next else "",
    }


def _active(project: Project) -> Mapping[str, Run]:
    """The active run of each issue that has one."""
    rows = Run.objects.active().filter(project=project).only("pk", "issue_key", "state")
    return {run.issue_key: run for run in rows}
