"""`python -m bench.signalling [--samples N]`: the last signal of a group until its monitor has ended.

A running `./lab up`; the hook of docs/hooks.md as a process of its own, without the socket that
would wake the worker. Once with the system's file events, once with the library for them missing.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.figures import head, line
from tests.house.product import Product, lab

ROOT = Path(__file__).resolve().parent.parent
HOOK = [sys.executable, "-I", "-S", str(ROOT / "labctl"), "hook", "task-completed"]
PATIENCE = 30.0


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--samples", type=int, default=20)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="lab-bench-") as folder:
        state = Path(folder) / "state"
        done = lab("demo", state=state)
        assert done.returncode == 0, done.stderr
        os.environ |= {"LAB_STATE_DIR": str(state), "DJANGO_SETTINGS_MODULE": "labsite.settings"}
        import django

        django.setup()
        lacking = Path(folder) / "lacking"
        lacking.mkdir()
        (lacking / "inotify_simple.py").write_text("raise ImportError('left out')\n")
        print(head())
        for name, more in (
            ("last signal -> monitor ended, with file events", {}),
            ("last signal -> monitor ended, looked at by time", {"PYTHONPATH": str(lacking)}),
        ):
            product = Product(state, **more).wait_until_ready()
            try:
                print(line(name, [_sample(state) for _ in range(given.samples)]), flush=True)
            finally:
                product.process.send_signal(signal.SIGINT)
                product.process.wait(PATIENCE)
                os.close(product.terminal)


def _sample(state: Path) -> float:
    """One group of one task, whose signal comes at some moment between two checks."""
    from runs.groups import acts as groups
    from runs.groups import monitors
    from runs.groups.tasks import NewTask
    from runs.models import Monitor, Project
    from runs.wiring import lab as outside

    project = Project.objects.get()
    name = f"group-{time.monotonic_ns()}"
    group = groups.make(outside(), project, name, new=[NewTask("Read it")], by="bench")
    monitor = monitors.start(outside(), group, by="bench")
    rows = Monitor.objects.filter(pk=monitor.pk)
    _until(lambda: rows.filter(checks__gte=1).exists())
    time.sleep(0.5 + secrets.randbelow(5000) / 1000)
    began = time.monotonic()
    subprocess.run(
        HOOK,
        input=json.dumps({"team_name": name, "task_id": "1", "task_subject": "Read it"}),
        env={"LAB_SIGNALS": str(state / "signals" / project.slug), "PATH": os.environ["PATH"]},
        text=True,
        check=True,
    )
    _until(lambda: rows.filter(state="complete").exists())
    spent = time.monotonic() - began
    groups.close(outside(), group, by="bench")
    return spent


def _until(happened) -> None:  # type: ignore[no-untyped-def]
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)


if __name__ == "__main__":
    main()
