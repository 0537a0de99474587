"""A cache of answers on disk, each with the validator (ETag or Last-Modified) to ask again with.

One file an answer, packed, in a folder of the state folder; readable by nobody else. A file that
cannot be read, was cut short or changed is as good as none. Nothing here is ever trusted unasked: the
forge is asked each time, and only its "not modified" brings a kept answer back.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import threading
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from trackers.http.body import MOST_BYTES

VERSION = 1
MOST_FILES = 2000
MOST_TOTAL = 100 * 1024 * 1024
MOST_EACH = MOST_BYTES
LONGEST_UNUSED = 30 * 24 * 3600.0
LONGEST_HEAD = 16 * 1024
KEPT_HEADERS = ("link", "x-total-count")


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """One cached answer: the validator header to ask with, and the answer to use after a 304."""

    ask_with: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


class AnswerCache:
    """Thread-safe, and shared by processes. Without a folder nothing is stored."""

    def __init__(
        self, folder: Path | None, most_files: int = MOST_FILES, most_total: int = MOST_TOTAL
    ) -> None:
        self._folder = folder
        self._most_files = most_files
        self._most_total = most_total
        self._lock = threading.Lock()
        self._files = most_files
        self._total = 0

    @staticmethod
    def key(*parts: str) -> str:
        """The name of an answer: account, address and all else that it depends on."""
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def get(self, key: str) -> CachedAnswer | None:
        """The cached answer, or None when there is none or its file is damaged."""
        if self._folder is None:
            return None
        path = self._folder / key
        try:
            with path.open("rb") as file:
                kept = _read(file.readline(LONGEST_HEAD), file.read(MOST_EACH + 1))
            os.utime(path)
        except OSError:
            return None
        return kept

    def put(self, key: str, kept: CachedAnswer) -> None:
        """Store an answer; the least recently used ones are evicted. Errors of the disk are ignored."""
        if self._folder is None or len(kept.body) > MOST_EACH:
            return
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            size = _write(self._folder, key, kept)
            with self._lock:
                self._files += 1
                self._total += size
                if self._files > self._most_files or self._total > self._most_total:
                    self._tidy(self._folder)

    def drop(self, key: str) -> None:
        """Remove an answer that could not be used."""
        if self._folder is not None:
            with suppress(OSError):
                (self._folder / key).unlink()

    def clear(self) -> None:
        """Remove everything, when an account is gone: file names do not tell whose an answer is."""
        if self._folder is not None and self._folder.is_dir():
            with self._lock, suppress(OSError):
                for path in list(self._folder.iterdir()):
                    path.unlink(missing_ok=True)
                self._files = self._total = 0

    def _tidy(self, folder: Path) -> None:
        """Count what is there, and evict the least recently used down to nine tenths of the limits.

        What was not asked for in a month before the newest goes in any case.
        """
        found = []
        with os.scandir(folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    facts = entry.stat(follow_symlinks=False)
                    found.append((facts.st_mtime, facts.st_size, entry.path))
        found.sort(reverse=True)
        self._files = self._total = 0
        is_full = False
        for used_at, size, path in found:
            is_full = is_full or (
                self._files + 1 > self._most_files * 0.9
                or self._total + size > self._most_total * 0.9
                or found[0][0] - used_at > LONGEST_UNUSED
            )
            if is_full:
                with suppress(OSError):
                    Path(path).unlink()
            else:
                self._files += 1
                self._total += size


def _read(first: bytes, packed: bytes) -> CachedAnswer | None:
    try:
        head = json.loads(first)
    except (ValueError, RecursionError):
        return None
    if not isinstance(head, dict) or head.get("version") != VERSION:
        return None
    ask_with, headers = head.get("ask_with"), head.get("headers")
    if not _is_texts(ask_with) or not _is_texts(headers) or not ask_with:
        return None
    if head.get("seal") != _seal(ask_with, headers, packed):
        return None
    try:
        return CachedAnswer(ask_with, headers, zlib.decompress(packed))
    except zlib.error:
        return None


def _write(folder: Path, key: str, kept: CachedAnswer) -> int:
    ask_with, headers = dict(kept.ask_with), dict(kept.headers)
    packed = zlib.compress(kept.body, 1)
    head = {
        "version": VERSION,
        "ask_with": ask_with,
        "headers": headers,
        "seal": _seal(ask_with, headers, packed),
    }
    # mkstemp makes it 0600. No fsync: what a crash cuts short is told by its seal.
    handle, path = tempfile.mkstemp(dir=folder, prefix=".")
    try:
        with os.fdopen(handle, "wb") as file:
            size = file.write(json.dumps(head).encode() + b"\n") + file.write(packed)
        Path(path).replace(folder / key)
    except OSError:
        with suppress(OSError):
            Path(path).unlink()
        raise
    return size


def _seal(ask_with: Mapping[str, str], headers: Mapping[str, str], packed: bytes) -> str:
    told = json.dumps([ask_with, headers], sort_keys=True).encode()
    return hashlib.sha256(told + b"\n" + packed).hexdigest()


def _is_texts(found: Any) -> TypeGuard[dict[str, str]]:
    return isinstance(found, dict) and all(isinstance(each, str) for each in found.values())
