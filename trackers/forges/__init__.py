"""Gitea, Forgejo and GitHub behind the tracker seam. No Django here: ticks ask from pool threads."""
