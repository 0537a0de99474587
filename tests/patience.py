"""How long a test waits for what does come.

As long as a busy machine may take: a shorter bound would make nothing faster, since only a test
that fails waits that long.
"""

from __future__ import annotations

PATIENCE = 240.0
BROWSER_PATIENCE = PATIENCE * 1000  # Playwright counts milliseconds
