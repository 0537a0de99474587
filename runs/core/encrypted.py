"""Model fields that are encrypted at rest and never show themselves."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
from typing import Any

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings
from django.db import models

HIDDEN = "••••"


class Secret(str):
    """A decrypted secret. Its `repr` hides it, so that no log or traceback shows it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Secret(hidden)" if self else "Secret()"


def _fernet() -> Fernet:
    key = hashlib.sha256(b"labsite secret field" + settings.SECRET_KEY.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(key))


class SecretValues(dict[str, Any]):
    """A decrypted object. Its `repr` shows the names and hides the values."""

    def __repr__(self) -> str:
        return repr(dict.fromkeys(self, HIDDEN))


_writes = itertools.count(1)
_last_write = 0


def writes() -> int:
    """A number that changes whenever this process stores a secret."""
    return _last_write


def encrypted(text: str) -> str:
    global _last_write
    _last_write = next(_writes)
    return _fernet().encrypt(text.encode()).decode()


def decrypted(stored: str) -> str | None:
    """None when another key encrypted it, or nothing did."""
    try:
        return _fernet().decrypt(stored.encode()).decode()
    except InvalidToken:
        return None


class SecretField(models.TextField):  # type: ignore[type-arg]
    """Text stored encrypted with a key made from SECRET_KEY; read back as `Secret`.

    A value that cannot be decrypted (the key was replaced) reads as empty: the page then asks
    for it again instead of refusing to serve.
    """

    def get_prep_value(self, value: Any) -> Any:
        text = super().get_prep_value(value)
        return encrypted(str(text)) if text else ""

    def from_db_value(self, value: str | None, *args: object) -> Secret:
        return Secret((decrypted(value) if value else "") or "")


class EncryptedJSONField(models.JSONField):
    """A JSON object whose names and values are stored encrypted, like `SecretField`.

    It is read back as `SecretValues`; what cannot be decrypted reads as an empty object.
    """

    def get_internal_type(self) -> str:
        return "TextField"  # what is stored is no JSON

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        return encrypted(json.dumps(value)) if value else ""

    def from_db_value(self, value: str | None, *args: object) -> Any:
        text = decrypted(value) if value else ""
        found = json.loads(text) if text else {}
        return SecretValues(found) if isinstance(found, dict) else found
