"""Forges: where projects keep their issues and pull requests, and the account that is used there."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.db import models

from runs.core.encrypted import EncryptedJSONField, Secret
from runs.core.states import ForgeKind
from trackers.account import Account


class Forge(models.Model):
    """One account on one forge, shared by the projects that use it.

    `credential` holds `token`, or `app_id`, `app_installation` and `app_key` of a GitHub App.
    """

    name = models.CharField(max_length=60, unique=True)
    kind = models.CharField(max_length=12, choices=[(k.value, k.label) for k in ForgeKind])
    api = models.CharField(max_length=500, help_text="The root URL of its API.")
    web = models.CharField(max_length=500, help_text="The URL under which its repositories are.")
    credential = EncryptedJSONField(default=dict, blank=True, editable=False)
    examined_at = models.DateTimeField(null=True, blank=True, editable=False)
    trouble = models.TextField(blank=True, default="", editable=False)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def git_token(self, url: str) -> str:
        """What git may use for a repository of this forge, and for no other place.

        Empty for a GitHub App, which has none that lasts: `runs.projects.git_credentials` asks for one.
        """
        return Secret(self.account.token) if self.is_at(url) else ""

    def is_at(self, url: str) -> bool:
        """Whether a repository is reached by https at this forge."""
        place, ours = urlsplit(url), urlsplit(self.web)
        return (place.scheme, place.netloc.lower()) == (ours.scheme, ours.netloc.lower())

    @property
    def account(self) -> Account:
        """How its API is asked; without a credential when that cannot be decrypted (LAB-134)."""
        known = ("token", "app_id", "app_installation", "app_key")
        return Account(self.api, **{name: str(self.credential.get(name, "")) for name in known})
