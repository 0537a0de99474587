"""What lets people and programs in, and what is counted of those who only try."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q


class ApiToken(models.Model):
    """A person's token for programs. Only its hash is stored; it is shown once, when it is made.

    A token never allows more than its owner: acting needs the scope and the owner's permission.
    """

    class Scope(models.TextChoices):
        LOOK = "look", "look: read everything, change nothing"
        ACT = "act", "act: everything that its owner may do"

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens"
    )
    name = models.CharField(max_length=100)
    scope = models.CharField(max_length=10, choices=Scope, default=Scope.LOOK)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    hint = models.CharField(max_length=12, help_text="The first characters, to tell tokens apart.")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                name="token_scope_known", condition=Q(scope__in=["look", "act"])
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.hint}…)"


class Tries(models.Model):
    """What was tried at one door: when it will be as if nothing had been. Pruned from then on."""

    key = models.CharField(max_length=64, primary_key=True, help_text="A keyed hash of who tried.")
    clear_at = models.DateTimeField(db_index=True)

    class Meta:
        verbose_name_plural = "tries"

    def __str__(self) -> str:
        return f"tries until {self.clear_at}"


class Passkey(models.Model):
    """A person's key for logging in without a password. Only its public half is here.

    It works at the site that it was made for; `handle` is what the device knows the person by.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="passkeys"
    )
    name = models.CharField(max_length=100)
    site = models.CharField(max_length=253)
    credential_id = models.CharField(max_length=1400, unique=True, editable=False)
    public_key = models.BinaryField(editable=False)
    handle = models.CharField(max_length=100, editable=False)
    sign_count = models.BigIntegerField(default=0)
    transports = models.JSONField(default=list, blank=True)
    created_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(name="passkey_counts_up", condition=Q(sign_count__gte=0)),
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.user}"
