"""What a refused discard means over HTTP; the pages and the API say the same."""

from __future__ import annotations

from collections.abc import Mapping

STATUS: Mapping[str, int] = {"not_managed": 400, "gone": 409, "owned": 409, "not_ours": 409}
