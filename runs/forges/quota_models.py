"""The quota ledger: what was asked of each forge and with which account, and what it still allows."""

from __future__ import annotations

from django.db import models


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
