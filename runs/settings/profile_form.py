"""The form of an agent's profile: what labsite needs of any program, on one screen."""

from __future__ import annotations

from typing import Any

_ANY_PROGRAM = (
    "Any program can work here that edits files, runs commands and can be started with a task. "
    "After saving, press <i>Try this agent</i> on the settings page: it says step by step what "
    "works. <code>docs/agents.md</code> shows how to set up programs."
)
_START = (
    "<b>The task</b> reaches the program as {prompt}, one argument, or as {prompt_file}, the path of "
    "a file. The program starts in the run's worktree, in a tmux session, with labctl on its PATH. "
    "It must not ask a person anything: trust, permissions and first steps have to be answered by "
    "its arguments, its environment or its own settings. "
    "<b>The environment</b> is stored encrypted; values whose name says KEY, TOKEN, SECRET, PASSWORD "
    "or AUTH, or that look like a key, are masked wherever output is kept or shown."
)
_END = (
    "<b>What ends it.</b> The pull request of the run's branch is the success, whatever the program "
    "says. An interactive program stays open and is ended by labsite then; a one-shot program ends "
    "by itself, and has failed when it ends without a pull request. "
    "<b>How waiting shows.</b> With JSON lines, and from the hooks of Claude Code, labsite knows "
    "errors, limits and the end of a turn. Of any other program it knows the screen alone: one that "
    "waits for an answer looks as if it works until the run budget ends."
)
_RESUME = (
    "What a person types to go on. After a hold labsite starts Claude Code and Codex again with "
    "their own session; any other program gets its task again, in the same worktree."
)
_LOGIN = (
    "The check is asked before each start: status 0 is logged in, any other is logged out and "
    "refuses the start, no answer refuses automatic work alone. When Codex says no, "
    "<code>codex doctor</code> is asked too, so an API key in CODEX_API_KEY or a provider of your own "
    "counts. Empty the check for a program that has no login."
)

FIELDSETS: Any = [
    (None, {"fields": ["name", "mode"], "description": _ANY_PROGRAM}),
    ("How it is started", {"fields": ["argv", "env", "trust"], "description": _START}),
    ("How it ends and what it tells", {"fields": ["output"], "description": _END}),
    ("Is it logged in?", {"fields": ["login_command", "login_argv"], "description": _LOGIN}),
    ("Going on with a session", {"fields": ["resume_argv"], "description": _RESUME}),
    ("What may be chosen", {"fields": ["model_names", "efforts"]}),
    (
        "Its own page of a session",
        {"fields": ["link_files", "link_field", "link_url", "link_generic"]},
    ),
]
