"""What each of Gitea's operations does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tests.trackers.forge import gitea_pulls
from tests.trackers.forge import gitea_shapes as shapes
from tests.trackers.forge.asking import Refusal, Told
from tests.trackers.forge.double import Call, Rule, item_of, stamp
from tests.trackers.forge.repo import Repo
from tests.trackers.forge.state import Item, Label

if TYPE_CHECKING:
    from tests.trackers.forge.gitea import Gitea

LABEL_NAMES_SINCE = (1, 21)
DEPENDENCIES_SINCE = (1, 20)


def item(forge: Gitea, call: Call, repo: Repo) -> Item:
    """The issue or pull request of a path; both are issues here."""
    found = item_of(repo, call.parts["index"])
    if found is None:
        raise Refusal(forge.error(404, "" if call.parts["index"].isdigit() else "not found"))
    return found


def is_author(call: Call, repo: Repo) -> bool:
    """Whether the asker wrote the issue, who may close it then."""
    found = item_of(repo, call.parts["index"])
    return found is not None and found.author is call.person


def _issue(forge: Gitea, repo: Repo, one: Item) -> dict[str, Any]:
    return shapes.issue(forge.web, forge.api, repo, one)


def get_repo(forge: Gitea, call: Call) -> Told:
    return Told(200, shapes.repository(forge.web, forge.repo_of(call), call.token))


def list_issues(forge: Gitea, call: Call) -> Told:
    """Newest first, any of the labels; labels that are not there are left out of the question.

    A question with nothing but unknown labels is therefore one without labels (from memory).
    """
    repo = forge.repo_of(call)
    state = call.query.get("state", "open")
    kind = call.query.get("type", "")
    asked = {one for one in call.query.get("labels", "").split(",") if one}
    wanted = asked & {label.name for label in repo.labels}
    found = [
        one
        for one in repo.items.values()
        if state in ("all", "open" if one.is_open else "closed")
        and kind in ("", "pulls" if one.pull else "issues")
        and (not wanted or wanted & {label.name for label in one.labels})
        and (stamp(one.updated_at) or "") >= call.query.get("since", "")
    ]
    if not repo.has_issues:
        if kind == "issues":
            return forge.error(404)
        found = [one for one in found if one.pull]
    found.sort(key=lambda one: (one.created_at, one.number), reverse=True)
    return forge.listed(call, [_issue(forge, repo, one) for one in found])


def get_issue(forge: Gitea, call: Call) -> Told:
    repo = forge.repo_of(call)
    return Told(200, _issue(forge, repo, item(forge, call, repo)))


def create_issue(forge: Gitea, call: Call) -> Told:
    """Labels by number only; one that is not there is left out. Issues that are off are a 404."""
    repo = forge.repo_of(call)
    assert call.person is not None
    if not repo.has_issues:
        return forge.error(404)
    if not call.body:
        return forge.error(422, "[Title]: Required")
    if not call.body["title"].strip():
        return forge.error(422, "[Title]: Required")
    made = repo.issue(call.body["title"], body=call.body.get("body", ""), author=call.person.login)
    if repo.role(call.person) in ("write", "admin"):
        for one in _labels_of(forge, repo, call.body.get("labels") or []):
            repo.put_label(made, one)
    return Told(201, _issue(forge, repo, made))


def edit_issue(forge: Gitea, call: Call) -> Told:
    repo = forge.repo_of(call)
    one = item(forge, call, repo)
    state = call.body.get("state")
    if state == "closed" and one.is_open:
        if any(waits.is_open for _, waits in one.blocked_by):
            return forge.error(
                412, "cannot close this issue because it still has open dependencies"
            )
        repo.close(one)
    elif state == "open" and not one.is_open:
        one.is_open, one.closed_at = True, None
        repo.touch(one)
    for word in ("title", "body"):
        if word in call.body:
            setattr(one, word, call.body[word])
            repo.touch(one)
    return Told(201, _issue(forge, repo, one))


def list_assignees(forge: Gitea, call: Call) -> Told:
    """Whoever may write here, the owner among them."""
    repo = forge.repo_of(call)
    people = [one for one in forge.people.values() if repo.role(one) in ("admin", "write")]
    return Told(200, [shapes.person(forge.web, one) for one in people])


def list_comments(forge: Gitea, call: Call) -> Told:
    """Oldest first, and all of them: this list has no pages."""
    repo = forge.repo_of(call)
    one = item(forge, call, repo)
    told = [shapes.remark(forge.web, repo, one, remark) for remark in one.remarks]
    return Told(200, told).with_headers(x_total_count=str(len(told)))


def create_comment(forge: Gitea, call: Call) -> Told:
    """As tried on a Gitea 1.26: where there is no such issue, it answers 500."""
    repo = forge.repo_of(call)
    if item_of(repo, call.parts["index"]) is None:
        return forge.error(500)
    one = item(forge, call, repo)
    assert call.person is not None
    if not call.body["body"]:
        return forge.error(422, "[Body]: Required")
    made = repo.remark(one, call.person, call.body["body"])
    return Told(201, shapes.remark(forge.web, repo, one, made))


def dependencies(forge: Gitea, call: Call) -> Told:
    """What an issue waits for, closed ones too; 404 where the repository has them switched off."""
    repo = forge.repo_of(call)
    if forge.at_least < DEPENDENCIES_SINCE or not repo.has_dependencies:
        return forge.error(404)
    one = item(forge, call, repo)
    return forge.listed(call, [_issue(forge, other, waits) for other, waits in one.blocked_by])


# Labels.


def list_labels(forge: Gitea, call: Call) -> Told:
    """Those of the repository; an organisation's own labels are in another list."""
    repo = forge.repo_of(call)
    by_name = sorted(repo.labels, key=lambda one: one.name)
    return forge.listed(call, [shapes.label(forge.api, repo, one) for one in by_name])


def organisation_labels(forge: Gitea, call: Call) -> Told:
    """404 when the owner is no organisation."""
    forge.allow(call)
    labels = forge.organisation_labels.get(call.parts["org"])
    if labels is None:
        return forge.error(404)
    any_repo = next(r for r in forge.repos.values() if r.owner.login == call.parts["org"])
    return forge.listed(call, [shapes.label(forge.api, any_repo, one) for one in labels])


def create_label(forge: Gitea, call: Call) -> Told:
    """A second label of the same name is made without a word."""
    repo = forge.repo_of(call)
    color = call.body["color"]
    if not re.fullmatch(r"#?[0-9a-fA-F]{6}", color):
        return forge.error(422, "bad colour code")
    if not call.body["name"].strip():
        return forge.error(422, "[Name]: Required")
    made = Label(forge.next_id(), call.body["name"], color.removeprefix("#"))
    made.description = call.body.get("description", "")
    repo.labels.append(made)
    return Told(201, shapes.label(forge.api, repo, made))


def add_labels(forge: Gitea, call: Call) -> Told:
    """Numbers; names too since 1.21. One that is not there is left out without a word."""
    repo = forge.repo_of(call)
    one = item(forge, call, repo)
    assert call.person is not None
    asked = call.body.get("labels") or []
    if forge.at_least < LABEL_NAMES_SINCE and any(isinstance(name, str) for name in asked):
        message = "json: cannot unmarshal string into Go struct field IssueLabelsOption.labels"
        return forge.error(422, message)
    if len({type(name) for name in asked}) > 1:
        return forge.error(400, "labels should be an array of strings or integers")
    for label in _labels_of(forge, repo, asked):
        repo.put_label(one, label)
    return Told(200, [shapes.label(forge.api, repo, label) for label in one.labels])


def remove_label(forge: Gitea, call: Call) -> Told:
    """By number only; no error when the issue does not carry it, 422 when there is no such label."""
    repo = forge.repo_of(call)
    one = item(forge, call, repo)
    if not call.parts["id"].isdigit():
        forge.violate(call.asked, "a label is taken off by its number")
        return forge.error(404)
    found = _labels_of(forge, repo, [int(call.parts["id"])])
    if not found:
        return forge.error(422, "label does not exist")
    assert call.person is not None
    repo.take_label(one, found[0])
    return Told(204)


def _labels_of(forge: Gitea, repo: Repo, asked: list[Any]) -> list[Label]:
    every = [*repo.labels, *forge.organisation_labels.get(repo.owner.login, [])]
    return [label for label in every if label.id in asked or label.name in asked]


# What is asked about a commit, the asker and the server.


def statuses(forge: Gitea, call: Call) -> Told:
    """Every status that was ever told, newest first: a name can be in it many times."""
    repo = forge.repo_of(call)
    at = stamp(forge.now())
    every = [shapes.status(one, at) for one in reversed(repo.checks.get(call.parts["ref"], []))]
    return forge.listed(call, every)


def user(forge: Gitea, call: Call) -> Told:
    forge.allow(call)
    assert call.person is not None
    return Told(200, shapes.person(forge.web, call.person))


def version(forge: Gitea, call: Call) -> Told:
    return Told(200, {"version": forge.version})


RULES: Mapping[str, Rule] = {
    "repo": get_repo,
    "issues": list_issues,
    "issue": get_issue,
    "create issue": create_issue,
    "edit issue": edit_issue,
    "comments": list_comments,
    "assignees": list_assignees,
    "create comment": create_comment,
    "dependencies": dependencies,
    "labels": list_labels,
    "organisation labels": organisation_labels,
    "create label": create_label,
    "add labels": add_labels,
    "remove label": remove_label,
    "statuses": statuses,
    "user": user,
    "version": version,
    **gitea_pulls.RULES,
}
