"""beads: issues that the `bd` command keeps in a folder `.beads`. Keys are words."""
