"""A session for tests: the environment that a launch gives, and the command run as in it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parent.parent.parent
COMMAND = [sys.executable, "-I", "-S", str(ROOT / "labctl" / "__main__.py")]


@dataclass
class Said:
    """What the command printed and how it ended."""

    code: int
    out: str
    err: str


@dataclass
class Session:
    """`LAB_*` and a private folder, as an agent has them."""

    folder: Path
    token: str = "a-token"
    key: str = "7"
    cwd: Path | None = None
    more: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.address = self.folder / "address"
        self.socket = self.folder / "worker.sock"
        run = self.folder / "run"
        run.mkdir(parents=True)
        (run / "token").write_text(self.token)
        (run / "token").chmod(0o600)
        self.env = {
            "PATH": os.environ["PATH"],
            "LAB_RUN_FOLDER": str(run),
            "LAB_ADDRESS_FILE": str(self.address),
            "LAB_WAKE_SOCKET": str(self.socket),
            "LAB_PROJECT": "demo",
            "LAB_ISSUE": self.key,
            "LAB_BRANCH": f"afk/{self.key}",
            "LC_ALL": "C",
            **self.more,
        }

    def start(
        self, *arguments: str, stdin: int | None = subprocess.DEVNULL
    ) -> subprocess.Popen[str]:
        """The command as a process that goes on."""
        return subprocess.Popen(
            [*COMMAND, *arguments],
            env=self.env,
            cwd=self.cwd,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )

    def run(self, *arguments: str, text: str | None = None) -> Said:
        """The command to its end; `text` is piped in."""
        process = self.start(
            *arguments, stdin=subprocess.DEVNULL if text is None else subprocess.PIPE
        )
        out, err = process.communicate(text, timeout=PATIENCE)
        return Said(process.returncode, out, err)
