"""What has to be right on the machine before an agent starts: its program, its trust file, its login."""

from __future__ import annotations

import glob
import os
import shutil
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from runs.agents import claude_files, linking
from runs.core.ports import Said, SeamError
from runs.machine import files, shell

LOGIN_TIMEOUT = 10.0
SESSION_FILES, SESSION_BYTES = 200, 256_000


class AgentFiles:
    """`Trust`: writes into the agents' own config files, keeping everything that it does not know."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._one_writer = threading.Lock()

    def approve(self, kind: str, worktree: Path, env: Mapping[str, str]) -> None:
        if kind == "claude":
            with self._one_writer:
                claude_files.approve(worktree, shell.add_variables(self._environ, env))


class AgentLogin:
    """`Login`: asks the agent's own check command."""

    def __init__(self, environ: Mapping[str, str], timeout: float = LOGIN_TIMEOUT) -> None:
        self._env = shell.scrubbed(environ)
        self._timeout = timeout

    def check(self, command: Sequence[str], env: Mapping[str, str]) -> bool | None:
        try:
            given = shell.add_variables(self._env, env)
            return shell.run(command, timeout=self._timeout, env=given).status == 0
        except SeamError:
            return None


class AgentRegistry:
    """`Registry`: reads the newest of the agent's own files; none of them can hold us up."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def find(self, pattern: str, field: str, worktree: str, env: Mapping[str, str]) -> str:
        home = env.get("HOME") or self._environ.get("HOME", "")
        if pattern == "~" or pattern.startswith("~/"):
            pattern = f"{glob.escape(home)}{pattern[1:]}"
        if not pattern.startswith("/") or not field:
            return ""
        found = sorted(map(Path, glob.iglob(pattern)), key=_changed, reverse=True)  # noqa: PTH207
        for path in found[:SESSION_FILES]:
            text = files.read_small(path, SESSION_BYTES)
            ident = linking.find_id(text, worktree, field) if text else ""
            if ident:
                return ident
        return ""


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


QUESTION_TIMEOUT = 10.0
ANSWER_BYTES = 200_000


class AgentPrograms:
    """`Programs` on this machine; `own_bin` comes first on the PATH of every session."""

    def __init__(
        self, environ: Mapping[str, str], own_bin: Path, timeout: float = QUESTION_TIMEOUT
    ) -> None:
        self._env = shell.scrubbed(environ, own_bin=own_bin)
        self._timeout = timeout

    def find(self, program: str, env: Mapping[str, str]) -> str | None:
        if "/" in program and not program.startswith("/"):
            return None
        return shutil.which(program, path=self._session(env)["PATH"]) or ""

    def ask(self, argv: Sequence[str], env: Mapping[str, str]) -> Said:
        path = self.find(argv[0], env)
        if not path:
            raise SeamError(f"{argv[0]} was not found")
        with tempfile.TemporaryDirectory(prefix="labsite-ask-") as folder:
            done = shell.run(
                [path, *argv[1:]],
                timeout=self._timeout,
                cwd=Path(folder),
                env=self._session(env),
                limit=ANSWER_BYTES,
            )
        return Said(done.status, done.stdout, done.stderr)

    def variable(self, name: str, env: Mapping[str, str]) -> str:
        return self._session(env).get(name, "")

    def is_root(self) -> bool:
        return os.geteuid() == 0

    def _session(self, env: Mapping[str, str]) -> dict[str, str]:
        return shell.add_variables({"PATH": os.defpath, **self._env}, env)
