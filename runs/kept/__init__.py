"""Kept work: teardown, parked branches, discard, rescue, restore, sweep, disk."""
