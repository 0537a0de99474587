"""Four real processes start, stop and tick as fast as they can, on one database, git and tmux."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter

import pytest
from django.db import connection

from runs.models import Notice, Run, Settings, StartRequest
from tests.baddays import invariants
from tests.house.product import ROOT
from trackers.builtin import store

pytestmark = pytest.mark.django_db(transaction=True)

PROCESSES, ACTS, ISSUES = 4, int(os.environ.get("TEST_RACE_ACTS", "45")), 6
AGENT = ["sleep", "600"]


@pytest.mark.both_databases
def test_a_heap_of_starts_stops_and_ticks_of_four_processes_keep_every_promise(real):
    for name in ("alpha", "beta", "gamma"):
        project = real.project(name, argv=AGENT, tracker="builtin")
        for number in range(ISSUES):
            store.create_issue(
                project.tracker_root,
                title=f"Issue {number}",
                body="",
                author="anna",
                labels=["ready-for-agent"],
                at=real.lab.now(),
            )
    Settings.objects.filter(pk=1).update(session_cap=5)
    racers = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.baddays.racer", str(real.folder)),
                *(str(connection.settings_dict["NAME"]), str(seed), str(ACTS)),
            ],
            cwd=ROOT,
            env={**os.environ, "LAB_LOG_LEVEL": "ERROR"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in range(PROCESSES)
    ]
    did: Counter[str] = Counter()
    for racer in racers:
        out, err = racer.communicate(timeout=900)
        assert racer.returncode == 0, err[-4000:]
        assert "Traceback" not in err, err[-4000:]
        did.update(json.loads(out))
    print(dict(did))
    assert sum(did.values()) == PROCESSES * ACTS
    # Whichever process got the tick answered for all, so the answers count, not who saw them.
    assert StartRequest.objects.filter(answer="started").count() > 5
    assert did["stop: ended"] > 5
    invariants.check(real.lab, settle=real.work, ticks=3)
    assert not StartRequest.objects.filter(answer="").exists()
    ended = Run.objects.exclude(outcome="").count()
    assert Notice.objects.filter(kind="run.ended").count() == ended
