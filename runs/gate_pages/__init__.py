"""Pages and API of the gates; what they do is in `runs/gates/`."""
