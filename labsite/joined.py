"""What a machine that joined others was told: kept in its state folder, read as if it stood in the environment."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

FILE = "host.json"
NAMES = ("LAB_DATABASE_URL", "LAB_REDIS_URL", "LAB_SECRET_KEY", "LAB_SESSION_HOST", "LAB_WEB_URL")


class Unreadable(Exception):
    """The file is there and cannot be used; the text says what to do."""


def read(state: Path) -> Mapping[str, str]:
    """The settings by name; nothing on a machine that never joined. Raises Unreadable."""
    path = state / FILE
    try:
        found = json.loads(path.read_bytes())
        return {name: str(found[name]) for name in NAMES if found.get(name)}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError) as error:
        raise Unreadable(
            f"{path} cannot be read: make its owner the one who runs labsite, or remove it and join "
            "again with a new token."
        ) from error


def write(state: Path, settings: Mapping[str, str]) -> Path:
    """Keep the settings, for their owner's eyes alone, in one step."""
    path = state / FILE
    handle, name = tempfile.mkstemp(dir=state, prefix=f".{FILE}-")  # only its owner may read it
    with os.fdopen(handle, "w") as file:
        json.dump({one: settings[one] for one in NAMES if settings.get(one)}, file)
    Path(name).replace(path)
    return path
