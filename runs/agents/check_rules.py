"""What is wrong with an agent before it is started, and what its answers mean. Pure.

The texts of Claude Code and Codex that are read here were seen with the programs themselves:
docs/decisions/0031 tells which versions said what.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import PurePath

from runs.dispatch.eligibility import Act, Change, Obstacle, Why

OLD_AFTER = timedelta(minutes=5)
VERSION_CHARACTERS = 100
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|[\x00-\x1f\x7f-\x9f]")
_PLACEHOLDER = re.compile(r"\{[a-z_]+\}")
# The versions that the tests with the real programs ran (tests/agents), by the name of the program.
TESTED: Mapping[str, Sequence[str]] = {
    "claude": ("2.1.197", "2.1.332"),
    "codex": ("0.169.0", "0.171.0"),
}
_REFUSED_BY_ROOT = ("bypassPermissions", "--dangerously-skip-permissions")


@dataclass(frozen=True, slots=True)
class ProgramFacts:
    """How an agent would be started on this machine.

    `found` is the path of its program, empty when there is none, None when it cannot be told.
    `is_sandbox`: the environment of a session says that the machine is one.
    """

    name: str
    argv: Sequence[str]
    found: str | None
    is_root: bool = False
    is_sandbox: bool = False


def obstacle(facts: ProgramFacts) -> Obstacle | None:
    """Why every start of this agent fails on this machine; None when nothing is known against it."""
    program = facts.argv[0] if facts.argv else ""
    if facts.found == "":
        change = Change(Act.CHOOSE_AGENT, "Install it or choose another agent", facts.name)
        text = f"{facts.name} is not installed on this machine: {program or 'its program'} was not found."
        return Obstacle(Why.NO_PROGRAM, text, change)
    if facts.is_root and not facts.is_sandbox and _refuses_root(facts.argv):
        change = Change(Act.CHOOSE_AGENT, "Change the profile or the user", facts.name)
        text = (
            "Claude Code refuses to run as root without asking for permissions: set IS_SANDBOX=1 "
            f"in the environment of the profile {facts.name} if this machine is a sandbox, or run "
            "labsite as another user."
        )
        return Obstacle(Why.ROOT_REFUSED, text, change)
    return None


def _refuses_root(argv: Sequence[str]) -> bool:
    """Whether it is Claude Code told to ask for no permission, which it refuses as root."""
    return PurePath(argv[0]).name == "claude" and any(
        word in item for item in argv[1:] for word in _REFUSED_BY_ROOT
    )


def is_sandbox(values: Mapping[str, str]) -> bool:
    """Whether Claude Code takes the machine for a sandbox; any other value than 1 counts for nothing."""
    return "1" in (values.get("IS_SANDBOX"), values.get("CLAUDE_CODE_BUBBLEWRAP"))


def is_old(now: datetime, checked_at: datetime | None) -> bool:
    """Whether a stored check is asked again when somebody looks at it."""
    return checked_at is None or not timedelta(0) <= now - checked_at < OLD_AFTER


def version_of(out: str, err: str) -> str:
    """The first line that says something, of the answer to `--version`."""
    for line in [*out.splitlines(), *err.splitlines()]:
        words = _CONTROL.sub("", line).strip()
        if words:
            return words[:VERSION_CHARACTERS]
    return ""


def is_known(argv: Sequence[str]) -> bool:
    """Return whether versions of an agent's program were tried while labsite was made."""
    return bool(argv) and PurePath(argv[0]).name in TESTED


def untried(argv: Sequence[str], version: str, tried: Collection[str]) -> str:
    """Return what to say of a version that nobody has tried; empty for any other, or without one.

    `tried`: the versions that trials on this machine started.
    """
    if not version or version in tried:
        return ""
    tested = TESTED.get(PurePath(argv[0]).name if argv else "", ())
    if any(word in tested for word in version.split()):
        return ""
    known = f" labsite was tested with {' and '.join(tested)}." if tested else ""
    return f"This version was never tried.{known}"


def second_question(check: Sequence[str], argv: Sequence[str]) -> list[str]:
    """What is asked when a login check said no, since that may not be the whole truth; else empty.

    `codex login status` knows stored logins alone: with an API key in the environment or a model
    provider of one's own it says no although Codex works. `codex doctor` knows those too. It gets
    the profile's own configuration, which may be what names the provider.
    """
    if (
        len(check) < 3
        or PurePath(check[0]).name != "codex"
        or list(check[1:3]) != ["login", "status"]
    ):
        return []
    settings = [
        word
        for flag, value in itertools.pairwise(argv)
        if flag in ("-c", "--config") and not _PLACEHOLDER.search(value)
        for word in ("-c", value)
    ]
    return [check[0], "doctor", "--json", *settings]


def has_credentials(report: str) -> bool | None:
    """Whether Codex can ask its model provider, by its own report; None when it does not say.

    It counts OPENAI_API_KEY as present, yet sends it nowhere: then it would still ask as
    somebody who is logged in with ChatGPT, and is refused.
    """
    try:
        checks = json.loads(report)["checks"]
        status = checks["auth.credentials"]["status"]
        by_key = "auth env vars present" in checks["auth.credentials"]["details"]
        mode = checks["network.provider_reachability"]["details"].get("reachability mode", "")
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    if status != "ok":
        return False
    return not (by_key and mode == "ChatGPT auth")
