"""The keys that pages listen to: one table for the script, and for the sheet that tells people of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from runs.web import addresses

# After `g`: a key, where it leads, and the page's name.
GO = (
    ("o", "Overview", "runs:overview"),
    ("n", "Needs you", "runs:needs"),
    ("h", "History", "runs:history"),
    ("g", "Task groups", "runs:groups-all"),
    ("s", "Settings", "runs:settings"),
    ("a", "Your account", "runs:account"),
    ("/", "Search", "runs:search"),
)
GO_IN_PROJECT = (
    ("p", "The project", "runs:project"),
    ("i", "Its issues", "runs:issues"),
    ("r", "Its pull requests", "runs:pulls"),
    ("k", "Its parked work", "runs:parked"),
    ("w", "Why not running", "runs:waiting"),
)


@dataclass(frozen=True, slots=True)
class Shortcut:
    """One line of the sheet: keys one after the other, and what they do."""

    keys: tuple[str, ...]
    words: str


@dataclass(frozen=True, slots=True)
class Group:
    title: str
    shortcuts: Sequence[Shortcut]


def go(project_id: int | None) -> str:
    """Where each key leads from a page, as JSON; of a project only where the page is one's."""
    found = {key: addresses.of(name) for key, _, name in GO}
    if project_id is not None:
        found |= {key: addresses.of(name, project_id) for key, _, name in GO_IN_PROJECT}
    return json.dumps(found)


def sheet() -> Sequence[Group]:
    """All shortcuts as the sheet lists them."""
    return (
        Group(
            "Everywhere",
            (
                Shortcut(("/",), "Search and act"),
                Shortcut(("Ctrl", "K"), "The same, also while typing (⌘ K on a Mac)"),
                Shortcut(("?",), "This list"),
                Shortcut(("Esc",), "Close a dialog or a menu"),
            ),
        ),
        Group("Go to", tuple(Shortcut(("g", key), words) for key, words, _ in GO)),
        Group(
            "On a project's pages",
            tuple(Shortcut(("g", key), words) for key, words, _ in GO_IN_PROJECT),
        ),
        Group(
            "In lists",
            (
                Shortcut(("j",), "Next row"),
                Shortcut(("k",), "Row before"),
                Shortcut(("Enter",), "Open it"),
                Shortcut(("x",), "Choose it, where rows can be chosen"),
            ),
        ),
        Group(
            "In a diff",
            (Shortcut(("n",), "Next file"), Shortcut(("p",), "File before")),
        ),
    )
