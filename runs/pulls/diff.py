"""A patch as files and highlighted lines. The page shows what it can of a cut or odd patch.

The one rendering of changes: the run page shows a worktree with it, the pull request page commits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from django.utils.safestring import SafeString

from runs.core.history_ports import Change
from runs.core.recent import Recent
from runs.pulls import diff_rows, patches
from runs.pulls.patches import PatchLine
from runs.web import code

LINES = 1500
ONE_FILE = 5000
BIG = 500
SUBMODULE = "160000"

_KINDS = {
    "A": "added",
    "?": "new",
    "D": "deleted",
    "M": "changed",
    "T": "type changed",
    "R": "renamed",
}
_MODES = {
    "100644": "a file",
    "100755": "an executable file",
    "120000": "a symbolic link",
    SUBMODULE: "a submodule",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One row of a file's diff. `kind` is plus, minus, hunk, note or empty."""

    kind: str
    old: int | None
    new: int | None
    html: SafeString


@dataclass(frozen=True, slots=True)
class FileDiff:
    """One changed file with its lines, as far as they are shown.

    `load` is the address of a diff that is shown on demand; `talk` has the comments below a line,
    by its side and number.
    """

    change: Change
    lines: Sequence[Line] = field(default_factory=list)
    is_cut: bool = False
    number: int = 0
    is_split: bool = False
    is_open: bool = False
    load: str = ""
    error: str = ""
    talk: Mapping[diff_rows.Place, SafeString] = field(default_factory=dict)

    @property
    def tone(self) -> str:
        return {"A": "good", "?": "good", "D": "bad"}.get(self.change.kind, "info")

    @property
    def kind_words(self) -> str:
        return _KINDS.get(self.change.kind, "changed")

    @property
    def label(self) -> str:
        """The file's name for where there can be no HTML."""
        return code.plain(self.change.path)

    @property
    def is_big(self) -> bool:
        return self.size > BIG

    @property
    def size(self) -> int:
        """How many lines changed."""
        return (self.change.added or 0) + (self.change.removed or 0)

    @property
    def notes(self) -> list[str]:
        """What lines do not tell: another name, another mode, why nothing is shown."""
        return [said for said in (*_about(self.change), self._why_empty()) if said]

    @property
    def rows(self) -> SafeString:
        return diff_rows.rows(self.lines, self.number, self.talk, is_split=self.is_split)

    def _why_empty(self) -> str:
        change = self.change
        if self.error or self.lines or self.load:
            return self.error
        if change.kind == "?" and change.added is None:
            return "It is not text, or too long to be shown here."
        if SUBMODULE in (change.old_mode, change.new_mode):
            return _submodule(change)
        if change.added is None:
            return "It is binary, so there is nothing to read here."
        if change.kind in "AD?" and not self.size:
            return "It is empty."
        return "Its diff is not shown here." if self.size else ""


_LINES: Recent[Sequence[Line]] = Recent(8_000_000, lambda rows: sum(len(r.html) + 80 for r in rows))


def files(changes: Sequence[Change], patch: str) -> list[FileDiff]:
    """Each changed file with the part of the patch that belongs to it."""
    sections = patches.sections(patch)
    room = LINES
    found = []
    for number, change in enumerate(changes, 1):
        one = file(change, sections.get(change.path, ""), number, room=room)
        found.append(one)
        room = max(0, room - len(one.lines))
    return found


def file(change: Change, section: str, number: int, *, room: int = ONE_FILE) -> FileDiff:
    """One file with at most `room` lines of its part of a patch."""
    if not section or room <= 0:
        return FileDiff(change, is_cut=bool(section), number=number)
    digest = hashlib.blake2b(section.encode("utf-8", "replace"), digest_size=20).digest()
    lines = _LINES.get(
        (change.path, digest, room), lambda: _highlighted(change.path, section, room)
    )
    return FileDiff(change, lines[:room], len(lines) > room, number)


def _highlighted(path: str, section: str, room: int) -> list[Line]:
    """The lines of a section, one more than there is room for when there are more."""
    try:
        rows = list(patches.lines(section))[: room + 1]
    except ValueError:
        return [
            Line("", None, None, code.visible(text[: code.LONG]))
            for text in section.split("\n")[: room + 1]
        ]
    heads = [n for n, row in enumerate(rows) if row.kind == "hunk"]
    lines: list[Line] = []
    for start, end in pairwise([*heads, len(rows)]):
        lines += _hunk(path, rows[start:end])
    return lines


def _hunk(path: str, rows: Sequence[PatchLine]) -> list[Line]:
    """One hunk, read by its language as one text: it is the part of a file that belongs together."""
    shown = [n for n, row in enumerate(rows) if row.kind in ("", "plus", "minus")]
    marks = diff_rows.marks([(rows[n].kind, rows[n].text) for n in shown])
    texts = [rows[n].text.replace("\r", "") for n in shown]
    html = dict(zip(shown, code.lines(texts, path, marks), strict=True))
    return [
        Line(row.kind, row.old, row.new, html.get(n) or code.visible(row.text))
        for n, row in enumerate(rows)
    ]


def _about(change: Change) -> list[str]:
    said = []
    if change.old_path:
        said.append(f"It was {code.plain(change.old_path)} before.")
    if change.kind in "MRT" and change.old_mode != change.new_mode:
        old, new = (_MODES.get(m, f"mode {m}") for m in (change.old_mode, change.new_mode))
        said.append(f"It was {old}, and is {new} now.")
    elif change.kind == "A" and change.new_mode in ("100755", "120000"):
        said.append(f"It is {_MODES[change.new_mode]}.")
    return said


def _submodule(change: Change) -> str:
    old, new = (i[:12] if i.strip("0") else "nothing" for i in (change.old_id, change.new_id))
    return f"A submodule: from {old} to {new}."


@dataclass
class Folder:
    """A folder with what lies in it. Folders that hold only one folder share a line with it."""

    name: str = ""
    folders: dict[str, Folder] = field(default_factory=dict)
    files: list[tuple[str, FileDiff]] = field(default_factory=list)

    @property
    def label(self) -> str:
        return code.plain(self.name)

    @property
    def children(self) -> list[Folder]:
        return list(self.folders.values())


def build_tree(files: Sequence[FileDiff]) -> Folder:
    """Build the tree of changed files, in their order."""
    root = Folder()
    for file in files:
        *path, name = file.change.path.split("/")
        at = root
        for part in path:
            at = at.folders.setdefault(part, Folder(part))
        at.files.append((code.plain(name), file))
    return _join_chains(root, is_root=True)


def _join_chains(folder: Folder, *, is_root: bool = False) -> Folder:
    """Return the same with chains of single folders joined. As deep as a path is long: git bounds it."""
    while not is_root and len(folder.folders) == 1 and not folder.files:
        only = next(iter(folder.folders.values()))
        folder = Folder(f"{folder.name}/{only.name}", only.folders, only.files)
    folder.folders = {name: _join_chains(one) for name, one in folder.folders.items()}
    return folder
