"""Django's shell as a process that stays: a start of Django for each question took most of a story.

Run as `python -m tests.story.shell`: one JSON text of Python a line in, one JSON answer a line out.
"""

from __future__ import annotations

import contextlib
import io
import json
import select
import subprocess
import sys
import traceback
from pathlib import Path

from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parent.parent.parent


class Shell:
    """Asks a process of its own, on the state folder that `environment` names."""

    def __init__(self, environment: dict[str, str], seconds: float = PATIENCE) -> None:
        self._seconds = seconds
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.story.shell"],
            env={**environment, "DJANGO_SETTINGS_MODULE": "labsite.settings"},
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, code: str) -> str:
        """What the lines print. Raises AssertionError with the traceback where they fail."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps(code)}\n")
        self._process.stdin.flush()
        is_told = select.select([self._process.stdout], [], [], self._seconds)[0]
        line = self._process.stdout.readline() if is_told else ""
        assert line, f"no answer to:\n{code}"
        answer = json.loads(line)
        assert not answer["error"], answer["error"]
        return str(answer["printed"]).strip()

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def _answer(code: str) -> dict[str, str]:
    """Runs the lines as `manage.py shell -c` does, on connections that see what is there now."""
    from django.core.management.commands.shell import Command
    from django.db import connections

    printed, error = io.StringIO(), ""
    try:
        with contextlib.redirect_stdout(printed):
            exec(code, {"sys": sys, **Command().get_namespace(verbosity=0)})  # noqa: S102
    except BaseException:
        error = traceback.format_exc()
    finally:
        connections.close_all()
    return {"printed": printed.getvalue(), "error": error}


def main() -> None:
    import django

    django.setup()
    out = sys.stdout
    for line in sys.stdin:
        out.write(f"{json.dumps(_answer(json.loads(line)))}\n")
        out.flush()


if __name__ == "__main__":
    main()
