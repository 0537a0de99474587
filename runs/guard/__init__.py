"""Watches what runs must not change: the repository that all runs of a project share."""
