"""The body of an answer: read and decompressed within a limit, then parsed as JSON."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable
from typing import Any

from trackers.http.rules import Trouble

MOST_BYTES = 10 * 1024 * 1024
LONGEST_SAYING = 300
NONSENSE = object()


def read(
    chunks: Iterable[bytes], encoding: str, is_late: Callable[[], bool], most: int
) -> bytes | Trouble:
    """The decompressed body, or why it cannot be had.

    httpx would decompress whole chunks: one of 64 KiB, as it reads them, grows to 66 MB. Here what
    a small answer could grow to is never held in memory.
    """
    encoding = encoding.strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip"):
        return Trouble.GARBLED
    gzip = zlib.decompressobj(zlib.MAX_WBITS | 16) if encoding.endswith("gzip") else None
    data = bytearray()
    for chunk in chunks:
        if is_late():
            return Trouble.SLOW
        try:
            data += gzip.decompress(chunk, most + 1 - len(data)) if gzip else chunk
        except zlib.error:
            return Trouble.GARBLED
        if len(data) > most:
            return Trouble.TOO_BIG
    return bytes(data)


def understood(body: bytes) -> Any:
    """The data of a JSON body, None for an empty one, NONSENSE for invalid JSON.

    Not an error: a decoder's error holds the whole text, which may hold a secret.
    """
    if not body.strip():
        return None
    try:
        data = json.loads(body, parse_constant=_no_number)
        return _storable(data) if b"\\u" in body else data
    except (ValueError, RecursionError):
        return NONSENSE


def _no_number(text: str) -> Any:
    raise ValueError(text)


def _storable(data: Any) -> Any:
    """The same data without lone surrogates and NUL, which no database stores."""
    if isinstance(data, str):
        return data.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
    if isinstance(data, list):
        return [_storable(each) for each in data]
    if isinstance(data, dict):
        return {_storable(name): _storable(each) for name, each in data.items()}
    return data


def without(body: bytes, secret: str) -> bytes:
    """An error's body without the credential, since its text is shown and a forge may repeat it."""
    return body.replace(secret.encode(), b"[secret]") if secret else body


def saying(data: Any, secret: str) -> str:
    """The error message of an answer, as one short line without the credential."""
    if not isinstance(data, dict):
        return ""
    errors = data.get("errors")
    more = errors if isinstance(errors, list) else []
    texts = [data.get("message")]
    texts += [each.get("message") if isinstance(each, dict) else each for each in more]
    told = dict.fromkeys(text.strip() for text in texts if isinstance(text, str) and text.strip())
    line = " ".join(" ".join(told).split())
    line = "".join(letter for letter in line if letter.isprintable())
    if secret:
        line = line.replace(secret, "[secret]")
    return line[:LONGEST_SAYING].rstrip(".")
