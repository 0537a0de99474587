"""What every command needs of its session: the client, texts, the error for wrong arguments."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from labctl.client import Client, Failed


class WrongArguments(Exception):
    """The command line does not say enough; the text says what is missing."""


def client(env: Mapping[str, str]) -> Client:
    """The client of this session. The token comes out of a private file, never out of argv."""
    folder, address = env.get("LAB_RUN_FOLDER", ""), env.get("LAB_ADDRESS_FILE", "")
    if not folder or not address:
        raise Failed("labctl works inside a session that labsite started; this is none.")
    try:
        token = (Path(folder) / "token").read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise Failed("The token of this run cannot be read, so labsite cannot be asked.") from error
    return Client(Path(address), token)


def remember_group(env: Mapping[str, str], name: str) -> None:
    """Store the group that this session works with, for hooks: agents name teams as they like."""
    with contextlib.suppress(OSError):
        (Path(env["LAB_RUN_FOLDER"]) / "group").write_text(name, encoding="utf-8")


def read(name: str | None) -> str:
    """The text of a file, or of standard input for `-` and when something is piped in."""
    try:
        if name not in (None, "-"):
            return Path(str(name)).read_bytes().decode("utf-8", "replace")
        if name is None and sys.stdin.isatty():
            raise WrongArguments("what to write? Use -m TEXT or -F FILE.")
        return sys.stdin.buffer.read().decode("utf-8", "replace")
    except OSError as error:
        raise WrongArguments(f"{name} cannot be read: {error.strerror}.") from error


def as_json(value: Any) -> str:
    """An answer as JSON, for programs."""
    return json.dumps(value, ensure_ascii=False, indent=2)
