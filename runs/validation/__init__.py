"""Validations: commands run on a merged worktree, and fixers of what failed."""
