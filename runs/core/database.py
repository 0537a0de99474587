"""What we add to Django's database layer: rows made in bulk, and connections that broke."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Self

from django.db import connection, models
from django.db.models.base import ModelState


class QuickRows(models.Model):
    """Makes its instances from the database without `__init__`: 10 µs each instead of 100.

    A tick reads 400 of them, a board 100. For models whose fields are plain attributes and which
    nobody hooks with pre_init or post_init. A field that was not asked for is absent, which is how
    Django itself marks it as deferred.
    """

    class Meta:
        abstract = True

    @classmethod
    def from_db(  # type: ignore[override]  # the stubs are of a later Django
        cls, db: str | None, field_names: Collection[str], values: Collection[Any]
    ) -> Self:
        row = cls.__new__(cls)
        row._state = ModelState()
        row._state.adding = False
        row._state.db = db
        row.__dict__.update(zip(field_names, values, strict=True))
        return row


def renew_connection() -> None:
    """Let go of a connection that failed, so that the next query opens a new one.

    Django does so between requests and tasks; work that goes on after an error has to ask for it.
    """
    if connection.errors_occurred and not connection.in_atomic_block:
        connection.close_if_unusable_or_obsolete()
