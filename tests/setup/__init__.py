"""The set-up commands of a project: before an agent starts, and before work is checked."""
