"""Runs the `bd` command for the tracker of beads."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from runs.core.ports import SeamError
from runs.machine import shell
from trackers.beads.command import Ended
from trackers.errors import Refused, Unreachable

MOST_BYTES = 32_000_000
# Where `bd` looks is what the project says, not what labsite's own shell happened to say.
_FOREIGN = ("BEADS_DB", "BEADS_DIR", "BD_DB", "BD_ACTOR", "BEADS_ACTOR")


class BdCommand:
    """The `Runner` of trackers.beads on this machine; made with labsite's own environment."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        kept = shell.scrubbed(environ)
        self._env = {name: value for name, value in kept.items() if name not in _FOREIGN}

    def __call__(
        self, argv: Sequence[str], cwd: Path, seconds: float, env: Mapping[str, str]
    ) -> Ended:
        """Run it. Raises Refused when there is no such program, Unreachable without an answer."""
        program = shutil.which(argv[0], path=self._env.get("PATH", os.defpath))
        if program is None:
            raise Refused(
                f"The command {argv[0]} is not installed where labsite looks for programs. "
                "Install beads, or add its folder to PATH, and start labsite again."
            )
        try:
            done = shell.run(
                [program, *argv[1:]],
                timeout=seconds,
                cwd=cwd,
                env={**self._env, **env},
                limit=MOST_BYTES,
            )
        except SeamError as error:
            raise Unreachable(f"{error}.") from error
        return Ended(done.status, done.stdout, done.stderr, done.is_cut)
