"""Forges and their accounts, the quota ledger of each, and what was last heard of a project's tracker."""

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
        """How its API is asked; without a credential when that cannot be decrypted."""
        known = ("token", "app_id", "app_installation", "app_key")
        return Account(self.api, **{name: str(self.credential.get(name, "")) for name in known})


class Quota(models.Model):
    """One account on one host, as last heard. `account` names the credential without telling it."""

    host = models.CharField(max_length=255)
    account = models.CharField(max_length=120)
    limit = models.PositiveIntegerField(null=True, blank=True)
    remaining = models.PositiveIntegerField(null=True, blank=True)
    reset_at = models.DateTimeField(null=True, blank=True)
    blocked_until = models.DateTimeField(null=True, blank=True)
    seen_at = models.DateTimeField()

    class Meta:
        ordering = ["host", "account"]
        constraints = [
            models.UniqueConstraint(fields=["host", "account"], name="quota_one_per_account")
        ]

    def __str__(self) -> str:
        return f"{self.host}, {self.account}"


class QuotaHour(models.Model):
    """What one purpose spent in one hour. `unchanged` of the calls were answered 304."""

    quota = models.ForeignKey(Quota, on_delete=models.CASCADE, related_name="hours")
    hour = models.DateTimeField()
    purpose = models.CharField(max_length=20)
    calls = models.PositiveIntegerField(default=0)
    unchanged = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["-hour", "purpose"]
        constraints = [
            models.UniqueConstraint(
                fields=["quota", "hour", "purpose"], name="quota_hour_one_per_purpose"
            )
        ]

    def __str__(self) -> str:
        return f"{self.quota_id}, {self.hour:%Y-%m-%d %H}: {self.purpose}"


class Asked(models.Model):
    """How often one account asked about one repository within ten minutes, which begin at `at`."""

    quota = models.ForeignKey(Quota, on_delete=models.CASCADE, related_name="asked")
    repository = models.CharField(max_length=300)
    at = models.DateTimeField()
    calls = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["-at", "repository"]
        verbose_name_plural = "asked"
        constraints = [
            models.UniqueConstraint(fields=["quota", "repository", "at"], name="asked_once")
        ]

    def __str__(self) -> str:
        return f"{self.repository}, {self.at:%Y-%m-%d %H:%M}: {self.calls}"


class Seen(models.Model):
    """Columns of a project. Hints for pages; nothing is started or ended by them.

    `queue_seen` holds `[key, title]` of at most thirty ready issues in the tracker's order,
    `held_seen` why some of them could not start when automatic work counted them last, by key,
    `pulls_seen` holds `[number, head, title, url]` of open pull requests of managed branches,
    `pulls_closed` those of ended runs that somebody closed without merging.
    """

    queue_seen = models.JSONField(default=list, blank=True, editable=False)
    queue_count = models.PositiveIntegerField(
        null=True, blank=True, editable=False, help_text="Ready issues at the last look."
    )
    held_seen = models.JSONField(default=dict, blank=True, editable=False)
    queue_seen_at = models.DateTimeField(null=True, blank=True, editable=False)
    queue_asked_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="When the ready queue was last asked for."
    )
    asked_every = models.PositiveIntegerField(
        null=True, blank=True, editable=False, help_text="Seconds between two such questions."
    )
    asked_why = models.CharField(
        max_length=200, blank=True, default="", editable=False, help_text="Why so seldom."
    )
    pulls_seen = models.JSONField(default=list, blank=True, editable=False)
    pulls_seen_at = models.DateTimeField(null=True, blank=True, editable=False)
    pulls_closed = models.JSONField(default=list, blank=True, editable=False)
    pulls_asked_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="When pull requests were last asked for."
    )
    changed_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="When asking last found a change."
    )
    hook_since = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="When its webhook got its secret."
    )
    hooked_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="The last webhook that was accepted."
    )
    issues_hooked_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="The last webhook that told of issues."
    )
    pulls_hooked_at = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text="The last webhook that told of pull requests.",
    )
    watched_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="When a page of it was last open."
    )

    class Meta:
        abstract = True
