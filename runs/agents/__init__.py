"""Coding agents: profiles, programs, checks, trials, and the API that an agent may ask."""
