"""Pages across projects: overview, what needs attention, while you were away, health."""
