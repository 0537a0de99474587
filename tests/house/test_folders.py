"""The state folder: private, ours alone, and with a path that every program reads as it stands."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from labsite import folders, preflight
from labsite.env import WrongSetting
from runs.core.paths import Paths
from tests.house.product import lab


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    """A state folder whose path is too long for sockets, and a temporary place of the test's own."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    return Paths(tmp_path / ("long" * 40))


@pytest.mark.parametrize("letter", [*"#\"$'{}\\`:;", "\n", "\x1b", "\udcff"])
def test_a_path_with_a_letter_that_tmux_or_a_shell_reads_as_its_own_is_refused(
    tmp_path: Path, letter: str
) -> None:
    state = tmp_path / f"a{letter}b"
    for refuse in (preflight.state_folder, folders.prepare):
        with pytest.raises(WrongSetting, match="LAB_STATE_DIR") as caught:
            refuse(Paths(state))
        assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["a b", "größe", "a&b", "a(b)", "a%b", "a*b"])
def test_a_path_with_other_letters_is_taken(tmp_path: Path, name: str) -> None:
    folders.prepare(Paths(tmp_path / name))
    assert (tmp_path / name / "runs").is_dir()


@pytest.mark.real
def test_up_and_manage_refuse_an_odd_path_in_one_sentence(tmp_path: Path) -> None:
    for argv in (("up", "--port", "0"), ("manage", "check")):
        refused = lab(*argv, state=tmp_path / "a#{pid}b")
        assert refused.returncode != 0
        assert "LAB_STATE_DIR" in refused.stderr
        assert "Traceback" not in refused.stderr
    assert not list(tmp_path.iterdir())


def test_an_existing_folder_and_its_databases_are_closed_to_others(tmp_path: Path) -> None:
    paths = Paths(tmp_path / "state")
    paths.state.mkdir(mode=0o755)
    paths.state.chmod(0o755)
    paths.database.touch(mode=0o644)
    folders.prepare(paths)
    assert _mode(paths.state) == 0o700
    assert _mode(paths.database) == 0o600
    assert not paths.queue.exists()


def test_a_place_that_everybody_uses_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    with pytest.raises(WrongSetting, match="not yours alone"):
        folders.prepare(Paths(shared))
    assert _mode(shared) == 0o1777
    assert not list(shared.iterdir())


def test_sockets_of_a_long_path_lie_in_a_folder_of_ours_alone(far: Paths) -> None:
    folders.prepare(far)
    folders.prepare(far)
    assert far.tmux_socket.parent == far.socket_folder != far.state
    assert _mode(far.socket_folder) == 0o700
    assert far.feed_socket(4194304).parent.is_dir()


def test_a_folder_for_sockets_that_is_open_to_others_is_closed(far: Paths) -> None:
    far.socket_folder.mkdir()
    far.socket_folder.chmod(0o777)
    folders.prepare(far)
    assert _mode(far.socket_folder) == 0o700


def test_a_link_in_the_place_of_the_folder_for_sockets_is_refused(
    far: Paths, tmp_path: Path
) -> None:
    (tmp_path / "theirs").mkdir()
    far.socket_folder.symlink_to(tmp_path / "theirs")
    with pytest.raises(WrongSetting, match="Somebody else"):
        folders.prepare(far)
    assert not list((tmp_path / "theirs").iterdir())


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_stranger_s_folder_for_sockets_is_refused(far: Paths) -> None:
    far.socket_folder.mkdir()
    os.chown(far.socket_folder, 12345, 12345)
    with pytest.raises(WrongSetting, match="Somebody else"):
        folders.prepare(far)


@pytest.mark.parametrize("length", range(70, 100))
def test_all_sockets_of_a_state_folder_lie_together_within_the_limit(length: int) -> None:
    paths = Paths(Path("/" + "s" * length))
    sockets = [paths.tmux_socket, paths.worker_socket, paths.feed_socket(4194304)]
    assert {paths.feed_socket(number).parent for number in (0, 4194304)} == {paths.feed}
    assert all(len(str(socket)) < 108 for socket in sockets)
    assert all(socket.is_relative_to(paths.socket_folder) for socket in sockets)
