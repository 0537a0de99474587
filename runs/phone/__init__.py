"""The product on a phone: installable, offline page, what the tab's title and icon count."""
