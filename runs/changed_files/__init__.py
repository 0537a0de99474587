"""What a commit changed: kinds of files, and which of them belong to the checks themselves."""
