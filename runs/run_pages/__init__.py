"""The page of a run: its tabs, and what happened told as a story."""
