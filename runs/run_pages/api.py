"""The receipt of a run over the API."""

from __future__ import annotations

from django.http import HttpRequest

from runs.api import replies
from runs.api.asked import RunId
from runs.api.router import Router
from runs.lifecycle.api import run_of
from runs.run_pages import receipt
from runs.run_pages.receipt_shapes import Receipt
from runs.wiring import lab

router = Router(tags=["Runs"])


@router.get("/{int:run_id}/receipt", response=replies.look(Receipt), summary="Read a run's receipt")
def run_receipt(request: HttpRequest, run_id: RunId) -> Receipt:
    """What was asked of a run, what it did, how that was checked and what it cost, with hashes.

    Without secrets, and bounded: `is_cut` and `left_out` say what is missing. Null: not seen.
    """
    return receipt.of(lab(), run_of(run_id))
