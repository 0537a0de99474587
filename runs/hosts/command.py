"""What `./lab host` does with the database, and prints."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable, Mapping

from django.db import DatabaseError

from runs.core import database_trouble
from runs.core.refusal import ActRefused
from runs.core.terminal import Printer, say, who
from runs.hosts import acts, queries
from runs.models import Host, Settings
from runs.wiring import lab


def carry_out(given: argparse.Namespace) -> int:
    """One act; its exit code: 0 done, 1 refused, with one sentence."""
    try:
        return _ACTS[given.act](given, Printer(sys.stdout))
    except ActRefused as error:
        say(error.text)
    except DatabaseError as error:
        say(database_trouble.database_words(str(error)))
    return 1


def _add(given: argparse.Namespace, out: Printer) -> int:
    world = lab()
    wanted = acts.terms(given.label, given.cap, given.ssh)
    token = acts.invite(world, given.name, wanted, who())
    url = given.url or Settings.current().public_address
    if not url and world.paths.address.exists():
        url = world.paths.address.read_text().strip()
    say("On the other machine, within an hour and once:")
    out.line(f"./lab host join {url.rstrip('/') or 'https://ADDRESS-OF-LABSITE'} {token}")
    if not given.url and not Settings.current().public_address:
        say("Put the address there at which that machine reaches labsite (or say --url).")
    return 0


def _set(given: argparse.Namespace, out: Printer) -> int:
    host = acts.named(given.name)
    labels = [] if given.no_labels else host.labels if given.label is None else given.label
    ssh = host.ssh_address if given.ssh is None else given.ssh
    changed = acts.change(lab(), host, acts.terms(labels, _cap(given.cap, host), ssh), who())
    out.line(
        f"{given.name} was changed." if changed else "Nothing differs, so nothing was changed."
    )
    return 0


def _cap(text: str | None, host: Host) -> int | None:
    """The cap that somebody wrote; None is the general one. Raises HostRefused."""
    if text is None:
        return host.session_cap
    if text == "general":
        return None
    if not (text.isascii() and text.isdigit()):
        raise acts.HostRefused("The cap is a number, or “general” for the general cap.")
    return int(text[:9])


def _list(given: argparse.Namespace, out: Printer) -> int:
    rows = queries.all_of(lab())
    if given.json:
        out.line(json.dumps([dataclasses.asdict(row) for row in rows], default=str))
        return 0
    for row in rows:
        load = "–" if row.load is None else f"{row.load:.1f}"
        disk = "–" if row.disk_free_gb is None else f"{row.disk_free_gb} GB"
        labels = ",".join(row.labels) or "–"
        older = " (older)" if row.is_behind else ""
        out.line(
            f"{row.name}  {row.state}  {row.runs} of {row.cap} slots  load {load}  disk {disk}  "
            f"labels {labels}  {row.version or 'version –'}{older}"
        )
    return 0


def _drain(given: argparse.Namespace, out: Printer) -> int:
    changed = acts.drain(lab(), acts.named(given.name), who())
    out.line(f"{given.name} takes nothing new." if changed else f"{given.name} drained already.")
    return 0


def _resume(given: argparse.Namespace, out: Printer) -> int:
    changed = acts.resume(lab(), acts.named(given.name), who())
    out.line(f"{given.name} takes work again." if changed else f"{given.name} did not drain.")
    return 0


def _give_up(given: argparse.Namespace, out: Printer) -> int:
    out.line(f"Gave up {_runs(acts.give_up(lab(), acts.named(given.name), who()))}.")
    return 0


def _remove(given: argparse.Namespace, out: Printer) -> int:
    ended = acts.remove(lab(), acts.named(given.name), who(), and_runs=given.and_runs)
    out.line(f"{given.name} was removed{f', and {_runs(ended)} ended' if ended else ''}.")
    return 0


def _claim(given: argparse.Namespace, out: Printer) -> int:
    acts.claim(lab(), acts.named(given.name, even_removed=True), who())
    out.line(f"This machine is host {given.name} now. Start it with ./lab up.")
    return 0


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


_ACTS: Mapping[str, Callable[[argparse.Namespace, Printer], int]] = {
    "add": _add,
    "set": _set,
    "list": _list,
    "drain": _drain,
    "resume": _resume,
    "give-up": _give_up,
    "remove": _remove,
    "claim": _claim,
}
