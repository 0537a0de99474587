"""The connection to real forges: pooled, TLS verified, and every wait on the network bounded.

Timeouts of an HTTP library begin anew with each piece that arrives, so a server that sends one
byte now and then holds a call for ever. Here each wait also ends at the call's own deadline.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import getproxies_environment, proxy_bypass

import certifi
import httpcore
import httpx

CONNECT_SECONDS = 3.0
KEEP_ALIVE_SECONDS = 5.0
MOST_CONNECTIONS = 32
MOST_KEPT_ALIVE = 8
DEADLINE = "labsite_deadline"


class Untrusted(httpx.ConnectError):
    """The certificate is not one that this machine trusts."""


class Wire(httpx.BaseTransport):
    """Sends over the network. A request says in its extensions when it has to be over (steady).

    The environment's proxies are used as git uses them, so that what can be cloned can be asked:
    `https_proxy`, `http_proxy`, `all_proxy`, `no_proxy`.
    """

    def __init__(self, steady: Callable[[], float] = time.monotonic) -> None:
        self._steady = steady
        self._proxies = _proxies()
        self._trust = _trust()
        self._pools: dict[str, httpcore.ConnectionPool] = {}
        self._lock = threading.Lock()
        self._backend = _Backend(steady)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        left = self._backend.until(request.extensions[DEADLINE])
        if not isinstance(request.stream, httpx.SyncByteStream):
            raise httpx.UnsupportedProtocol("only plain bodies are sent")
        proxy = self._proxy(request.url)
        try:
            answer = self._pool(proxy).handle_request(
                httpcore.Request(
                    method=request.method,
                    url=httpcore.URL(
                        scheme=request.url.raw_scheme,
                        host=request.url.raw_host,
                        port=request.url.port,
                        target=request.url.raw_path,
                    ),
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions={
                        "timeout": {
                            "connect": min(CONNECT_SECONDS, left),
                            "read": left,
                            "write": left,
                            "pool": left,
                        }
                    },
                )
            )
        except _HEARD as error:
            raise _translated(error, proxy) from None
        return httpx.Response(answer.status, headers=answer.headers, stream=_Body(answer))

    def close(self) -> None:
        """Close every connection."""
        with self._lock:
            pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            pool.close()

    def _pool(self, proxy: str) -> httpcore.ConnectionPool:
        with self._lock:
            if proxy not in self._pools:
                self._pools[proxy] = self._new_pool(proxy)
            return self._pools[proxy]

    def _proxy(self, url: httpx.URL) -> str:
        place = f"{url.host}:{url.port}" if url.port else url.host
        if not self._proxies or proxy_bypass(place):
            return ""
        return self._proxies.get(url.scheme) or self._proxies.get("all", "")

    def _new_pool(self, proxy: str) -> httpcore.ConnectionPool:
        more: dict[str, Any] = {
            "ssl_context": self._trust,
            "max_connections": MOST_CONNECTIONS,
            "max_keepalive_connections": MOST_KEPT_ALIVE,
            "keepalive_expiry": KEEP_ALIVE_SECONDS,
            "network_backend": self._backend,
        }
        if not proxy:
            return httpcore.ConnectionPool(**more)
        try:
            found = httpx.Proxy(proxy if "://" in proxy else f"http://{proxy}")
        except (httpx.InvalidURL, ValueError):
            raise httpx.ProxyError("no address") from None
        if found.url.scheme not in ("http", "https") or not found.url.host:
            raise httpx.ProxyError("only http and https proxies are used")
        where = httpcore.URL(
            scheme=found.url.raw_scheme,
            host=found.url.raw_host,
            port=found.url.port,
            target=found.url.raw_path,
        )
        return httpcore.HTTPProxy(where, proxy_auth=found.raw_auth, **more)


def _proxies() -> dict[str, str]:
    return {name: value for name, value in getproxies_environment().items() if value}


def _trust() -> ssl.SSLContext:
    """The machine's own list of authorities, as git has it; a list that is shipped where it has none."""
    context = ssl.create_default_context()
    paths = ssl.get_default_verify_paths()
    folder = Path(paths.capath) if paths.capath else None
    has_folder = folder is not None and folder.is_dir() and any(folder.iterdir())
    if not (paths.cafile or has_folder):
        context.load_verify_locations(certifi.where())
    return context


_HEARD = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
)


def _translated(error: Exception, proxy: str = "") -> httpx.TransportError:
    """The same trouble in httpx's words, without the original: its frames hold headers."""
    if isinstance(error, httpcore.ProxyError):
        return httpx.ProxyError("refused")
    if isinstance(error, httpcore.ConnectTimeout | httpcore.ConnectError):
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return Untrusted("certificate")
        return httpx.ProxyError("no way") if proxy else httpx.ConnectError("not connected")
    if isinstance(error, httpcore.TimeoutException):
        return httpx.ReadTimeout("too slow")
    return httpx.RemoteProtocolError("broke off")


class _Body(httpx.SyncByteStream):
    """The answer's bytes as they come; closing early drops the connection."""

    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._answer.iter_stream()
        except _HEARD as error:
            raise _translated(error) from None

    def close(self) -> None:
        self._answer.close()


class _Backend(httpcore.NetworkBackend):
    """Connects and reads; the deadline is that of the call which this thread is in."""

    def __init__(self, steady: Callable[[], float]) -> None:
        self._steady = steady
        self._plain = httpcore.SyncBackend()
        self._thread = threading.local()

    def until(self, deadline: float) -> float:
        """From here on this thread waits no longer than that. Returns the seconds left."""
        self._thread.deadline = deadline
        return self.left(None)

    def left(self, timeout: float | None) -> float:
        left = float(self._thread.deadline) - self._steady()
        return max(0.001, left if timeout is None else min(timeout, left))

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """The first address that answers; one after the other, within one deadline."""
        trouble: Exception = httpcore.ConnectError("no address")
        for address in _addresses(host, port):
            try:
                stream = self._plain.connect_tcp(
                    address, port, self.left(timeout), local_address, socket_options
                )
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

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        left = self._backend.left(timeout)
        stream = self._stream.start_tls(ssl_context, server_hostname, left)
        return _Stream(stream, self._backend)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
