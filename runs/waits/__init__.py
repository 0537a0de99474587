"""Runs that wait for a person: when they do, who is told, and how they are answered."""
