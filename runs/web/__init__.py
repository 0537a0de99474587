"""The kit of pages: access, answers, live parts, feed, sockets, chrome, rendering."""
