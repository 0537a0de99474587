"""A model field that is encrypted at rest and never shows itself (X-05)."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings
from django.db import models


class Secret(str):
    """A decrypted secret. Its `repr` hides it, so that no log or traceback shows it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Secret(hidden)" if self else "Secret()"


def _fernet() -> Fernet:
    key = hashlib.sha256(b"labsite secret field" + settings.SECRET_KEY.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(key))


class SecretField(models.TextField):  # type: ignore[type-arg]
    """Text stored encrypted with a key made from SECRET_KEY; read back as `Secret`.

    A value that cannot be decrypted (the key was replaced) reads as empty: the page then asks
    for it again instead of refusing to serve (LAB-134).
    """

    def get_prep_value(self, value: Any) -> Any:
        text = super().get_prep_value(value)
        return _fernet().encrypt(str(text).encode()).decode() if text else ""

    def from_db_value(self, value: str | None, *args: object) -> Secret:
        if not value:
            return Secret()
        try:
            return Secret(_fernet().decrypt(value.encode()).decode())
        except InvalidToken:
            return Secret()
