"""A run from its row to its outcome: launch, judge, reap, stop, adopt, and its page."""
