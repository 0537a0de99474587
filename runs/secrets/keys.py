"""Which values of an environment are secrets: decided by the name and by the form of each value.

A secret is a value of at least 8 characters that has the form of a key and whose name says what it
is (KEY, TOKEN, SECRET, PASSWORD, AUTH and the like), or that has the form of a well-known or a long
random key, whatever its name. The password inside a URL is one, and so is what an `Authorization`
header or a JSON object holds under such a name. Numbers, words such as `true`, paths, addresses
without credentials and names of models or hosts are none: hidden, they would make everything that
is printed unreadable.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

from runs.core.masking import SHORTEST

LONG = 24
_SAYS_SO = frozenset(
    (
        *("key", "keys", "apikey", "token", "tokens", "secret", "secrets", "private", "pat", "dsn"),
        *("password", "passwd", "pass", "pwd", "passphrase", "credential", "credentials"),
        *("auth", "authorization", "bearer", "cookie"),
    )
)
_ENDS = ("key", "token", "secret", "password")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_KNOWN = re.compile(
    r"(?:sk|pk|rk)-[\w-]{16,}|gh[opsur]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|lab_[\w-]{30,}"
    r"|xox[a-z]-[\w-]{10,}|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[\w-]{30,}|npm_\w{30,}|pypi-[\w-]{16,}"
    r"|hf_\w{20,}|eyJ[\w-]{8,}\.[\w-]+\.[\w-]*"
)
_PEM = "PRIVATE KEY-----"
_PEM_BLOCK = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
_ASSIGNED = re.compile(r"(?:export\s+|-\s+)?([\"']?)(\S{1,200}?)\1\s*(?:=|:\s)\s*(\S.*)")
_REMARK = re.compile(r"\s#.*")
_AFTER = re.compile(r"(?i)\b(?:password|passwd|token|secret)\s+(\S+)")  # as in .netrc
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_LONG_LINE = 20_000
_SCHEME = re.compile(r"(?:bearer|basic|token)\s+(?=\S)", re.IGNORECASE)
_HEADER = re.compile(r"\s*([A-Za-z][\w-]{1,60})\s*(?::\s|=)\s*(\S.*)")
_NO_KEY = re.compile(
    r"[~.]{0,2}/.*|[A-Za-z]:\\.*"  # a path
    r"|[0-9.,:+\-/ TZ]{1,15}|[0-9]*"  # a number, a date, an address
    r"|(?=.{1,23}\Z)[A-Za-z]{1,19}(?:[-_. ][A-Za-z]{1,19})*"  # a word or two
    r"|(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}(?::\d+)?"  # a host
    r"|[^@\s]+@[\w.-]+\.[a-z]{2,}"  # a mail address
)


def secrets_of(env: Mapping[str, object]) -> Iterator[str]:
    """The secrets among the values of an environment, or of a similar object."""
    for name, value in env.items():
        if isinstance(value, str):
            yield from of(name, value)
        elif isinstance(value, dict):
            yield from secrets_of(value)


def of(name: str, value: str) -> Iterator[str]:
    """What of one value is secret: all of it, a part of it, or nothing."""
    value = value.strip()
    if len(value) < SHORTEST:
        return
    if value.startswith("{"):
        yield from _of_json(value)
    elif _PEM in value:
        yield value
    elif "://" in value:
        yield from of_url(value)
    elif says_so(name):
        yield from _said(value)
    else:
        yield from _unsaid(value)


def of_url(url: str) -> Iterator[str]:
    """The credentials in a URL: its password or token, and what in it has the form of a key."""
    try:
        parts = urlsplit(url)
        found = [parts.password or parts.username or "", *parts.path.split("/"), parts.fragment]
        named = parse_qsl(parts.query)
    except ValueError:
        return
    if parts.password is None and parts.username and not _looks_random(parts.username):
        found[0] = ""
    for number, one in enumerate(found):
        if len(one) >= SHORTEST and (number == 0 or _looks_random(one)):
            yield from {one, unquote(one)}
    for name, one in named:
        yield from of(name, one)


def of_address(url: str) -> Iterator[str]:
    """The secrets in an address that is one as a whole: itself, and each part that looks like a key."""
    rest = url.strip().partition("://")[2]
    yield from {url.strip(), rest}
    yield from of_url(url)
    for piece in re.split(r"[/:@?&=#]", rest):
        if _looks_random(piece):
            yield piece


def of_file(text: str) -> Iterator[str]:
    """Yield the secrets in a file that somebody pasted, such as `.env`, JSON, YAML, INI or a key.

    Values are judged by their names and forms as those of an environment, and a little more
    strictly: long runs of letters and digits count. A file of one line without a name is a secret
    as a whole.
    """
    if text.lstrip().startswith(("{", "[")):
        with contextlib.suppress(ValueError, RecursionError):
            yield from _of_tree("", json.loads(text))
            return
    yield from _PEM_BLOCK.findall(text)
    lines = [line.strip() for line in _PEM_BLOCK.sub("", text).splitlines()]
    bare = [line for line in lines if line and not line.startswith("#")]
    if len(bare) == 1 and " " not in bare[0] and _ASSIGNED.fullmatch(bare[0]) is None:
        yield from _said(bare[0])
    for line in lines:
        yield from _of_line(line)


def _of_line(line: str) -> Iterator[str]:
    """Yield the secrets of one line, which as a rule is a name and its value."""
    found = _ASSIGNED.fullmatch(line) if len(line) <= _LONG_LINE else None
    if found is None:
        yield from _unsaid(line)
        for value in _AFTER.findall(line):
            yield from _said(value)
        return
    value = found[3].rstrip(" ,")
    if value[0] in "\"'" and (end := value.find(value[0], 1)) > 0:
        value = value[1:end]
    else:
        value = _REMARK.sub("", value)
    yield from _of_pasted(found[2], value)


def _of_tree(name: str, value: object) -> Iterator[str]:
    """Yield the secrets in a JSON value, lists included; what stands in one has its name."""
    if isinstance(value, str):
        yield from _of_pasted(name, value)
    elif isinstance(value, list):
        for one in value:
            yield from _of_tree(name, one)
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from _of_tree(key, one)


def _of_pasted(name: str, value: str) -> Iterator[str]:
    yield from of(name, value)
    for piece in re.split(r"[\s,;\"']+", value):
        has_run = any(map(_is_long_run, re.split(r"[^A-Za-z0-9]", piece)))
        if "/" not in piece and (has_run or _UUID.fullmatch(piece)):
            yield piece


def _is_long_run(piece: str) -> bool:
    digits = sum(map(str.isdigit, piece))
    return len(piece) >= 16 and digits >= 2 and len(piece) - digits >= 2


def says_so(name: str) -> bool:
    """Whether a name says that its value is a secret; PUBLIC_KEY says that it is none."""
    words = [word.lower() for word in _WORDS.findall(name)]
    if "public" in words:
        return False
    return any(word in _SAYS_SO or word.endswith(_ENDS) for word in words)


def _said(value: str) -> Iterator[str]:
    bare = _SCHEME.sub("", value, count=1)
    if not _NO_KEY.fullmatch(bare) and len(bare) >= SHORTEST:
        yield bare


def _unsaid(value: str) -> Iterator[str]:
    """A value whose name says nothing: headers in it, and what has the form of a key."""
    for line in value.splitlines():
        header = _HEADER.fullmatch(line)
        if header is not None and says_so(header[1]):
            yield from _said(header[2])
    for piece in re.split(r"[\s,;\"'=]+", value):
        if _looks_random(piece):
            yield piece


def _of_json(value: str) -> Iterator[str]:
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return
    if isinstance(found, dict):
        yield from secrets_of(found)


def _looks_random(text: str) -> bool:
    """Whether a word has the form of a key: a well-known one, or long and of all kinds of letters."""
    if len(text) < SHORTEST or text.startswith("ssh-"):
        return False
    if _KNOWN.fullmatch(text):
        return True
    return any(
        _is_mixed(piece) for piece in re.split(r"[^A-Za-z0-9]", text) if len(piece) >= 16
    ) and (len(text) >= LONG and not text.startswith(("/", "~", ".")))


def _is_mixed(piece: str) -> bool:
    digits = sum(map(str.isdigit, piece))
    return digits >= 2 and piece.lower() != piece and piece.upper() != piece
