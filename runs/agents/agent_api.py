"""What an agent may ask over HTTP: its own project's issues, and the pull request of its run."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, JsonResponse
from django.urls import reverse

from runs.agents.api_door import door, texts
from runs.core.ports import Lab
from runs.core.states import Claim
from runs.issues import acts as issues
from runs.lifecycle import delivery, delivery_rules
from runs.models import Run
from runs.on_request import claims
from runs.projects import comment_rules, git_credentials
from runs.pulls import acts as pulls
from runs.web.refusals import Denied
from runs.wiring import lab
from trackers.base import Issue, NotFound, Pull, Refused, Tracker
from trackers.builtin.models import PullComment


def _whoami(request: HttpRequest, run: Run) -> JsonResponse:
    project = run.project
    return answer(
        run=run.pk,
        project=project.slug,
        issue=run.issue_key,
        branch=run.branch,
        base=project.default_branch,
        agent=run.agent,
    )


def _list(request: HttpRequest, run: Run) -> JsonResponse:
    found = _tracker(lab(), run).open_issues(run.project.tracker_root)
    return answer(issues=[_row(issue) for issue in found])


def _view(request: HttpRequest, run: Run, key: str) -> JsonResponse:
    found = _tracker(lab(), run).issue(run.project.tracker_root, key)
    chosen = comment_rules.choose(found.comments, run.project.readers)
    comments = [{"author": c.author, "body": c.body} for c in chosen.kept]
    return answer(
        **_row(found), body=found.body, comments=comments, left_out=chosen.describe_left_out()
    )


def _comment(request: HttpRequest, run: Run, key: str) -> JsonResponse:
    body = texts(request, "body")["body"]
    issues.comment(lab(), run.project, key, body=body, by=name_of(run), run=run)
    return answer(status=201, key=key)


def _show_pull(request: HttpRequest, run: Run) -> JsonResponse:
    found = _own_pull(run)
    return answer(**_pull(request, run, found))


def _comment_pull(request: HttpRequest, run: Run) -> JsonResponse:
    body = texts(request, "body")["body"]
    found = _own_pull(run)
    pulls.comment(lab(), run.project, found.number, body=body, by=name_of(run), run=run)
    return answer(status=201, number=found.number)


def _create_pull(request: HttpRequest, run: Run) -> JsonResponse:
    sent = texts(request, "title", "body", "base")
    made = pulls.create(
        lab(), run, title=sent["title"], body=sent["body"], base=sent["base"], by=name_of(run)
    )
    return answer(status=201, **_pull(request, run, made))


def _done(request: HttpRequest, run: Run) -> JsonResponse:
    """The agent says that it is done; the answer says what is proven and what is missing.

    Where gates prove it, the answer says what they expect.
    """
    if run.is_gated:
        word = claims.claim(lab(), run, Claim.DONE, "", name_of(run))
        return answer(text=word.text, expects=word.expects, is_checking=word.is_checking)
    if run.amends is not None:
        is_done = delivery.ask_amended(lab(), run, name_of(run))
        lacks = f"no new commit of yours on origin (git push origin {run.branch})"
        proven = f"new commits on pull request {run.amends}"
        return answer(is_done=is_done, proven=proven, missing=[lacks] if is_done is False else [])
    try:
        found = delivery.ask(lab(), run, name_of(run))
    except delivery.NothingToProve as error:
        text = (
            "This project has pull requests, and one is what ends a run: labctl pr create. "
            "Nothing was stored."
        )
        raise Denied(409, "has_pulls", text) from error
    words = delivery.branch_of(lab(), run).words
    return answer(
        is_done=delivery_rules.is_delivered(found),
        proven=delivery_rules.told(found),
        missing=delivery_rules.lacking(found, run.branch, words),
    )


def _git_credential(request: HttpRequest, run: Run) -> JsonResponse:
    """The password for git, which asked with these words, at the project's own forge alone."""
    prompt = texts(request, "prompt")["prompt"]
    return answer(password=str(git_credentials.answer(lab(), run.project, prompt)))


def _nothing(request: HttpRequest, run: Run, rest: str) -> JsonResponse:
    raise NotFound(f"There is no {rest[:60]} here.")


whoami = door(GET=_whoami)
issue_list = door(GET=_list)
issue = door(GET=_view)
comments = door(POST=_comment)
pull_comments = door(POST=_comment_pull)
done = door(POST=_done)
pull = door(GET=_show_pull, POST=_create_pull)
git_credential = door(POST=_git_credential)
nothing = door(GET=_nothing, POST=_nothing)


def answer(status: int = 200, **content: Any) -> JsonResponse:
    return JsonResponse(content, status=status, headers={"Cache-Control": "no-store"})


def _own_pull(run: Run) -> Pull:
    found = pulls.of_run(lab(), run)
    if found is None:
        raise NotFound(f"There is no pull request for {run.branch} yet. Open it: labctl pr create")
    return found


def _said(comment: PullComment) -> dict[str, Any]:
    """A comment as an agent reads it; one on a line names the line and what stood there."""
    said: dict[str, Any] = {"author": comment.author, "body": comment.body}
    if comment.path:
        said |= {
            name: getattr(comment, name) for name in ("path", "line", "side", "commit", "quote")
        }
    return said


def _tracker(outside: Lab, run: Run) -> Tracker:
    tracker = outside.tracker_for(run.project.tracker)
    if tracker is None:
        raise Refused("This project has no tracker that labsite can read.")
    return tracker


def name_of(run: Run) -> str:
    """The author of what an agent writes; says which run it was."""
    return f"{run.agent or 'agent'}, run {run.pk}"


def _row(issue: Issue) -> dict[str, Any]:
    return {
        "key": issue.key,
        "title": issue.title,
        "author": issue.author,
        "labels": list(issue.labels),
        "is_open": issue.is_open,
        "url": issue.url,
    }


def _pull(request: HttpRequest, run: Run, pull: Pull) -> dict[str, Any]:
    url = pull.url
    if not url and run.project.tracker == "builtin":
        url = request.build_absolute_uri(reverse("runs:pull", args=[run.project_id, pull.number]))
    return {
        "number": pull.number,
        "title": pull.title,
        "state": pull.state.value,
        "head": pull.head,
        "base": pull.base,
        "body": pull.body,
        "url": url,
        "comments": [_said(one) for one in pulls.comments(run.project, pull.number)],
    }
