"""Settings of a process that only looks: no folder, key, queue or row is made, mended or changed."""

from __future__ import annotations

from typing import Any

from labsite.settings import *  # noqa: F403
from labsite.settings import DATABASES, PATHS

_database: dict[str, Any] = DATABASES["default"]
if "sqlite" in _database["ENGINE"]:
    # Nobody uses a database without a log beside it, and opening it to read would make one.
    _is_used = PATHS.database.with_name(f"{PATHS.database.name}-wal").exists()
    _mode = "mode=ro" if _is_used else "mode=ro&immutable=1"
    _database["NAME"] = f"{PATHS.database.as_uri()}?{_mode}"
    _database["OPTIONS"] = {"uri": True, "timeout": 3}
else:
    _options = _database["OPTIONS"].get("options", "")
    _database["OPTIONS"]["options"] = f"{_options} -c default_transaction_read_only=on"
