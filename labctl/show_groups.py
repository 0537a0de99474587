"""Prints task groups for agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from labctl.show import line, plain

TYPE_CHECKING = False  # importing `typing` takes as long as Python itself
if TYPE_CHECKING:
    from typing import Any


def groups(found: Sequence[Mapping[str, Any]]) -> str:
    """Groups, one a line."""
    if not found:
        return "No open task groups."
    return "\n".join(f"{_name(one)}\t{line(one['preset'])}" for one in found)


def group(found: Mapping[str, Any]) -> str:
    """One group with its tasks."""
    parts = [_name(found), f"preset: {line(found['preset'])}"]
    if found["monitor"]:
        parts.append(monitor(found["monitor"]))
    return "\n".join([*parts, tasks(found["tasks"])])


def monitor(found: Mapping[str, Any]) -> str:
    """How a monitor stands, and its result once it has one."""
    parts = [f"monitor: {line(found['state'])}, {found['expected']} tasks expected"]
    if found["error"]:
        parts.append(f"error: {line(found['error'])}")
    if result := found["result"]:
        parts += [
            f"completed: {', '.join(map(line, result['completed'])) or 'none'}",
            f"incomplete: {', '.join(map(line, result['incomplete'])) or 'none'}",
            f"timed out: {'yes' if result['timed_out'] else 'no'}",
        ]
    return "\n".join(parts)


def tasks(found: Sequence[Mapping[str, Any]]) -> str:
    """Tasks, one a line."""
    if not found:
        return "No tasks."
    return "\n".join(_row(one) for one in found)


def task(found: Mapping[str, Any]) -> str:
    """One task with all that is known of it."""
    parts = [_row(found)]
    if found["description"]:
        parts += ["", plain(found["description"])]
    return "\n".join(parts)


def _name(one: Mapping[str, Any]) -> str:
    return f"{line(one['name'])}\t{one['completed']}/{one['total']} completed"


def _row(one: Mapping[str, Any]) -> str:
    status = line(one["status"]).replace("_", " ")
    who = f" ({line(one['owner'])})" if one["owner"] else ""
    note = f"\t{line(one['note'])}" if one["note"] else ""
    return f"#{line(one['key'])}\t{status}{who}\t{line(one['subject'])}{note}"
