"""Looks for agents' programs as a session of ours would, and asks them short questions."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from runs.core.ports import Said, SeamError
from runs.machine import shell

TIMEOUT = 10.0
ANSWER_BYTES = 200_000


class AgentPrograms:
    """`Programs` on this machine; `own_bin` comes first on the PATH of every session."""

    def __init__(self, environ: Mapping[str, str], own_bin: Path, timeout: float = TIMEOUT) -> None:
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
        given = {str(name): str(value) for name, value in env.items()}
        return {"PATH": os.defpath, **self._env, **given}
