"""Reviewers of work: how each is asked, where it works, and what its answer means."""
