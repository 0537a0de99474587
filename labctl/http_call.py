"""One HTTP request over a connection of its own; `http.client` alone would take longer to load than all else here."""

from __future__ import annotations

import _socket  # what `socket` is made of, which takes longer to load than all of Python

TYPE_CHECKING = False  # importing `typing` takes as long as Python itself
if TYPE_CHECKING:
    from collections.abc import Mapping

PORTS = {"http": 80, "https": 443}
PIECE = 65536
HEAD_BYTES = 65536
MOST_HEADERS = 200


class Broken(OSError):
    """What came back is no whole answer in HTTP."""


class Address:
    """Where labsite answers, out of the text of a URL. Raises ValueError for what is none."""

    def __init__(self, url: str) -> None:
        self.scheme, _, rest = url.partition("://")
        place, slash, path = rest.partition("/")
        self.place = place.rpartition("@")[2]
        self.prefix = (slash + path.partition("?")[0].partition("#")[0]).rstrip("/")
        host, _, port = self.place.rpartition(":")
        if not host or port.endswith("]"):  # no port; the colons of IPv6 stand in brackets
            host, port = self.place, ""
        self.host = host.strip("[]")
        if self.scheme not in PORTS or not self.host:
            raise ValueError(f"{url!r} is no address of a web server")
        self.port = int(port or PORTS[self.scheme])


def call(
    address: Address,
    method: str,
    path: str,
    headers: Mapping[str, str],
    data: bytes | None,
    timeout: float,
) -> tuple[int, bytes]:
    """Status and body of the answer. Raises OSError when there is none, or half of one."""
    lines = [f"{method} {address.prefix}{path} HTTP/1.1", f"Host: {address.place}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += ["Connection: close"]
    if data is not None or method != "GET":
        lines += [f"Content-Length: {len(data or b'')}"]
    if any("\r" in one or "\n" in one for one in lines):
        raise Broken("a line break cannot be sent in the head of a request")
    head = "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")
    connect = _connect_securely if address.scheme == "https" else _connect
    connection = connect(address, timeout)
    try:
        connection.sendall(head + (data or b""))
        return read_answer(connection)
    finally:
        connection.close()


def _connect(address: Address, timeout: float) -> _socket.socket:
    """A connection to the first of the host's addresses that takes one."""
    refusal = OSError("the host has no address")
    places = _socket.getaddrinfo(address.host, address.port, 0, _socket.SOCK_STREAM)
    for family, kind, protocol, _, place in places:
        connection = _socket.socket(family, kind, protocol)
        try:
            connection.settimeout(timeout)
            connection.connect(place)
        except OSError as error:
            connection.close()
            refusal = error
        else:
            return connection
    raise refusal


def _connect_securely(address: Address, timeout: float) -> _socket.socket:
    import socket
    import ssl

    connection = socket.create_connection((address.host, address.port), timeout)
    try:
        return ssl.create_default_context().wrap_socket(connection, server_hostname=address.host)
    except BaseException:
        connection.close()
        raise


class _Reader:
    """Reads lines and known lengths from a connection. Raises Broken when it ends before."""

    def __init__(self, connection: _socket.socket) -> None:
        self._connection = connection
        self._data = bytearray()

    def line(self) -> str:
        while (end := self._data.find(b"\n")) < 0:
            if len(self._data) > HEAD_BYTES:
                raise Broken("a line of the answer is too long")
            self._more()
        found = bytes(self._data[:end])
        del self._data[: end + 1]
        return found.decode("latin-1").rstrip("\r")

    def take(self, length: int) -> bytes:
        while len(self._data) < length:
            self._more()
        found = bytes(self._data[:length])
        del self._data[:length]
        return found

    def rest(self) -> bytes:
        while piece := self._connection.recv(PIECE):
            self._data += piece
        return bytes(self._data)

    def _more(self) -> None:
        piece = self._connection.recv(PIECE)
        if not piece:
            raise Broken("the answer ended too early")
        self._data += piece


def read_answer(connection: _socket.socket) -> tuple[int, bytes]:
    """Status and body of what comes over a connection. Raises OSError."""
    reader = _Reader(connection)
    status, headers = _head(reader)
    while status < 200:  # what comes before the answer says only that it will come
        status, headers = _head(reader)
    if status in (204, 304):
        return status, b""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return status, _chunks(reader)
    length = headers.get("content-length")
    if length is None:
        return status, reader.rest()
    if not length.isdecimal():
        raise Broken("the answer has no length that can be read")
    return status, reader.take(int(length))


def _head(reader: _Reader) -> tuple[int, dict[str, str]]:
    version, _, rest = reader.line().partition(" ")
    if not version.startswith("HTTP/1.") or not rest[:3].isdecimal():
        raise Broken("something answered that does not speak HTTP")
    headers: dict[str, str] = {}
    while line := reader.line():
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
        if len(headers) > MOST_HEADERS:
            raise Broken("the head of the answer does not end")
    return int(rest[:3]), headers


def _chunks(reader: _Reader) -> bytes:
    found = bytearray()
    while True:
        text = reader.line().partition(";")[0].strip()
        try:
            size = int(text, 16)
        except ValueError as error:
            raise Broken("a piece of the answer has no length") from error
        if size < 0:
            raise Broken("a piece of the answer has no length")
        if size == 0:
            while reader.line():
                pass
            return bytes(found)
        found += reader.take(size)
        reader.line()
