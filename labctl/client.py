"""HTTP client of the agent API; retries while labsite is being restarted."""

from __future__ import annotations

import json
import sys
import time

from labctl import http_call

TYPE_CHECKING = False  # importing `typing` takes as long as Python itself
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike
    from typing import Any

PATIENCE = 120.0
FIRST_DELAY = 0.2
LONGEST_DELAY = 5.0
ANSWER_SECONDS = 90.0
RETRIED = (502, 503, 504)
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~")


def quoted(text: str) -> str:
    """A text as one part of an address."""
    raw = text.encode("utf-8", "replace")
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in raw)


class Failed(Exception):
    """The command cannot be done; the text says why, for the agent, `code` and `status` for programs."""

    def __init__(self, text: str, code: str = "", status: int = 0) -> None:
        super().__init__(text)
        self.code = code
        self.status = status


class NoAnswer(Failed):
    """No usable answer this time; asking again may help."""


class Client:
    """Calls the API in the name of one run. The address is read anew at each attempt: a restart may change it."""

    def __init__(
        self,
        address_file: str | PathLike[str],
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
                return self.ask(method, path, body)
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

    def ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        timeout: float = ANSWER_SECONDS,
    ) -> dict[str, Any]:
        """The answer at the first attempt. Raises NoAnswer, or Failed when labsite refused."""
        address = self._address()
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        if data is not None:
            headers["Content-Type"] = "application/json"
        try:
            answer = http_call.call(address, method, path, headers, data, timeout)
        except OSError as error:
            raise NoAnswer("labsite does not answer just now.") from error
        return _read(*answer)

    def _address(self) -> http_call.Address:
        try:
            with open(self._address_file, encoding="utf-8") as file:  # noqa: PTH123  (pathlib is slow to import)
                return http_call.Address(file.read().strip())
        except (OSError, ValueError) as error:
            raise NoAnswer("The address of labsite is not known just now.") from error


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
        text = str(answer.get("text") or f"labsite refused ({status}).")
        raise Failed(text, str(answer.get("code") or ""), status)
    return answer
