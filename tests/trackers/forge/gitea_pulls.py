"""What Gitea's operations on pull requests do."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tests.trackers.forge import gitea_shapes as shapes
from tests.trackers.forge.asking import Refusal, Told
from tests.trackers.forge.double import Call, Rule, item_of
from tests.trackers.forge.repo import Repo
from tests.trackers.forge.state import Item, PullPart

if TYPE_CHECKING:
    from tests.trackers.forge.gitea import Gitea

REVIEWS_SINCE = (1, 12)  # from memory


def _repo(forge: Gitea, call: Call) -> Repo:
    repo = forge.repo_of(call)
    if not repo.has_pulls:
        raise Refusal(forge.error(404))
    return repo


def _found(forge: Gitea, call: Call, repo: Repo) -> tuple[Item, PullPart]:
    found = item_of(repo, call.parts["index"])
    if found is None or found.pull is None:
        raise Refusal(forge.error(404))
    return found, found.pull


def list_pulls(forge: Gitea, call: Call) -> Told:
    """Newest first unless sorted by `recentupdate` and its like; no filter by head."""
    repo = _repo(forge, call)
    state = call.query.get("state", "open")
    found = [
        one
        for one in repo.items.values()
        if one.pull and state in ("all", "open" if one.is_open else "closed")
    ]
    sort = call.query.get("sort", "")
    found.sort(
        key=lambda one: (
            one.updated_at if sort in ("recentupdate", "leastupdate") else one.created_at,
            one.number,
        ),
        reverse=sort not in ("oldest", "leastupdate"),
    )
    return forge.listed(
        call, [shapes.pull(forge.web, forge.api, repo, one, call.token) for one in found]
    )


def get_pull(forge: Gitea, call: Call) -> Told:
    repo = _repo(forge, call)
    one, _ = _found(forge, call, repo)
    return Told(200, shapes.pull(forge.web, forge.api, repo, one, call.token))


def create_pull(forge: Gitea, call: Call) -> Told:
    """409 when there is one for these branches, 404 for a branch that is not there."""
    repo = _repo(forge, call)
    assert call.person is not None
    if not call.body:
        return forge.error(422, "[Head]: Required")
    head, base = call.body.get("head", ""), call.body.get("base", "")
    for branch in (base, head):
        if not branch or repo.tip_of(branch) is None:
            return forge.error(404)
    for one in repo.items.values():
        part = one.pull
        if (
            part
            and one.is_open
            and (part.head, part.base) == (head, base)
            and part.head_repo is repo
        ):
            message = (
                f"pull request already exists for these targets [id: {one.id}, issue_id: {one.id}, "
                f"head_repo_id: {repo.id}, base_repo_id: {repo.id}, head_branch: {head}, "
                f"base_branch: {base}]"
            )
            return forge.error(409, message)
    if head == base:
        return forge.error(
            422, "Invalid PullRequest: There are no changes between the head and the base"
        )
    made = repo.pull(
        head,
        title=call.body.get("title", ""),
        body=call.body.get("body", ""),
        base=base,
        author=call.person.login,
        sha=repo.tip_of(head) or "",
    )
    return Told(201, shapes.pull(forge.web, forge.api, repo, made, call.token))


def list_reviews(forge: Gitea, call: Call) -> Told:
    """Oldest first."""
    repo = _repo(forge, call)
    one, part = _found(forge, call, repo)
    if forge.at_least < REVIEWS_SINCE:
        return forge.error(404)
    return forge.listed(
        call, [shapes.review(forge.web, repo, one, review) for review in part.reviews]
    )


def list_line_remarks(forge: Gitea, call: Call) -> Told:
    """Those of one review, and all of them: this list has no pages."""
    repo = _repo(forge, call)
    one, part = _found(forge, call, repo)
    for review in part.reviews:
        if str(review.id) == call.parts["id"]:
            return Told(
                200,
                [shapes.line_remark(forge.web, repo, one, review, at) for at in review.remarks],
            )
    return forge.error(404)


def merge(forge: Gitea, call: Call) -> Told:
    """An empty 200; 409 when the head moved, 405 when Gitea does not let it, 404 when closed."""
    repo = _repo(forge, call)
    one, part = _found(forge, call, repo)
    style = call.body["Do"]
    if part.merged_at:
        return forge.error(405, "The PR has already been merged")
    if not one.is_open:
        return forge.error(404)
    if style not in repo.merge_styles:
        return forge.error(405, f"Invalid merge style {style}")
    if part.is_draft:
        return forge.error(405, "Work in progress PRs cannot be merged")
    if part.not_mergeable:
        return forge.error(405, part.not_mergeable)
    tip = repo.head_of(part)
    if call.body.get("head_commit_id") not in (None, "", tip):
        return forge.error(409, "head out of date")
    commit = hashlib.sha1(f"merge {one.id}".encode()).hexdigest()  # noqa: S324
    commit = repo.on_merge(one, style) if repo.on_merge else commit
    part.head_sha = tip
    part.is_branch_gone = part.is_branch_gone or bool(call.body.get("delete_branch_after_merge"))
    repo.merge(one, commit)
    return Told(200, raw=b"")


RULES: Mapping[str, Rule] = {
    "pulls": list_pulls,
    "pull": get_pull,
    "create pull": create_pull,
    "reviews": list_reviews,
    "comments on lines": list_line_remarks,
    "merge": merge,
}
