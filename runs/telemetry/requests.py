"""What every request has: a name that its log lines carry, and a place in the counts."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from runs.telemetry import log_context, tallies

HEADER = "X-Request-ID"
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Requests:
    """Middleware, the outermost one. The name is the proxy's where there is one, else a new one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._answer = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        given = request.headers.get(HEADER, "") if settings.BEHIND_PROXY else ""
        name = given if _NAME.fullmatch(given) else secrets.token_hex(8)
        log_context.begin_request(name)
        began = time.perf_counter()
        answer = self._answer(request)
        tallies.REQUESTS.observe(time.perf_counter() - began)
        tallies.ANSWERS.add(f"{answer.status_code // 100}xx")
        answer.headers[HEADER] = name
        return answer
