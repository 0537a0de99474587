"""The one HTTP client for forges. Only this package imports an HTTP library."""

from __future__ import annotations

from trackers.http.cache import AnswerCache
from trackers.http.client import Answer, Client, over_network
from trackers.http.quota import HUMAN_SHARE, Meter, Spent, Standing

__all__ = [
    "HUMAN_SHARE",
    "Answer",
    "AnswerCache",
    "Client",
    "Meter",
    "Spent",
    "Standing",
    "over_network",
]
