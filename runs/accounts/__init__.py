"""Agents' accounts: logins, and holding runs while the service refuses an account."""
