"""The part of the fake git that parks, rescues and restores: dictionaries again."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from runs.core.kept_ports import RESCUES, Branch, ObjectCount, SharedState, Snapshot, Standing
from runs.core.ports import SeamError, Taken
from tests.fake_history import AT

if TYPE_CHECKING:
    from tests.fakes import FakeTree


class FakeKept:
    """`Keeping` without a disk; `FakeRepos` brings heads and worktrees."""

    heads: dict[Path, dict[str, str]]
    trees: dict[Path, FakeTree]
    origins: dict[str, dict[str, str]]
    sparse: dict[Path, tuple[str, ...]]

    def __init__(self) -> None:
        self.kept: dict[Path, dict[str, dict[str, str]]] = {}
        self.merged_into: dict[str, set[str]] = {}
        self.counts: dict[str, int] = {}
        self.sizes_of: dict[Path, int] = {}
        self.broken_list = ""
        self.broken_keep = ""
        self.broken_merged = ""
        self.submodule_work: set[Path] = set()
        self.objects: dict[Path, ObjectCount] = {}
        self.packed: dict[Path, datetime] = {}
        self.broken_pack = ""
        self.shared: dict[Path, SharedState] = {}
        self.accepted: dict[Path, SharedState] = {}
        self.settings_in: dict[Path, str] = {}
        self.listed = 0
        self.counted = 0

    @contextlib.contextmanager
    def hold(self, repo: Path) -> Iterator[None]:
        yield

    def branches(self, repo: Path, prefixes: Sequence[str]) -> Sequence[Branch]:
        self.listed += 1
        if self.broken_list:
            raise SeamError(self.broken_list)
        where = {
            tree.branch: str(path) for path, tree in self.trees.items() if tree.repo in (None, repo)
        }
        return [
            Branch(name, tip, AT, where.get(name, ""))
            for name, tip in self.heads.get(repo, {}).items()
            if name.startswith(tuple(prefixes))
        ]

    def merged(self, repo: Path, base: str, prefixes: Sequence[str]) -> frozenset[str]:
        if self.broken_merged:
            raise SeamError(self.broken_merged)
        names = self.merged_into.get(base, set())
        return frozenset(name for name in names if name.startswith(tuple(prefixes)))

    def pushed_tips(self, repo: Path, base: str, prefixes: Sequence[str]) -> Mapping[str, str]:
        return {base: "f" * 40, **self.origins.get(str(repo), {})}

    def ahead(self, repo: Path, branch: str, base: str) -> int:
        self.counted += 1
        return self.counts.get(branch, 0)

    def unpushed(self, repo: Path, branch: str, base: str) -> int:
        return self.ahead(repo, branch, base)

    def registered(self, repo: Path) -> Sequence[Path]:
        return [path for path, tree in self.trees.items() if tree.repo in (None, repo)]

    def standing(self, repo: Path, path: Path) -> Standing:
        tree = self.trees.get(path)
        if tree is None:
            return Standing(is_linked=False)
        return Standing(tree.fork_point, tree.branch)

    def weight(self, repo: Path, path: Path) -> int:
        return self.sizes_of.get(path, 0)

    def holds_submodule_work(self, repo: Path, path: Path) -> bool:
        return path in self.submodule_work

    def parents(self, repo: Path, commit: str) -> Sequence[str]:
        return ()

    def snapshot(
        self, repo: Path, tip: str, path: Path | None, tell: Callable[[int], None] | None = None
    ) -> Snapshot:
        tree = self.trees.get(path) if path else None
        if tree is None:
            return Snapshot(tip, tip, "t" * 40, "t" * 40, False, False)
        return Snapshot(tip, tip, "t" * 40, "t" * 40, bool(tree.is_dirty), True)

    def keep(self, repo: Path, ref: str, state: Snapshot, notes: Mapping[str, str]) -> str:
        if self.broken_keep:
            raise SeamError(self.broken_keep)
        told = {**notes, "tip": state.tip, "head": state.head, "index": state.index}
        self.kept.setdefault(repo, {})[ref] = {**told, "commit": "c" * 40}
        return "c" * 40

    def rescues(self, repo: Path) -> Mapping[str, Mapping[str, str]]:
        return self.kept.get(repo, {})

    def drop(self, repo: Path, ref: str) -> None:
        if not ref.startswith(RESCUES):
            raise SeamError(f"{ref} is no rescue ref")
        self.kept.get(repo, {}).pop(ref, None)

    def put_back(self, repo: Path, ref: str, branch: str, path: Path | None) -> None:
        notes = self.kept.get(repo, {}).get(ref)
        if notes is None:
            raise SeamError("its rescue ref is gone, so there is nothing to restore from")
        if branch in self.heads.get(repo, {}) or (path is not None and path.exists()):
            raise Taken(f"the branch {branch} is there already")
        self.heads.setdefault(repo, {})[branch] = notes["tip"]
        if path is not None:
            self._plant(repo, path, branch, notes["tip"], is_dirty=bool(notes.get("dirty")))

    def _plant(self, repo: Path, path: Path, branch: str, tip: str, is_dirty: bool) -> None:
        raise NotImplementedError

    def add_detached(
        self, repo: Path, path: Path, commit: str, folders: Sequence[str] = ()
    ) -> None:
        self.force_remove(repo, path)
        path.mkdir(parents=True)
        self.sparse[path] = tuple(folders)

    def force_remove(self, repo: Path, path: Path) -> None:
        self.trees.pop(path, None)
        shutil.rmtree(path, ignore_errors=True)

    def delete_branch(self, repo: Path, branch: str, tip: str) -> None:
        if self.heads.get(repo, {}).get(branch) != tip:
            raise SeamError(f"{branch} is not at {tip}")
        del self.heads[repo][branch]

    def packed_at(self, repo: Path) -> datetime | None:
        return self.packed.get(repo)

    def count_objects(self, repo: Path) -> ObjectCount:
        return self.objects.get(repo, ObjectCount(0, 0))

    def pack(self, repo: Path, now: datetime) -> bool:
        self.packed[repo] = now
        if self.broken_pack:
            raise SeamError(self.broken_pack)
        self.objects[repo] = ObjectCount(0, 1)
        return True

    def read_shared(self, repo: Path) -> SharedState | None:
        return self.shared.get(repo)

    def accepted_shared(self, repo: Path) -> SharedState | None:
        return self.accepted.get(repo)

    def accept_shared(self, repo: Path, state: SharedState) -> None:
        self.accepted[repo] = state

    def mend_shared(
        self, repo: Path, files: Mapping[str, str | None], hooks: Sequence[str]
    ) -> None:
        found = self.shared[repo]
        texts = {**found.files, **files}
        self.shared[repo] = SharedState(
            {name: text for name, text in texts.items() if text is not None},
            {name: mark for name, mark in found.hooks.items() if name not in hooks},
            found.unread - files.keys(),
        )

    def own_settings(self, path: Path) -> str | None:
        return self.settings_in.get(path)

    def sizes(self, paths: Sequence[Path]) -> Mapping[Path, int]:
        return {path: self.sizes_of[path] for path in paths if path in self.sizes_of}
