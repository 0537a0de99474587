"""Whether a database can be brought up to date, judged by the names of its migrations. Pure.

An app's first migration holds all tables and stands for those before it, which are gone. It bears
the name of the last of them, so whoever applied that one is past it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Step = tuple[str, str]  # app and name


@dataclass(frozen=True, slots=True)
class Gap:
    """Names as "app.name": what a newer version did, and where an older one has stopped."""

    newer: list[str]
    older: list[str]


def gap(applied: Iterable[Step], known: Iterable[Step]) -> Gap:
    """What stands in the way of bringing a database up to date; apps that are not known count not."""
    applied, known = set(applied), set(known)
    first = {app: min(name for of, name in known if of == app) for app, _ in known}
    strange = {(app, name) for app, name in applied - known if app in first}
    gone = {(app, name) for app, name in strange if name < first[app]}
    behind = {app for app, _ in gone if (app, first[app]) not in applied}
    last = {app: max(name for of, name in gone if of == app) for app in behind}
    return Gap(sorted(map(".".join, strange - gone)), sorted(map(".".join, last.items())))
