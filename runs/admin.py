"""Joins the admin of the rooms: numbers and profiles are tuned there, what happened is only read."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.models import Group, User

from runs.groups import admin as groups
from runs.settings import admin as tuning
from runs.timeline import admin as history

# People have pages of their own, which tell the timeline and keep the last admin.
admin.site.unregister([User, Group])

__all__ = ["groups", "history", "tuning"]
