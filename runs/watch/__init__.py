"""Watch sessions: bounded periods of automatic work on a project."""
