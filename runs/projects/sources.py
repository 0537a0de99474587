"""What an operator may type as the source of a project: a path, or a URL that git may clone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

_SCHEMES = ("https://", "http://", "ssh://", "git://", "file://")
_SCP = re.compile(r"[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:[^\s:][^\s]*")
_CREDENTIALS = re.compile(r"(https?://[^/\s]+@|[a-z+]+://[^/\s:]*:[^/\s]*@)", re.IGNORECASE)
_LOGIN = re.compile(r"([a-z+]+://)([^/\s]*)@(.*)", re.IGNORECASE | re.DOTALL)
_REMOTE = re.compile(r"[^/]*:")


@dataclass(frozen=True, slots=True)
class Source:
    """A checked source. `is_path` tells a folder of this machine from a URL."""

    text: str
    is_path: bool


class WrongSource(ValueError):
    """The text cannot be a source; the message says why and what to write instead."""


def read_source(text: str) -> Source:
    """Classify what was typed. Raises WrongSource; git never sees a word that could be an option."""
    text = text.strip()
    if not text:
        raise WrongSource("Write the path of a local repository or a clone URL.")
    if any(ord(letter) < 32 for letter in text):
        raise WrongSource("A path or URL has no line breaks.")
    if text.startswith(("/", "~", "./", "../")):
        return Source(text, is_path=True)
    if _CREDENTIALS.match(text):
        raise WrongSource("Leave the password out of the URL and write it in the token field.")
    if text.lower().startswith(_SCHEMES) or _SCP.fullmatch(text):
        return Source(text, is_path=False)
    raise WrongSource(
        "This is neither an absolute path nor a clone URL. Examples: /home/me/shop, "
        "https://forge.example/me/shop.git, git@forge.example:me/shop.git"
    )


def name_from(text: str) -> str:
    """A name to propose: the last part of the path or URL, without `.git`."""
    return text.rstrip("/").rpartition("/")[2].rpartition(":")[2].removesuffix(".git")[:60]


def split_login(url: str) -> tuple[str, str]:
    """A URL as git is asked for it, and the `user:password` that was written into it.

    ssh keeps its user, who is no secret; a password there is left out, since ssh never reads it.
    """
    found = _LOGIN.fullmatch(url)
    if found is None:
        return url, ""
    scheme, login, rest = found.groups()
    user, _, password = login.partition(":")
    if scheme.lower() in ("http://", "https://"):
        return scheme + rest, f"{unquote(user)}:{unquote(password)}"
    return (f"{scheme}{user}@{rest}" if user else scheme + rest), ""


def resolved(url: str, top: Path) -> str:
    """A checkout's origin as it reads from anywhere: git takes a plain path from the checkout's top."""
    is_plain = not _REMOTE.match(url) and not url.startswith("/")
    return str((top / url).resolve()) if is_plain else url
