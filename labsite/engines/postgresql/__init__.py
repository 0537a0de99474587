"""PostgreSQL; Django finds `base` in a package of this name."""
