"""One act on many rows of a list: asked once, each through its own door, one result line each."""
