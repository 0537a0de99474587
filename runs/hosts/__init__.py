"""Session hosts: which one takes a start, how each is doing, and how machines join and leave."""
