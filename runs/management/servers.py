"""What has to hold of a database server before the product may use it. SQLite needs none of this."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from django.db import DatabaseError, connection

WAIT_SECONDS = 30.0
STEP_SECONDS = 0.5
# What a server says that waiting will not change.
FOR_GOOD = (
    "password",
    "does not exist",
    "no pg_hba.conf entry",
    "permission denied",
    "SSL",
    "is required",
)
FOR_GOOD_OF_REDIS = ("password", "authentication", "noperm", "certificate", "db index")


def name() -> str:
    """The database as a person knows it, never with a password: a file, or name and host."""
    wanted = connection.settings_dict
    if connection.vendor == "sqlite":
        return str(wanted["NAME"])
    host = wanted["HOST"] or "this machine"
    port = f", port {wanted['PORT']}" if wanted["PORT"] else ""
    return f"“{wanted['NAME']}” on {host}{port}"


def wait(seconds: float = WAIT_SECONDS, pause: Callable[[float], None] = time.sleep) -> None:
    """Return once the server answers and can be used; it may start at the same time as we do.

    Raises SystemExit with one sentence when it does not answer for `seconds`, at once when it
    refuses us, and when its version or its letters would not do.
    """
    if connection.vendor == "sqlite":
        return
    is_told = False
    limit = time.monotonic() + seconds
    while (refusal := _refusal()) is not None:
        if time.monotonic() >= limit or any(word in refusal for word in FOR_GOOD):
            raise SystemExit(
                f"The database {name()} cannot be used: {refusal}. Nothing was started. "
                "Start the server or correct LAB_DATABASE_URL, then start again."
            )
        if not is_told:
            is_told = True
            message = f"The database {name()} does not answer yet; waiting up to {seconds:g} s."
            sys.stderr.write(f"{message}\n")
        pause(STEP_SECONDS)
    _check_letters()
    with connection.cursor() as cursor:
        # A migration may take as long as the data asks for.
        cursor.execute("SET statement_timeout = 0")


def wait_for_queue(
    refusal: Callable[[], str],
    seconds: float = WAIT_SECONDS,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Return once Redis answers, where the queue is there. Raises SystemExit as `wait` does."""
    limit = time.monotonic() + seconds
    is_told = False
    while why := refusal():
        if time.monotonic() >= limit or any(word in why.lower() for word in FOR_GOOD_OF_REDIS):
            raise SystemExit(
                f"The Redis server of LAB_REDIS_URL cannot be used: {why}. Nothing was started. "
                "Start the server or correct LAB_REDIS_URL, then start again."
            )
        if not is_told:
            is_told = True
            sys.stderr.write(f"Redis does not answer yet; waiting up to {seconds:g} s.\n")
        pause(STEP_SECONDS)


def _refusal() -> str | None:
    """Why the server cannot be reached, on one line; None when it answers."""
    try:
        connection.ensure_connection()
    except DatabaseError as error:
        connection.close()
        return said(error)
    return None


def said(error: DatabaseError) -> str:
    """The first line of what a database said, without its full stop."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__


def _check_letters() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_encoding")
        row = cursor.fetchone()
    if row is not None and row[0] != "UTF8":
        raise SystemExit(
            f"The database {name()} keeps its text as {row[0]}, which cannot hold every letter: "
            "make one with ENCODING 'UTF8', then start again. Nothing was started."
        )
