"""Fixtures of the page tests."""

from __future__ import annotations

from tests.web.daphne_fixture import prepared_state, served

__all__ = ["prepared_state", "served"]
