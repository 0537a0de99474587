"""Tunable numbers and the choice of agent for new sessions: tables, changes, page, API, admin."""
