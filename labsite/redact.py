"""Takes credentials out of texts that people and logs see."""

from __future__ import annotations

import re

_SECRETS = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*://)[^/\s:@]+(?::[^@\s]*)?@|(?P<key>(?:token|password|secret|authorization)\s*[=:]\s*)\S+"
    r"|(?P<link>/(?:setup|invite)/)[^\s'\"]+",
    re.IGNORECASE,
)


def hide_secrets(text: str) -> str:
    """`text` without credentials in URLs, one-time links and values that name themselves secret."""
    return _SECRETS.sub(
        lambda found: (
            f"{found['scheme'] or found['key'] or found['link']}[hidden]"
            + ("@" if found["scheme"] else "")
        ),
        text,
    )
