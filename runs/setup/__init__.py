"""Prepares the worktree of a run: the project's set-up commands, run before the agent starts."""
