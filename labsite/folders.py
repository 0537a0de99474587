"""Makes the private folders of a state folder, and refuses the ones that would not stay private."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from labsite.env import WrongSetting
from runs.core.paths import Paths, odd_letters

_PRIVATE = 0o700
LONGEST_PATH = 350  # a worktree's path is stored in 500


def prepare(paths: Paths) -> None:
    """Make every folder, readable by its owner only. Raises WrongSetting with one sentence."""
    refuse_odd_letters(paths.state)
    try:
        paths.state.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        _keep_private(paths.state)
        if paths.shared_place in (paths.socket_folder, paths.temporary.parent):
            _take_shared_place(paths.shared_place)
        for folder in (
            *(paths.repos, paths.origins, paths.worktrees, paths.run_folders, paths.bin),
            *(paths.feed, paths.more_worker_socket(0).parent, paths.tmux_socket.parent),
            paths.temporary,
        ):
            folder.mkdir(mode=_PRIVATE, exist_ok=True)
        for database in (paths.database, paths.queue):
            with contextlib.suppress(FileNotFoundError):
                database.chmod(0o600)
    except OSError as error:
        raise WrongSetting(
            f"The state folder {paths.state} cannot be written ({error.strerror}): "
            "set LAB_STATE_DIR to a folder of yours, then start again."
        ) from error


def refuse_odd_letters(state: Path) -> None:
    """Raise WrongSetting for a path that tmux, a shell or PATH would not read as it stands."""
    if len(str(state)) > LONGEST_PATH:
        raise WrongSetting(
            f"The path of the state folder has {len(str(state))} characters, and worktrees lie "
            f"below it: set LAB_STATE_DIR to one of at most {LONGEST_PATH}."
        )
    if odd := odd_letters(state):
        raise WrongSetting(
            f"The path of the state folder, {str(state)!r}, holds {odd}, which tmux and shells do "
            "not take as plain letters: set LAB_STATE_DIR to a folder with other letters."
        )


def _keep_private(state: Path) -> None:
    """Close a state folder of ours to everybody else; never a folder that others use too."""
    seen = state.stat()
    if seen.st_uid != os.getuid() or seen.st_mode & stat.S_ISVTX or state == Path(state.anchor):
        raise WrongSetting(
            f"The folder {state} is not yours alone, so nothing was written into it: "
            "set LAB_STATE_DIR to a folder of yours, then start again."
        )
    if stat.S_IMODE(seen.st_mode) != _PRIVATE:
        state.chmod(_PRIVATE)


def _take_shared_place(folder: Path) -> None:
    """Make our folder in the shared temporary place, or take the one that is ours.

    Anybody can put something there first; a link or a stranger's folder would give him our tmux.
    """
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=_PRIVATE)
    seen = folder.lstat()
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.getuid():
        raise WrongSetting(
            f"Somebody else has put {folder} there, where labsite keeps sockets and temporary files: remove it, "
            "or set LAB_STATE_DIR to a folder with a shorter path, then start again."
        )
    if stat.S_IMODE(seen.st_mode) != _PRIVATE:
        folder.chmod(_PRIVATE)
