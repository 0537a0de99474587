"""`./lab loop`: what is typed and printed, how a loop is followed, and when the next one begins."""
