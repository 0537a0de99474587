"""Agents: what runs in a session, whether its account can be used, and what it told."""

from __future__ import annotations
