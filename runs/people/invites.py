"""The link with which a person chooses a password: works once, for three days, newest only."""

from __future__ import annotations

from datetime import datetime

from django.contrib.auth.models import User
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.db import transaction

from runs.core.ports import Lab
from runs.core.refusal import ActRefused
from runs.people import acts, passwords

DEAD_LINK = (
    "This link does not work any more: it was used, it is older than three days, or a newer one "
    "was made. Nothing was changed. Ask an admin for a new one, or log in."
)


class InviteRefused(ActRefused):
    """The link is dead. Nothing was changed."""


class _Links(PasswordResetTokenGenerator):
    """Django's signed tokens by the product's clock; a password that changes makes them void."""

    # Part of the signature of links that are under way: it stays, wherever this module moves.
    key_salt = "runs.work.invites"

    def __init__(self, lab: Lab) -> None:
        super().__init__()
        self._lab = lab

    def _now(self) -> datetime:
        return self._lab.now().replace(tzinfo=None)


def link_token(lab: Lab, user: User) -> str:
    """The token of a person's link. It is not stored, so nothing can show it again."""
    return _Links(lab).make_token(user)


def invited(lab: Lab, person: int, token: str) -> User | None:
    """The person who may choose a password with this link now; None when it is dead."""
    user = User.objects.filter(pk=person, is_active=True).first()
    if user is None or user.has_usable_password():
        return None
    return user if _Links(lab).check_token(user, token) else None


def accept(lab: Lab, person: int, token: str, password: str) -> User:
    """Store the password that a person has chosen. Of two at the same time one wins.

    Raises InviteRefused, or PasswordRefused when the password may not be used.
    """
    user = invited(lab, person, token)
    if user is None:
        raise InviteRefused(DEAD_LINK)
    passwords.check(password, user)
    before = user.password
    user.set_password(password)
    with transaction.atomic():
        ours = User.objects.filter(pk=user.pk, password=before, is_active=True)
        if not ours.update(password=user.password):
            raise InviteRefused(DEAD_LINK)
        acts.tell(lab, f"{user.username} chose a password", by=user.username)
    return user
