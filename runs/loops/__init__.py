"""Loop runs: one prompt and one answer a turn, each with a fresh context, until an end or a limit."""
