"""How the runs of a project are loops: what can be stored, and changing it."""
