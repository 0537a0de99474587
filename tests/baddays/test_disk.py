"""The disk is full, on a real small one: a start is refused with the system's words and undone."""

from __future__ import annotations

import contextlib
import errno
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from labsite.database import chosen
from runs import tick
from runs.dispatch import start_requests
from runs.models import Run
from tests.baddays.conftest import BadDay
from tests.house.product import lab, until
from tests.real import RealWorld, git
from tests.story.conftest import Story
from tests.story.test_bad_days import ASK, IDLE, RUNS
from tests.story.test_main_job import _make_demo
from tests.world.stories import look, press_start, ready

pytestmark = pytest.mark.django_db(transaction=True)


class Disk:
    """A file system of its own that a test can fill to the last byte or to the last file."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._filler = place / "filler"

    def fill(self, leave: int = 0) -> None:
        """Write until nothing more fits, then give `leave` bytes back."""
        with contextlib.suppress(OSError), self._filler.open("wb", buffering=0) as file:
            while True:
                file.write(b"\0" * 4096)
        size = self._filler.stat().st_size
        with self._filler.open("r+b") as file:
            file.truncate(max(0, size - leave))

    def fill_names(self, leave: int = 0) -> None:
        """Make empty files until no more can be made, then remove `leave` of them."""
        self._filler.mkdir()
        made: list[Path] = []
        with contextlib.suppress(OSError):
            while True:
                made.append(self._filler / str(len(made)))
                made[-1].touch()
        for file in made[: leave + 1]:
            file.unlink(missing_ok=True)

    def free(self) -> None:
        if self._filler.is_dir():
            for file in self._filler.iterdir():
                file.unlink()
            self._filler.rmdir()
        else:
            self._filler.unlink(missing_ok=True)


@contextlib.contextmanager
def mounted(place: Path, options: str) -> Iterator[Disk]:
    """A small memory disk; the test is skipped, aloud, where it may not be mounted."""
    place.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"mode=700,{options}", "labsite-test", str(place)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"no small disk may be mounted here: {done.stderr.strip()}")
    try:
        yield Disk(place)
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=False)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with mounted(tmp_path / "state", "size=12m,nr_inodes=3000") as made:
        yield made


@pytest.fixture
def full_day(disk: Disk, real: RealWorld) -> Iterator[BadDay]:
    """A bad day whose state folder lies on the small disk; its repository holds a large file."""
    day = BadDay(real)
    checkout = real.folder / "demo-checkout"
    (checkout / "large.bin").write_bytes(bytes(range(256)) * 4096)
    git(checkout, "add", "-A")
    git(checkout, "commit", "-q", "-m", "chore: large")
    git(checkout, "push", "-q", "origin", "main")
    yield day
    disk.free()
    day.check()


def _fill_bytes(disk: Disk, real: RealWorld) -> None:
    disk.fill()


def _fill_but_for_the_claim(disk: Disk, real: RealWorld) -> None:
    """The fetch is done already, so only the large file of the worktree does not fit."""
    repo = real.paths.repos / "demo.git"
    git(repo, "fetch", "-q", "origin")
    disk.fill(leave=300_000)


def _fill_names(disk: Disk, real: RealWorld) -> None:
    disk.fill_names(leave=2)


@pytest.mark.parametrize(
    "fill", [_fill_bytes, _fill_but_for_the_claim, _fill_names], ids=["bytes", "worktree", "names"]
)
def test_a_full_disk_fails_the_start_and_gives_the_issue_back(
    full_day: BadDay, disk: Disk, fill: Callable[[Disk, RealWorld], None]
) -> None:
    real = full_day.real
    run = full_day.run("7")
    ready(real, "8")
    start_requests.request(real.lab, full_day.project, "anna", wanted="8")
    tick.tick(real.lab, project="demo")
    fill(disk, real)
    real.work()
    failed = Run.objects.get(issue_key="8")
    assert failed.outcome == "failed"
    said = failed.reason.lower()
    assert "no space left" in said or "the disk is full" in said, said
    look(real)
    assert full_day.again(run).is_active
    assert real.session_names() == [run.session]
    disk.free()
    look(real)
    assert real.repos.claims(full_day.project.repo(real.paths)) == {"7"}
    assert not (real.paths.worktrees / "demo-8").exists()
    assert press_start(real, full_day.project).run.issue_key == "8"


@pytest.mark.skipif(bool(chosen()), reason="what is full here is the disk of a SQLite file")
def test_a_product_on_a_full_disk_loses_no_run_and_goes_on(story: Story, tmp_path: Path) -> None:
    """Its database cannot commit: pages are 200 or 503, and the death is told once when it can."""
    with mounted(tmp_path / "small", "size=48m") as disk:
        small = shutil.copytree(story.state, disk.place / "state")
        story.state, story.paths = small, type(story.paths)(small)
        product = story.up()
        try:
            _make_demo(story)
            story.shell(IDLE)
            for _ in range(2):
                story.shell(ASK)
            until(lambda: story.shell(RUNS) == "1:working: 2:working:")
            story.shell(
                "from django.db import connection as c;"
                "c.cursor().execute('PRAGMA wal_checkpoint(TRUNCATE)')"
            )
            disk.fill()
            subprocess.run(
                ["tmux", "-S", str(story.paths.tmux_socket), "kill-session", "-t", "demo~1~afk-1"],
                check=True,
            )
            statuses = {product.get(path) for path in ("/login/", "/readyz", "/healthz")}
            assert statuses <= {200, 503}
            byhand = lab("manage", "tick", state=small)
            assert "Traceback" not in byhand.stderr
            assert byhand.returncode in (0, 1)
            disk.free()
            until(lambda: story.shell(RUNS) == "1:ended:died 2:working:")
            told = "from runs.models import Notice; print(Notice.objects.filter(kind='run.ended').count())"
            assert story.shell(told) == "1"
            assert story.sessions() == ["demo~2~afk-2"]
            assert (story.paths.worktrees / "demo-1").is_dir()
        finally:
            story.close()
            story.product = None


@pytest.mark.real
def test_the_small_disk_is_really_full(disk: Disk) -> None:
    """Else the others would show nothing."""
    disk.fill()
    with pytest.raises(OSError) as told:
        (disk.place / "more").write_bytes(b"\0" * 8192)
    assert told.value.errno == errno.ENOSPC
