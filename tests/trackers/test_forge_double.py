"""The doubles of the forges are strict, and behave as the forges' documentation says."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.trackers.facts import from_gitea_js, from_octokit
from tests.trackers.forge import Double, Gitea, GitHub, faults, forgejo
from tests.trackers.forge.facts import FOLDER

GITHUB_HEADERS = {
    "accept": "application/vnd.github+json",
    "user-agent": "labsite",
    "x-github-api-version": "2022-11-28",
}
GITEA_HEADERS = {"accept": "application/json", "user-agent": "labsite"}
STYLES: dict[str, Callable[[], Double]] = {"github": GitHub, "gitea": Gitea, "forgejo": forgejo}


class Asker:
    """A plain client without any of the product's rules."""

    def __init__(self, forge: Double, login: str = "bot", **token: Any) -> None:
        self.forge = forge
        self.token = forge.token(login, **token) if login else ""
        self.headers = GITHUB_HEADERS if forge.style == "github" else GITEA_HEADERS
        if self.token:
            self.headers = {**self.headers, "authorization": f"token {self.token}"}
        self.client = httpx.Client(transport=forge.transport(), base_url=forge.api)

    def get(self, path: str, headers: dict[str, str] | None = None, **query: Any) -> httpx.Response:
        return self.client.get(path, params=query, headers={**self.headers, **(headers or {})})

    def send(self, method: str, path: str, body: Any = None) -> httpx.Response:
        return self.client.request(method, path, json=body, headers=self.headers)


@pytest.fixture(params=STYLES)
def forge(request: pytest.FixtureRequest) -> Double:
    made = STYLES[request.param]()
    made.repo("acme/shop", roles={"bot": "write"})
    return made


def repo_of(forge: Double) -> Any:
    return forge.find_repo("acme/shop")


@pytest.mark.parametrize("name", ["github", "gitea"])
def test_the_facts_say_where_they_come_from(name: str) -> None:
    told = json.loads((FOLDER / f"{name}.json").read_text())

    assert told["package"] in ("@octokit/openapi", "gitea-js")
    assert told["version"]
    assert (told["licence"], "Copyright" in told["copyright"]) == ("MIT", True)
    assert all(one["status"] in (200, 201, 204) for one in told["operations"].values())


def test_the_facts_are_those_that_the_scripts_make() -> None:
    for name, script in (("github", from_octokit), ("gitea", from_gitea_js)):
        told = json.loads((FOLDER / f"{name}.json").read_text())
        assert list(told["operations"]) == list(script.OPERATIONS)
        for operation, where in script.OPERATIONS.items():
            made = told["operations"][operation]
            assert (made["method"].lower(), made["path"]) == (where[0].lower(), where[1])


@pytest.mark.parametrize("style", STYLES)
def test_every_operation_of_the_facts_has_a_rule(style: str) -> None:
    forge = STYLES[style]()

    assert {one.name for one in forge.facts.operations} == set(forge.rules)


# Strict.


@pytest.mark.parametrize(
    ("method", "path", "body", "complaint"),
    [
        pytest.param("GET", "/nowhere", None, "unknown path", id="path"),
        pytest.param("DELETE", "/repos/acme/shop/issues", None, "unknown method", id="method"),
        pytest.param("GET", "/repos/acme/shop/issues?colour=red", None, "unknown parameter colour", id="parameter"),
        pytest.param("GET", "/repos/acme/shop/issues?state=shut", None, "parameter state cannot be shut", id="enum"),
        pytest.param("GET", "/repos/acme/shop/issues?page=two", None, "parameter page is no number", id="number"),
        pytest.param("POST", "/repos/acme/shop/issues", {"title": "t", "colour": 1}, "body.colour is unknown", id="field"),
        pytest.param("POST", "/repos/acme/shop/issues", {"body": "b"}, "body.title is missing", id="required"),
        pytest.param("POST", "/repos/acme/shop/issues/1/comments", {"body": 7}, "body.body should be string", id="type"),
        pytest.param("GET", "/repos/acme/shop", {"a": 1}, "has a body", id="body on GET"),
    ],
)  # fmt: skip
def test_what_the_description_does_not_allow_is_a_violation(
    forge: Double, method: str, path: str, body: Any, complaint: str
) -> None:
    repo_of(forge).issue("one")

    Asker(forge).send(method, path, body)

    assert any(complaint in line for line in forge.violations), forge.violations
    with pytest.raises(AssertionError):
        forge.check()


@pytest.mark.parametrize(
    ("style", "headers"),
    [
        ("github", {**GITHUB_HEADERS, "accept": "application/json"}),
        ("github", {**GITHUB_HEADERS, "x-github-api-version": "1999-01-01"}),
        ("github", {**GITHUB_HEADERS, "authorization": "Basic eDp5"}),
        ("gitea", {"accept": "text/html"}),
        ("gitea", {**GITEA_HEADERS, "authorization": "Basic eDp5"}),
    ],
)
def test_a_header_that_is_wrong_is_a_violation(style: str, headers: dict[str, str]) -> None:
    forge = STYLES[style]()
    with httpx.Client(transport=forge.transport(), base_url=forge.api) as client:
        client.get("/user", headers=headers)

    assert forge.violations


def test_a_request_to_another_host_is_a_violation(forge: Double) -> None:
    with httpx.Client(transport=forge.transport()) as client:
        client.get("https://elsewhere.test/api/v1/version")

    assert "elsewhere.test was asked" in forge.violations[0]


# Everything that the double sends is held against the description.


def _a_bit_of_everything(forge: Double) -> None:
    repo = repo_of(forge)
    blocker = repo.issue("first", labels=["bug"])
    waiting = repo.issue("second", labels=["ready-for-agent", "bug"], body=None)
    waiting.blocked_by.append((repo, blocker))
    repo.remark(waiting, forge.person("ada"), "hello")
    fork = forge.repo("eve/shop")
    repo.pull("afk/2", "open", body=None)
    repo.pull("afk/2", "closed")
    repo.pull("afk/1", "merged", is_branch_gone=True)
    repo.pull("afk/3", fork=fork)
    repo.pull("afk/4", fork=(gone := forge.repo("mallory/shop")))
    forge.remove(gone)
    repo.check("c" * 40, "build", "success", url="https://ci.test/1")
    repo.check(
        "c" * 40, "lint", "in_progress" if forge.style == "github" else "pending", is_run=True
    )


def test_every_answer_is_what_the_description_says(forge: Double) -> None:
    _a_bit_of_everything(forge)
    asker = Asker(forge)
    commit = f"/repos/acme/shop/commits/{'c' * 40}"
    paths = {
        "github": [f"{commit}/check-runs", f"{commit}/status", "/meta", "/repos/acme/shop/issues/2/dependencies/blocked_by"],
        "gitea": [f"{commit}/statuses", "/version", "/repos/acme/shop/issues/2/dependencies"],
    }[forge.style]  # fmt: skip
    paths += [f"/repos/acme/shop{rest}" for rest in ("", "/issues?state=all", "/issues/2", "/issues/2/comments", "/labels", "/pulls?state=all", "/pulls/3", "/pulls/5")]  # fmt: skip

    for path in [*paths, "/user"]:
        assert asker.get(path).status_code == 200, path

    forge.check()


def test_what_is_written_is_there_afterwards(forge: Double) -> None:
    asker, repo = Asker(forge), repo_of(forge)

    assert (
        asker.send("POST", "/repos/acme/shop/issues", {"title": "new", "body": "b"}).json()[
            "number"
        ]
        == 1
    )
    assert (
        asker.send("POST", "/repos/acme/shop/issues/1/comments", {"body": "hi"}).status_code == 201
    )
    color = "ff0000" if forge.style == "github" else "#ff0000"
    made = asker.send("POST", "/repos/acme/shop/labels", {"name": "bug", "color": color})
    assert made.status_code == 201
    asker.send("POST", "/repos/acme/shop/issues/1/labels", {"labels": ["bug"]})
    assert [label.name for label in repo.items[1].labels] == ["bug"]
    which = "bug" if forge.style == "github" else made.json()["id"]
    assert asker.send("DELETE", f"/repos/acme/shop/issues/1/labels/{which}").status_code in (
        200,
        204,
    )
    assert repo.items[1].labels == []
    asker.send("PATCH", "/repos/acme/shop/issues/1", {"state": "closed"})

    assert repo.items[1].is_open is False
    forge.check()


# Who may.


@pytest.mark.parametrize(
    ("style", "login", "private", "path", "status"),
    [
        ("github", "", True, "/repos/acme/shop", 404),
        ("gitea", "", True, "/repos/acme/shop", 404),
        ("github", "stranger", True, "/repos/acme/shop/issues", 404),
        ("gitea", "stranger", True, "/repos/acme/shop/issues", 404),
        ("github", "", False, "/repos/acme/shop/issues", 200),
        ("gitea", "", False, "/repos/acme/shop/issues", 200),
        ("github", "", False, "/user", 401),
        ("gitea", "", False, "/user", 401),
        ("github", "bot", True, "/repos/acme/none", 404),
    ],
)
def test_a_private_repository_is_not_there_for_strangers(
    style: str, login: str, private: bool, path: str, status: int
) -> None:
    forge = STYLES[style]()
    forge.repo("acme/shop", is_private=private, roles={"bot": "write"})

    assert Asker(forge, login).get(path).status_code == status


def test_a_wrong_token_is_401(forge: Double) -> None:
    asker = Asker(forge)
    forge.tokens.clear()

    assert asker.get("/repos/acme/shop").status_code == 401


@pytest.mark.parametrize(
    ("style", "permissions", "words"),
    [
        ("github", {"metadata": "read", "issues": "read"}, "Resource not accessible by personal access token"),
        ("gitea", {"issue": "read", "repository": "read"}, "token does not have at least one of required scope(s)"),
    ],
)  # fmt: skip
def test_a_token_that_may_only_read_cannot_write(
    style: str, permissions: dict[str, str], words: str
) -> None:
    forge = STYLES[style]()
    forge.repo("acme/shop", roles={"bot": "write"}).issue("one")
    asker = Asker(forge, kind="fine", permissions=permissions)

    refused = asker.send("POST", "/repos/acme/shop/issues/1/comments", {"body": "hi"})

    assert (refused.status_code, words in refused.json()["message"]) == (403, True)
    assert asker.get("/repos/acme/shop/issues").status_code == 200


# Lists.


def test_pages_are_linked_and_bounded(forge: Double) -> None:
    for number in range(1, 121):
        repo_of(forge).issue(f"issue {number}")
    asker = Asker(forge)
    size = {forge.page_size: forge.most_per_page}

    first = asker.get("/repos/acme/shop/issues", **size)

    assert len(first.json()) == forge.most_per_page
    seen, link = len(first.json()), first.links.get("next")
    while link:
        answer = asker.client.get(link["url"], headers=asker.headers)
        seen, link = seen + len(answer.json()), answer.links.get("next")
    assert seen == 120
    if forge.style == "gitea":
        assert first.headers["x-total-count"] == "120"
    forge.check()
    asker.get("/repos/acme/shop/issues", **{forge.page_size: forge.most_per_page + 1})
    assert "is over" in forge.violations[-1]


def test_githubs_issues_hold_pull_requests_and_know_all_of_the_labels(github: GitHub) -> None:
    repo = github.repo("acme/shop", roles={"bot": "read"})
    repo.issue("one", labels=["ready", "bug"])
    repo.issue("two", labels=["ready"])
    repo.items[repo.pull("afk/1").number].labels.append(repo.label("ready"))
    asker = Asker(github)

    every = asker.get("/repos/acme/shop/issues", labels="ready", direction="asc").json()

    assert [("pull_request" in one, one["number"]) for one in every] == [(False, 1), (False, 2), (True, 3)]  # fmt: skip
    both = asker.get("/repos/acme/shop/issues", labels="Ready,bug").json()
    assert [one["number"] for one in both] == [1]


def test_giteas_question_for_an_unknown_label_is_one_for_everything(gitea: Gitea) -> None:
    repo = gitea.repo("acme/shop", roles={"bot": "read"})
    repo.issue("one", labels=["ready"])
    repo.issue("two", labels=["bug"])
    asker = Asker(gitea)

    found = {
        labels: [
            one["number"] for one in asker.get("/repos/acme/shop/issues", labels=labels).json()
        ]
        for labels in ("ready", "nowhere", "ready,bug")
    }

    assert found == {"ready": [1], "nowhere": [2, 1], "ready,bug": [2, 1]}


def test_a_deleted_branch_is_told_in_each_forges_way(forge: Double) -> None:
    repo_of(forge).pull("afk/7", "merged", is_branch_gone=True)
    told = Asker(forge).get("/repos/acme/shop/pulls", state="all").json()[0]

    if forge.style == "github":
        assert (told["head"]["ref"], told["state"], told["merged_at"] is None) == (
            "afk/7",
            "closed",
            False,
        )
        assert "merged" not in told
    else:
        assert (told["head"]["ref"], told["head"]["label"]) == ("refs/pull/1/head", "afk/7")
        assert (told["state"], told["merged"]) == ("closed", True)


# Renames.


def test_the_old_name_leads_to_the_new_one(forge: Double) -> None:
    repo = repo_of(forge)
    repo.issue("one")
    forge.rename(repo, "acme/store")
    asker = Asker(forge)

    moved = asker.get("/repos/acme/shop/issues", state="open")

    assert moved.status_code == (301 if forge.style == "github" else 307)
    there = moved.headers["location"]
    assert "state=open" in there
    told = asker.client.get(httpx.URL(forge.api).join(there), headers=asker.headers)
    assert [one["title"] for one in told.json()] == ["one"]
    forge.check()


# Quota and conditional requests.


def test_github_counts_what_changed_and_nothing_else(github: GitHub) -> None:
    github.repo("acme/shop", roles={"bot": "read"}).issue("one")
    asker = Asker(github)

    first = asker.get("/repos/acme/shop/issues")
    again = asker.get("/repos/acme/shop/issues", headers={"if-none-match": first.headers["etag"]})

    assert (first.headers["x-ratelimit-used"], again.status_code, again.content) == ("1", 304, b"")
    assert again.headers["x-ratelimit-used"] == "1"
    assert [(line.is_counted, line.was_conditional) for line in github.log] == [(True, False), (False, True)]  # fmt: skip
    repo_of(github).issue("two")
    changed = asker.get("/repos/acme/shop/issues", headers={"if-none-match": first.headers["etag"]})
    assert changed.status_code == 200


def test_github_refuses_when_the_hour_is_used_up_and_answers_in_the_next(github: GitHub) -> None:
    github.repo("acme/shop", roles={"bot": "read"})
    asker = Asker(github)
    github.spend(asker.token, 5000)

    refused = asker.get("/repos/acme/shop")

    assert (refused.status_code, refused.headers["x-ratelimit-remaining"]) == (403, "0")
    github.clock.advance(3601)
    assert asker.get("/repos/acme/shop").status_code == 200


def test_gitea_has_no_validators_unless_a_proxy_gives_them() -> None:
    for etags in (False, True):
        forge = Gitea(etags=etags)
        forge.repo("acme/shop", roles={"bot": "read"})
        assert ("etag" in Asker(forge).get("/repos/acme/shop").headers) is etags


# Pull requests.


def test_one_open_pull_request_per_branch(forge: Double) -> None:
    asker = Asker(forge)
    new = {"title": "t", "head": "afk/7", "base": "main", "body": ""}

    assert asker.send("POST", "/repos/acme/shop/pulls", new).status_code == 201
    again = asker.send("POST", "/repos/acme/shop/pulls", new)

    assert again.status_code == (422 if forge.style == "github" else 409)
    assert "already exists for" in json.dumps(again.json())


@pytest.mark.parametrize(
    ("head", "not_mergeable", "status"),
    [("a" * 40, "", 200), ("f" * 40, "", 409), ("a" * 40, "Checks are missing", 405)],
)
def test_a_merge_holds_to_the_head(
    forge: Double, head: str, not_mergeable: str, status: int
) -> None:
    one = repo_of(forge).pull("afk/7")
    one.pull.not_mergeable = not_mergeable
    method, body = (
        ("PUT", {"sha": head})
        if forge.style == "github"
        else ("POST", {"Do": "merge", "head_commit_id": head})
    )

    answer = Asker(forge).send(method, f"/repos/acme/shop/pulls/{one.number}/merge", body)

    assert answer.status_code == status
    assert (one.pull.merged_at is not None) is (status == 200)
    forge.check()


# What goes wrong, and where it is served.


def test_faults_happen_as_often_and_where_they_were_asked_for(forge: Double) -> None:
    asker = Asker(forge)
    forge.faults.add(faults.status(502), times=2, path="/issues")

    told = [asker.get(f"/repos/acme/shop/{what}").status_code for what in ("pulls", "issues", "issues", "issues")]  # fmt: skip

    assert told == [200, 502, 502, 200]


def test_faults_of_the_body_keep_the_headers(forge: Double) -> None:
    repo_of(forge).issue("one")
    asker = Asker(forge)
    path = "/repos/acme/shop/issues"
    for fault in (faults.truncated(), faults.not_json(), faults.html()):
        forge.faults.add(fault)
        with pytest.raises(ValueError):
            asker.get(path).json()
    forge.faults.add(faults.broken_entries())
    assert len(asker.get(path).json()) == 8
    forge.faults.add(faults.unknown_fields())
    assert "from_the_future" in asker.get(path).json()[0]["user"]
    forge.faults.add(faults.wrong_types())
    assert type(asker.get(path).json()[0]["number"]) is not int
    waited: list[float] = []
    forge.faults.add(faults.slow(4, waited.append))
    assert asker.get(path).json()[0]["number"] == 1
    assert sum(waited) >= 4


def test_a_lost_answer_comes_after_the_act_and_a_dropped_one_before(forge: Double) -> None:
    asker, repo = Asker(forge), repo_of(forge)
    for fault, titles in ((faults.drop(), []), (faults.lost(), ["new"])):
        forge.faults.add(fault)
        with pytest.raises(httpx.RemoteProtocolError):
            asker.send("POST", "/repos/acme/shop/issues", {"title": "new"})
        assert [item.title for item in repo.items.values()] == titles


def test_the_same_forge_answers_on_a_real_socket(forge: Double) -> None:
    asker, repo = Asker(forge), repo_of(forge)
    for number in range(1, 61):
        repo.issue(f"issue {number}")
    with forge.serving() as api, httpx.Client(headers=asker.headers) as client:
        first = client.get(f"{api}/repos/acme/shop/issues", params={forge.page_size: 50})
        second = client.get(first.links["next"]["url"])
        forge.faults.add(faults.drop())
        with pytest.raises(httpx.TransportError):
            client.get(f"{api}/repos/acme/shop")

    assert (len(first.json()), len(second.json())) == (50, 10)
    forge.check()
