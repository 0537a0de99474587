"""Pages, forms and API of loops; what they do is in `runs/loops/`."""
