"""The very first account, made through a link that works once."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from runs.core.paths import Paths
from runs.core.refusal import ActRefused
from runs.people import passwords

DEAD_LINK = (
    "This set-up link does not work any more: it was used, or a newer one was printed. "
    "Nothing was changed. Start labsite again to get a new link, or log in."
)


class SetupRefused(ActRefused):
    """No account was made; `field` names the one to correct, empty when the link is dead."""


def has_account() -> bool:
    """Whether anyone can log in at all."""
    return User.objects.exists()


def link_token(paths: Paths) -> str | None:
    """A new token for the set-up link, which replaces an older one; None once there is a user.

    Only its hash is kept, so that nobody who can read the state folder can use it.
    """
    if has_account():
        paths.setup_token.unlink(missing_ok=True)
        return None
    token = secrets.token_urlsafe(24)
    fresh = paths.setup_token.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(_hash(token))
    fresh.rename(paths.setup_token)
    return token


def link_path(token: str) -> str:
    """The address of the link below the product's; to look it up would load every page."""
    return f"/setup/{token}/"


def is_open(paths: Paths, token: str) -> bool:
    """Whether an account can be made with this token now."""
    try:
        kept = paths.setup_token.read_text()
    except OSError:
        return False
    return hmac.compare_digest(kept, _hash(token)) and not has_account()


def make_operator(paths: Paths, token: str, name: str, password: str) -> User:
    """Make the first user, who may do everything. Raises SetupRefused.

    Whoever removes the token's file has won; a second request at the same time makes nothing.
    """
    if not is_open(paths, token):
        raise SetupRefused(DEAD_LINK)
    # As the login page reads what is typed, or its owner could never log in again.
    name = User.normalize_username(name)
    user = User(username=name, is_staff=True, is_superuser=True)
    _check(user, password)
    user.set_password(password)
    with transaction.atomic():
        if has_account():
            raise SetupRefused(DEAD_LINK)
        try:
            with transaction.atomic():
                user.save()
        except IntegrityError as taken:
            raise SetupRefused(DEAD_LINK) from taken
        try:
            paths.setup_token.unlink()
        except FileNotFoundError as gone:
            raise SetupRefused(DEAD_LINK) from gone
    return user


def _check(user: User, password: str) -> None:
    """The rules for names and passwords that hold everywhere else. Raises SetupRefused."""
    try:
        user.clean_fields(exclude=["password"])
    except ValidationError as wrong:
        raise SetupRefused(" ".join(wrong.messages), field="name") from wrong
    try:
        passwords.check(password, user)
    except passwords.PasswordRefused as wrong:
        raise SetupRefused(str(wrong), field="password") from wrong


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
