"""Django admin: numbers and profiles are tuned here, what happened is only read."""

from __future__ import annotations

from runs.admin import history, tuning

__all__ = ["history", "tuning"]
