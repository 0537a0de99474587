"""The benches share what tests start; a change there must not leave one that cannot be started."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.house.product import ROOT

pytestmark = pytest.mark.real


def test_every_bench_can_be_started() -> None:
    names = [f"bench.{file.stem}" for file in sorted((ROOT / "bench").glob("[a-z]*.py"))]
    assert "bench.push" in names
    argv = [sys.executable, "-c", f"import {', '.join(names)}"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
