"""The settings of a project, on pages of our own."""
