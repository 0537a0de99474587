"""One exchange with a forge: a request goes out, a whole answer or a trouble comes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import httpx

from trackers.http import body
from trackers.http.asking import Ask
from trackers.http.rules import Trouble
from trackers.http.wire import DEADLINE, Untrusted


@dataclass(frozen=True, slots=True)
class Heard:
    """A whole answer, as bytes."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


class Sender:
    """Sends by a transport, without what a browser would do: no cookies, no redirects, no logs."""

    def __init__(self, transport: httpx.BaseTransport, steady: Callable[[], float]) -> None:
        self._transport = transport
        self._steady = steady

    def send(self, ask: Ask, more: Mapping[str, str], deadline: float) -> Heard | Trouble:
        """The answer, or why there is none. Errors do not leave: their frames hold the token."""
        try:
            request = ask.request(more, {DEADLINE: deadline})
            response = self._transport.handle_request(request)
            try:
                return self._whole(response, deadline, has_body=ask.method != "HEAD")
            finally:
                response.close()
        except Untrusted:
            return Trouble.UNTRUSTED
        except httpx.ProxyError:
            return Trouble.NO_WAY
        except (httpx.ConnectError, httpx.ConnectTimeout):
            return Trouble.UNREACHED
        except (httpx.TimeoutException, body.TooLate):
            return Trouble.SLOW
        except body.TooBig:
            return Trouble.TOO_BIG
        except body.Garbled:
            return Trouble.GARBLED
        except httpx.HTTPError:
            return Trouble.DROPPED

    def close(self) -> None:
        """Close every connection."""
        self._transport.close()

    def _whole(self, response: httpx.Response, deadline: float, *, has_body: bool) -> Heard:
        """Read to the end even where nothing is to come: only then is the connection used again."""
        headers = dict(response.headers)
        if not isinstance(response.stream, httpx.SyncByteStream):
            raise body.Garbled
        is_empty = not has_body or response.status_code in (204, 304)
        data = body.read(
            response.stream,
            "" if is_empty else headers.get("content-encoding", ""),
            lambda: self._steady() > deadline,
            body.MOST_BYTES,
        )
        return Heard(response.status_code, headers, b"" if is_empty else data)
