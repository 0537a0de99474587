"""The settings file that labsite gives Claude Code beside the user's own, and how it reaches the program.

No Django in here. The file answers beforehand what nobody is there to answer, and has the program
tell labsite when it began, when a turn ended, and why a turn failed.
"""

from __future__ import annotations

import json
import os.path
import shlex
from collections.abc import Sequence
from pathlib import Path

NAME = "claude-settings.json"
FLAG, SESSION_FLAG = "--settings", "--session-id"
# Each starts a small program, so only what is read is asked for.
EVENTS = (
    *("SessionStart", "UserPromptSubmit", "Notification", "PermissionRequest"),
    *("Stop", "StopFailure", "SessionEnd"),
)
HOOK_SECONDS = 10
# A tool that shows a question and waits; without it the agent decides by itself, as its task says.
ASKING_TOOL = "AskUserQuestion"
# A tool that moves the session into another worktree on another branch, whose work nobody waits for.
WORKTREE_TOOL = "EnterWorktree"
# 2.1.332 draws on the terminal's second screen, and what stood there is gone when it ends: of a run
# that died nothing would be left, and of one that works only what fits on a screen.
# A run ends with its session. So no sessions in the background (`claude agents`, `--bg`, the daemon
# that holds them), nothing is handed to them at the end, and no prompt is put off for later.
ENVIRONMENT = {
    "CLAUDE_CODE_DISABLE_ALTERNATE_SCREEN": "1",
    "CLAUDE_CODE_DISABLE_AGENT_VIEW": "1",
    "CLAUDE_CODE_DISABLE_BG_EXIT_HANDOFF": "1",
    "CLAUDE_CODE_DISABLE_CRON": "1",
}
_OWN_SESSION = ("--session-id", "--resume", "-r", "--continue", "-c", "-p", "--print")


def content(labctl: Path | None = None, *, is_attended: bool = False) -> str:
    """The file; with `labctl` its events are heard. Where a person sits, the agent may ask them."""
    settings: dict[str, object] = {
        "skipDangerousModePermissionPrompt": True,
        "enableAllProjectMcpServers": True,
    }
    if not is_attended:
        settings["permissions"] = {"deny": [ASKING_TOOL, WORKTREE_TOOL]}
    if labctl is not None:
        command = f"{shlex.quote(str(labctl))} hook session"
        hook = {"type": "command", "command": command, "timeout": HOOK_SECONDS}
        settings["hooks"] = {event: [{"hooks": [hook]}] for event in EVENTS}
    return json.dumps(settings, indent=2)


def is_wanted(template: Sequence[str]) -> bool:
    """Whether an argument list asks for the file."""
    return any("{settings}" in word for word in template)


def equipped(template: Sequence[str]) -> list[str]:
    """An argument list that gives Claude Code the file and a session id, as placeholders.

    A list that starts `claude` without naming a settings file gets both. One with settings of its
    own, or that starts something else, such as a wrapper, is left as its operator wrote it; there
    `{settings}` and `{session}` may be used.
    """
    argv = list(template)
    is_claude = bool(argv) and os.path.basename(argv[0]) == "claude"  # noqa: PTH119
    has_own = any(word == FLAG or word.startswith(f"{FLAG}=") for word in argv)
    if is_wanted(argv) or not is_claude or has_own:
        return argv
    more = [FLAG, "{settings}"]
    if not any(word.partition("=")[0] in _OWN_SESSION for word in argv):
        more += [SESSION_FLAG, "{session}"]
    return [argv[0], *more, *argv[1:]]
