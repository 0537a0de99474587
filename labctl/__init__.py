"""The agent's command. Standard library only, so that it starts at once in any session."""

from __future__ import annotations
