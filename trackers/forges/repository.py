"""One repository on one forge, asked in the name of one account: its paths, permissions, refusals.

Whatever a root or a key says, it can never make another path than the one that was meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any
from urllib.parse import quote

from trackers.account import Account, Purpose
from trackers.errors import NotFound, NotUnderstood, Refused
from trackers.forges import reading
from trackers.http.client import Answer, Client
from trackers.http.rules import Page, after

_WORD = re.compile(r"[A-Za-z0-9._-]{1,100}")
_FORGE = re.compile(r"[0-9]{1,9}")
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository on one forge, as a root names it."""

    forge: str
    owner: str
    name: str

    def __str__(self) -> str:
        return f"{self.owner}/{self.name}"

    def path(self, *parts: str | int) -> str:
        """The path of something in this repository, each part quoted."""
        told = "".join(f"/{quote(str(part), safe='')}" for part in parts)
        return f"/repos/{quote(self.owner, safe='')}/{quote(self.name, safe='')}{told}"


def repository_of(root: str) -> Repository | None:
    """The repository that a root `<forge>/<owner>/<name>` names; None for any other text."""
    forge, _, rest = root.partition("/")
    owner, _, name = rest.partition("/")
    is_one = _FORGE.fullmatch(forge) and _is_word(owner) and _is_word(name)
    return Repository(forge, owner, name) if is_one else None


def number_of(key: str) -> int:
    """The number that a key stands for. Raises NotFound for anything else."""
    if not is_number(key):
        raise NotFound(f"There is no issue {key[:60]}.")
    return int(key)


def is_number(key: str) -> bool:
    """Whether a key can be an issue of a forge: a positive number without zeros before it."""
    return bool(_NUMBER.fullmatch(key))


def is_commit(text: str) -> bool:
    """Whether a text is the whole name of a commit."""
    return bool(_COMMIT.fullmatch(text))


def _is_word(part: str) -> bool:
    return bool(_WORD.fullmatch(part)) and part not in (".", "..")


class Need(StrEnum):
    """A permission that a call needs, in our words; each forge has its own."""

    SEE = "see the repository"
    READ_ISSUES = "read issues"
    WRITE_ISSUES = "write issues"
    READ_PULLS = "read pull requests"
    WRITE_PULLS = "open pull requests"
    READ_CHECKS = "read checks"
    READ_LOGS = "read the logs of checks"
    MERGE = "merge pull requests"
    HOOKS = "set webhooks up"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one kind of forge is called. `needs` names permissions as its own pages do."""

    name: str
    scheme: str
    headers: Mapping[str, str]
    size_name: str
    size: int
    needs: Mapping[Need, str]


GITHUB = Dialect(
    name="GitHub",
    scheme="Bearer",
    headers={"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"},
    size_name="per_page",
    size=100,
    needs={
        Need.SEE: "“Metadata: read”",
        Need.READ_ISSUES: "“Issues: read”",
        Need.WRITE_ISSUES: "“Issues: read and write”",
        Need.READ_PULLS: "“Pull requests: read”",
        Need.WRITE_PULLS: "“Pull requests: read and write”",
        Need.READ_CHECKS: "“Checks: read” and “Commit statuses: read”",
        Need.READ_LOGS: "“Actions: read”",
        Need.MERGE: "“Contents: read and write”",
        Need.HOOKS: "“Webhooks: read and write” and the role of an admin",
    },
)

GITEA = Dialect(
    name="Gitea",
    scheme="token",
    headers={"Accept": "application/json"},
    size_name="limit",
    size=50,
    needs={
        Need.SEE: "“read:repository”",
        Need.READ_ISSUES: "“read:issue”",
        Need.WRITE_ISSUES: "“write:issue”",
        Need.READ_PULLS: "“read:repository”",
        Need.WRITE_PULLS: "“write:repository”",
        Need.READ_CHECKS: "“read:repository”",
        Need.READ_LOGS: "“read:repository”",
        Need.MERGE: "“write:repository”",
        Need.HOOKS: "“write:repository” and the role of an admin",
    },
)


_ODD = (401, 404, 410)
_MOVED = (301, 302, 307, 308)
_AREAS = {"issues": "issues", "labels": "issues", "pulls": "pull requests"}


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of a list; `total` is the length of the list if the forge says it, `at` its clock."""

    items: list[Any]
    has_more: bool
    total: int | None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class RepositoryClient:
    """Calls the API of one repository; its errors say in plain words what is missing."""

    client: Client
    dialect: Dialect
    account: Account
    repository: Repository
    on_refused: Callable[[], None] = _nothing

    @property
    def host(self) -> str:
        """The forge, as people call it."""
        return self.account.host

    def get(
        self,
        *parts: str | int,
        purpose: Purpose,
        need: Need,
        params: Mapping[str, Any] | None = None,
    ) -> Any:
        """The data of one resource. Raises NotFound where only the resource is missing, not the repository."""
        answer = self._call("GET", parts, purpose=purpose, need=need, params=params)
        if answer.status in (404, 410) and parts:
            self._explain_missing(answer, parts, purpose, need)
        return answer.data

    def text(
        self, *parts: str | int, purpose: Purpose, need: Need, hosts: Collection[str] = ()
    ) -> str:
        """Read a resource that is plain text; `hosts` as in `Client.text`. Raises NotFound."""
        try:
            return self.client.text(
                self.account,
                self.repository.path(*parts),
                purpose=purpose,
                headers=self.dialect.headers,
                scheme=self.dialect.scheme,
                hosts=hosts,
            )
        except Refused as error:
            raise self._refused(error, need) from error

    def send(
        self,
        method: str,
        *parts: str | int,
        json: Any,
        need: Need,
        expect: Collection[int],
    ) -> Answer:
        """The answer to a write, whose status is one of `expect`; otherwise as `get`."""
        answer = self._act(method, parts, json, need, {*expect, *_MOVED})
        if answer.status in _MOVED:
            answer = self._renamed()._act(method, parts, json, need, expect)
        if answer.status in (404, 410) and answer.status not in expect:
            raise self._why_not(answer, parts, need)
        return answer

    def _act(
        self,
        method: str,
        parts: tuple[str | int, ...],
        json: Any,
        need: Need,
        expect: Collection[int],
    ) -> Answer:
        return self._call(method, parts, purpose=Purpose.WRITE, need=need, json=json, expect=expect)

    def every(
        self,
        *parts: str | int,
        purpose: Purpose,
        need: Need,
        params: Mapping[str, str | int] | None = None,
        within: str = "",
    ) -> list[Any]:
        """A list read to its end. `within` names it where it is inside of an object."""
        pages = self.client.pages(
            self.account,
            self.repository.path(*parts),
            purpose=purpose,
            params={**(params or {}), self.dialect.size_name: self.dialect.size},
            size=self.dialect.size,
            headers=self.dialect.headers,
            within=within,
            scheme=self.dialect.scheme,
        )
        try:
            return [item for page in pages for item in page]
        except NotFound:
            # The client does not tell 404 and 410 apart; asking once more does.
            self.get(*parts, purpose=purpose, need=need, params=params)
            raise
        except Refused as error:
            raise self._refused(error, need) from error

    def page(
        self,
        *parts: str | int,
        purpose: Purpose,
        need: Need,
        params: Mapping[str, str | int],
        number: int = 1,
        first: int = 0,
        size: int = 0,
    ) -> ListPage:
        """One page of a list, by its number; `first` is how many the first page held."""
        size = size or self.dialect.size
        asked = {**params, self.dialect.size_name: size}
        if number > 1:
            asked["page"] = number
        answer = self._call("GET", parts, purpose=purpose, need=need, params=asked)
        if answer.status in (404, 410):
            self._explain_missing(answer, parts, purpose, need)
        items = answer.data
        if not isinstance(items, list):
            raise NotUnderstood(f"{self.host} answered with something that is no list.")
        page = Page(
            number, len(items), first or len(items), size, answer.headers, answer.was_unchanged
        )
        return ListPage(items, after(page) is not None, total(answer.headers), date(answer.headers))

    def _call(
        self,
        method: str,
        parts: tuple[str | int, ...],
        *,
        purpose: Purpose,
        need: Need,
        params: Mapping[str, Any] | None = None,
        json: Any = None,
        expect: Collection[int] = (200,),
    ) -> Answer:
        try:
            answer = self.client.call(
                self.account,
                method,
                self.repository.path(*parts),
                purpose=purpose,
                params=params,
                json=json,
                headers=self.dialect.headers,
                expect={*expect, *_ODD},
                scheme=self.dialect.scheme,
            )
        except Refused as error:
            raise self._refused(error, need) from error
        self.accepted(answer)
        if answer.status in (404, 410) and not parts:
            raise self._hidden()
        return answer

    def outside(
        self, *parts: str, purpose: Purpose = Purpose.READ, params: Mapping[str, Any] | None = None
    ) -> Answer:
        """The answer of a resource outside of the repository, whatever its status.

        The first part is a path as it is, the others are quoted. Raises for a rate
        limit and for errors of the network.
        """
        path = parts[0] + "".join(f"/{quote(part, safe='')}" for part in parts[1:])
        return self.client.call(
            self.account,
            "GET",
            path,
            purpose=purpose,
            params=params,
            headers=self.dialect.headers,
            expect=(200, 400, 401, 404, 405, 410),
            scheme=self.dialect.scheme,
        )

    def _why_not(self, answer: Answer, parts: tuple[str | int, ...], need: Need) -> Refused:
        """Why a write was answered with 404 or 410. Raises NotFound when its object is missing."""
        if answer.status == 410:
            self._explain_missing(answer, parts, Purpose.READ, need)
        about = self.get(purpose=Purpose.READ, need=Need.SEE)
        if len(parts) > 1:
            self.get(*parts[:2], purpose=Purpose.READ, need=Need.SEE)
        elif reading.value(about, f"has_{parts[0]}") is False:
            return self._switched_off("Issues")
        return Refused(
            f"{self.host} does not let this account write to {self.repository}. "
            f"To {need.value}, it takes {self.dialect.needs[need]}.",
            answer.status,
        )

    def accepted(self, answer: Answer) -> None:
        """Raises Refused when the forge did not accept the token."""
        if answer.status == 401:
            said = reading.error_text(answer.data).rstrip(".") or "it gives no reason"
            raise self._not_accepted(f"{self.host} does not accept labsite's token: {said}.")

    def _not_accepted(self, text: str) -> Refused:
        self.on_refused()
        renew = "It may have expired or been revoked; a new one has to be given in the settings."
        return Refused(f"{text} {renew}", 401)

    def _renamed(self) -> RepositoryClient:
        """The same under the repository's new name, since the client never redirects a write by itself."""
        told = self.get(purpose=Purpose.READ, need=Need.SEE)
        owner, _, name = reading.text(told, "full_name").partition("/")
        found = repository_of(f"{self.repository.forge}/{owner}/{name}")
        if found is None or found == self.repository:
            raise Refused(f"{self.host} says that {self.repository} has moved, but not where.")
        return replace(self, repository=found)

    def _explain_missing(
        self, answer: Answer, parts: tuple[str | int, ...], purpose: Purpose, need: Need
    ) -> None:
        """Always raises: the area is switched off, the repository is hidden, or the resource is missing."""
        if answer.status == 410 and "delete" not in reading.error_text(answer.data).lower():
            raise self._switched_off("Issues")
        about = self.get(purpose=purpose, need=Need.SEE)
        area = _AREAS.get(str(parts[0]), "")
        if area and reading.value(about, f"has_{area.replace(' ', '_')}") is False:
            raise self._switched_off(area.capitalize())
        if len(parts) == 1:
            raise Refused(
                f"{self.host} shows {self.repository} to this account, but not its {parts[0]}. "
                f"To {need.value}, it takes {self.dialect.needs[need]}."
            )
        raise NotFound(f"{self.repository} on {self.host} has no such thing.")

    def _switched_off(self, area: str) -> Refused:
        return Refused(
            f"{area} are switched off in {self.repository} on {self.host}. They can be switched "
            "on in the settings of the repository."
        )

    def _hidden(self) -> Refused:
        return Refused(
            f"{self.host} does not show {self.repository} to this account. Either there is no "
            "repository of that name, or the account may not see it: it has to be given access "
            f"to the repository, and its token {self.dialect.needs[Need.SEE]}."
        )

    def _refused(self, error: Refused, need: Need) -> Refused:
        """The client's refusal, with the permission that is missing."""
        if error.status == 401:
            return self._not_accepted(str(error))
        if error.status != 403 or "archived" in str(error):
            return error
        takes = f"To {need.value}, it takes {self.dialect.needs[need]}."
        return Refused(f"{error} {takes}", error.status)


def total(headers: Mapping[str, str]) -> int | None:
    """The length of a list by X-Total-Count."""
    told = headers.get("x-total-count", "").strip()
    return int(told) if told.isascii() and told.isdigit() and len(told) < 10 else None


def date(headers: Mapping[str, str]) -> datetime | None:
    """The time of an answer by the clock of the forge."""
    try:
        told = parsedate_to_datetime(headers.get("date", ""))
    except ValueError:
        return None
    return told.astimezone(UTC) if told.tzinfo is not None else None
