#!/usr/bin/env python3
"""Runs as a child of its own, since Apprise has no time limit that always holds.

Reads one JSON order on standard input, so that no address is ever in an argument list, and
answers with one JSON line: whether it worked, the service's name, the reason when it did not.
"""

from __future__ import annotations

import json
import logging
import sys
import urllib.error
import urllib.request
from typing import Any

PING_SECONDS = 10
Answer = dict[str, Any]


def main() -> int:
    order = json.load(sys.stdin)
    sys.stdout.write(json.dumps(ping(order["url"]) if order["what"] == "ping" else tell(order)))
    return 0


def tell(order: Answer) -> Answer:
    """Send one notice, or with *what* "check" only see whether the address can be read."""
    import apprise

    with apprise.LogCapture(level=logging.WARNING, fmt="%(message)s") as said:  # type: ignore[no-untyped-call]
        service = apprise.Apprise.instantiate(order["url"])
        if service is None:
            return {"ok": False, "final": True, "why": "Apprise does not know such an address"}
        if order["what"] == "check":
            return {"ok": True, "service": str(service.service_name)}
        ok = bool(service.notify(body=order["text"], title=order["title"]))
        return {"ok": ok, "why": said.getvalue()}


def ping(url: str) -> Answer:
    """Ask for an address; what comes back matters only by its status."""
    if not url.startswith(("http://", "https://")):
        return {"ok": False, "final": True, "why": "a ping needs an address with http or https"}
    try:
        with urllib.request.urlopen(url, timeout=PING_SECONDS) as answer:  # noqa: S310
            return {"ok": 200 <= answer.status < 300, "why": f"status {answer.status}"}
    except urllib.error.HTTPError as error:
        return {"ok": False, "why": f"status {error.code}"}
    except OSError as error:
        return {"ok": False, "why": str(getattr(error, "reason", error))}


if __name__ == "__main__":
    sys.exit(main())
