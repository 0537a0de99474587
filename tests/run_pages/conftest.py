"""The runs of `tests/conversation`, whose records a test writes."""

from __future__ import annotations

from tests.conversation.conftest import claude_run, home, looking

__all__ = ["claude_run", "home", "looking"]
