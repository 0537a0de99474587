"""`labctl hook`: called by an agent's own hooks, with their payload on standard input (docs/hooks.md).

It writes signal files and wakes labsite's worker, so it works while labsite is down. It never
blocks a worker by an error: the exit code is 0 whatever happens, and 2 only to send back a worker that goes
idle without its output, with the reason on standard error.
"""

from __future__ import annotations

import os
import sys

from labctl import hook_session, outputs, sending_back, signal_files, wake
from labctl.safe_files import Unfit, is_name, opened

TYPE_CHECKING = False  # importing `typing` would take longer than all else here
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

USAGE = "usage: labctl hook task-completed|idle [--group NAME] [--worker NAME] [--task KEY]\n       labctl hook session"
NAME_BYTES = 200
MOST_TIMES = 5
GO_ON, SEND_BACK = 0, 2


def run(arguments: Sequence[str]) -> int:
    """Handle one call of a hook."""
    try:
        given = _given(arguments)
        if given is None:
            print(USAGE, file=sys.stderr)
            return GO_ON
        return _handle(given, os.environ, hook_session.payload())
    except Exception as error:
        print(f"labctl hook: nothing was signalled: {error}", file=sys.stderr)
        return GO_ON


def _handle(given: Mapping[str, str], env: Mapping[str, str], payload: Mapping[str, Any]) -> int:
    base = env.get("LAB_SIGNALS", "")
    for group in _groups(given, env, payload):
        if base and is_name(group):
            try:
                with opened(os.path.join(base, group)) as at:  # noqa: PTH118
                    code, is_new = _in_group(at, given, env, payload)
            except FileNotFoundError:
                continue  # no group of this project, or one without signals
            if is_new:
                wake.send(env.get("LAB_WAKE_SOCKET", ""), env.get("LAB_PROJECT", ""))
            return code
    return GO_ON


def _in_group(
    at: int, given: Mapping[str, str], env: Mapping[str, str], payload: Mapping[str, Any]
) -> tuple[int, bool]:
    """Returns the exit code, and whether labsite has to be woken."""
    worker = given.get("worker") or _text(payload, "teammate_name") or env.get("LAB_WORKER", "")
    worker = worker if is_name(worker) else ""
    why = _lacking(at, worker, env.get("LAB_WORKTREE") or _text(payload, "cwd"))
    if given["event"] == "idle":
        return _idle(at, worker, why)
    key = given.get("task") or _text(payload, "task_id") or env.get("LAB_TASK", "")
    if not is_name(key) or signal_files.expected(at) is None or not _is_known(at, key):
        return GO_ON, False
    subject, now = _text(payload, "task_subject"), signal_files.stamp()
    if why:
        sending_back.hold(at, key, worker, subject, now)
        sending_back.send_back(at, worker, why, now)
        return GO_ON, True
    is_new = signal_files.write(at, key, worker, subject, now)
    is_back = worker != "" and sending_back.let_go(at, worker, now)
    return GO_ON, is_back or is_new


def _idle(at: int, worker: str, why: str) -> tuple[int, bool]:
    """Send a worker back, a limited number of times: then people have to look."""
    if not worker:
        return GO_ON, False
    if not why:
        return GO_ON, sending_back.let_go(at, worker, signal_files.stamp())
    if sending_back.send_back(at, worker, why, signal_files.stamp()) > MOST_TIMES:
        return GO_ON, True
    print(why, file=sys.stderr)
    return SEND_BACK, True


def _lacking(at: int, worker: str, root: str) -> str:
    """What the worker's output lacks; empty when that is unknown."""
    try:
        return outputs.lacking(root, signal_files.inscription(at), worker) if root else ""
    except (OSError, Unfit) as error:
        print(f"labctl hook: the output was not looked at: {error}", file=sys.stderr)
        return ""


def _is_known(at: int, key: str) -> bool:
    """Whether the inscription of the group names this task."""
    try:
        tasks = signal_files.inscription(at).get("tasks")
    except (OSError, Unfit):
        return True
    return not isinstance(tasks, list) or key in tasks


def _groups(
    given: Mapping[str, str], env: Mapping[str, str], payload: Mapping[str, Any]
) -> list[str]:
    """Groups that the payload may mean. Agents name a team after their session, so others follow."""
    if given.get("group"):
        return [given["group"]]
    return [_text(payload, "team_name"), env.get("LAB_GROUP", "") or _remembered(env)]


def _remembered(env: Mapping[str, str]) -> str:
    """The group that was last created, or whose task was last claimed, in this session."""
    try:
        with open(os.path.join(env.get("LAB_RUN_FOLDER", ""), "group"), "rb") as file:  # noqa: PTH118, PTH123
            return file.read(NAME_BYTES).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _text(payload: Mapping[str, Any], name: str) -> str:
    value = payload.get(name)
    return str(value) if isinstance(value, str) or type(value) is int else ""


def _given(arguments: Sequence[str]) -> dict[str, str] | None:
    """The parsed command line; None for an unknown one."""
    if not arguments or arguments[0] not in ("task-completed", "idle") or len(arguments) % 2 == 0:
        return None
    given = {"event": arguments[0]}
    for name, value in zip(arguments[1::2], arguments[2::2], strict=True):
        if name not in ("--group", "--worker", "--task"):
            return None
        given[name[2:]] = value
    return given
