"""Deliveries of webhooks: what came, and what it did. Nothing of their content is kept."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from runs.forges.hook_rules import HookDid
from runs.projects.models import Project


class HookDelivery(models.Model):
    """One signed delivery to a project. Its id and its body each count once, whoever sends again."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="hook_deliveries")
    delivery = models.CharField(max_length=100, help_text="The forge's own id of it.")
    digest = models.CharField(max_length=64)
    event = models.CharField(max_length=60)
    did = models.CharField(max_length=10, choices=[(d.value, d.words) for d in HookDid])
    received_at = models.DateTimeField()
    repeats = models.PositiveIntegerField(default=0, help_text="How often it came again.")
    repeated_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "hook deliveries"
        constraints = [
            models.UniqueConstraint(name="hook_delivery_once", fields=["project", "delivery"]),
            models.UniqueConstraint(name="hook_body_once", fields=["project", "digest"]),
            models.CheckConstraint(
                name="hook_did_known", condition=Q(did__in=[one.value for one in HookDid])
            ),
            models.CheckConstraint(
                name="hook_repeated_iff_moment",
                condition=Q(repeats=0, repeated_at=None)
                | Q(repeats__gt=0, repeated_at__isnull=False),
            ),
        ]
        indexes = [models.Index(name="hook_by_age", fields=["project", "received_at"])]

    def __str__(self) -> str:
        return f"{self.event} for project {self.project_id}"

    @property
    def words(self) -> str:
        """What it did, as a person reads it."""
        return HookDid(self.did).words
