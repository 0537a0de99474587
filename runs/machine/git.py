"""Git on reference repositories and worktrees, by its own program, bounded and without prompts."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from runs.core.ports import SeamError
from runs.machine import shell, worktree_links

QUICK = 15.0
CHECKOUT = (
    900.0  # the files of a large repository, and what a filter such as Git LFS fetches for them
)
# Agents write into repositories that we read: no program named there runs on our behalf.
_CAREFUL = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "protocol.ext.allow=never"),
    *("-c", "status.showUntrackedFiles=all"),
    *("-c", "diff.ignoreSubmodules=none"),
    *("-c", "log.showSignature=false"),
    *("-c", "core.useReplaceRefs=false"),
)
_NICE = ("nice", "-n", "19")
# git tells each helper the token that worked, and some write down what they are told.
_NO_KEEPER = ("-c", "credential.helper=")
# Only these speak with another repository. Any other would do so where one of an agent's making
# lacks an object, and would run the programs which that one names for it.
_SPEAKING = ("clone", "fetch", "ls-remote", "push")
_ALONE = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
_SCOPES = ("local", "worktree")
_OFF = (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false"))
# For the product the token comes in the environment, inside a session from the run's private file;
# where there is none that lasts, labsite is asked for it, once git knows the user. With LAB_GIT_PLACE
# it is for that server alone: a repository may name others, as submodules and Git LFS do.
_ASKPASS = r"""#!/bin/sh
secret=$LAB_GIT_TOKEN
if [ -z "$secret" ] && [ -r "$LAB_RUN_FOLDER/git-token" ]; then
    secret=$(cat "$LAB_RUN_FOLDER/git-token")
fi
if [ -n "$secret" ]; then
    scheme=${1%%://*} host=${1#*://}
    scheme=${scheme##*[!a-z]} host=${host%%[/\'\" ]*}
    [ "${LAB_GIT_PLACE:-$scheme://${host##*@}}" = "$scheme://${host##*@}" ] || exit 1
else
    case "$1" in *://*@*) exec "${0%/*}/labctl" git-credential "$1";; esac
fi
case "$secret" in *:*) user=${secret%%:*}; secret=${secret#*:};; *) user=x-access-token;; esac
case "$1" in Username*) printf '%s\n' "$user";; *) printf '%s\n' "$secret";; esac
"""


class Git:
    """One git program: environment without the product's secrets, no prompt, no editor, no hooks of ours."""

    def __init__(
        self, environ: Mapping[str, str], helper_folder: Path, timeout: Callable[[], float]
    ) -> None:
        self._env = {
            **shell.scrubbed(environ),
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_OPTIONAL_LOCKS": "0",
            # A large file that cannot be fetched stays a short text; no checkout fails for it.
            "GIT_LFS_SKIP_DOWNLOAD_ERRORS": "1",
            "GIT_SSH_COMMAND": environ.get(
                "GIT_SSH_COMMAND", "ssh -o BatchMode=yes -o ConnectTimeout=10"
            ),
            "LC_ALL": "C.UTF-8",
        }
        for name in (
            "GIT_DIR",
            "GIT_COMMON_DIR",
            "GIT_WORK_TREE",
            "GIT_INDEX_FILE",
            "GIT_ASKPASS",
            "SSH_ASKPASS",
        ):
            self._env.pop(name, None)
        self._helper = helper_folder / "git-askpass"
        self.timeout = timeout

    def __call__(
        self,
        folder: Path,
        *argv: str,
        token: str = "",
        timeout: float | None = None,
        on_progress: Callable[[str], None] | None = None,
        limit: int | None = None,
        given: Path | None = None,
        index: Path | None = None,
        env: Mapping[str, str] | None = None,
        looks_at_files: bool = False,
        is_nice: bool = False,
    ) -> shell.Finished:
        """Run git in a folder. Raises SeamError only when it cannot run or takes too long.

        `limit` bounds what is read of its output; a program that prints more is ended. `given` is
        a file that it reads as its standard input, `index` one that it takes for the index; `env`
        adds to the environment. With `looks_at_files` git reads or writes files of a worktree,
        and no filter that its repository names runs for that. With `is_nice` it gives way to all
        other programs. A run's own repository is taken as
        what it was made, unless `env` names another.
        """
        own = {} if env and "GIT_DIR" in env else worktree_links.environment(folder)
        unfiltered = self._without_filters(folder) if looks_at_files else {}
        return shell.run(
            [
                *(_NICE if is_nice else ()),
                "git",
                *_CAREFUL,
                *(_NO_KEEPER if token else ()),
                "-C",
                str(folder),
                *argv,
            ],
            timeout=timeout or self.timeout(),
            env={
                **self._environment(token),
                **({} if argv[0] in _SPEAKING else _ALONE),
                **({"GIT_INDEX_FILE": str(index)} if index else {}),
                **own,
                **unfiltered,
                **(env or {}),
            },
            on_stderr=on_progress,
            limit=limit,
            given=given,
        )

    def ask(
        self,
        folder: Path,
        *argv: str,
        token: str = "",
        timeout: float | None = None,
        looks_at_files: bool = False,
    ) -> str:
        """What git prints. Raises SeamError with git's own words when it fails."""
        done = self(folder, *argv, token=token, timeout=timeout, looks_at_files=looks_at_files)
        if done.status != 0:
            raise failed(argv[0], done, token)
        return done.stdout

    def _without_filters(self, folder: Path) -> Mapping[str, str]:
        """Settings that turn off the filters which this repository itself names.

        Those of the operator's own settings go on. They come by the environment, since a name
        may hold what `-c` takes for its end.
        """
        argv = ("config", "-z", "--show-scope", "--name-only", "--get-regexp", r"^filter\.")
        done = self(folder, *argv, timeout=QUICK)
        if done.status not in (0, 1):  # 1: there is none
            raise failed("config", done)
        words = done.stdout.split("\0")
        scopes = zip(words[::2], words[1::2], strict=False)
        own = {name.rpartition(".")[0] for scope, name in scopes if scope in _SCOPES}
        if any("\\x" in name for name in own):
            raise SeamError("the repository names a filter whose name is no text")
        off = [(f"{name}.{key}", value) for name in sorted(own) for key, value in _OFF]
        before = int(self._env.get("GIT_CONFIG_COUNT") or 0)
        settings = {"GIT_CONFIG_COUNT": str(before + len(off))}
        for number, (name, value) in enumerate(off, before):
            settings |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
        return settings if off else {}

    def _environment(self, token: str) -> Mapping[str, str]:
        """A token reaches git through a helper and the environment, never through argv."""
        if not token:
            return {**self._env, "GIT_ASKPASS": "true"}
        self._keep_helper()
        return {**self._env, "GIT_ASKPASS": str(self._helper), "LAB_GIT_TOKEN": token}

    def _keep_helper(self) -> None:
        """Written in one step, so that no git reads half of it; an older version gives way."""
        with contextlib.suppress(FileNotFoundError):
            if self._helper.read_text() == _ASKPASS:
                return
        fresh = self._helper.with_name(f".git-askpass-{os.getpid()}-{threading.get_ident()}")
        fresh.write_text(_ASKPASS)
        fresh.chmod(0o700)
        fresh.replace(self._helper)


def failed(command: str, done: shell.Finished, token: str = "") -> SeamError:
    """git's own words, without the token in case git repeats it."""
    said = shell.words(["git", command], done)
    return SeamError(said.replace(token, "[hidden]") if token else said)
