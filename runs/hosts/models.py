"""Invitations of further machines: what `./lab host add` made and one machine may use once."""

from __future__ import annotations

from django.db import models


class HostInvite(models.Model):
    """A name for a machine that has not joined yet. Its token is kept as a hash, and works once."""

    name = models.CharField(max_length=100)
    token_hash = models.CharField(max_length=64, unique=True, editable=False)
    labels = models.JSONField(default=list, blank=True)
    session_cap = models.PositiveIntegerField(null=True, blank=True)
    ssh_address = models.CharField(max_length=200, blank=True, default="")
    by = models.CharField(max_length=150)
    made_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"invitation of host {self.name}"
