"""Changed files as folders that open and close."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from runs.pulls.diff import FileDiff
from runs.web import code


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


def of(files: Sequence[FileDiff]) -> Folder:
    """The tree of these files, in their order."""
    root = Folder()
    for file in files:
        *path, name = file.change.path.split("/")
        at = root
        for part in path:
            at = at.folders.setdefault(part, Folder(part))
        at.files.append((code.plain(name), file))
    return _short(root, is_root=True)


def _short(folder: Folder, *, is_root: bool = False) -> Folder:
    """The same with chains of single folders joined. As deep as a path is long: git bounds it."""
    while not is_root and len(folder.folders) == 1 and not folder.files:
        only = next(iter(folder.folders.values()))
        folder = Folder(f"{folder.name}/{only.name}", only.folders, only.files)
    folder.folders = {name: _short(one) for name, one in folder.folders.items()}
    return folder
