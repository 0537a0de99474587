"""Pull requests: diff, review, comments, merging, checks."""
