"""HTTP client of the agent API; retries while labsite is being restarted."""

from __future__ import annotations

import http.client
import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

PATIENCE = 120.0
FIRST_DELAY = 0.2
LONGEST_DELAY = 5.0
ANSWER_SECONDS = 90.0
RETRIED = (502, 503, 504)


class Failed(Exception):
    """The command cannot be done; the text says why, for the agent."""


class NoAnswer(Failed):
    """No usable answer this time; asking again may help."""


class Client:
    """Calls the API in the name of one run. The address is read anew at each attempt: a restart may change it."""

    def __init__(
        self,
        address_file: Path,
        token: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._address_file = address_file
        self._token = token
        self._clock = clock
        self._sleep = sleep

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The answer of labsite. Raises Failed when it refused, or did not answer for two minutes."""
        until, delay = self._clock() + PATIENCE, FIRST_DELAY
        while True:
            try:
                return self._ask(method, path, body)
            except NoAnswer as error:
                left = until - self._clock()
                if left <= 0:
                    raise Failed(
                        f"{error} Gave up after two minutes; run the command again."
                    ) from error
                if delay == FIRST_DELAY:
                    print(f"{error} Trying again for two minutes.", file=sys.stderr)
                self._sleep(min(delay, left))
                delay = min(delay * 2, LONGEST_DELAY)

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None) -> dict[str, Any]:
        connection, prefix = self._connect()
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        if data is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, prefix + path, data, headers)
            response = connection.getresponse()
            return _read(response.status, response.read())
        except (OSError, http.client.HTTPException) as error:
            raise NoAnswer("labsite does not answer just now.") from error
        finally:
            connection.close()

    def _connect(self) -> tuple[http.client.HTTPConnection, str]:
        try:
            address = urlsplit(self._address_file.read_text(encoding="utf-8").strip())
            port, host = address.port, address.hostname
        except (OSError, ValueError) as error:
            raise NoAnswer("The address of labsite is not known just now.") from error
        if not host:
            raise NoAnswer("The address of labsite is not known just now.")
        is_https = address.scheme == "https"
        kind = http.client.HTTPSConnection if is_https else http.client.HTTPConnection
        return kind(host, port, timeout=ANSWER_SECONDS), address.path.rstrip("/")


def _read(status: int, data: bytes) -> dict[str, Any]:
    """The JSON of an answer. Anything else came from a proxy or another program on that port."""
    try:
        answer = json.loads(data)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise NoAnswer("Something else answered in place of labsite.")
    if status in RETRIED:
        raise NoAnswer(str(answer.get("text") or "labsite could not do it just now."))
    if status >= 400:
        raise Failed(str(answer.get("text") or f"labsite refused ({status})."))
    return answer
