"""One request, which can only go to the origin of its account."""

from __future__ import annotations

import json as json_text
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

import httpx

from trackers.account import Account
from trackers.errors import NotUnderstood, Refused
from trackers.http.cache import AnswerCache
from trackers.http.rules import Next, is_fit_token

AGENT = "labsite"
_REPOSITORY = re.compile(r"/repos/([^/]+/[^/]+)(?:/|$)")


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent. `place` names it in error texts: host, method and path, never the query.

    `repository` is the one that it was asked about, also where it has another name now.
    """

    account: Account
    method: str
    url: httpx.URL
    headers: httpx.Headers = field(repr=False)
    content: bytes | None = field(repr=False)
    repository: str = ""

    @classmethod
    def of(
        cls,
        account: Account,
        method: str,
        path: str,
        params: Mapping[str, str | int] | None,
        json: Any,
        headers: Mapping[str, str] | None,
        scheme: str,
    ) -> Request:
        """A request below the account's API root. Raises Refused for what cannot be sent."""
        url = _below(account, path, params or {})
        told = httpx.Headers(
            {
                "Accept": "application/json",
                "Accept-Encoding": "gzip",
                "User-Agent": AGENT,
                **(headers or {}),
            }
        )
        if account.token:
            if not is_fit_token(account.token):
                raise Refused(f"The token for {account.host} holds letters that no token has.")
            told["Authorization"] = f"{scheme} {account.token}"
        content = None
        if json is not None:
            content = json_text.dumps(json).encode()
            told["Content-Type"] = "application/json"
        named = _REPOSITORY.match(path)
        repository = unquote(named[1]).lower() if named else ""
        return cls(account, method, url, told, content, repository)

    @property
    def place(self) -> str:
        """The request in words."""
        path = self.url.raw_path.partition(b"?")[0].decode("ascii", "replace")
        return f"{self.account.host} ({self.method} {path[:200]})"

    @property
    def address(self) -> str:
        """Where it goes, without the query."""
        return str(self.url.copy_with(query=None))

    @property
    def key(self) -> str:
        """Its key in the cache: account, address and every header that the answer may depend on."""
        others = {name: text for name, text in self.headers.items() if name != "authorization"}
        told = json_text.dumps(sorted(others.items()))
        return AnswerCache.key(self.account.api, self.account.id, self.method, str(self.url), told)

    def for_httpx(self, more: Mapping[str, str], timeout: httpx.Timeout) -> httpx.Request:
        """The request as the library wants it, with more headers."""
        return httpx.Request(
            self.method,
            self.url,
            headers={**self.headers, **more},
            content=self.content,
            extensions={"timeout": timeout.as_dict()},
        )

    def moved(self, location: str) -> Request:
        """The same request at the address of a redirect. Raises Refused for another origin."""
        url = self._joined(location)
        if not is_same_origin(url, self.url):
            origin = f"{url.scheme}://{url.netloc.decode('ascii', 'replace')}"
            raise Refused(
                f"{self.place} sends on to {origin}. labsite does not send a token to another "
                "place than the one that was set up."
            )
        return replace(self, url=url)

    def handed_over(self, location: str, hosts: Collection[str]) -> Request | None:
        """Return the request for a redirect to a file store of the forge, without credentials.

        None where the address is of another host than these (each the end of a name, with its dot),
        or not over TLS.
        """
        url = self._joined(location)
        if (
            url.scheme != "https"
            or not url.host.endswith(tuple(hosts))
            or is_same_origin(url, self.url)
        ):
            return None
        headers = httpx.Headers({"Accept-Encoding": "gzip", "User-Agent": AGENT})
        return replace(self, url=url, headers=headers)

    def next_page(self, then: Next) -> Request:
        """The next page of a list.

        A forge that goes by two names may link to the other one: then only what its link asks is
        taken, and asked where this list is.
        """
        if not then.address:
            return replace(self, url=self.url.copy_set_param("page", str(then.number)))
        url = self._joined(then.address)
        if not is_same_origin(url, self.url):
            url = self.url.copy_with(query=url.query)
        return replace(self, url=url)

    def _joined(self, address: str) -> httpx.URL:
        try:
            url = self.url.join(address)
        except (httpx.InvalidURL, ValueError):
            raise NotUnderstood(f"{self.place} names an address that is none.") from None
        return url.copy_with(userinfo=b"", fragment=None)


def is_same_origin(one: httpx.URL, other: httpx.URL) -> bool:
    """Whether two addresses are the same server by scheme, name and port."""
    return (one.scheme, one.host, one.port) == (other.scheme, other.host, other.port)


def _below(account: Account, path: str, params: Mapping[str, str | int]) -> httpx.URL:
    """The address of a path under the API root; a path cannot climb out of it."""
    if not path.startswith("/") or {"..", "."} & set(path.split("/")) or set("?#\\") & set(path):
        raise Refused(f"{path[:200]!r} is no path that can be asked of {account.host}.")
    try:
        url = httpx.URL(account.api.rstrip("/") + path)
        url = url.copy_merge_params(params) if params else url
    except (httpx.InvalidURL, ValueError):
        raise Refused("The API cannot be asked: the address would be none.") from None
    if url.scheme not in ("http", "https") or not url.host or not account.host:
        raise Refused("The address of the API has to begin with https:// or http://.")
    return url.copy_with(userinfo=b"")
