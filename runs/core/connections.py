"""Database connections that broke."""

from __future__ import annotations

from django.db import connection


def renew() -> None:
    """Let go of a connection that failed, so that the next query opens a new one.

    Django does so between requests and tasks; work that goes on after an error has to ask for it.
    """
    if connection.errors_occurred and not connection.in_atomic_block:
        connection.close_if_unusable_or_obsolete()
