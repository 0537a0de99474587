"""What GitHub's operations on pull requests do."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tests.trackers.forge import github_shapes as shapes
from tests.trackers.forge.asking import Refusal, Told
from tests.trackers.forge.double import Call, Rule, item_of
from tests.trackers.forge.repo import Repo
from tests.trackers.forge.state import Item, PullPart

if TYPE_CHECKING:
    from tests.trackers.forge.github import GitHub


def _found(forge: GitHub, call: Call, repo: Repo) -> tuple[Item, PullPart]:
    found = item_of(repo, call.parts["pull_number"])
    if found is None or found.pull is None:
        raise Refusal(forge.error(404))
    return found, found.pull


def list_pulls(forge: GitHub, call: Call) -> Told:
    """`head` is "owner:branch"; without the owner GitHub ignores it (from memory)."""
    repo = forge.repo_of(call)
    state, head = call.query.get("state", "open"), call.query.get("head", "")
    if head and ":" not in head:
        forge.violate(call.asked, "head has no owner, so that GitHub ignores it")
        head = ""
    found = [
        one
        for one in repo.items.values()
        if one.pull
        and state in ("all", "open" if one.is_open else "closed")
        and head in ("", f"{one.pull.head_owner}:{one.pull.head}")
        and call.query.get("base", one.pull.base) == one.pull.base
    ]
    sort = call.query.get("sort", "created")
    usual = "desc" if sort == "created" else "asc"
    found.sort(
        key=lambda one: (one.updated_at if sort == "updated" else one.created_at, one.number),
        reverse=call.query.get("direction", usual) == "desc",
    )
    return forge.listed(
        call, repo, [shapes.pull(forge.web, forge.api, repo, one, call.token) for one in found]
    )


def _alone(forge: GitHub, call: Call, repo: Repo, one: Item) -> dict[str, Any]:
    told = shapes.pull(forge.web, forge.api, repo, one, call.token)
    return told | shapes.pull_alone(one, forge.web)


def get_pull(forge: GitHub, call: Call) -> Told:
    repo = forge.repo_of(call)
    return Told(200, _alone(forge, call, repo, _found(forge, call, repo)[0]))


def create_pull(forge: GitHub, call: Call) -> Told:
    """422 with a list of errors when there is one, no branch, or nothing to merge."""
    repo = forge.repo_of(call)
    assert call.person is not None
    if not call.body:
        return forge.error(422, 'Invalid request.\n\n"base", "head" weren\'t supplied.')
    owner, _, branch = call.body["head"].rpartition(":")
    owner, base = owner or repo.owner.login, call.body["base"]
    if not call.body.get("title"):
        return forge.failed({"resource": "Issue", "code": "missing_field", "field": "title"})
    for name, field in ((branch, "head"), (base, "base")):
        if repo.tip_of(name) is None:
            return forge.failed({"resource": "PullRequest", "field": field, "code": "invalid"})
    if any(
        one.is_open and one.pull and (one.pull.head_owner, one.pull.head) == (owner, branch)
        and one.pull.base == base and one.pull.head_repo is repo
        for one in repo.items.values()
    ):  # fmt: skip
        message = f"A pull request already exists for {owner}:{branch}."
        return forge.failed({"resource": "PullRequest", "code": "custom", "message": message})
    if branch == base:
        message = f"No commits between {base} and {branch}"
        return forge.failed({"resource": "PullRequest", "code": "custom", "message": message})
    made = repo.pull(
        branch,
        title=call.body["title"],
        body=call.body.get("body"),
        base=base,
        author=call.person.login,
        sha=repo.tip_of(branch) or "",
        is_draft=bool(call.body.get("draft")),
    )
    return Told(201, _alone(forge, call, repo, made))


def list_reviews(forge: GitHub, call: Call) -> Told:
    """Oldest first."""
    repo = forge.repo_of(call)
    one, part = _found(forge, call, repo)
    every = [shapes.review(forge.web, repo, one, review) for review in part.reviews]
    return forge.listed(call, repo, every)


def list_line_remarks(forge: GitHub, call: Call) -> Told:
    """By number, and none of a review that is not handed in (from memory)."""
    repo = forge.repo_of(call)
    one, part = _found(forge, call, repo)
    every = [
        shapes.line_remark(forge.web, repo, one, review, remark)
        for review in part.reviews
        if review.state != "PENDING"
        for remark in review.remarks
    ]
    return forge.listed(call, repo, sorted(every, key=lambda remark: remark["id"]))


def branch_rules(forge: GitHub, call: Call) -> Told:
    """The rules of all rulesets that apply to a branch; 404 where there is no such operation."""
    repo = forge.repo_of(call)
    if repo.rules is None:
        return forge.error(404)
    return forge.listed(call, repo, [*repo.branch_rules, *repo.rules.get(call.parts["branch"], [])])


def _broken_rule(repo: Repo, part: PullPart, style: str) -> str:
    """Which rule a merge breaks, in GitHub's words (from memory)."""
    rules = [one["type"] for one in (repo.rules or {}).get(part.base, [])]
    if "merge_queue" in rules:
        return "Repository rule violations found\n\nChanges must be made through the merge queue"
    if "required_linear_history" in rules and style == "merge":
        return "Repository rule violations found\n\nThis branch must not contain merge commits."
    return ""


def merge(forge: GitHub, call: Call) -> Told:
    """409 when the head moved, 405 when GitHub does not let it."""
    repo = forge.repo_of(call)
    one, part = _found(forge, call, repo)
    style = call.body.get("merge_method", "merge")
    if style not in repo.merge_styles:
        ways = {"merge": "Merge commits", "squash": "Squash merges", "rebase": "Rebase merges"}
        return forge.error(405, f"{ways[style]} are not allowed on this repository.")
    if part.merged_at or not one.is_open:
        return forge.error(405, "Pull Request is not mergeable")
    tip = repo.head_of(part)
    if call.body.get("sha", tip) != tip:
        return forge.error(409, "Head branch was modified. Review and try the merge again.")
    if words := part.not_mergeable or _broken_rule(repo, part, style):
        return forge.error(405, words)
    if part.is_draft:
        return forge.error(405, "Pull Request is still a draft")
    commit = hashlib.sha1(f"merge {one.id}".encode()).hexdigest()  # noqa: S324
    commit = repo.on_merge(one, style) if repo.on_merge else commit
    part.head_sha = tip
    repo.merge(one, commit)
    return Told(200, {"sha": commit, "merged": True, "message": "Pull Request successfully merged"})


RULES: Mapping[str, Rule] = {
    "pulls": list_pulls,
    "pull": get_pull,
    "create pull": create_pull,
    "reviews": list_reviews,
    "comments on lines": list_line_remarks,
    "branch rules": branch_rules,
    "merge": merge,
}
