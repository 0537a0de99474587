"""Notices to the outside: rules, deliveries, addresses, pings."""
