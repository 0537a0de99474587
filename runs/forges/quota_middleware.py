"""After a request that asked a forge: what it cost goes into the quota ledger."""

from __future__ import annotations

import logging
from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

from runs import wiring
from runs.forges import quota

logger = logging.getLogger(__name__)


class Ledger:
    """Middleware. Costs nothing while this process never asked a forge."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._answer = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        answer = self._answer(request)
        try:
            lab = wiring.made()
            if lab is not None:
                quota.settle(lab)
        except Exception:  # the request is answered; what it cost is counted with the next one
            logger.warning("what forges were asked was not settled", exc_info=True)
        return answer
