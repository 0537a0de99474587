"""Products that tests of the operators' commands start; the same as those of house and story."""

from __future__ import annotations

from tests.house.conftest import once_used, start, used
from tests.story.conftest import story, with_anna

__all__ = ["once_used", "start", "story", "used", "with_anna"]
