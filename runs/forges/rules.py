"""What a clone address says of the forge behind it, and where the API of each kind is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from runs.core.states import ForgeKind

GITHUB = "github.com"
_SCP = re.compile(r"(?:[^@/\s]+@)?(?P<host>\[[^\]]+\]|[A-Za-z0-9._-]+):(?!//)(?P<path>[^\s]+)")
_PART = re.compile(r"[A-Za-z0-9._-]{1,100}")
_HOST = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?")

_ASKED = re.compile(
    r"(?P<scheme>https?)://(?:[^@/\s']*@)?(?P<place>[A-Za-z0-9._:\[\]-]+)(?=[/\s'\"»«]|$)"
)


_MAY_NOT = re.compile(
    r"\b40[134]\b|denied|not granted|not authorized|authentication failed|could not read"
    r"|required scope|not found|read[ -]only",
    re.IGNORECASE,
)


def may_not_push(said: str) -> bool:
    """Whether git's words mean that the credential may not push, and no passing trouble."""
    return _MAY_NOT.search(said) is not None


class NoRepository(ValueError):
    """The address does not name a repository of a forge; the text says why."""


@dataclass(frozen=True, slots=True)
class Place:
    """A repository on a forge: the address under which people see the forge, owner and name."""

    web: str
    owner: str
    repo: str

    @property
    def host(self) -> str:
        return urlsplit(self.web).netloc.lower()

    @property
    def name(self) -> str:
        return f"{self.owner}/{self.repo}"


def place_of(url: str, web: str = "") -> Place:
    """The repository that a clone address names: https, `git@host:owner/repo.git`, or ssh://.

    `web` is the address of a forge that is known; it may end in a path of its own. Where ssh is
    used, the forge is expected behind https of the same host: the port of ssh says nothing of it.
    Raises NoRepository for a folder, for deeper paths and for words that no forge would use.
    """
    scheme, host, path = _split(url.strip())
    if not host or not _HOST.fullmatch(host):
        raise NoRepository("This is not a clone address of a forge.")
    base, path = _base(scheme, host, path, web.rstrip("/"))
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if len(parts) != 2:
        raise NoRepository(
            "A repository of a forge has an address that ends in owner/name; this one does not."
        )
    owner, repo = parts[0], parts[1].removesuffix(".git")
    if not _is_word(owner) or not _is_word(repo):
        raise NoRepository("Owner and name are letters, digits, points, dashes and underscores.")
    return Place(base, owner, repo)


def place_at(url: str, web: str) -> Place | None:
    """The repository that an address names, if it is one of the forge at `web`."""
    try:
        place = place_of(url, web)
    except NoRepository:
        return None
    return place if place.web == web else None


def kind_of(place: Place) -> ForgeKind | None:
    """The kind as far as the host alone says; None: the forge has to be asked."""
    return ForgeKind.GITHUB if place.host in (GITHUB, f"www.{GITHUB}") else None


def api_of(kind: ForgeKind, web: str) -> str:
    """The root of the API of a forge, where it usually is."""
    web = web.rstrip("/")
    if kind is ForgeKind.GITEA:
        return f"{web}/api/v1"
    if urlsplit(web).netloc.lower() in (GITHUB, f"www.{GITHUB}"):
        return f"https://api.{GITHUB}"
    return f"{web}/api/v3"


def read_address(text: str) -> str:
    """An address of a forge or its API as it is kept. Raises NoRepository with what to write."""
    text = text.strip().rstrip("/")
    parts = urlsplit(text)
    if parts.scheme not in ("https", "http") or not _HOST.fullmatch(parts.netloc):
        raise NoRepository("Write an address that begins with https:// and holds no password.")
    if parts.query or parts.fragment or any(letter.isspace() for letter in text):
        raise NoRepository("Write the address without anything after ? or #.")
    return text


def is_asked_for(prompt: str, url: str) -> bool:
    """Whether git's question for a password is about the server of this address, and no other.

    A repository may name others, as submodules do, and git would ask for each of them.
    """
    asked, ours = _ASKED.search(prompt), urlsplit(url)
    if asked is None:
        return False
    return (asked["scheme"], asked["place"].lower()) == (ours.scheme, ours.netloc.lower())


def root_of(forge: int, place: Place) -> str:
    """How a repository is named to the adapters of forges."""
    return f"{forge}/{place.owner}/{place.repo}"


def issue_url(web: str, root: str, key: str) -> str:
    """Where people see an issue; empty when that cannot be told."""
    _, _, repository = root.partition("/")
    return f"{web}/{repository}/issues/{key}" if web and repository and key.isdigit() else ""


def _split(url: str) -> tuple[str, str, str]:
    """Scheme, host and path of an address; without a host it is none."""
    if "://" in url:
        try:
            parts = urlsplit(url)
            host = parts.hostname or ""
            port = parts.port
        except ValueError:
            return "", "", ""
        if parts.scheme not in ("https", "http", "ssh", "git+ssh", "git"):
            return "", "", ""
        host = f"[{host}]" if ":" in host else host
        is_web = parts.scheme in ("https", "http")
        return parts.scheme, f"{host}:{port}" if port and is_web else host, parts.path
    found = _SCP.fullmatch(url)
    return ("ssh", found["host"], found["path"]) if found else ("", "", "")


def _base(scheme: str, host: str, path: str, web: str) -> tuple[str, str]:
    """The forge's address, and the path without the part that belongs to it."""
    if web:
        known = urlsplit(web)
        prefix = known.path.rstrip("/") + "/"
        own = f"/{path.lstrip('/')}"
        # The port of a web address tells forges of one machine apart; that of ssh says nothing.
        is_web = scheme in ("http", "https")
        theirs = known.netloc if is_web else known.hostname or ""
        if host.lower() == theirs.lower() and (not is_web or own.startswith(prefix)):
            return web, own.removeprefix(prefix)
    return f"{scheme if scheme == 'http' else 'https'}://{host.lower()}", path


def _is_word(part: str) -> bool:
    return bool(_PART.fullmatch(part)) and part not in (".", "..")
