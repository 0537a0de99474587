"""The core of both doubles: one strict way from a request to an answer, with log and violations."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import httpx

from tests.trackers.forge import actions, rulesets
from tests.trackers.forge.asking import Asked, Dropped, Logged, Refusal, Told
from tests.trackers.forge.facts import Facts, Operation
from tests.trackers.forge.faults import Faults
from tests.trackers.forge.repo import Repo
from tests.trackers.forge.server import serving
from tests.trackers.forge.shelf import Shelf
from tests.trackers.forge.state import Item, Person, Token

# An empty one of these asks what may be done: 403 who may not, 422 who may. Nothing is made.
PROBED = ("create issue", "create pull")


@dataclass(frozen=True)
class Call:
    """One understood request: which operation, by whom, on what."""

    asked: Asked
    operation: Operation
    parts: Mapping[str, str]
    token: Token | None
    body: dict[str, Any]

    @property
    def person(self) -> Person | None:
        return self.token.person if self.token else None

    @property
    def query(self) -> Mapping[str, str]:
        return self.asked.query

    def number(self, name: str, default: int) -> int:
        """A number of the query; what is none counts as not said."""
        told = self.query.get(name, "")
        return int(told) if told.isascii() and told.isdigit() else default


Rule = Callable[[Any, Call], Told]


class Double(Shelf):
    """A forge in this process. Subclasses say how GitHub and Gitea word things."""

    style: str
    prefix: str
    most_per_page: int
    usual_per_page: int
    page_size: str
    has_actions = True  # whether its API tells of jobs
    max_items = 0  # what a server gives at most when that is less than it is documented to
    nullable: frozenset[str] = frozenset()
    rules: Mapping[str, Rule]

    def __init__(self, now: Callable[[], datetime] | None = None) -> None:
        super().__init__(now)
        self.facts = Facts(self.style, self.nullable)
        self.faults = Faults()
        self.log: list[Logged] = []
        self.violations: list[str] = []
        self.web = f"https://{self.style}.test"
        self.lock = threading.RLock()

    @property
    def api(self) -> str:
        """The root URL of the API, for an Account."""
        return self.web + self.prefix

    # How requests come in.

    def transport(self) -> httpx.MockTransport:
        """For an HTTP client in this process; asks no network."""
        return httpx.MockTransport(self._by_httpx)

    @contextmanager
    def serving(self) -> Iterator[str]:
        """The same forge on a real socket of this machine; gives the root URL of the API."""
        before = self.web
        with serving(self._served) as self.web:
            try:
                yield self.api
            finally:
                self.web = before

    def _by_httpx(self, request: httpx.Request) -> httpx.Response:
        asked = Asked(
            request.method,
            request.url.raw_path.decode(),
            {name.lower(): value for name, value in request.headers.items()},
            request.content,
        )
        if str(request.url).partition("?")[0].startswith(self.web) is False:
            self.violations.append(f"{request.url.host} was asked instead of {self.web}")
        try:
            told = self.answer(asked)
        except Dropped:
            raise httpx.RemoteProtocolError("Server disconnected", request=request) from None
        return httpx.Response(told.status, headers=dict(told.headers), content=told.pieces())

    def _served(self, asked: Asked) -> Told:
        try:
            return self.answer(asked)
        except Exception as exc:
            if not isinstance(exc, Dropped):
                self.violate(asked, f"the double broke: {exc!r}")
            raise Dropped from exc

    def answer(self, asked: Asked) -> Told:
        """The answer to one request, logged; raises Dropped when the connection ends."""
        with self.lock:
            fault = self.faults.next(asked)
            if fault and fault.instead:
                self._strict_headers(asked)
                try:
                    told = fault.instead(asked)
                except Dropped:
                    self._note(asked, 0, "", is_counted=False)
                    raise
                self._note(asked, told.status, "", is_counted=False)
                return self._typed(told)
            told, name = self._answer(asked)
            is_counted = self.is_counted(asked, told)
            told = self._typed(self.finish(asked, told, is_counted))
            self._note(asked, told.status, name, is_counted=is_counted)
            return fault.change(asked, told) if fault and fault.change else told

    # How they are understood.

    def _answer(self, asked: Asked) -> tuple[Told, str]:
        self._strict_headers(asked)
        if not asked.path.startswith(self.prefix + "/"):
            self.violate(asked, "is outside the API")
            return self.error(404), ""
        path = self.canonical(asked.raw_path[len(self.prefix) :])
        operation, parts, is_known = self.facts.find(asked.method, path)
        if operation is None:
            told = self.special(asked, path)
            if told is None:
                self.violate(asked, "unknown method" if is_known else "unknown path")
            return told or self.error(405 if is_known else 404), ""
        try:
            told = self._carried_out(asked, operation, parts)
        except Refusal as refusal:
            told = refusal.told
        return told, operation.name

    def _carried_out(self, asked: Asked, operation: Operation, parts: Mapping[str, str]) -> Told:
        token = self.authenticated(asked, operation)
        for wrong in self.facts.wrong_query(operation, asked.query):
            self.violate(asked, wrong)
        body = self._body(asked, operation)
        told = self.rules[operation.name](self, Call(asked, operation, parts, token, body))
        if told.status == operation.status and operation.answer is not None:
            for wrong in self.facts.wrong(operation.answer, told.data, "answer"):
                self.violate(asked, f"the double drifted: {wrong}")
        return self._conditional(asked, told)

    def _body(self, asked: Asked, operation: Operation) -> dict[str, Any]:
        if operation.body is None:
            if asked.body:
                self.violate(asked, "has a body")
            return {}
        if not asked.headers.get("content-type", "").startswith("application/json"):
            self.violate(asked, "is not sent as application/json")
        try:
            body = json.loads(asked.body or b"{}")
        except ValueError:
            self.violate(asked, "has a body that is no JSON")
            raise Refusal(self.error(400, "Problems parsing JSON")) from None
        if body == {} and operation.name in PROBED:
            return {}
        wrong = list(self.facts.wrong(operation.body, body, "body"))
        for one in wrong:
            self.violate(asked, one)
        if not isinstance(body, dict) or any(not w.endswith("is unknown") for w in wrong):
            raise Refusal(self.invalid(operation, wrong))
        return body

    def _conditional(self, asked: Asked, told: Told) -> Told:
        if asked.method != "GET" or told.status != 200 or not self.gives_etags():
            return told
        words = told.body + asked.token.encode() + asked.headers.get("accept", "").encode()
        etag = f'"{hashlib.sha256(words).hexdigest()[:32]}"'
        told = told.with_headers(etag=f"W/{etag}")
        known = [one.strip() for one in asked.headers.get("if-none-match", "").split(",")]
        if etag in [one.removeprefix("W/") for one in known]:
            return replace(told, status=304, data=None)
        return told

    def _typed(self, told: Told) -> Told:
        kind = "application/json; charset=utf-8"
        date = format_datetime(self.now().astimezone(UTC), usegmt=True)
        return replace(told, headers={"content-type": kind, "date": date, **told.headers})

    def _strict_headers(self, asked: Asked) -> None:
        for wrong in self.wrong_headers(asked):
            self.violate(asked, wrong)

    def _note(self, asked: Asked, status: int, operation: str, *, is_counted: bool) -> None:
        known = self.tokens.get(asked.token)
        self.log.append(
            Logged(
                asked.method,
                asked.path[len(self.prefix) :],
                asked.query,
                status,
                is_counted,
                "if-none-match" in asked.headers,
                known.person.login if known else "",
                operation,
            )
        )

    def violate(self, asked: Asked, what: str) -> None:
        """Note what a strict reader of the description objects to."""
        self.violations.append(f"{asked.method} {asked.path}: {what}")

    # What tests ask.

    def calls(self, path: str = "", method: str = "") -> list[Logged]:
        """The log's lines about a part of a path."""
        return [line for line in self.log if path in line.path and method in ("", line.method)]

    def check(self) -> None:
        """Fail a test whose product broke a rule of the description."""
        assert self.violations == [], "\n".join(self.violations)

    # Paging, alike on both forges.

    def page(self, call: Call, every: list[Any]) -> tuple[list[Any], int, int]:
        """One page of a list, its number, and how many pages there are."""
        asked_for = call.number(self.page_size, self.usual_per_page)
        if asked_for > self.most_per_page:
            self.violate(call.asked, f"{self.page_size} is over {self.most_per_page}")
        size = min(asked_for or self.usual_per_page, self.max_items or self.most_per_page)
        page = max(1, call.number("page", 1))
        return every[(page - 1) * size : page * size], page, max(1, -(-len(every) // size))

    # What the forges do each in their way.

    def canonical(self, path: str) -> str:
        """The path as the description has it."""
        return path

    def special(self, asked: Asked, path: str) -> Told | None:
        """Answers outside the description: jobs and their logs; rules on branches; webhooks, for admins (from memory)."""
        of_job = actions.answer(self, asked, path) or rulesets.answer(self, asked, path)
        if of_job is not None:
            return of_job
        found = re.fullmatch(r"/repos/([^/]+/[^/]+)/hooks(?:/(\d+))?", path)
        repo = self.find_repo(found[1]) if found else None
        if found is None or repo is None:
            return None
        token = self.tokens.get(asked.token)
        if token is None or repo.role(token.person) != "admin":
            return self.no_hooks
        if asked.method == "GET":
            return Told(200, repo.hooks)
        if asked.method == "DELETE":
            repo.hooks[:] = [one for one in repo.hooks if str(one["id"]) != found[2]]
            return Told(204)
        body = json.loads(asked.body)
        shown = {key: value for key, value in body["config"].items() if key != "secret"}
        repo.hooks.append({**body, "id": self.next_id(), "config": shown})
        return Told(201, repo.hooks[-1])

    @property
    def no_hooks(self) -> Told:
        """What somebody hears who is no admin."""
        return self.error(404)

    def is_counted(self, asked: Asked, told: Told) -> bool:
        """Whether the request cost quota."""
        return False

    def finish(self, asked: Asked, told: Told, is_counted: bool) -> Told:
        """Headers that every answer has."""
        return told

    @abstractmethod
    def gives_etags(self) -> bool: ...

    @abstractmethod
    def wrong_headers(self, asked: Asked) -> Iterator[str]: ...

    @abstractmethod
    def authenticated(self, asked: Asked, operation: Operation) -> Token | None: ...

    @abstractmethod
    def error(self, status: int, message: str = "") -> Told: ...

    @abstractmethod
    def invalid(self, operation: Operation, wrong: list[str]) -> Told: ...


def item_of(repo: Repo, told: str) -> Item | None:
    """The issue or pull request of a number in a path."""
    return repo.items.get(int(told)) if told.isascii() and told.isdigit() else None


def stamp(at: datetime | None) -> str | None:
    """A time as both forges write it."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ") if at else None


def unpadded(text: str) -> bytes:
    """A part of a JSON web token, decoded."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
