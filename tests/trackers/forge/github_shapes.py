"""What GitHub sends: example answers written from its description, not recordings."""

from __future__ import annotations

from typing import Any

from tests.trackers.forge.double import stamp
from tests.trackers.forge.repo import Repo
from tests.trackers.forge.state import Check, Item, Label, LineRemark, Person, Remark, Review, Token

# The head's repository when its fork was deleted: the description of lists forgets it, the one of
# a single pull request too; so it does the line of a comment that is outdated, and the account of
# a commenter that was deleted (from memory).
NULLABLE = frozenset(
    {
        "pull-request-simple.head.repo",
        "pull-request-simple.head.user",
        "pull-request.head.repo",
        "pull-request.head.user",
        "pull-request-review-comment.line",
        "pull-request-review-comment.user",
    }
)
RUNNING = ("queued", "in_progress", "pending", "waiting", "requested")


def person(web: str, one: Person) -> dict[str, Any]:
    """A simple user; a GitHub App writes as "name[bot]"."""
    return {
        "id": one.id,
        "login": one.login,
        "type": "Bot" if one.is_bot else "User",
        "html_url": f"{web}/{one.login}",
    }


def association(repo: Repo, one: Person | None) -> str:
    """What the author of a comment is to the repository."""
    if one is None:
        return "NONE"
    role = {"admin": "OWNER", "write": "COLLABORATOR"}.get(repo.role(one), "NONE")
    return "NONE" if one.is_bot else role


def label(one: Label) -> dict[str, Any]:
    return {
        "id": one.id,
        "name": one.name,
        "description": one.description or None,
        "color": one.color,
        "default": False,
    }


def repository(web: str, repo: Repo, token: Token | None) -> dict[str, Any]:
    role = repo.role(token.person if token else None)
    told = {
        "id": repo.id,
        "name": repo.name,
        "full_name": repo.full_name,
        "owner": person(web, repo.owner),
        "private": repo.is_private,
        "html_url": f"{web}/{repo.full_name}",
        "clone_url": f"{web}/{repo.full_name}.git",
        "fork": False,
        "archived": repo.is_archived,
        "disabled": False,
        "default_branch": "main",
        "has_issues": repo.has_issues,
        "open_issues_count": sum(item.is_open for item in repo.items.values()),
    }
    if token is not None:
        # What the person may; a fine-grained token may be narrower than this says.
        told["permissions"] = {
            "admin": role == "admin",
            "maintain": role == "admin",
            "push": role in ("write", "admin"),
            "triage": role in ("triage", "write", "admin"),
            "pull": role != "none",
        }
    return told


def settings_of_repository(repo: Repo) -> dict[str, Any]:
    """What only one repository asked for by itself tells, and only to those who may push."""
    return {
        "allow_merge_commit": "merge" in repo.merge_styles,
        "allow_squash_merge": "squash" in repo.merge_styles,
        "allow_rebase_merge": "rebase" in repo.merge_styles,
    }


def issue(web: str, api: str, repo: Repo, item: Item, with_dependencies: bool) -> dict[str, Any]:
    """An entry of the list of issues; pull requests are in it too, told by `pull_request`."""
    kind = "pull" if item.pull else "issues"
    told: dict[str, Any] = {
        "id": item.id,
        "number": item.number,
        "state": "open" if item.is_open else "closed",
        "state_reason": None if item.is_open or item.pull else "completed",
        "title": item.title,
        "body": item.body,
        "user": person(web, item.author),
        "milestone": {"title": item.milestone} if item.milestone else None,
        "labels": [label(one) for one in item.labels],
        "locked": False,
        "comments": len(item.remarks),
        "html_url": f"{web}/{repo.full_name}/{kind}/{item.number}",
        "url": f"{api}/repos/{repo.full_name}/issues/{item.number}",
        "created_at": stamp(item.created_at),
        "updated_at": stamp(item.updated_at),
        "closed_at": stamp(item.closed_at),
    }
    if item.pull:
        page = f"{web}/{repo.full_name}/pull/{item.number}"
        told["pull_request"] = {
            "url": f"{api}/repos/{repo.full_name}/pulls/{item.number}",
            "html_url": page,
            "diff_url": f"{page}.diff",
            "patch_url": f"{page}.patch",
            "merged_at": stamp(item.pull.merged_at),
        }
    elif with_dependencies:
        waits = [one for _, one in item.blocked_by]
        holds = [i for i in repo.items.values() if (repo, item) in i.blocked_by]
        told["issue_dependencies_summary"] = {
            "blocked_by": sum(one.is_open for one in waits),
            "total_blocked_by": len(waits),
            "blocking": sum(one.is_open for one in holds),
            "total_blocking": len(holds),
        }
    return told


def remark(web: str, repo: Repo, item: Item, one: Remark) -> dict[str, Any]:
    return {
        "id": one.id,
        "body": one.body,
        "user": person(web, one.author),
        "author_association": association(repo, one.author),
        "html_url": f"{web}/{repo.full_name}/issues/{item.number}#issuecomment-{one.id}",
        "created_at": stamp(one.at),
        "updated_at": stamp(one.at),
    }


def pull(web: str, api: str, repo: Repo, item: Item, token: Token | None) -> dict[str, Any]:
    """A pull request of a list. A deleted branch keeps its name; a deleted fork is null."""
    part = item.pull
    assert part is not None
    home = part.head_repo
    return {
        "id": item.id,
        "number": item.number,
        "state": "open" if item.is_open else "closed",
        "locked": False,
        "draft": part.is_draft,
        "title": item.title,
        "body": item.body,
        "user": person(web, item.author),
        "labels": [label(one) for one in item.labels],
        "html_url": f"{web}/{repo.full_name}/pull/{item.number}",
        "url": f"{api}/repos/{repo.full_name}/pulls/{item.number}",
        "created_at": stamp(item.created_at),
        "updated_at": stamp(item.updated_at),
        "closed_at": stamp(item.closed_at),
        "merged_at": stamp(part.merged_at),
        "merge_commit_sha": part.merge_commit,
        "head": {
            "label": f"{part.head_owner}:{part.head}",
            "ref": part.head,
            "sha": repo.head_of(part),
            "user": person(web, home.owner) if home else None,
            "repo": repository(web, home, token) if home else None,
        },
        "base": {
            "label": f"{repo.owner.login}:{part.base}",
            "ref": part.base,
            "sha": "b" * 40,
            "user": person(web, repo.owner),
            "repo": repository(web, repo, token),
        },
    }


def pull_alone(item: Item, web: str) -> dict[str, Any]:
    """What only one pull request asked for by itself tells."""
    part = item.pull
    assert part is not None
    return {
        "merged": part.merged_at is not None,
        "mergeable": not part.not_mergeable if item.is_open else None,
        "mergeable_state": "blocked" if part.not_mergeable else "clean",
        "merged_by": person(web, item.author) if part.merged_at else None,
    }


def review(web: str, repo: Repo, item: Item, one: Review) -> dict[str, Any]:
    """A review; one that is not handed in yet has no time (from memory)."""
    told = {
        "id": one.id,
        "user": person(web, one.author) if one.author else None,
        "author_association": association(repo, one.author),
        "body": one.body,
        "state": one.state or "COMMENTED",
        "html_url": f"{web}/{repo.full_name}/pull/{item.number}#pullrequestreview-{one.id}",
        "commit_id": "a" * 40,
    }
    return told if one.state == "PENDING" else told | {"submitted_at": stamp(one.at)}


def line_remark(
    web: str, repo: Repo, item: Item, within: Review, one: LineRemark
) -> dict[str, Any]:
    return {
        "id": one.id,
        "pull_request_review_id": within.id,
        "diff_hunk": one.hunk,
        "path": one.path,
        "line": one.line,
        "original_line": one.original_line,
        "user": person(web, within.author) if within.author else None,
        "author_association": association(repo, within.author),
        "body": one.body,
        "html_url": f"{web}/{repo.full_name}/pull/{item.number}#discussion_r{one.id}",
        "created_at": stamp(one.at),
        "updated_at": stamp(one.at),
    }


def check_run(one: Check, commit: str, at: str | None) -> dict[str, Any]:
    is_running = one.state in RUNNING
    return {
        "id": one.id,
        "name": one.name,
        "head_sha": commit,
        "status": one.state,
        "conclusion": None if is_running else one.conclusion or "success",
        "html_url": one.url or None,
        "details_url": one.url or None,
        "started_at": at,
        "completed_at": None if is_running else at,
        "output": {
            "title": None,
            "summary": one.summary or None,
            "text": None,
            "annotations_count": 0,
            "annotations_url": f"https://github.test/check-runs/{one.id}/annotations",
        },
    }


def status(one: Check) -> dict[str, Any]:
    return {
        "id": one.id,
        "state": one.state,
        "context": one.name,
        "target_url": one.url or None,
        "description": one.summary or None,
    }


def combined(states: list[str]) -> str:
    """GitHub's sum of the statuses of a commit; without any it is pending."""
    if not states or ("pending" in states and not {"failure", "error"} & set(states)):
        return "pending"
    return "failure" if {"failure", "error"} & set(states) else "success"
