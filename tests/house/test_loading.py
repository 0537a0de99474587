"""What every start of a program pays, whoever waits for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
TOLD = "import gc; print(gc.isenabled(), gc.get_freeze_count() > 50_000, len(gc.get_objects()))"


@pytest.mark.parametrize(
    "loading",
    [
        pytest.param("from labsite import loading; loading.set_up()", id="commands and worker"),
        pytest.param("import labsite.asgi", id="web"),
    ],
)
def test_the_collector_leaves_alone_what_was_loaded_and_goes_on_with_the_rest(
    loading: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"{loading}\n{TOLD}"],
        cwd=ROOT,
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("LAB_")},
            "DJANGO_SETTINGS_MODULE": "labsite.settings",
            "LAB_STATE_DIR": str(tmp_path),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    is_on, is_most_left_alone, looked_at = done.stdout.split()
    assert (is_on, is_most_left_alone) == ("True", "True")
    assert int(looked_at) < 10_000
