"""Why a command did not begin."""

from __future__ import annotations


class Refusal(Exception):
    """It cannot be done; the text is for the terminal."""
