"""What holds for every password that a person chooses, and changing one's own."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction

from runs.core.ports import Lab
from runs.core.refusal import ActRefused
from runs.people import acts


class PasswordRefused(ActRefused):
    """The password may not be used; the text says why."""


def check(password: str, user: User) -> None:
    """Raise PasswordRefused unless this person may use this password."""
    try:
        validate_password(password, user)
    except ValidationError as wrong:
        raise PasswordRefused(" ".join(wrong.messages), field="password") from wrong


def change(lab: Lab, user: User, password: str, session: str) -> None:
    """Store a person's new password and end their other sessions. Raises PasswordRefused."""
    check(password, user)
    user.set_password(password)
    with transaction.atomic():
        user.save(update_fields=["password"])
        acts.end_sessions(user, but=session)
        acts.tell(lab, f"{user.username} changed their password", by=user.username)
