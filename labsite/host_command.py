"""`./lab host`: invites another machine, lets this one join, lists, drains and removes hosts.

Joining needs no Django and no database: the web process of the others answers once, over HTTP.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import ssl
import sys
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from labsite import env, folders, joined
from runs.core.paths import Paths
from runs.core.terminal import CODE_INTERRUPTED, Printer, say
from runs.hosts.this_machine import ThisMachine

SECONDS = 20
MOST_BYTES = 64 * 1024
LOOPBACK = ("localhost", "127.0.0.1", "::1")
PATH = "/hosts/join"


class Refused(Exception):
    """Nothing was joined; the text says why, and what to do."""


def main(argv: Sequence[str]) -> int:
    """Run the command: 0 done, 1 after one sentence that says what to do, 2 wrong arguments."""
    given = _parser().parse_args(argv)
    try:
        if given.act == "join":
            return join(given.url, given.token, is_plain=given.plain)
        return _act(given)
    except (Refused, env.WrongSetting) as error:
        say(str(error))
    except KeyboardInterrupt:
        return CODE_INTERRUPTED
    return 1


def _act(given: argparse.Namespace) -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labsite.settings")
    from labsite import loading, preflight
    from labsite.follow import Programs

    try:
        Programs(Paths(env.state_dir())).prepare()  # tables that can be read; nothing is started
        loading.set_up()
    except preflight.Problem as error:
        raise Refused(str(error)) from error
    from runs.hosts import command

    return command.carry_out(given)


def join(url: str, token: str, *, is_plain: bool) -> int:
    """Ask the web process of the others for what this machine needs, once, and keep it."""
    paths = Paths(env.state_dir())
    address = _address(url, is_plain=is_plain)
    if (paths.state / joined.FILE).exists():
        raise Refused(
            f"This state folder, {paths.state}, belongs to a host already: set LAB_STATE_DIR to a new "
            "folder, then join again. The token was not used."
        )
    if paths.database.exists():
        raise Refused(
            f"The state folder {paths.state} holds a labsite of its own: set LAB_STATE_DIR to a new "
            "folder, then join again. The token was not used."
        )
    try:
        folders.prepare(paths)
        machine = ThisMachine(paths.state, paths.repos, "", is_shared=True)
        told = _asked(address, {"token": token, "machine": machine.identity})
        file = joined.write(paths.state, {**told, "LAB_WEB_URL": address.rstrip("/")})
    except OSError as error:
        raise Refused(f"{paths.state} cannot be written ({error.strerror}).") from error
    out = Printer(sys.stdout)
    out.line(f"This machine is host {told['LAB_SESSION_HOST']} now; its settings are in {file}.")
    out.line("Start it with ./lab up --only worker")
    return 0


def _address(url: str, *, is_plain: bool) -> str:
    parts = urlsplit(url if "//" in url else f"https://{url}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Refused(f"{url[:200]} is no address; write it as https://lab.example.org.")
    if parts.scheme == "http" and parts.hostname not in LOOPBACK and not is_plain:
        raise Refused(
            "The answer holds the key and the database's password, and http:// would show it to "
            "everybody on the way: use https://, or --plain in a network that you trust. The token "
            "was not used."
        )
    return parts.geturl()


def _asked(address: str, sent: Mapping[str, str]) -> dict[str, str]:
    """What the web process told. Raises Refused with its own sentence where it gave one."""
    parts = urlsplit(address)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    more: dict[str, Any] = (
        {"context": ssl.create_default_context()} if parts.scheme == "https" else {}
    )
    connection = kind(parts.hostname or "", parts.port, timeout=SECONDS, **more)
    try:
        head = {"Content-Type": "application/json", "Accept": "application/json"}
        path = f"{parts.path.rstrip('/')}{PATH}"
        connection.request("POST", path, json.dumps(dict(sent)), head)
        answer = connection.getresponse()
        body = answer.read(MOST_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise Refused(
            f"{address} did not answer ({error}): is the address right, and can this machine reach it?"
        ) from error
    finally:
        connection.close()
    try:
        told = json.loads(body)
        if answer.status == 200:
            return {name: str(told["settings"][name]) for name in told["settings"]}
        raise Refused(str(told["text"]))
    except (ValueError, KeyError, TypeError) as error:
        raise Refused(
            f"{address} answered with {answer.status} and nothing that labsite understands."
        ) from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./lab host",
        description="Machines that run sessions.",
        epilog="Exit codes: 0 done, 1 refused or failed, 2 wrong arguments.",
        allow_abbrev=False,
    )
    acts = parser.add_subparsers(dest="act", metavar="ACT", required=True)

    def one(name: str, words: str) -> argparse.ArgumentParser:
        made = acts.add_parser(name, help=words, description=words, allow_abbrev=False)
        made.add_argument("name", type=_name, help="the name of the host")
        return made

    add = one("add", "Invite a machine; prints the one command that joins it.")
    add.add_argument("--label", action="append", default=[], help="what projects may ask for")
    add.add_argument("--cap", type=int, help="most live sessions there (the general cap)")
    add.add_argument("--ssh", default="", help="how people reach it, such as anna@gpu1")
    add.add_argument("--url", default="", help="the address at which it reaches labsite")
    changed = one("set", "Change what a host is for; what is not named stays.")
    changed.add_argument("--label", action="append", help="what projects may ask for")
    changed.add_argument("--no-labels", action="store_true", help="take all labels away")
    changed.add_argument("--cap", help="most live sessions there, or “general” for the general cap")
    changed.add_argument("--ssh", help="how people reach it, such as anna@gpu1")
    joins = acts.add_parser("join", help="join this machine to others", allow_abbrev=False)
    joins.add_argument("url", help="the address of labsite")
    joins.add_argument("token", help="the join token that ./lab host add printed")
    joins.add_argument("--plain", action="store_true", help="allow http:// to another machine")
    listed = acts.add_parser("list", help="show all hosts", allow_abbrev=False)
    listed.add_argument("--json", action="store_true", help="as one JSON array")
    one("drain", "Take nothing new there; what runs finishes.")
    one("resume", "Take work again on a drained host.")
    one("give-up", "End what runs on a host that is silent.")
    removed = one("remove", "Take a host out.")
    removed.add_argument(
        "--and-runs", action="store_true", help="end what runs there first, as by Stop"
    )
    one("claim", "Have this machine work as a host that is silent or was removed.")
    return parser


def _name(text: str) -> str:
    if not re.fullmatch(r"[^\s/]{1,100}", text):
        raise argparse.ArgumentTypeError("write a name without spaces")
    return text
