"""The one HTTP client for forges. Only this package imports an HTTP library."""

from __future__ import annotations

from trackers.http.client import Answer, Client
from trackers.http.making import over_network
from trackers.http.meter import HUMAN_SHARE, Meter, Spent, Standing
from trackers.http.store import Store

__all__ = ["HUMAN_SHARE", "Answer", "Client", "Meter", "Spent", "Standing", "Store", "over_network"]
