"""Projects: adding, cloning, origin, removal, their pages and API."""
