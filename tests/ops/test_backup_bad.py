"""Files that are no backup, or not this one any more: one sentence each, and nothing is made."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import os
import sqlite3
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from labsite.backup import form, load, save, tables
from labsite.backup.archive import Reader
from labsite.backup.form import Unfit
from labsite.database import chosen
from runs.core.paths import Paths
from tests.house.product import LAB, environment, lab
from tests.ops.test_backup_parts import House, house
from tests.patience import PATIENCE

pytestmark = pytest.mark.real

__all__ = ["house"]


@pytest.fixture
def file(house: House, tmp_path: Path) -> Path:
    """A good backup whose origin is gone."""
    made = tmp_path / "good"
    save.backup(house.paths, made, force=False)
    return made


def _refused(file: Path, tmp_path: Path) -> str:
    """What a restore says; it must have made nothing."""
    (tmp_path / "target").mkdir(exist_ok=True)
    with pytest.raises(Unfit) as refused:
        load.restore(Paths(tmp_path / "target" / "new"), file)
    assert list((tmp_path / "target").iterdir()) == []
    assert "\n" not in str(refused.value)
    return str(refused.value)


Members = list[tuple[tarfile.TarInfo, bytes]]


def _members(file: Path) -> Members:
    with tarfile.open(file) as tar:
        return [(member, tar.extractfile(member).read()) for member in tar]  # type: ignore[union-attr]


def _packed(members: Members, file: Path, sums: bool = True) -> Path:
    """A backup file of these members; with `sums` its checksums are made to agree."""
    told = {info.name: hashlib.sha256(text).hexdigest() for info, text in members if info.isreg()}
    told.pop(form.SUMS, None)
    with tarfile.open(file, "w:gz") as tar:
        for info, text in members:
            if info.name == form.SUMS and sums:
                text = json.dumps(told).encode()
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text))
    return file


def _with_head(file: Path, into: Path, **more: Any) -> Path:
    members = _members(file)
    head = {**json.loads(members[0][1]), **more}
    return _packed([(members[0][0], json.dumps(head).encode()), *members[1:]], into)


def test_what_is_no_backup(house: House, tmp_path: Path) -> None:
    assert "There is no file" in _refused(tmp_path / "none", tmp_path)
    assert "is a folder" in _refused(tmp_path, tmp_path)
    (tmp_path / "text").write_text("hello")
    assert "not a backup" in _refused(tmp_path / "text", tmp_path)
    (tmp_path / "empty").write_bytes(b"")
    assert "not a backup" in _refused(tmp_path / "empty", tmp_path)
    (tmp_path / "zipped").write_bytes(gzip.compress(b"hello" * 1000))
    assert "not a backup" in _refused(tmp_path / "zipped", tmp_path)
    with tarfile.open(tmp_path / "other.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "text", "text")
    assert "not a backup" in _refused(tmp_path / "other.tar.gz", tmp_path)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file(file: Path, tmp_path: Path, share: float) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * share)])
    assert "not whole" in _refused(file, tmp_path)


def test_a_file_whose_end_was_cut_off_cleanly(file: Path, tmp_path: Path) -> None:
    assert "its end is missing" in _refused(
        _packed(_members(file)[:-1], tmp_path / "cut"), tmp_path
    )


def test_a_flipped_bit_is_refused_or_changes_nothing(file: Path, tmp_path: Path) -> None:
    # Some bits only choose between two ways to write the same content.
    good, content = _members(file), file.read_bytes()
    refused = 0
    for at in range(0, len(content), 97):
        flipped = bytearray(content)
        flipped[at] ^= 1
        file.write_bytes(flipped)
        try:
            Reader(file)
        except Unfit:
            refused += 1
        else:
            assert _told(_members(file)) == _told(good)
    assert refused > 20
    file.write_bytes(content[:-8] + bytes([content[-8] ^ 1]) + content[-7:])  # of the sum itself
    _refused(file, tmp_path)


def _told(members: Members) -> list[tuple[str, int, int, bytes]]:
    return [(info.name, info.mode, info.mtime, text) for info, text in members]


def test_a_changed_member(file: Path, tmp_path: Path) -> None:
    members = [
        (info, b"x" * 60 if info.name == "state/secret.key" else text)
        for info, text in _members(file)
    ]
    assert "checksum" in _refused(_packed(members, tmp_path / "changed", sums=False), tmp_path)


@pytest.mark.parametrize("name", ["../out", "/tmp/out", "state/../../out", "state/a/../../../out"])
def test_a_path_that_leads_outside(file: Path, tmp_path: Path, name: str) -> None:
    members = _members(file)
    members.insert(1, (tarfile.TarInfo(name), b"evil"))
    assert "outside" in _refused(_packed(members, tmp_path / "evil"), tmp_path)


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE]
)
def test_a_member_that_is_no_plain_file(file: Path, tmp_path: Path, kind: bytes) -> None:
    info = tarfile.TarInfo("state/odd")
    info.type, info.linkname = kind, "/etc/passwd"
    members = _members(file)
    members.insert(1, (info, b""))
    assert "no plain file" in _refused(_packed(members, tmp_path / "odd"), tmp_path)


@pytest.mark.parametrize("when", [10.0**30, -(10.0**30), float("nan")], ids=str)
def test_a_time_that_no_disk_can_keep(file: Path, tmp_path: Path, when: float) -> None:
    members = _members(file)
    members[2][0].pax_headers = {"mtime": str(when)}
    _refused(_packed(members, tmp_path / "odd"), tmp_path)


def test_a_head_that_nests_without_end(file: Path, tmp_path: Path) -> None:
    members = _members(file)
    deep = [(members[0][0], b"[" * 200_000), *members[1:]]
    assert "not a backup" in _refused(_packed(deep, tmp_path / "deep"), tmp_path)


def test_a_member_that_is_there_twice(file: Path, tmp_path: Path) -> None:
    members = _members(file)
    members.insert(2, (tarfile.TarInfo(members[1][0].name), b"other"))
    assert "twice" in _refused(_packed(members, tmp_path / "twice"), tmp_path)


@pytest.mark.parametrize(
    ("list_name", "value"),
    [
        pytest.param("links", {"../../evil": "/etc"}, id="a link outside"),
        pytest.param("folders", ["../../evil"], id="a folder outside"),
        pytest.param("deleted", ["../../../good"], id="deleting outside"),
        pytest.param("path", "../evil", id="a worktree outside"),
        pytest.param("repo", "../evil", id="a repository outside"),
        pytest.param("links", ["no", "object"], id="no object"),
        pytest.param("links", {"a": "b\0c"}, id="a link to no name"),
        pytest.param("links", {"a": "\ud800"}, id="a link to what no disk can keep"),
        pytest.param("links", {"a": ""}, id="a link to nothing"),
        pytest.param("folders", ["\ud800"], id="a name that no disk can keep"),
        pytest.param("deleted", "abc", id="no list"),
    ],
)
def test_a_list_that_leads_outside(
    file: Path, tmp_path: Path, list_name: str, value: object
) -> None:
    members = []
    for info, text in _members(file):
        if info.name.endswith("worktrees/0/about.json"):
            text = json.dumps({**json.loads(text), list_name: value}).encode()
        members.append((info, text))
    _refused(_packed(members, tmp_path / "evil"), tmp_path)
    assert (tmp_path / "good").exists()
    assert not (tmp_path / "evil-made").exists()


def test_a_saved_file_is_never_written_through_a_link(file: Path, tmp_path: Path) -> None:
    """The index may hold a link under whose name the file list then has a folder."""
    outside = tmp_path / "outside"
    outside.mkdir()
    members = []
    for info, text in _members(file):
        if info.name.endswith("worktrees/0/about.json"):
            links = {"kept": str(outside), ".git": str(outside / "git")}
            told = {**json.loads(text), "folders": ["kept/inner"], "links": links}
            told["admin"]["links"] = {"gitdir": str(outside / "gitdir")}
            text = json.dumps(told).encode()
        members.append((info, text))
    members.insert(1, (tarfile.TarInfo("git/0/worktrees/0/files/link/evil"), b"evil"))
    (tmp_path / "away").mkdir()
    load.restore(Paths(tmp_path / "away" / "new"), _packed(members, tmp_path / "evil"))
    assert list(outside.iterdir()) == []
    assert (tmp_path / "away" / "new" / "worktrees" / "demo-7" / "link" / "evil").exists()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        pytest.param({"format": 3}, "newer labsite", id="newer format"),
        pytest.param({"steps": ["runs.9999_future"]}, "9999_future", id="newer database"),
        pytest.param({"steps": ["runs.0030_labctl_done"]}, "0030_labctl_done", id="old database"),
        pytest.param({"engine": "postgresql"}, "LAB_DATABASE_URL", id="another engine"),
        pytest.param({"engine": "oracle"}, "", id="unknown engine"),
        pytest.param({"state": "relative"}, "cannot be meant", id="odd state folder"),
        pytest.param({"steps": [1]}, "cannot be meant", id="odd steps"),
        pytest.param({"format": "x"}, "not a backup", id="odd format"),
        pytest.param({"surprise": 1}, "not a backup", id="unknown key"),
    ],
)
def test_heads_that_cannot_be_restored_here(
    file: Path, tmp_path: Path, more: dict[str, Any], said: str
) -> None:
    assert said in _refused(_with_head(file, tmp_path / "head", **more), tmp_path)


def test_a_full_target_is_left_alone(file: Path, tmp_path: Path) -> None:
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "mine").write_text("mine")
    with pytest.raises(Unfit, match="is not empty"):
        load.restore(Paths(tmp_path / "used"), file)
    assert [path.name for path in (tmp_path / "used").iterdir()] == ["mine"]
    (tmp_path / "plain").write_text("")
    with pytest.raises(Unfit, match="no folder"):
        load.restore(Paths(tmp_path / "plain"), file)


def test_an_empty_target_is_filled(file: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    load.restore(Paths(tmp_path / "empty"), file)
    assert (tmp_path / "empty" / "lab.sqlite3").exists()


@pytest.mark.skipif(bool(chosen()), reason="what is missing here is a file of SQLite")
def test_calls_that_cannot_be_meant_are_one_sentence(tmp_path: Path) -> None:
    for argv in (["backup"], ["restore"], ["restore", "a", "b"], ["backup", "a", "--to", "-"]):
        done = lab(*argv, state=tmp_path / "s")
        assert done.returncode == 2, argv
        assert "usage:" in done.stderr
    for argv, said in (
        (["backup", str(tmp_path / "f")], "no state folder"),
        (["restore", str(tmp_path / "f")], "no file"),
    ):
        done = lab(*argv, state=tmp_path / "s")
        assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
        assert said in done.stderr
    (tmp_path / "s").mkdir()
    assert "no database" in lab("backup", str(tmp_path / "f"), state=tmp_path / "s").stderr
    (tmp_path / "s" / "lab.sqlite3").write_bytes(b"damaged" * 1000)
    assert "no backup was made" in lab("backup", str(tmp_path / "f"), state=tmp_path / "s").stderr
    assert not (tmp_path / "f").exists()


SMALL_DISK = ("unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=300k none "$0" && exec "$@"')


@pytest.mark.skipif(bool(chosen()), reason="the small state folder holds a SQLite file")
@pytest.mark.parametrize("kind", ["backup", "restore"])
def test_a_full_disk_is_one_sentence_and_nothing_is_left(
    house: House, tmp_path: Path, kind: str
) -> None:
    small, good = tmp_path / "small", tmp_path / "good"
    small.mkdir()
    argv = [*SMALL_DISK, str(small)]
    if subprocess.run([*argv, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine lets nobody mount a small disk of his own")
    (house.paths.state / "demo").mkdir()
    (house.paths.state / "demo" / "much").write_bytes(os.urandom(500_000))
    state = house.paths.state
    if kind == "restore":
        save.backup(house.paths, good, force=False)
        state = small / "new"
    file = small / "a" if kind == "backup" else good
    listed = f"{LAB} {kind} {file}; code=$?; ls -A {small} >&2; exit $code"
    done = subprocess.run(
        [*argv, "sh", "-c", listed],
        env=environment(state),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert "disk" in done.stderr


def test_a_database_of_a_version_before_lacks_columns_and_is_moved_all_the_same(
    tmp_path: Path,
) -> None:
    """What is moved is asked of the file: a column that came later is no error."""
    saved = tmp_path / "saved.sqlite3"
    with contextlib.closing(sqlite3.connect(saved, isolation_level=None)) as holder:
        holder.execute("CREATE TABLE runs_run (worktree text)")
        holder.execute("CREATE TABLE runs_host (name text)")
        holder.execute("INSERT INTO runs_run VALUES ('/old/worktrees/1'), ('/older/worktrees/2')")
    (tmp_path / "new").mkdir()
    paths = Paths(tmp_path / "new")
    tables.load(saved, tables.SQLITE, paths, "/old", "/new")
    with contextlib.closing(sqlite3.connect(paths.database)) as holder:
        found = [row[0] for row in holder.execute("SELECT worktree FROM runs_run ORDER BY rowid")]
    assert found == ["/new/worktrees/1", "/older/worktrees/2"]
