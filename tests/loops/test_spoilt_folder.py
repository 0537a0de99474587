"""The folder of a loop, in which agents write too: two runners in it, spoilt results, pipes, a full disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from labctl.turn_files import LoopFolder
from labctl.turn_output import Kept
from runs.loops import events
from tests.labctl.session import ROOT
from tests.loops.playing import Runner, turn


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    made = Runner(tmp_path / "session")
    yield made
    made.close()


@pytest.mark.real
def test_of_two_runners_in_one_folder_the_second_ends_and_touches_nothing(runner):
    agent = "touch $HERE/begun; until [ -e $HERE/go ]; do sleep 0.02; done"
    site = runner.play(turn(1, agent))
    first = runner.start()
    runner.until((runner.here / "begun").exists)

    assert runner.run() == 1

    assert "Another program runs this loop" in runner.screen
    assert len(site.reports) == 1
    (runner.here / "go").touch()
    assert first.wait(60) == 0
    assert [(one["exit_code"], one["trouble"]) for one in site.results] == [(0, "")]


@pytest.mark.real
def test_a_runner_that_replaced_itself_still_has_its_loop(runner):
    agent = "touch $HERE/begun; until [ -e $HERE/go ]; do sleep 0.02; done"
    runner.play({"do": "restart", "generation": 2}, turn(1, agent, generation=2))
    first = runner.start()
    runner.until((runner.here / "begun").exists)
    assert runner.run() == 1
    (runner.here / "go").touch()
    assert first.wait(60) == 0


@pytest.mark.parametrize(
    "said",
    [
        {"exit_code": "0"},
        {"exit_code": 4000},
        {"signal": 0},
        {"seconds": -1},
        {"seconds": 1e300},
        {"trouble": ["x"]},
        {"is_interrupted": "yes"},
    ],
)
def test_a_result_that_labsite_would_refuse_for_ever_is_none(tmp_path, said):
    folder = tmp_path / "loop"
    (folder / "1-1").mkdir(parents=True)
    (folder / "state.json").write_text(json.dumps({"generation": 1, "turns": ["1-1"]}))
    (folder / "1-1" / "result.json").write_text(json.dumps({"exit_code": 0, "seconds": 1.0}))
    assert LoopFolder(str(tmp_path)).newest()[0] == 1
    (folder / "1-1" / "result.json").write_text(json.dumps({"exit_code": 0, **said}))
    assert LoopFolder(str(tmp_path)).newest() == (0, None)


@pytest.mark.real
def test_a_note_of_what_runs_without_its_time_makes_no_turn_of_decades(runner):
    (runner.loop / "1-1").mkdir(parents=True)
    (runner.loop / "1-1" / "output").write_text("half")
    (runner.loop / "running.json").write_text(json.dumps({"generation": 1, "number": 1}))
    site = runner.play()
    assert runner.run() == 0
    assert [one["seconds"] for one in site.results] == [0.0]


@pytest.mark.real
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
def test_nothing_in_the_way_holds_up_the_end_of_a_long_output(tmp_path, make):
    make(tmp_path / "output.part")
    script = (
        "import os, sys; sys.path.insert(0, sys.argv[1])\n"
        "from labctl.turn_output import Kept\n"
        "kept = Kept(os.open('output', os.O_RDWR | os.O_CREAT), head=10, tail=20)\n"
        "kept.keep(b'x' * 100); kept.close('output'); print(kept.is_cut)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(ROOT)], cwd=tmp_path, capture_output=True, timeout=20
    )
    assert done.stdout == b"True\n", done.stderr
    assert (tmp_path / "output").read_bytes().endswith(b"x" * 20)
    assert b"70 bytes of the output are left out" in (tmp_path / "output").read_bytes()


def test_an_output_that_does_not_go_onto_the_disk_twice_leaves_nothing_beside_it(
    tmp_path, monkeypatch
):
    def full(*_args: object) -> int:
        raise OSError(28, "No space left on device")

    kept = Kept(os.open(tmp_path / "output", os.O_RDWR | os.O_CREAT), head=10, tail=20)
    kept.keep(b"x" * 100)
    monkeypatch.setattr(os, "sendfile", full)
    kept.close(str(tmp_path / "output"))
    assert [one.name for one in tmp_path.iterdir()] == ["output"]


@pytest.mark.real
def test_an_event_of_which_only_a_part_went_onto_the_disk_is_not_told_and_spoils_no_other(tmp_path):
    file = tmp_path / "events.jsonl"
    script = (
        "import resource, sys; sys.path.insert(0, sys.argv[1])\n"
        "from labctl import loop_events\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))\n"
        "env = {'LAB_LOOP_EVENTS': sys.argv[2]}\n"
        "print(loop_events.emit(env, 'build.done', 'x' * 500))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)\n"
        "print(loop_events.emit(env, 'build.done', 'whole'))\n"
    )
    argv = [sys.executable, "-c", script, str(ROOT), str(file)]
    said = subprocess.run(argv, capture_output=True, text=True, timeout=20).stdout.splitlines()
    assert "disk" in said[0]
    assert said[1] == "(0, '')"
    batch = events.read(file.read_text().split("\n"))
    assert [one.payload for one in batch.events] == ["whole"]
