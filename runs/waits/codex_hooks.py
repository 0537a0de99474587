"""The hooks that labsite gives an interactive Codex, and that it trusts these and no others.

No Django in here. Codex runs a hook only once a person has trusted what exactly it runs, or without
asking for any at all, which would let a repository's own hooks run too. Its flags may say which
hooks are trusted, each by a digest; so ours are, and everything else stays as its user decided.
"""

from __future__ import annotations

import hashlib
import json
import os.path
import shlex
from collections.abc import Sequence
from pathlib import Path

# Its name of an event in the configuration, and in the key of a hook.
EVENTS = {
    "SessionStart": "session_start",
    "UserPromptSubmit": "user_prompt_submit",
    "PermissionRequest": "permission_request",
    "Stop": "stop",
}
HOOK_SECONDS = 10
FLAG = "-c"
# Where a hook that came by a flag counts as defined.
_PLACE = "/<session-flags>/config.toml"


def equipped(argv: Sequence[str], labctl: Path) -> list[str]:
    """An argument list that has an interactive Codex tell labsite of its turns and its questions.

    One that starts something else, or has hooks of its own among its flags, is left as it is.
    """
    is_codex = bool(argv) and os.path.basename(argv[0]) == "codex"  # noqa: PTH119
    has_own = any(word.startswith(("hooks.", "hooks=")) for word in argv)
    if not is_codex or has_own or "exec" in argv:
        return list(argv)
    return [argv[0], *_flags(f"{shlex.quote(str(labctl))} hook session"), *argv[1:]]


def _flags(command: str) -> list[str]:
    flags: list[str] = []
    trusted: list[str] = []
    for event, name in EVENTS.items():
        written = f'type="command",command={json.dumps(command)},timeout={HOOK_SECONDS}'
        flags += [FLAG, f"hooks.{event}=[{{hooks=[{{{written}}}]}}]"]
        trusted.append(f'"{_PLACE}:{name}:0:0"={{trusted_hash="{digest(name, command)}"}}')
    return [*flags, FLAG, f"hooks.state={{{','.join(trusted)}}}"]


def digest(event: str, command: str) -> str:
    """What Codex knows a hook by, as 0.169.0 makes it: other words for it make another hook."""
    hook = {"type": "command", "command": command, "timeout": HOOK_SECONDS, "async": False}
    plain = json.dumps(
        {"event_name": event, "hooks": [hook]},
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
    )
    return f"sha256:{hashlib.sha256(plain.encode()).hexdigest()}"
