"""Run tokens: what an agent shows to prove which run it belongs to. Only the hash is stored."""

from __future__ import annotations

import hashlib
import hmac
import secrets


def new_token() -> str:
    """A fresh token with 256 bits of chance, safe in a header and in a file name."""
    return secrets.token_urlsafe(32)


def new_run_token() -> str:
    """A fresh token of a run, whose form tells what it is wherever it is printed."""
    return f"lab_run_{new_token()}"


def new_mark() -> str:
    """A fresh mark for a run's session: one word, and never again that of another run."""
    return f"lab-{secrets.token_hex(12)}"


def hash_token(token: str) -> str:
    """What is stored of a token. A plain hash is enough: nobody guesses 256 bits."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def is_token(token: str, stored_hash: str) -> bool:
    """Whether a token is the one that was stored, in time that tells nothing about it."""
    return bool(stored_hash) and hmac.compare_digest(hash_token(token), stored_hash)
