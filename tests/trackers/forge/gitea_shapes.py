"""What Gitea sends: example answers written from its types, not recordings.

Gitea's description does not say what may be null; NULLABLE is from memory of its source, where
these fields are pointers or slices without a value.
"""

from __future__ import annotations

from typing import Any

from tests.trackers.forge.double import stamp
from tests.trackers.forge.repo import Repo
from tests.trackers.forge.state import Check, Item, Label, LineRemark, Person, Remark, Review, Token

NULLABLE = frozenset(
    {
        "Issue.assignees",
        "Issue.closed_at",
        "Issue.milestone",
        "Issue.pull_request",
        "PullRequestMeta.merged_at",
        "PullRequest.closed_at",
        "PullRequest.merged_at",
        "PullRequest.merged_by",
        "PullRequest.merge_commit_sha",
        "PRBranchInfo.repo",
        "PullReview.user",
        "PullReviewComment.user",
    }
)


def person(web: str, one: Person) -> dict[str, Any]:
    return {
        "id": one.id,
        "login": one.login,
        "full_name": "",
        "html_url": f"{web}/{one.login}",
    }


def label(api: str, repo: Repo, one: Label) -> dict[str, Any]:
    return {
        "id": one.id,
        "name": one.name,
        "color": one.color,
        "description": one.description,
        "exclusive": False,
        "is_archived": False,
        "url": f"{api}/repos/{repo.full_name}/labels/{one.id}",
    }


def repository(web: str, repo: Repo, token: Token | None) -> dict[str, Any]:
    role = repo.role(token.person if token else None)
    return {
        "id": repo.id,
        "name": repo.name,
        "full_name": repo.full_name,
        "owner": person(web, repo.owner),
        "private": repo.is_private,
        "html_url": f"{web}/{repo.full_name}",
        "clone_url": f"{web}/{repo.full_name}.git",
        "fork": False,
        "archived": repo.is_archived,
        "empty": False,
        "default_branch": "main",
        "has_issues": repo.has_issues,
        "has_pull_requests": repo.has_pulls,
        "internal_tracker": {"enable_issue_dependencies": repo.has_dependencies},
        "allow_merge_commits": "merge" in repo.merge_styles,
        "allow_squash_merge": "squash" in repo.merge_styles,
        "allow_rebase": "rebase" in repo.merge_styles,
        "default_merge_style": repo.usual_merge_style,
        "open_issues_count": sum(i.is_open and not i.pull for i in repo.items.values()),
        "permissions": {
            "admin": role == "admin",
            "push": role in ("write", "admin"),
            "pull": role != "none",
        },
    }


def issue(web: str, api: str, repo: Repo, item: Item) -> dict[str, Any]:
    """An entry of the list of issues; in it pull requests too, unless type=issues is asked."""
    kind = "pulls" if item.pull else "issues"
    told: dict[str, Any] = {
        "id": item.id,
        "number": item.number,
        "state": "open" if item.is_open else "closed",
        "title": item.title,
        "body": item.body or "",
        "user": person(web, item.author),
        "original_author": "",
        "milestone": {"title": item.milestone} if item.milestone else None,
        "labels": [label(api, repo, one) for one in item.labels],
        "assignees": None,
        "comments": len(item.remarks),
        "pull_request": None,
        "repository": {
            "id": repo.id,
            "name": repo.name,
            "owner": repo.owner.login,
            "full_name": repo.full_name,
        },
        "html_url": f"{web}/{repo.full_name}/{kind}/{item.number}",
        "url": f"{api}/repos/{repo.full_name}/issues/{item.number}",
        "created_at": stamp(item.created_at),
        "updated_at": stamp(item.updated_at),
        "closed_at": stamp(item.closed_at),
    }
    if item.pull:
        told["pull_request"] = {
            "merged": item.pull.merged_at is not None,
            "merged_at": stamp(item.pull.merged_at),
            "draft": item.pull.is_draft,
            "html_url": told["html_url"],
        }
    return told


def remark(web: str, repo: Repo, item: Item, one: Remark) -> dict[str, Any]:
    return {
        "id": one.id,
        "body": one.body,
        "user": person(web, one.author),
        "original_author": "",
        "html_url": f"{web}/{repo.full_name}/issues/{item.number}#issuecomment-{one.id}",
        "created_at": stamp(one.at),
        "updated_at": stamp(one.at),
    }


def pull(web: str, api: str, repo: Repo, item: Item, token: Token | None) -> dict[str, Any]:
    """A pull request. Without its branch only `label` keeps the name; `ref` is refs/pull/N/head."""
    part = item.pull
    assert part is not None
    home = part.head_repo
    is_gone = part.is_branch_gone or home is None
    return {
        "id": item.id,
        "number": item.number,
        "state": "open" if item.is_open else "closed",
        "title": item.title,
        "body": item.body or "",
        "user": person(web, item.author),
        "labels": [label(api, repo, one) for one in item.labels],
        "draft": part.is_draft,
        "html_url": f"{web}/{repo.full_name}/pulls/{item.number}",
        "url": f"{web}/{repo.full_name}/pulls/{item.number}",
        "merged": part.merged_at is not None,
        "merged_at": stamp(part.merged_at),
        "merged_by": person(web, item.author) if part.merged_at else None,
        "merge_commit_sha": part.merge_commit,
        "mergeable": not part.not_mergeable,
        "created_at": stamp(item.created_at),
        "updated_at": stamp(item.updated_at),
        "closed_at": stamp(item.closed_at),
        "head": {
            "label": part.head,
            "ref": f"refs/pull/{item.number}/head" if is_gone else part.head,
            "sha": repo.head_of(part),
            "repo_id": home.id if home else -1,
            "repo": repository(web, home, token) if home else None,
        },
        "base": {
            "label": part.base,
            "ref": part.base,
            "sha": "b" * 40,
            "repo_id": repo.id,
            "repo": repository(web, repo, token),
        },
    }


def review(web: str, repo: Repo, item: Item, one: Review) -> dict[str, Any]:
    return {
        "id": one.id,
        "user": person(web, one.author) if one.author else None,
        "body": one.body,
        "state": one.state or "COMMENT",
        "comments_count": len(one.remarks),
        "html_url": f"{web}/{repo.full_name}/pulls/{item.number}#issuecomment-{one.id}",
        "submitted_at": stamp(one.at),
    }


def line_remark(
    web: str, repo: Repo, item: Item, within: Review, one: LineRemark
) -> dict[str, Any]:
    """A comment on a line: `position` is the line in the new text, or 0."""
    return {
        "id": one.id,
        "user": person(web, within.author) if within.author else None,
        "body": one.body,
        "path": one.path,
        "position": one.line or 0,
        "original_position": 0 if one.line else one.original_line,
        "diff_hunk": one.hunk,
        "pull_request_review_id": within.id,
        "html_url": f"{web}/{repo.full_name}/pulls/{item.number}/files#issuecomment-{one.id}",
        "created_at": stamp(one.at),
        "updated_at": stamp(one.at),
    }


def status(one: Check, at: str | None) -> dict[str, Any]:
    """A commit status; Gitea calls its state `status`."""
    return {
        "id": one.id,
        "status": one.state,
        "context": one.name,
        "target_url": one.url,
        "description": one.summary,
        "created_at": at,
        "updated_at": at,
    }
