"""The network below the client: connection pools, TLS, proxies, and a deadline for each exchange.

httpx does the HTTP. Three things are added, because it has no option for them:

- a total deadline. Its timeouts begin anew with every read, so a server that sends one byte now
  and then, even within the headers, holds a call for ever. `_Backend` ends each wait on the
  socket at the deadline of the call. httpcore takes a network backend; httpx does not pass one on.
- the machine's own list of authorities, as git has it. httpx trusts certifi's list alone.
- a proxy that cannot be used fails the calls that need it, not the making of the client.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import getproxies_environment, proxy_bypass

import certifi
import httpcore
import httpx

from trackers.http import body
from trackers.http.request import Request
from trackers.http.rules import Trouble

CONNECT_SECONDS = 3.0
KEEP_ALIVE_SECONDS = 5.0
MOST_CONNECTIONS = 32
MOST_KEPT_ALIVE = 8


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer, as bytes."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


class Untrusted(httpx.ConnectError):
    """The certificate is not one that this machine trusts."""


class Sender:
    """Sends one request by a transport: no cookies, no redirects, no logs."""

    def __init__(self, transport: httpx.BaseTransport, steady: Callable[[], float]) -> None:
        self._transport = transport
        self._steady = steady

    def send(
        self, request: Request, more: Mapping[str, str], deadline: float
    ) -> Response | Trouble:
        """The answer, or why there is none. Errors do not leave: their frames hold the token."""
        left = max(0.001, deadline - self._steady())
        timeout = httpx.Timeout(left, connect=min(CONNECT_SECONDS, left))
        try:
            response = self._transport.handle_request(request.for_httpx(more, timeout))
            try:
                return self._whole(response, deadline, has_body=request.method != "HEAD")
            finally:
                response.close()
        except httpx.HTTPError as error:
            return next(kind for types, kind in _TROUBLES if isinstance(error, types))

    def close(self) -> None:
        """Close every connection."""
        self._transport.close()

    def _whole(
        self, response: httpx.Response, deadline: float, *, has_body: bool
    ) -> Response | Trouble:
        """Read to the end even where nothing is to come: only then is the connection used again."""
        headers = dict(response.headers)
        is_empty = not has_body or response.status_code in (204, 304)
        if not isinstance(response.stream, httpx.SyncByteStream):
            return Trouble.GARBLED
        data = body.read(
            response.stream,
            "" if is_empty else headers.get("content-encoding", ""),
            lambda: self._steady() > deadline,
            body.MOST_BYTES,
        )
        if isinstance(data, Trouble):
            return data
        return Response(response.status_code, headers, b"" if is_empty else data)


_TROUBLES: tuple[tuple[type[Exception] | tuple[type[Exception], ...], Trouble], ...] = (
    (Untrusted, Trouble.UNTRUSTED),
    (httpx.ProxyError, Trouble.NO_WAY),
    ((httpx.ConnectError, httpx.ConnectTimeout), Trouble.UNREACHED),
    (httpx.TimeoutException, Trouble.SLOW),
    (httpx.HTTPError, Trouble.DROPPED),
)


class NetworkTransport(httpx.BaseTransport):
    """Sends over the network. A request's read timeout is the time for its whole exchange.

    The environment's proxies are used as git uses them, so that what can be cloned can be asked:
    `https_proxy`, `http_proxy`, `all_proxy`, `no_proxy`.
    """

    def __init__(self, steady: Callable[[], float] = time.monotonic) -> None:
        self._backend = _Backend(steady)
        self._trust = _trust()
        self._proxies = {name: url for name, url in getproxies_environment().items() if url}
        self._pools: dict[str, _Pool] = {}
        self._lock = threading.Lock()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """The answer, its body unread. Raises httpx's errors."""
        self._backend.begin(request.extensions["timeout"]["read"])
        proxy = self._proxy(request.url)
        try:
            return self._pool(proxy).handle_request(request)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise Untrusted("certificate") from None
            if proxy:
                raise httpx.ProxyError("not connected") from None
            raise

    def close(self) -> None:
        """Close every connection."""
        with self._lock:
            pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            pool.close()

    def _proxy(self, url: httpx.URL) -> str:
        place = f"{url.host}:{url.port}" if url.port else url.host
        if not self._proxies or proxy_bypass(place):
            return ""
        return self._proxies.get(url.scheme) or self._proxies.get("all", "")

    def _pool(self, proxy: str) -> _Pool:
        with self._lock:
            if proxy not in self._pools:
                self._pools[proxy] = _Pool(self._new_pool(proxy))
            return self._pools[proxy]

    def _new_pool(self, proxy: str) -> httpcore.ConnectionPool:
        options: dict[str, Any] = {
            "ssl_context": self._trust,
            "max_connections": MOST_CONNECTIONS,
            "max_keepalive_connections": MOST_KEPT_ALIVE,
            "keepalive_expiry": KEEP_ALIVE_SECONDS,
            "network_backend": self._backend,
        }
        if not proxy:
            return httpcore.ConnectionPool(**options)
        try:
            found = httpx.Proxy(proxy if "://" in proxy else f"http://{proxy}")
        except (httpx.InvalidURL, ValueError):
            raise httpx.ProxyError("no address") from None
        if found.url.scheme not in ("http", "https") or not found.url.host:
            raise httpx.ProxyError("only http and https proxies are used")
        return httpcore.HTTPProxy(str(found.url), proxy_auth=found.raw_auth, **options)


class _Pool(httpx.HTTPTransport):
    """httpx's own transport, over a pool that was made elsewhere."""

    def __init__(self, pool: httpcore.ConnectionPool) -> None:
        self._pool = pool


def _trust() -> ssl.SSLContext:
    """The machine's own list of authorities; a list that is shipped where it has none."""
    context = ssl.create_default_context()
    paths = ssl.get_default_verify_paths()
    folder = Path(paths.capath) if paths.capath else None
    has_folder = folder is not None and folder.is_dir() and any(folder.iterdir())
    if not (paths.cafile or has_folder):
        context.load_verify_locations(certifi.where())
    return context


class _Backend(httpcore.SyncBackend):
    """Ends each wait at the deadline of the call that the thread is in."""

    def __init__(self, steady: Callable[[], float]) -> None:
        self._steady = steady
        self._call = threading.local()

    def begin(self, seconds: float) -> None:
        """From here on this thread waits no longer than that."""
        self._call.deadline = self._steady() + seconds

    def left(self, timeout: float | None) -> float:
        """The seconds that may be waited; never nothing, which would mean not to block at all."""
        left = float(self._call.deadline) - self._steady()
        return max(0.001, left if timeout is None else min(timeout, left))

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """The first address that answers. Given a name, Python would grant each one `timeout`."""
        trouble: Exception = httpcore.ConnectError("no address")
        for address in _addresses(host, port):
            try:
                left = self.left(timeout)
                stream = super().connect_tcp(address, port, left, local_address, socket_options)
                return _Stream(stream, self)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                trouble = error
        raise trouble


def _addresses(host: str, port: int) -> list[str]:
    """What the resolver says. It has no time limit of its own; a call may end late by it."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise httpcore.ConnectError("unknown host") from None
    return list(dict.fromkeys(str(place[0]) for *_, place in found))


class _Stream(httpcore.NetworkStream):
    """A connection whose every wait ends at the deadline of the call that uses it."""

    def __init__(self, stream: httpcore.NetworkStream, backend: _Backend) -> None:
        self._stream = stream
        self._backend = backend

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._backend.left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._backend.left(timeout))

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        left = self._backend.left(timeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, left), self._backend)

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
