"""What every command needs of its session: the client, texts, the error for wrong arguments."""

from __future__ import annotations

import json
import os
import sys

from labctl.client import Client, Failed

TYPE_CHECKING = False  # importing `typing` takes as long as Python itself
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class WrongArguments(Exception):
    """The command line does not say enough; the text says what is missing."""


def client(env: Mapping[str, str]) -> Client:
    """The client of this session. The token comes out of a private file, never out of argv."""
    folder, address = env.get("LAB_RUN_FOLDER", ""), env.get("LAB_ADDRESS_FILE", "")
    if not folder or not address:
        raise Failed("labctl works inside a session that labsite started; this is none.")
    try:
        with open(os.path.join(folder, "token"), encoding="ascii") as file:  # noqa: PTH118, PTH123
            token = file.read().strip()
    except (OSError, ValueError) as error:
        raise Failed("The token of this run cannot be read, so labsite cannot be asked.") from error
    return Client(address, token)


def remember_group(env: Mapping[str, str], name: str) -> None:
    """Store the group that this session works with, for hooks: agents name teams as they like."""
    path = os.path.join(env["LAB_RUN_FOLDER"], "group")  # noqa: PTH118
    try:
        with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(name)
    except OSError:
        return


def read(name: str | None) -> str:
    """The text of a file, or of standard input for `-` and when something is piped in."""
    try:
        if name not in (None, "-"):
            with open(str(name), "rb") as file:  # noqa: PTH123
                return file.read().decode("utf-8", "replace")
        if name is None and sys.stdin.isatty():
            raise WrongArguments("what to write? Use -m TEXT or -F FILE.")
        return sys.stdin.buffer.read().decode("utf-8", "replace")
    except OSError as error:
        raise WrongArguments(f"{name} cannot be read: {error.strerror}.") from error


def as_json(value: Any) -> str:
    """An answer as JSON, for programs."""
    return json.dumps(value, ensure_ascii=False, indent=2)
