"""Takes credentials out of texts that people and logs see."""

from __future__ import annotations

import re

HIDDEN = "[hidden]"
_SECRETS = re.compile(
    # In a URL: up to the last @ before the path; a password may also hold a slash. A scheme is short,
    # and bounded here: each letter of a long word would be looked at from there to its end.
    r"(?P<scheme>[a-z][a-z0-9+.-]{0,30}://)(?:[^/\s?#]*|[^/\s:@]*:[^\s\"'<>]*)@"
    # After a name that says so, as in headers, settings and JSON.
    r"|(?P<key>(?:token|password|passwd|secret(?:[_-]?key)?|authorization|api[_-]?key)[\"']?\s*[=:]\s*)"
    r"(?:(?:bearer|basic|token)\s+)?(?:\"[^\"]*\"|'[^']*'|\S+)"
    r"|(?P<scheme_of_header>\bbearer\s+)[\w.~+/-]{16,}=*"
    # One-time links, and the tokens that we ourselves make.
    r"|(?P<link>/(?:setup|invite|push/act)/)[^\s'\"]+"
    r"|(?P<ours>\blab_)[\w-]{30,}",
    re.IGNORECASE,
)


def hide_secrets(text: str) -> str:
    """`text` without credentials in URLs and headers, one-time links, tokens, and values that name
    themselves secret."""
    return _SECRETS.sub(_hidden, text)


def _hidden(found: re.Match[str]) -> str:
    kept = found[found.lastgroup or 0]
    return f"{kept}{HIDDEN}@" if found.lastgroup == "scheme" else f"{kept}{HIDDEN}"
