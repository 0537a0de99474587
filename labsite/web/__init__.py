"""The web process: daphne, with a bound on every request before anybody has looked at it."""

from __future__ import annotations
