"""A throwaway PostgreSQL server, and `python -m tests.postgres …`: the tests on one.

The server listens on a Unix socket only, in a temporary folder that goes away with it.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE

OPTIONS = {
    "listen_addresses": "",
    "fsync": "off",
    # An analysis of a table is a transaction for which the timeline waits, at any moment of a test.
    # Vacuum is none, and without it the server gets a fifth slower.
    "autovacuum_analyze_threshold": "2147483647",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "max_connections": "200",
    "log_min_messages": "fatal",
}
MISSING = (
    "PostgreSQL's server programs (initdb, postgres) were not found: install them "
    "(Debian, Ubuntu: apt install postgresql), then run this again."
)


def programs() -> Path | None:
    """The folder with the newest server programs; Debian keeps them off PATH."""
    found = shutil.which("initdb")
    if found and shutil.which("postgres"):
        return Path(found).parent
    folders = [file.parent for file in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(folders, key=lambda folder: int(folder.parent.name), default=None)


class Server:
    """One cluster and its server process, which is a child of this one."""

    def __init__(self) -> None:
        found = programs()
        if found is None:
            raise FileNotFoundError(MISSING)
        self._programs = found
        self.folder = Path(tempfile.mkdtemp(prefix="lab-pg-"))
        self._process: subprocess.Popen[bytes] | None = None
        if os.getuid() == 0:  # PostgreSQL refuses to run as root
            owner = _somebody()
            os.chown(self.folder, owner.pw_uid, owner.pw_gid)
            self.folder.chmod(0o755)
        self._run("initdb", "-D", self._data, "-U", "lab", "-A", "trust", "-E", "UTF8",
                  "--locale=C.UTF-8", "--no-sync", "--no-instructions")  # fmt: skip

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    def url(self, name: str = "postgres") -> str:
        """The address of one database, for LAB_DATABASE_URL."""
        return f"postgres://lab@/{name}?host={self.folder}"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        import psycopg

        options = [word for name, value in OPTIONS.items() for word in ("-c", f"{name}={value}")]
        argv = [
            str(self._programs / "postgres"),
            "-D",
            self._data,
            "-k",
            str(self.folder),
            *options,
        ]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                argv, stdout=log, stderr=log, start_new_session=True, **_identity()
            )
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                psycopg.connect(self.url(), connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def stop(self) -> None:
        """End the server as an operator's restart does: every connection is cut."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def close(self) -> None:
        """End the server and remove all that it kept."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *argv: str) -> None:
        done = subprocess.run(
            [str(self._programs / program), *argv],
            capture_output=True,
            text=True,
            cwd=self.folder,
            check=False,
            **_identity(),
        )
        assert done.returncode == 0, done.stderr


def _somebody() -> pwd.struct_passwd:
    """An unprivileged user of this machine."""
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise FileNotFoundError("There is no user “nobody” on this machine to run PostgreSQL as.")


def _identity() -> dict[str, Any]:
    """As whom the server's programs run: ourselves, or an unprivileged user if we are root."""
    if os.getuid() != 0:
        return {}
    owner = _somebody()
    return {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}


def main(argv: Sequence[str]) -> int:
    """Run pytest with these arguments on a server of its own; pytest's exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        server = Server()
    except FileNotFoundError as missing:
        print(missing, file=sys.stderr)
        return 1
    try:
        server.start()
        environment = {**os.environ, "LAB_DATABASE_URL": server.url()}
        tests = subprocess.Popen([sys.executable, "-m", "pytest", *argv], env=environment)
        try:
            return tests.wait()
        except KeyboardInterrupt:
            return tests.wait()
        finally:
            if tests.poll() is None:
                tests.terminate()
                tests.wait()
    finally:
        server.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
