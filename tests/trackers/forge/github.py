"""GitHub in this process: who may ask, what it costs, how it words things.

From the description (facts/github.json): paths, parameters, bodies, fields, success statuses.
From GitHub's documentation: 401, 403 and 404 by credential, quota headers, conditional requests
that cost nothing, Link headers, 301 after a rename. From memory, and said where it stands: the
exact error texts, the numeric path that a rename and Link lead to, what a query without sense does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from tests.trackers.forge import github_app, github_rules
from tests.trackers.forge.asking import Asked, Refusal, Told
from tests.trackers.forge.double import Call
from tests.trackers.forge.facts import Operation
from tests.trackers.forge.github_quota import Counting
from tests.trackers.forge.github_shapes import NULLABLE
from tests.trackers.forge.repo import Repo
from tests.trackers.forge.state import Item, Token

DOCS = "https://docs.github.com/rest"
VERSIONS = ("2022-11-28", "2026-03-10")
AGENT_MISSING = (
    "Request forbidden by administrative rules. Please make sure your request has a "
    "User-Agent header (https://docs.github.com/en/rest/overview/resources-in-the-rest-api"
    "#user-agent-required)."
)
FREE = ("rate limit",)

# What a fine-grained token or an installation needs; the documentation lists it per operation.
NEEDS = {
    "repo": ("metadata", "read"),
    "issues": ("issues", "read"),
    "issue": ("issues", "read"),
    "create issue": ("issues", "write"),
    "edit issue": ("issues", "write"),
    "comments": ("issues", "read"),
    "create comment": ("issues", "write"),
    "labels": ("issues", "read"),
    "create label": ("issues", "write"),
    "add labels": ("issues", "write"),
    "remove label": ("issues", "write"),
    "blocked by": ("issues", "read"),
    "pulls": ("pull_requests", "read"),
    "pull": ("pull_requests", "read"),
    "create pull": ("pull_requests", "write"),
    "reviews": ("pull_requests", "read"),
    "comments on lines": ("pull_requests", "read"),
    "merge": ("contents", "write"),
    "branch rules": ("metadata", "read"),
    "check runs": ("checks", "read"),
    "combined status": ("statuses", "read"),
}
# The role that a person needs in the repository.
ROLE = {
    "create label": ("write", "admin"),
    "add labels": ("triage", "write", "admin"),
    "remove label": ("triage", "write", "admin"),
    "edit issue": ("triage", "write", "admin"),
    "create pull": ("write", "admin"),
    "merge": ("write", "admin"),
}


@dataclass
class App:
    """A GitHub App with one installation; `key` is its public key as PEM."""

    id: str
    installation: str
    key: str
    slug: str
    permissions: dict[str, str]
    repos: frozenset[str] | None = None
    lifetime: timedelta = timedelta(hours=1)


class GitHub(Counting):
    """github.com, or with `enterprise` a server of one's own below /api/v3."""

    style = "github"
    page_size = "per_page"
    most_per_page = 100
    usual_per_page = 30
    nullable = NULLABLE
    rules = github_rules.RULES

    def __init__(
        self, now: Callable[[], datetime] | None = None, *, enterprise: bool = False,
        limit: int = 5000, has_dependencies: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(now, limit)
        self.is_enterprise = enterprise
        self.prefix = "/api/v3" if enterprise else ""
        self.web = "https://ghe.test" if enterprise else "https://api.github.test"
        self.has_dependencies = has_dependencies
        self.apps: dict[str, App] = {}

    # Acts of a test.

    def app(
        self, app_id: str, installation: str, key: str, permissions: dict[str, str],
        repos: frozenset[str] | None = None,
    ) -> App:  # fmt: skip
        """Somebody installs a GitHub App."""
        self.apps[app_id] = App(app_id, installation, key, "labsite", permissions, repos)
        return self.apps[app_id]

    # How it answers.

    def wrong_headers(self, asked: Asked) -> Iterator[str]:
        if asked.headers.get("accept") != "application/vnd.github+json":
            yield f"Accept is {asked.headers.get('accept')}, not application/vnd.github+json"
        if not asked.headers.get("user-agent"):
            yield "has no User-Agent"
        version = asked.headers.get("x-github-api-version")
        if version not in VERSIONS:
            yield f"X-GitHub-Api-Version is {version}"
        scheme = asked.headers.get("authorization", "token x").partition(" ")[0].lower()
        if scheme not in ("bearer", "token"):
            yield f"Authorization begins with {scheme}"

    def canonical(self, path: str) -> str:
        """From memory: /repositories/<id>/… is a second name of /repos/<owner>/<name>/…."""
        found = re.fullmatch(r"/repositories/(\d+)(/.*)?", path)
        repo = self.repos.get(int(found[1])) if found else None
        return f"/repos/{repo.full_name}{found[2] or ''}" if found and repo else path

    def authenticated(self, asked: Asked, operation: Operation) -> Token | None:
        if not asked.headers.get("user-agent"):
            raise Refusal(Told(403, raw=AGENT_MISSING.encode()))
        if operation.name == "installation token":
            return None
        if not asked.token:
            if self.is_used_up(asked):
                raise Refusal(self.used_up(asked))
            return None
        token = self.tokens.get(asked.token)
        if token is None or (token.expires_at and token.expires_at <= self.now()):
            raise Refusal(self.error(401, "Bad credentials"))
        if operation.name not in FREE and self.is_used_up(asked):
            raise Refusal(self.used_up(asked))
        return token

    def repo_of(self, call: Call) -> Repo:
        """The repository of a path, as far as the credential reaches; else GitHub's refusal."""
        name = f"{call.parts['owner']}/{call.parts['repo']}"
        repo = self.find_repo(name)
        if repo is None and name.lower() in self.renamed:
            moved = self.renamed[name.lower()]
            if self._sees(call.token, moved):
                raise Refusal(self._moved(call, moved))
        if repo is None or not self._sees(call.token, repo):
            raise Refusal(self.error(404))
        self._allow(call, repo)
        return repo

    def _sees(self, token: Token | None, repo: Repo) -> bool:
        if not repo.is_private:
            return True
        if token is None or (token.repos is not None and repo.full_name not in token.repos):
            return False
        return token.kind == "installation" or repo.role(token.person) != "none"

    def _allow(self, call: Call, repo: Repo) -> None:
        what, level = NEEDS[call.operation.name]
        token = call.token
        is_write = call.asked.method != "GET"
        if token is None:
            if is_write:
                raise Refusal(self.error(401, "Requires authentication"))
            return
        is_outside = token.repos is not None and repo.full_name not in token.repos
        if (what != "metadata" and not token.may(what, level)) or (is_write and is_outside):
            whom = "integration" if token.kind == "installation" else "personal access token"
            told = self.error(403, f"Resource not accessible by {whom}")
            raise Refusal(told.with_headers(x_accepted_github_permissions=f"{what}={level}"))
        if is_write and repo.is_archived:
            raise Refusal(self.error(403, "Repository was archived so is read-only."))
        roles = ROLE.get(call.operation.name)
        if roles and token.kind != "installation" and repo.role(token.person) not in roles:
            raise Refusal(self.error(403, "Must have admin rights to Repository."))

    def _moved(self, call: Call, repo: Repo) -> Told:
        """301 for GET and 307 for the rest, to the numeric path; the query goes along."""
        rest = call.asked.raw_path.split("/repos/", 1)[1].split("/", 2)[2:]
        url = "/".join([f"{self.api}/repositories/{repo.id}", *rest])
        if call.query:
            url += "?" + urlencode(call.query)
        status = 301 if call.asked.method == "GET" else 307
        told = Told(status, {"message": "Moved Permanently", "url": url, "documentation_url": DOCS})
        return told.with_headers(location=url)

    def paged(self, call: Call, repo: Repo | None, every: list[Any]) -> tuple[list[Any], str]:
        """One page and its Link header, which names the repository by its number."""
        shown, page, last = self.page(call, every)
        path = call.asked.path[len(self.prefix) :]
        if repo is not None:
            rest = self.canonical(path).split("/", 4)[4]
            path = f"/repositories/{repo.id}/{rest}"
        links = [("prev", page - 1), ("first", 1)] if page > 1 else []
        links += [("next", page + 1), ("last", last)] if page < last else []
        told = [
            f'<{self.api}{path}?{urlencode({**call.query, "page": n})}>; rel="{rel}"'
            for rel, n in links
        ]
        return shown, ", ".join(told)

    def listed(self, call: Call, repo: Repo, every: list[Any]) -> Told:
        """A list as an answer."""
        shown, link = self.paged(call, repo, every)
        return Told(200, shown, {"link": link} if link else {})

    def item(self, call: Call, repo: Repo, *, is_pull: bool | None = None) -> Item:
        """The issue or pull request of a path; GitHub's 404 when there is none."""
        return github_rules.item(self, call, repo, is_pull=is_pull)

    # Errors.

    def error(self, status: int, message: str = "") -> Told:
        usual = {404: "Not Found", 405: "Method Not Allowed"}
        return Told(
            status,
            {
                "message": message or usual.get(status, f"status {status}"),
                "documentation_url": DOCS,
                "status": str(status),
            },
        )

    def invalid(self, operation: Operation, wrong: list[str]) -> Told:
        return self.error(422, "Invalid request.\n\n" + "\n".join(wrong))

    def failed(self, *errors: dict[str, str]) -> Told:
        """422 with its list of what is wrong."""
        told = self.error(422, "Validation Failed")
        return Told(422, {**told.data, "errors": list(errors)})

    def installation_token(self, call: Call) -> Told:
        """A token for an installation, against a web token signed by the App."""
        return github_app.token(self, call)
