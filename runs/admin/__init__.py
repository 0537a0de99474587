"""Django admin: numbers and profiles are tuned here, what happened is only read."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.models import Group, User

from runs.admin import groups, history, tuning

# People have pages of their own, which tell the timeline and keep the last admin.
admin.site.unregister([User, Group])

__all__ = ["groups", "history", "tuning"]
