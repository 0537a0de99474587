"""The tag of our system checks, by which a start picks them."""

from __future__ import annotations

OURS = "labsite"
