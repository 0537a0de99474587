"""How an extract is written: a line per field or parameter, so that a change shows as a small one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DEEPEST = 4


def write(path: Path, facts: dict[str, Any]) -> None:
    """Write an extract as JSON."""
    path.write_text(_text(facts, 0) + "\n")


def copyright_of(package: Path) -> str:
    """Whose words they are, as the package's licence says it."""
    lines = (package / "LICENSE").read_text().splitlines()
    return next(line.strip() for line in lines if "copyright" in line.lower())


def _text(node: Any, depth: int) -> str:
    short = json.dumps(node, ensure_ascii=False)
    if not isinstance(node, dict) or depth >= DEEPEST or len(short) < 90:
        return short
    inner = ",\n".join(
        f"{' ' * (depth + 1)}{json.dumps(name)}: {_text(value, depth + 1)}"
        for name, value in node.items()
    )
    return "{\n" + inner + "\n" + " " * depth + "}"
