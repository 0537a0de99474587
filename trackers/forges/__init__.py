"""Adapters of Gitea, Forgejo and GitHub. No Django here: ticks call them from pool threads."""
