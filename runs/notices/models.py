"""Where people are told outside of labsite, and what became of each notice sent there."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from runs.core.encrypted import SecretField
from runs.notices.push_rules import PushVerb
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
    endpoint_digest = models.CharField(
        max_length=64, blank=True, editable=False, help_text="Of a device's push endpoint."
    )
    after_minutes = models.PositiveIntegerField(
        default=0, help_text="Told only what was not seen elsewhere for so long; 0: at once."
    )
    tests_weekly = models.BooleanField(default=False)
    tested_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["user", "name"], name="notice_address_name_once"),
            models.UniqueConstraint(
                name="notice_device_once",
                fields=["endpoint_digest"],
                condition=~Q(endpoint_digest=""),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.user_id}"

    @property
    def is_device(self) -> bool:
        """Whether it is a browser that gets Web Push."""
        return bool(self.endpoint_digest)


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
    delivered_at = models.DateTimeField(null=True, blank=True)
    seen_at = models.DateTimeField(null=True, blank=True)
    acted_at = models.DateTimeField(null=True, blank=True)
    receipt = models.CharField(
        max_length=64, blank=True, editable=False, help_text="Hash of what the device answers with."
    )
    bundle = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="bundled",
        help_text="The one push in which this was told with others.",
    )  # fmt: skip
    is_self_test = models.BooleanField(default=False)
    page = models.CharField(
        max_length=100, blank=True, help_text="Of a digest: the page that it leads to."
    )

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "deliveries"
        constraints = [
            models.UniqueConstraint(name="delivery_once_per_notice", fields=["address", "notice"]),
            models.UniqueConstraint(
                name="delivery_receipt_once", fields=["receipt"], condition=~Q(receipt="")
            ),
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
            models.Index(name="delivery_state", fields=["state"]),
        ]

    def __str__(self) -> str:
        return f"{self.title} ({self.state})"

    @property
    def is_trial(self) -> bool:
        """Whether it is a test that somebody waits for: it is not tried again."""
        return self.notice_id is None and not self.is_self_test and not self.page

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


class PushKeys(models.Model):
    """The pair of keys with which this labsite signs its pushes. One row, made at first use."""

    private = SecretField(editable=False)
    public = models.CharField(max_length=120, editable=False)
    made_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "push keys"
        constraints = [models.CheckConstraint(condition=Q(pk=1), name="push_keys_are_one_row")]

    def __str__(self) -> str:
        return f"push keys of {self.made_at:%Y-%m-%d}"


class PushAct(models.Model):
    """One act that a push offers: bound to a person, a thing and its version. Used at most once.

    Only the hash of its token is stored. `about` names the thing as the person was told of it.
    """

    digest = models.CharField(max_length=64, unique=True, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="push_acts"
    )
    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="acts")
    act = models.CharField(max_length=10, choices=[(a.value, a.value) for a in PushVerb])
    words = models.CharField(max_length=300)
    about = models.JSONField(default=dict)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    said = models.CharField(max_length=400, blank=True)

    def __str__(self) -> str:
        return f"{self.act} for {self.user_id}"


class NoticeTimes(models.Model):
    """When a person wants no notices, which wait until the end of these hours, and when the digest.

    `digested_on` is the day whose digest was written last, by the person's clock.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notice_times"
    )
    quiet_from = models.TimeField(null=True, blank=True)
    quiet_to = models.TimeField(null=True, blank=True)
    zone = models.CharField(max_length=64, default="UTC")
    digest_at = models.TimeField(null=True, blank=True)
    digested_on = models.DateField(null=True, blank=True, editable=False)

    class Meta:
        verbose_name_plural = "notice times"
        constraints = [
            models.CheckConstraint(
                name="quiet_hours_have_both_ends",
                condition=Q(quiet_from=None, quiet_to=None)
                | Q(quiet_from__isnull=False, quiet_to__isnull=False),
            )
        ]

    def __str__(self) -> str:
        return f"notice times of {self.user_id}"


class Looking(models.Model):
    """A person has the page of a thing open in the foreground, as its socket says until then."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="looking"
    )
    topic = models.CharField(max_length=40)
    until = models.DateTimeField()

    class Meta:
        verbose_name_plural = "looking"
        constraints = [
            models.UniqueConstraint(name="looking_once_per_topic", fields=["user", "topic"])
        ]

    def __str__(self) -> str:
        return f"{self.user_id} at {self.topic}"
