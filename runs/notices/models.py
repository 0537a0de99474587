"""Where people are told outside of labsite, and what became of each notice sent there."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from runs.core.encrypted import SecretField
from runs.notices.rules import Delivering
from runs.timeline.models import Notice


class NoticeAddress(models.Model):
    """One address of a person, and what is told there. The address itself is never shown again."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notice_addresses"
    )
    name = models.CharField(max_length=100)
    service = models.CharField(max_length=100, blank=True)
    url = SecretField(editable=False)
    topics = models.JSONField(default=list)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["user", "name"], name="notice_address_name_once"),
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.user_id}"


class Delivery(models.Model):
    """One notice to one address: what was said, and how that went. Without a notice it is a test."""

    address = models.ForeignKey(NoticeAddress, on_delete=models.CASCADE, related_name="deliveries")
    notice = models.ForeignKey(Notice, null=True, blank=True, on_delete=models.SET_NULL)
    title = models.CharField(max_length=200)
    text = models.TextField()
    sameness = models.CharField(max_length=64, blank=True)
    state = models.CharField(
        max_length=10,
        choices=[(s.value, s.value) for s in Delivering],
        default=Delivering.WAITING,
    )
    tries = models.PositiveIntegerField(default=0)
    error = models.CharField(max_length=400, blank=True)
    sender = models.CharField(
        max_length=200, blank=True, help_text="The process that sends it just now."
    )
    created_at = models.DateTimeField()
    next_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "deliveries"
        constraints = [
            models.UniqueConstraint(name="delivery_once_per_notice", fields=["address", "notice"]),
            models.CheckConstraint(
                name="delivery_sent_iff_moment",
                condition=Q(state=Delivering.SENT, sent_at__isnull=False)
                | ~Q(state=Delivering.SENT) & Q(sent_at=None),
            ),
            models.CheckConstraint(
                name="delivery_has_sender_iff_sending",
                condition=Q(state=Delivering.SENDING) & ~Q(sender="")
                | ~Q(state=Delivering.SENDING) & Q(sender=""),
            ),
        ]
        indexes = [
            models.Index(
                name="delivery_open",
                fields=["next_at"],
                condition=Q(state__in=["waiting", "sending"]),
            ),
            models.Index(name="delivery_same", fields=["address", "sameness", "created_at"]),
        ]

    def __str__(self) -> str:
        return f"{self.title} ({self.state})"

    @property
    def is_open(self) -> bool:
        return self.state in (Delivering.WAITING, Delivering.SENDING)


class Outbox(models.Model):
    """How far the timeline was told outside, and how the last ping went. One row, with key 1."""

    last_notice = models.BigIntegerField(default=0)
    pinged_at = models.DateTimeField(null=True, blank=True)
    was_healthy = models.BooleanField(default=True)
    ping_error = models.CharField(max_length=400, blank=True)

    class Meta:
        verbose_name_plural = "outbox"
        constraints = [models.CheckConstraint(condition=Q(pk=1), name="outbox_is_one_row")]

    def __str__(self) -> str:
        return f"told up to {self.last_notice}"
