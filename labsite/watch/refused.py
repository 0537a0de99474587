"""Why no session was opened yet."""

from __future__ import annotations


class NotYet(Exception):
    """The project is being cloned; its session is opened when that is done."""
