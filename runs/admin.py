"""Joins the admin of the rooms: numbers and profiles are tuned there, what happened is only read."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.models import Group, User

from runs.groups import admin as group_admin
from runs.loop_pages import admin as loop_admin
from runs.settings import admin as settings_admin
from runs.specs import admin as spec_admin
from runs.timeline import admin as timeline_admin

# People have pages of their own, which tell the timeline and keep the last admin.
admin.site.unregister([User, Group])

__all__ = ["group_admin", "loop_admin", "settings_admin", "spec_admin", "timeline_admin"]
