"""What the pages of pull requests show: the list, and of one its text, comments and commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.http import Http404
from django.urls import reverse

from runs.core.history_ports import Commit
from runs.core.ports import SeamError
from runs.followups import pages as follow_up_pages
from runs.issues import pages as issue_pages
from runs.issues.pages import Context
from runs.models import Project, Run
from runs.pulls import comparing, merge_box, proofs
from runs.pulls.comparing import Comparison
from runs.pulls.proof_rules import Proof
from runs.web import code
from runs.wiring import lab
from trackers.base import PullState, Side
from trackers.builtin import queries
from trackers.builtin.models import PullComment, PullRequest

LIST = {"pull-rows": "pulls/_rows"}
FRAME = {
    "pull-state": "pulls/_state",
    "pull-act": "pulls/_act",
    "pull-tabs": "pulls/_tabs",
}
MERGE = {"pull-merge": "pulls/_merge"}
PULL = {
    **FRAME,
    **MERGE,
    "pull-facts": "pulls/_facts",
    "pull-thread": "pulls/_thread",
    "pull-summary": "pulls/_summary",
}
COMMITS = {**FRAME, **MERGE, "pull-commits": "pulls/_commits"}
FILES = {**FRAME, **MERGE, "pull-moved": "pulls/_moved"}
COMMENT = {"comment-form": "pulls/_comment_form"}
LINE_COMMENT = {"line-form": "pulls/_line_form"}
ACTED = {**FRAME, **MERGE}


def pull_list(project: Project, chosen: issue_pages.Filter) -> Context:
    """One page of pull requests."""
    root = project.tracker_root
    page = queries.pulls(root, is_open=chosen.state == "open", page=chosen.page)
    runs = _runs_of(project, page.rows)
    proofs_by_branch = _load_proofs(project, page.rows) if chosen.state == "open" else {}
    for row in page.rows:
        row.run = runs.get(row.head)  # type: ignore[attr-defined]
        row.proof = proofs_by_branch.get(row.head)  # type: ignore[attr-defined]
        row.tone = tone(row)  # type: ignore[attr-defined]
    return {
        "project": project,
        "chosen": chosen,
        "page": page,
        **issue_pages.counts(project),
        **issue_pages.pages(chosen, page.has_next),
    }


def frame(project: Project, number: int, tab: str) -> Context:
    """What every page of one pull request shows; git is asked once or up to three times.

    Raises NotFound.
    """
    pull = queries.pull(project.tracker_root, number)
    ask = comparing.tips_of(lab(), project, pull)
    return {
        "project": project,
        "ask": ask,
        "pull": pull,
        "tone": tone(pull),
        "tab": tab,
        "comparison": comparing.of_pull(lab(), project, pull, ask),
        "comments": queries.pull_comments(pull),
    }


def mergeable_frame(project: Project, number: int, tab: str) -> Context:
    """`frame` with the merge card: the pages from which it can be merged. Raises NotFound."""
    context = frame(project, number, tab)
    return {**context, "merge": merge_box.of(lab(), project, context["pull"], context["ask"])}


def conversation(project: Project, number: int) -> Context:
    """One pull request with its comments, its issue and its run. Raises NotFound."""
    context = mergeable_frame(project, number, "conversation")
    pull = context["pull"]
    run = _runs_of(project, [pull]).get(pull.head)
    key = run.issue_key if run is not None else project.claimed_key(pull.head) or ""
    title = queries.titles(project.tracker_root, [int(key)]) if key.isdigit() else {}
    for comment in context["comments"]:
        place(project, pull, context["comparison"], comment)
    return {
        **context,
        "run": run,
        "issue_number": next(iter(title), None),
        "issue_title": next(iter(title.values()), ""),
    }


def reviewed(project: Project, number: int) -> Context:
    """The same with the form that asks the agent for changes. Raises NotFound."""
    context = conversation(project, number)
    pull = context["pull"]
    box = None
    if pull.state == PullState.OPEN:
        newest = follow_up_pages.of_pull(project, pull.head)
        box = follow_up_pages.changes_box(lab(), newest, pull=pull.number)
    return {**context, "changes_wanted": box}


def commits(project: Project, number: int) -> Context:
    """The commits of one pull request. Raises NotFound."""
    return mergeable_frame(project, number, "commits")


def commit_of(comparison: Comparison, ident: str) -> Commit:
    """One of the commits of a pull request. Raises Http404 for any other."""
    for commit in comparison.commits:
        if commit.id == ident:
            return commit
    raise Http404("This commit does not belong to this pull request.")


def tone(pull: PullRequest) -> str:
    """The colour of a pull request's state."""
    return {PullState.OPEN.value: "good", PullState.MERGED.value: "info"}.get(pull.state, "")


def place(
    project: Project, pull: PullRequest, comparison: Comparison, comment: PullComment
) -> None:
    """Say of a comment whether the branch has moved on since, and where its line is shown."""
    said: Any = comment
    said.shown_path, said.where = code.plain(comment.path), ""
    # When git could not say what the head is, nothing is called outdated.
    head = comparison.ends.head
    said.is_outdated = bool(comment.path and head and comment.commit != head)
    if not comment.path or said.is_outdated:
        return
    for number, change in enumerate(comparison.files, 1):
        if change.path == comment.path:
            letter = "O" if comment.side == Side.OLD else "L"
            at = reverse("runs:pull-files", args=[project.pk, pull.number])
            said.where = f"{at}?file={number}#f{number}-{letter}{comment.line}"


def _load_proofs(project: Project, pulls: Sequence[PullRequest]) -> Mapping[str, Proof]:
    """Load what the checks say of the heads of pull requests, as origin was fetched last."""
    refs = {pull.head: f"refs/remotes/origin/{pull.head}" for pull in pulls}
    try:
        tips = lab().repos.tips(project.repo(lab().paths), list(refs.values())) if refs else {}
    except SeamError:
        tips = {}  # what git could not tell is no reason to show no list
    return proofs.load_proofs(project, {head: tips.get(ref) for head, ref in refs.items()})


def _runs_of(project: Project, pulls: Sequence[PullRequest]) -> Mapping[str, Run]:
    """The newest run of each pull request's branch."""
    heads = {pull.head for pull in pulls}
    rows = Run.objects.light().filter(project=project, branch__in=heads).order_by("pk")
    return {run.branch: run for run in rows}
