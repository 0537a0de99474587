"""What each of GitHub's operations does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tests.trackers.forge import github_pulls
from tests.trackers.forge import github_shapes as shapes
from tests.trackers.forge.asking import Refusal, Told
from tests.trackers.forge.double import Call, Rule, item_of, stamp
from tests.trackers.forge.repo import Repo
from tests.trackers.forge.state import Item, Label

if TYPE_CHECKING:
    from tests.trackers.forge.github import GitHub


def item(forge: GitHub, call: Call, repo: Repo, *, is_pull: bool | None = None) -> Item:
    """The issue or pull request of a path; 404 when there is none of that kind."""
    told = call.parts.get("issue_number") or call.parts["pull_number"]
    found = item_of(repo, told)
    if found is None or (is_pull is not None and (found.pull is not None) is not is_pull):
        raise Refusal(forge.error(404))
    return found


def _issue(forge: GitHub, repo: Repo, one: Item) -> dict[str, Any]:
    return shapes.issue(forge.web, forge.api, repo, one, forge.has_dependencies)


def _with_issues(forge: GitHub, call: Call) -> Repo:
    repo = forge.repo_of(call)
    if not repo.has_issues and call.operation.name in ("issues", "create issue"):
        raise Refusal(forge.error(410, "Issues has been disabled in this repository."))
    return repo


def get_repo(forge: GitHub, call: Call) -> Told:
    repo = forge.repo_of(call)
    told = shapes.repository(forge.web, repo, call.token)
    if repo.role(call.person) in ("write", "admin"):
        told |= shapes.settings_of_repository(repo)
    return Told(200, told)


# Issues.


def list_issues(forge: GitHub, call: Call) -> Told:
    """Pull requests are in it too. Several labels mean all of them; their case does not count."""
    repo = _with_issues(forge, call)
    state = call.query.get("state", "open")
    wanted = {one.strip().lower() for one in call.query.get("labels", "").split(",") if one}
    found = [
        one
        for one in repo.items.values()
        if state in ("all", "open" if one.is_open else "closed")
        and wanted <= {label.name.lower() for label in one.labels}
        and (stamp(one.updated_at) or "") >= call.query.get("since", "")
    ]
    keys = {
        "created": lambda one: (one.created_at, one.number),
        "updated": lambda one: (one.updated_at, one.number),
        "comments": lambda one: (len(one.remarks), one.number),
    }
    found.sort(
        key=keys.get(call.query.get("sort", "created"), keys["created"]),
        reverse=call.query.get("direction", "desc") != "asc",
    )
    return forge.listed(call, repo, [_issue(forge, repo, one) for one in found])


def get_issue(forge: GitHub, call: Call) -> Told:
    repo = forge.repo_of(call)
    return Told(200, _issue(forge, repo, item(forge, call, repo)))


def create_issue(forge: GitHub, call: Call) -> Told:
    """Labels that are not there are made, but only by those who may push; else they are dropped."""
    repo = _with_issues(forge, call)
    assert call.person is not None
    if not str(call.body.get("title", "")).strip():
        return forge.failed({"resource": "Issue", "code": "missing_field", "field": "title"})
    may_label = _may_push(call, repo)
    made = repo.issue(
        str(call.body["title"]),
        body=call.body.get("body"),
        author=call.person.login,
        labels=[_name(one) for one in call.body.get("labels", [])] if may_label else [],
    )
    return Told(201, _issue(forge, repo, made))


def edit_issue(forge: GitHub, call: Call) -> Told:
    repo = forge.repo_of(call)
    one = item(forge, call, repo)
    if call.body.get("state") == "closed" and one.is_open:
        repo.close(one)
    elif call.body.get("state") == "open" and not one.is_open:
        one.is_open, one.closed_at = True, None
        repo.touch(one)
    for word in ("title", "body"):
        if word in call.body:
            setattr(one, word, call.body[word])
            repo.touch(one)
    return Told(200, _issue(forge, repo, one))


def list_comments(forge: GitHub, call: Call) -> Told:
    """Oldest first."""
    repo = forge.repo_of(call)
    one = item(forge, call, repo)
    told = [shapes.remark(forge.web, repo, one, remark) for remark in one.remarks]
    return forge.listed(call, repo, told)


def create_comment(forge: GitHub, call: Call) -> Told:
    repo = forge.repo_of(call)
    one = item(forge, call, repo)
    assert call.person is not None
    if not call.body["body"].strip():
        return forge.failed({"resource": "IssueComment", "code": "missing_field", "field": "body"})
    made = repo.remark(one, call.person, call.body["body"])
    return Told(201, shapes.remark(forge.web, repo, one, made))


def blocked_by(forge: GitHub, call: Call) -> Told:
    """Servers without issue dependencies do not know the path."""
    repo = forge.repo_of(call)
    if not forge.has_dependencies:
        return forge.error(404)
    one = item(forge, call, repo, is_pull=False)
    told = [_issue(forge, other, waits) for other, waits in one.blocked_by]
    return forge.listed(call, repo, told)


# Labels.


def list_labels(forge: GitHub, call: Call) -> Told:
    repo = forge.repo_of(call)
    by_name = sorted(repo.labels, key=lambda one: one.name.lower())
    return forge.listed(call, repo, [shapes.label(one) for one in by_name])


def create_label(forge: GitHub, call: Call) -> Told:
    repo = forge.repo_of(call)
    name, color = call.body["name"], call.body.get("color", "ededed")
    if _label(repo, name):
        return forge.failed({"resource": "Label", "code": "already_exists", "field": "name"})
    if len(color) != 6 or any(c not in "0123456789abcdefABCDEF" for c in color):
        return forge.failed({"resource": "Label", "code": "invalid", "field": "color"})
    made = repo.label(name, color)
    made.description = call.body.get("description") or ""
    return Told(201, shapes.label(made))


def add_labels(forge: GitHub, call: Call) -> Told:
    """From memory: a label that is not there is made on the way."""
    repo = forge.repo_of(call)
    one = item(forge, call, repo)
    assert call.person is not None
    for named in call.body["labels"]:
        name = _name(named)
        repo.put_label(one, _label(repo, name) or repo.label(name))
    return Told(200, [shapes.label(label) for label in one.labels])


def remove_label(forge: GitHub, call: Call) -> Told:
    repo = forge.repo_of(call)
    one = item(forge, call, repo)
    found = _label(repo, call.parts["name"])
    if found is None or found not in one.labels:
        return forge.error(404, "Label does not exist")
    assert call.person is not None
    repo.take_label(one, found)
    return Told(200, [shapes.label(label) for label in one.labels])


def _label(repo: Repo, name: str) -> Label | None:
    return next((one for one in repo.labels if one.name.lower() == name.lower()), None)


def _name(told: str | Mapping[str, str]) -> str:
    return told if isinstance(told, str) else told["name"]


def _may_push(call: Call, repo: Repo) -> bool:
    is_app = call.token is not None and call.token.kind == "installation"
    return is_app or repo.role(call.person) in ("triage", "write", "admin")


# What is asked about a commit, and about the asker.


def check_runs(forge: GitHub, call: Call) -> Told:
    """The newest run of each name, as the default `filter=latest` has it."""
    repo = forge.repo_of(call)
    runs = {c.name: c for c in repo.checks.get(call.parts["ref"], []) if c.is_run}
    at = stamp(forge.now())
    every = [shapes.check_run(one, call.parts["ref"], at) for one in runs.values()]
    shown, link = forge.paged(call, repo, every)
    told = Told(200, {"total_count": len(every), "check_runs": shown})
    return told.with_headers(link=link) if link else told


def combined_status(forge: GitHub, call: Call) -> Told:
    repo = forge.repo_of(call)
    newest = {c.name: c for c in repo.checks.get(call.parts["ref"], []) if not c.is_run}
    shown, link = forge.paged(call, repo, [shapes.status(one) for one in newest.values()])
    told = Told(
        200,
        {
            "state": shapes.combined([one.state for one in newest.values()]),
            "sha": call.parts["ref"],
            "total_count": len(newest),
            "statuses": shown,
        },
    )
    return told.with_headers(link=link) if link else told


def user(forge: GitHub, call: Call) -> Told:
    if call.token is None:
        return forge.error(401, "Requires authentication")
    if call.token.kind == "installation":
        return forge.error(403, "Resource not accessible by integration")
    return Told(200, shapes.person(forge.web, call.token.person))


def meta(forge: GitHub, call: Call) -> Told:
    """An Enterprise server tells its version in a field of its own; from memory."""
    told = Told(200, {"verifiable_password_authentication": True})
    return told.with_headers(x_github_enterprise_version="3.17.0") if forge.is_enterprise else told


def installation_token(forge: GitHub, call: Call) -> Told:
    return forge.installation_token(call)


RULES: Mapping[str, Rule] = {
    "repo": get_repo,
    "issues": list_issues,
    "issue": get_issue,
    "create issue": create_issue,
    "edit issue": edit_issue,
    "comments": list_comments,
    "create comment": create_comment,
    "labels": list_labels,
    "create label": create_label,
    "add labels": add_labels,
    "remove label": remove_label,
    "blocked by": blocked_by,
    "check runs": check_runs,
    "combined status": combined_status,
    "user": user,
    "meta": meta,
    "installation token": installation_token,
    **github_pulls.RULES,
}
