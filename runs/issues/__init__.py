"""Issues: the built-in tracker and those on forges."""
