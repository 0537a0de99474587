"""Reads the environment. A wrong value fails loudly, with the name of the variable."""

from __future__ import annotations

import os
from pathlib import Path

from labsite import joined


class WrongSetting(Exception):
    """An environment variable holds something that cannot be meant; the text says what to do."""


class QueueBusy(WrongSetting):
    """The file of the queue cannot be opened now; the text says what to do."""


def text(name: str, default: str = "", most: int | None = None, least: int = 0) -> str:
    """A text as it stands. Raises WrongSetting for one of more than `most` characters, or of less
    than `least` unless it is empty."""
    value = os.environ.get(name)
    if value is None:
        value = _told(name, default)
    if 0 < len(value) < least:
        raise WrongSetting(f"{name} has {len(value)} characters; use at least {least}.")
    if most is not None and len(value) > most:
        raise WrongSetting(f"{name} has {len(value)} characters; use at most {most}.")
    return value


def flag(name: str, default: bool = False) -> bool:
    """True for 1, yes, true, on. Raises WrongSetting for other words."""
    value = os.environ.get(name, "").strip().lower()
    if not value:
        return default
    if value in ("1", "yes", "true", "on"):
        return True
    if value in ("0", "no", "false", "off"):
        return False
    raise WrongSetting(f"{name} is {value!r}; use 1 or 0.")


def number(name: str, default: int, low: int, high: int) -> int:
    """A whole number within limits. Raises WrongSetting."""
    value = os.environ.get(name, "").strip()
    if not value:
        return default
    if not value.isascii() or not value.isdigit() or not low <= int(value) <= high:
        raise WrongSetting(f"{name} is {value!r}; use a whole number from {low} to {high}.")
    return int(value)


def words(name: str) -> list[str]:
    """A list separated by commas or spaces."""
    return os.environ.get(name, "").replace(",", " ").split()


def _told(name: str, default: str) -> str:
    """What this machine was told when it joined others."""
    if name not in joined.NAMES:
        return default
    try:
        return joined.read(state_dir()).get(name, default)
    except joined.Unreadable as error:
        raise WrongSetting(str(error)) from error


def state_dir() -> Path:
    """The state folder: LAB_STATE_DIR, or `labsite` in the user's state directory."""
    given = os.environ.get("LAB_STATE_DIR", "").strip()
    if given:
        return Path(given).expanduser().absolute()
    base = os.environ.get("XDG_STATE_HOME", "").strip() or "~/.local/state"
    return Path(base).expanduser().absolute() / "labsite"
