"""History: all runs, narrowed, sorted and paged, as a page, as files and as a feed."""
