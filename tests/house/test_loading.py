"""What every start of a program pays, whoever waits for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.contrib.auth.models import Permission

from runs.management import tables
from tests.house.product import environment, lab
from tests.patience import PATIENCE

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
        timeout=PATIENCE,
        check=True,
    )

    is_on, is_most_left_alone, looked_at = done.stdout.split()
    assert (is_on, is_most_left_alone) == ("True", "True")
    assert int(looked_at) < 10_000


def test_preparing_what_is_ready_loads_no_page_and_builds_no_old_models(used: Path) -> None:
    script = (
        "import sys, manage\n"
        "assert manage.main(['manage.py', 'prepare']) == 0\n"
        "print(*sorted(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=environment(used),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )

    loaded = done.stdout.split()
    assert "runs.kept.sweep" in loaded
    assert "django.core.management.commands.migrate" not in loaded
    assert not [name for name in loaded if name.startswith(("runs.web.", "ninja", "pydantic"))]


def test_an_origin_that_cannot_be_meant_stops_the_start(used: Path) -> None:
    done = lab("manage", "prepare", state=used, LAB_TRUSTED_ORIGINS="lab.example.org")

    assert done.returncode == 1
    assert "CSRF_TRUSTED_ORIGINS" in done.stderr


@pytest.mark.django_db
def test_permissions_that_an_interrupted_start_left_out_are_made_by_the_next() -> None:
    every = set(Permission.objects.values_list("codename", flat=True))
    Permission.objects.filter(codename="change_run").delete()

    tables.bring_up_to_date()

    assert set(Permission.objects.values_list("codename", flat=True)) == every
