"""Gitea and Forgejo in this process.

From the description (facts/gitea.json): paths, parameters, bodies, fields. From memory of Gitea's
source, since the package tells none of it: success statuses, error statuses and texts, what a
token's scope lets through, that a renamed repository answers 307 with a relative address, that an
unknown label in a query is left out of it, and the differences between versions named below.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from tests.trackers.forge import gitea_rules
from tests.trackers.forge.asking import Asked, Refusal, Told
from tests.trackers.forge.double import Call, Double
from tests.trackers.forge.facts import Operation
from tests.trackers.forge.gitea_shapes import NULLABLE
from tests.trackers.forge.repo import Repo
from tests.trackers.forge.state import Token

# Since these versions (from memory).
SCOPES_SINCE = (1, 20)
LABEL_NAMES_SINCE = (1, 21)
DEPENDENCIES_SINCE = (1, 20)
ACTIONS_SINCE = (1, 25)

ANYBODY = ("version",)
REPOSITORY = (
    "repo", "statuses", "merge", "pulls", "pull", "create pull", "reviews", "comments on lines",
    "assignees",
)  # fmt: skip
WRITES = ("create label", "add labels", "remove label", "merge")


class Gitea(Double):
    """A Gitea server; `forgejo` makes it say that it is Forgejo, `version` how old it is."""

    style = "gitea"
    prefix = "/api/v1"
    page_size = "limit"
    most_per_page = 50
    usual_per_page = 30
    nullable = NULLABLE
    rules = gitea_rules.RULES

    def __init__(
        self, now: Callable[[], datetime] | None = None, *, forgejo: bool = False,
        version: str = "1.23.0", etags: bool = False, is_closed: bool = False,
        max_items: int = 50,
    ) -> None:  # fmt: skip
        super().__init__(now)
        self.is_forgejo = forgejo
        self.version = f"11.0.1+gitea-{version}" if forgejo else version
        self.at_least = tuple(int(part) for part in version.split(".")[:2])
        self.etags = etags
        self.has_actions = not forgejo and self.at_least >= ACTIONS_SINCE
        self.max_items = max_items  # MAX_RESPONSE_ITEMS, which an admin may set lower
        self.is_closed = is_closed  # nothing without signing in
        self.public_url = ""  # what the server thinks it is called, when that is wrong

    # How it answers.

    def wrong_headers(self, asked: Asked) -> Iterator[str]:
        told = asked.headers.get("authorization")
        if told is not None and not told.startswith("token "):
            yield f"Authorization begins with {told.partition(' ')[0]}, not token"
        accept = asked.headers.get("accept", "")
        if not any(kind in accept for kind in ("application/json", "*/*")):
            yield f"Accept is {accept or 'missing'}, not application/json"

    @property
    def no_hooks(self) -> Told:
        return self.error(403, "user should be an owner or a collaborator with admin write")

    def authenticated(self, asked: Asked, operation: Operation) -> Token | None:
        token = self.tokens.get(asked.token)
        if "authorization" in asked.headers and token is None:
            raise Refusal(self.error(401, "invalid username, password or token"))
        if token is None and self.is_closed and operation.name != "version":
            raise Refusal(self.error(403, "Only signed in user is allowed to call APIs."))
        return token

    def repo_of(self, call: Call) -> Repo:
        """The repository of a path, as far as the credential reaches; else Gitea's refusal."""
        name = f"{call.parts['owner']}/{call.parts['repo']}"
        repo = self.find_repo(name)
        if repo is None and name.lower() in self.renamed:
            raise Refusal(self._moved(call, self.renamed[name.lower()]))
        if repo is None or repo.role(call.person) == "none":
            raise Refusal(self.error(404))
        self.allow(call)
        self._role(call, repo)
        return repo

    def allow(self, call: Call) -> None:
        """Hold the request against the token's scopes, as servers since 1.20 do."""
        is_write = call.asked.method != "GET"
        if call.token is None:
            if is_write or call.operation.name == "user":
                raise Refusal(self.error(401, "token is required"))
            return
        if self.at_least < SCOPES_SINCE:
            return
        what = "repository" if call.operation.name in REPOSITORY else "issue"
        what = {"user": "user", "organisation labels": "organization"}.get(
            call.operation.name, what
        )
        level = "write" if is_write else "read"
        if call.operation.name not in ANYBODY and not call.token.may(what, level):
            raise Refusal(self.error(403, self._lacks(call.token, f"{level}:{what}")))

    def _lacks(self, token: Token, scope: str) -> str:
        """As seen: Forgejo names what is required, Gitea 1.26 also what the token has."""
        words = "token does not have at least one of required scope(s)"
        if self.is_forgejo:
            return f"{words}: [{scope}]"
        given = ",".join(f"{level}:{what}" for what, level in (token.permissions or {}).items())
        return f"{words}, required=[{scope}], token scope={given}"

    def _role(self, call: Call, repo: Repo) -> None:
        if call.asked.method == "GET":
            return
        if repo.is_archived:
            raise Refusal(self.error(423, f"{repo.full_name} is archived"))
        role = repo.role(call.person)
        is_own = call.operation.name == "edit issue" and gitea_rules.is_author(call, repo)
        needs = call.operation.name in WRITES or call.operation.name == "edit issue"
        if needs and role not in ("write", "admin") and not is_own:
            raise Refusal(self.error(403, "user should have a permission to write to a repo"))

    def _moved(self, call: Call, repo: Repo) -> Told:
        old = re.escape(f"{call.parts['owner']}/{call.parts['repo']}")
        to = re.sub(f"/repos/{old}", f"/repos/{repo.full_name}", call.asked.target, count=1)
        return Told(307, raw=b"", headers={"location": to})

    def listed(self, call: Call, every: list[Any]) -> Told:
        """A list as an answer: one page, how many there are, and Link in the server's own name."""
        shown, page, last = self.page(call, every)
        told = Told(200, shown).with_headers(x_total_count=str(len(every)))
        links = [("next", page + 1), ("last", last)] if page < last else []
        links += [("first", 1), ("prev", page - 1)] if page > 1 else []
        url = (self.public_url or self.web) + call.asked.path
        lines = [
            f'<{url}?{urlencode({**call.query, "page": number})}>; rel="{rel}"'
            for rel, number in links
        ]
        return told.with_headers(link=",".join(lines)) if lines else told

    def gives_etags(self) -> bool:
        return self.etags

    # Errors.

    def error(self, status: int, message: str = "") -> Told:
        usual = {404: "The target couldn't be found.", 405: "Method Not Allowed"}
        return Told(
            status,
            {
                "message": message or usual.get(status, f"status {status}"),
                "url": f"{self.web}/api/swagger",
            },
        )

    def invalid(self, operation: Operation, wrong: list[str]) -> Told:
        return self.error(422, "; ".join(wrong))


def forgejo(now: Callable[[], datetime] | None = None, **more: Any) -> Gitea:
    """A Forgejo server."""
    return Gitea(now, forgejo=True, **more)
