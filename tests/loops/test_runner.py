"""`labctl turns`: real processes of turns, and a server that plays labsite."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from labctl import turn_orders, turn_output
from labctl.turn_files import LoopFolder
from labctl.turn_output import Kept, Screen, Shown
from tests.loops.playing import END, Runner, turn
from tests.patience import PATIENCE
from tests.ports import free_port

pytestmark = pytest.mark.real

NAME = "demo~1~afk-7"
STUBBORN = "trap '' TERM INT HUP; echo $$ > $HERE/begun; while :; do sleep 0.05; done"
STRAY = (
    "setsid sh -c 'trap \"\" TERM INT HUP; touch $HERE/begun; while :; do sleep 0.05; done' & wait"
)


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    made = Runner(tmp_path / "session")
    yield made
    made.close()


# Turns.


@pytest.mark.row("RALPH-01", level="real")
def test_each_turn_is_a_new_process_that_knows_its_prompt_and_nothing_else(runner):
    agent = "echo $$ >> $HERE/pids; env | grep -c TURN >> $HERE/turns; cat > $HERE/given-$1"
    orders = [
        turn(n, "sh", "-c", agent, "sh", str(n), env={f"TURN_{n}": "here"}, role="builder")
        for n in (1, 2, 3)
    ]
    site = runner.play(*orders)

    assert runner.run() == 0

    assert len(set(runner.read("pids").split())) == 3
    assert [runner.read(f"given-{n}") for n in (1, 2, 3)] == [
        "prompt 1\n",
        "prompt 2\n",
        "prompt 3\n",
    ]
    assert runner.read("turns").split() == ["1", "1", "1"]
    assert [(r["number"], r["generation"]) for r in site.reports] == [
        (0, 1),
        (1, 1),
        (2, 1),
        (3, 1),
    ]
    assert [one["exit_code"] for one in site.results] == [0, 0, 0]
    assert runner.screen.splitlines()[0] == "Turn 1 (builder) begins."
    assert runner.screen.splitlines()[-1] == "The objective is met."


def test_a_turn_leaves_out_what_its_profile_gives_as_empty(runner):
    site = runner.play(turn(1, 'echo "${HOME-none}"', env={"HOME": ""}))

    assert runner.run() == 0

    assert site.results[0]["exit_code"] == 0
    assert (runner.loop / "1-1" / "output").read_text() == "none\n"


def test_a_turn_has_its_folder_and_the_paths_that_agents_need(runner):
    agent = 'printf "%s\n" "$LAB_SCRATCHPAD" "$LAB_LOOP_EVENTS" "$PWD"; cat; echo to-stderr >&2'
    site = runner.play(turn(1, agent, has_stdin=False, env={"SECRET": "s3cret"}))

    assert runner.run() == 0

    folder = runner.loop / "1-1"
    shown = f"{runner.loop}/scratchpad.md\n{folder}/events.jsonl\n{runner.here}\nto-stderr\n"
    assert (folder / "output").read_text() == shown
    assert shown in runner.screen
    assert (folder / "prompt.md").read_text() == "prompt 1\n"
    assert (folder / "events.jsonl").read_text() == ""
    order = (folder / "order.json").read_text()
    assert json.loads(order)["number"] == 1
    assert "s3cret" not in order
    assert json.loads((folder / "result.json").read_text()) == site.results[0]
    assert site.results[0]["output_bytes"] == len(shown)
    assert {path.stat().st_mode & 0o077 for path in (runner.loop, folder, *folder.iterdir())} == {0}
    assert (runner.loop / "scratchpad.md").read_text() == ""
    assert not (runner.loop / "running.json").exists()


@pytest.mark.parametrize("code", [0, 1, 2, 3, 130])
def test_the_loop_ends_with_the_code_that_labsite_says(runner, code):
    runner.play({"do": "end", "code": code, "reason": "Enough\x1b[2J."})
    assert runner.run() == code
    assert runner.screen == "Enough[2J.\n"


@pytest.mark.row("RALPH-30", level="real")
def test_a_restart_replaces_the_process_and_begins_with_new_state(runner):
    note = "echo $PPID >> $HERE/parents; echo note >> $LAB_SCRATCHPAD"
    site = runner.play(
        turn(1, f"{note}; touch {runner.loop}/restart"),
        {"do": "restart", "generation": 2},
        turn(1, f"cat $LAB_SCRATCHPAD > $HERE/notes; {note}", generation=2),
    )

    process = runner.start()
    assert process.wait(PATIENCE) == 0

    assert runner.read("parents").split() == [str(process.pid)] * 2
    assert runner.read("notes") == ""
    told = [(r["generation"], r["number"], r.get("asks")) for r in site.reports]
    assert told == [(1, 0, None), (1, 1, "restart"), (2, 0, None), (2, 1, None)]
    assert not (runner.loop / "restart").exists()
    assert (runner.loop / "1-1" / "result.json").exists()


def test_a_scratchpad_that_became_a_link_is_not_written_through(runner, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("mine")
    runner.play(
        turn(1, f"ln -sf {precious} $LAB_SCRATCHPAD"), {"do": "restart", "generation": 2}, END
    )
    assert runner.run() == 0
    assert precious.read_text() == "mine"
    assert (runner.loop / "scratchpad.md").read_text() == ""
    assert not (runner.loop / "scratchpad.md").is_symlink()


@pytest.mark.parametrize("generation", [1, 3])
def test_a_loop_that_goes_on_with_another_begins_with_its_notes(runner, generation):
    agent = "cat $LAB_SCRATCHPAD > $HERE/notes-$1; echo mine > $LAB_SCRATCHPAD"
    orders = [
        turn(n, "sh", "-c", agent, "sh", str(n), generation=generation, notes="where I was")
        for n in (4, 5)
    ]
    again = turn(1, "sh", "-c", agent, "sh", "1", generation=generation + 1, notes="where I was")
    runner.play(*orders, {"do": "restart", "generation": generation + 1}, again)
    assert runner.run() == 0
    assert [runner.read(f"notes-{n}") for n in (4, 5, 1)] == ["where I was", "mine\n", ""]


# Killed and started again.


def test_a_result_is_on_disk_before_labsite_is_told(runner):
    seen = []

    def told(report):
        seen.append(json.loads((runner.loop / "1-1" / "result.json").read_text()))
        return END

    site = runner.play(turn(1, "exit 5"), told)
    assert runner.run() == 0
    assert seen == site.results
    assert seen[0]["exit_code"] == 5


def test_killed_between_record_and_report_it_reports_and_runs_no_turn_twice(runner):
    def is_asked(report):
        reported.set()
        site.closing.wait(PATIENCE)
        return END

    reported = threading.Event()
    site = runner.play(turn(1, "echo ran >> $HERE/ran"), is_asked)
    process = runner.start()
    assert reported.wait(PATIENCE)
    process.kill()
    assert process.wait(PATIENCE) == -signal.SIGKILL

    site = runner.play(turn(2, "echo ran >> $HERE/ran"))
    assert runner.run() == 0

    assert runner.read("ran").splitlines() == ["ran"] * 2
    assert [r["number"] for r in site.reports] == [1, 2]
    assert site.reports[0]["result"]["exit_code"] == 0
    assert site.reports[0]["result"]["trouble"] == ""


def test_killed_in_the_middle_of_a_turn_it_ends_the_agent_and_the_turn_has_failed(runner):
    agent = (
        "setsid sleep 600 & echo $$ > $HERE/begun; trap '' PIPE TERM; while :; do sleep 0.05; done"
    )
    runner.play(turn(1, agent))
    process = runner.start()
    runner.until((runner.here / "begun").exists)
    process.kill()
    process.wait(PATIENCE)
    assert len(runner.agents()) >= 2

    site = runner.play(turn(2, "true"))
    assert runner.run() == 0

    assert runner.agents() == []
    assert [r["number"] for r in site.reports] == [1, 2]
    first = site.reports[0]["result"]
    assert "killed in the middle" in first["trouble"]
    assert (first["exit_code"], first["signal"], first["is_interrupted"]) == (None, None, False)
    assert first["started_at"] > 0
    assert "Turn 1 has failed" in runner.screen


def test_a_process_that_has_the_number_of_an_agent_of_before_is_left_alone(runner):
    runner.loop.mkdir()
    said = {"generation": 1, "number": 1, "pid": os.getpid(), "started": "1", "started_at": 1.0}
    (runner.loop / "running.json").write_text(json.dumps(said))
    site = runner.play()
    assert runner.run() == 0  # and this process is there to say so
    assert "killed" in site.results[0]["trouble"]


def test_a_turn_that_has_a_result_is_not_run_again(runner):
    ran = "echo ran >> $HERE/ran"
    site = runner.play(turn(1, ran), turn(1, ran), turn(2, ran), turn(1, ran), turn(3, ran))
    assert runner.run() == 0
    assert len(runner.read("ran").splitlines()) == 3
    assert [r["number"] for r in site.reports] == [0, 1, 1, 2, 1, 3]
    assert "turn 1 has ended before" in runner.screen


# Signals.


@pytest.mark.row("RALPH-22", level="real")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_agent_and_the_loop_with_130(runner, number):
    site = runner.play(turn(1, "echo half; touch $HERE/begun; sleep 600; echo never"))
    process = runner.start(pace=1.0)
    runner.until((runner.here / "begun").exists)

    process.send_signal(number)

    assert process.wait(PATIENCE) == 130
    assert runner.agents() == []
    result = json.loads((runner.loop / "1-1" / "result.json").read_text())
    assert (result["is_interrupted"], result["signal"]) == (True, signal.SIGTERM)
    assert site.reports[-1] == {
        **{"number": 1, "generation": 1, "result": result},
        "asks": "interrupted",
    }
    assert (runner.loop / "1-1" / "output").read_text() == "half\n"
    assert runner.screen.endswith("The loop was interrupted.\n")


@pytest.mark.row("RALPH-22", level="real")
@pytest.mark.parametrize("agent", [STUBBORN, STRAY], ids=["ignores it", "a grandchild that left"])
def test_what_ignores_the_signal_is_killed(runner, agent):
    site = runner.play(turn(1, agent))
    process = runner.start()
    runner.until((runner.here / "begun").exists)
    process.terminate()
    assert process.wait(PATIENCE) == 130
    assert runner.agents() == []
    assert site.results[0]["is_interrupted"] is True


@pytest.mark.row("RALPH-22", level="real")
def test_the_end_takes_less_than_five_seconds(tmp_path):
    """With an agent that ignores it, one that left, and a labsite that does not answer any more."""

    def once(number: int) -> None:
        runner = Runner(tmp_path / str(number))
        site = runner.play(turn(1, STRAY.replace("wait", STUBBORN)), lambda _: site.closing.wait())
        process = runner.start(pace=1.0)
        try:
            runner.until((runner.here / "begun").exists)
            began[0] = time.monotonic()
            process.terminate()
            assert process.wait(PATIENCE) == 130
            took.append(time.monotonic() - began[0])
            assert runner.agents() == []
        finally:
            runner.close()

    began, took = [0.0], list[float]()
    while not took or min(took) >= 5.0:  # whatever else the machine does can only add to it
        assert len(took) < 20, took
        once(len(took))


def test_a_labsite_that_hangs_does_not_hold_up_the_end(runner):
    site = runner.play(
        turn(1, "touch $HERE/begun; sleep 600"), lambda _: site.closing.wait(PATIENCE)
    )
    process = runner.start(pace=0.05)
    runner.until((runner.here / "begun").exists)
    process.terminate()
    assert process.wait(PATIENCE) == 130
    assert not site.closing.is_set()
    assert len(site.reports) == 2


@pytest.mark.parametrize("state", ["waiting", "asking", "away"])
def test_a_signal_between_turns_ends_the_loop_as_well(runner, state):
    answers = {
        "waiting": [{"do": "wait", "seconds": 3600, "why": "There is no issue."}],
        "asking": [lambda _: site.closing.wait(PATIENCE)],
        "away": [(500, {"text": "no"})] * 1000,
    }
    site = runner.play(*answers[state])
    process = runner.start()
    runner.until(lambda: site.reports)
    if state != "asking":
        runner.until(lambda: runner.screen)
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 130
    assert site.reports[-1].get("asks") == "interrupted"
    assert site.reports[-1]["result"] is None


@pytest.mark.row("RALPH-22", level="real")
def test_keys_in_the_pane_end_the_loop_and_do_not_stop_it(real, runner):
    """Ctrl-Z would leave a loop that does nothing and looks like one that works."""
    site = runner.play(turn(1, f"{STUBBORN.replace('TERM INT', 'INT')}"))
    runner.start_in(real.sessions)
    runner.until((runner.here / "begun").exists)

    real.tmux("send-keys", "-t", f"={NAME}:", "C-z")
    real.tmux("send-keys", "-t", f"={NAME}:", "C-c")

    runner.until(lambda: not real.sessions.look()[NAME].alive)
    assert real.sessions.exit_of(runner.run_folder).status == 130
    assert runner.agents() == []
    assert site.reports[-1]["result"]["is_interrupted"] is True
    shown = real.sessions.screens([NAME], 1000)[NAME]
    assert "Turn 1 begins." in shown
    assert "The loop was interrupted." in shown


@pytest.mark.row("RALPH-22", level="real")
def test_a_session_that_is_killed_leaves_no_agent(real, runner):
    runner.play(turn(1, STRAY))
    runner.start_in(real.sessions)
    runner.until((runner.here / "begun").exists)
    real.sessions.kill(NAME, NAME)
    assert runner.agents() == []


# How turns end.


@pytest.mark.parametrize(
    ("argv", "code", "number", "trouble"),
    [
        pytest.param(["exit 1"], 1, None, "", id="exit 1"),
        pytest.param(["exit 255"], 255, None, "", id="exit 255"),
        pytest.param(["kill -9 $$"], None, 9, "", id="SIGKILL"),
        pytest.param(["kill -TERM $$"], None, 15, "", id="SIGTERM"),
        pytest.param(["kill -SEGV $$"], None, 11, "", id="SIGSEGV"),
        pytest.param(["exec >&- 2>&-; sleep 0.05; exit 4"], 4, None, "", id="closes its output"),
        pytest.param(["nowhere-at-all", "x"], None, None, "No such file", id="not there"),
        pytest.param(["/etc/passwd", "x"], None, None, "Permission denied", id="not executable"),
        pytest.param(["./no-program", "x"], None, None, "Exec format", id="no program"),
        pytest.param(["s\0h", "x"], None, None, "null byte", id="NUL in its name"),
        pytest.param(["sh", "a\0b"], None, None, "null byte", id="NUL"),
        pytest.param(["sh", "x" * 200_000], None, None, "too long", id="too long"),
        pytest.param(["sleep", "600"], None, 15, "limit of a turn", id="over its time"),
    ],
)
def test_how_a_turn_ended_is_told(runner, argv, code, number, trouble):
    (runner.here / "no-program").write_bytes(b"\x7fELF nonsense")
    (runner.here / "no-program").chmod(0o755)
    site = runner.play(turn(1, *argv, limit_seconds=0.2 if "600" in argv else None))

    assert runner.run(pace=1.0) == 0  # with time to end of the first signal

    told = site.results[0]
    assert (told["exit_code"], told["signal"]) == (code, number)
    assert trouble in told["trouble"]
    assert "\0" not in told["trouble"]
    assert (told["trouble"] == "") is (trouble == "")
    assert (told["output_bytes"], told["is_cut"], told["is_interrupted"]) == (0, False, False)
    assert "Turn 1 " in runner.screen.splitlines()[1]


def test_what_an_agent_left_behind_is_ended_with_its_turn(runner):
    agent = "setsid sh -c 'trap \"\" TERM; while :; do echo flood; done' & sleep 0.05; echo done"
    site = runner.play(turn(1, agent), turn(2, "true"))
    assert runner.run() == 0
    assert runner.agents() == []
    assert [one["exit_code"] for one in site.results] == [0, 0]
    assert site.results[0]["seconds"] < PATIENCE


def test_an_output_of_one_gigabyte_costs_neither_memory_nor_the_disk(runner):
    agent = "echo first; head -c 1000000000 /dev/zero; echo last"
    site = runner.play(turn(1, agent))
    process = runner.start()
    most = 0
    while process.poll() is None:
        with contextlib.suppress(OSError, IndexError):
            status = Path(f"/proc/{process.pid}/status").read_text()
            most = int(status.partition("VmHWM:")[2].split()[0])
        time.sleep(0.01)

    assert process.returncode == 0
    assert 0 < most < 60_000  # kilobytes
    assert site.results[0]["output_bytes"] == 1_000_000_011
    assert site.results[0]["is_cut"] is True
    assert site.results[0]["seconds"] < PATIENCE
    output = (runner.loop / "1-1" / "output").read_bytes()
    assert output.startswith(b"first\n\0\0\0")
    assert output.endswith(b"\0\0\0last\n")
    assert output[8_000_000:].startswith(b"\n[936,000,011 bytes of the output are left out here]\n")
    assert len(output) == 64_000_000 + len(
        "\n[936,000,011 bytes of the output are left out here]\n"
    )
    assert len(runner.screen) < 20_000_000
    assert "some output is not shown here" in runner.screen


@pytest.mark.parametrize(
    "spoil",
    [
        "rm -rf $LAB_RUN_FOLDER/loop",
        "cd $LAB_RUN_FOLDER/loop; rm -rf 1-1; ln -s / 1-1",
        "cd $LAB_RUN_FOLDER/loop; rm -rf 1-1; touch 1-1",
        "cd $LAB_RUN_FOLDER; mv loop away; ln -s away loop",
        "cd $LAB_RUN_FOLDER; rm -rf loop; touch loop",
        "cd $LAB_RUN_FOLDER/loop; mkdir 1-1/result.json state.json.d; touch 1-1/result.json/x",
        "cd $LAB_RUN_FOLDER/loop; rm state.json; mkdir state.json stop 1-2; touch stop/x 1-2/x",
        "cd $LAB_RUN_FOLDER/loop; echo nonsense > running.json; echo [] > state.json; mkfifo wake",
    ],
)
def test_an_agent_that_spoils_the_folder_does_not_stop_the_loop(runner, spoil):
    site = runner.play(turn(1, f"{spoil}; exit 0"), turn(2, "echo fine"))
    assert runner.run() == 0
    assert [one["exit_code"] for one in site.results] == [0, 0]
    assert (runner.loop / "1-2" / "output").read_text() == "fine\n"


def test_a_disk_that_is_full_costs_output_and_no_turn(runner):
    site = runner.play(turn(1, "head -c 100000 /dev/zero; echo $((1 + 1)) > /dev/null"))
    assert runner.run(limits="ulimit -f 64") == 0
    assert (site.results[0]["exit_code"], site.results[0]["is_cut"]) == (0, True)
    assert site.results[0]["output_bytes"] == 100_000
    assert (runner.loop / "1-1" / "output").stat().st_size <= 65_536


# labsite.


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param((500, {"code": "mistake", "text": "x"}), "does not answer", id="500"),
        pytest.param((503, {"text": "locked"}), "does not answer", id="503"),
        pytest.param((500, b"<h1>Error</h1>"), "does not answer", id="a page"),
        pytest.param((200, b"\xff"), "does not answer", id="garbage"),
        pytest.param((200, {"do": "dance"}), "not understood", id="an unknown step"),
        pytest.param((200, {"do": "turn", "number": 1}), "not understood", id="half a step"),
        pytest.param((200, {"do": "restart", "generation": 1}), "not understood", id="old"),
        pytest.param(
            (422, {"code": "invalid", "text": "No."}), "refused the report (No.)", id="422"
        ),
        pytest.param((409, {"code": "busy", "text": "No."}), "refused the report (No.)", id="409"),
    ],
)
def test_an_answer_that_cannot_be_used_is_waited_for(runner, answer, words):
    site = runner.play(turn(1, "true"), *[answer] * 3, turn(2, "true"))
    assert runner.run() == 0
    assert [r["number"] for r in site.reports] == [0, 1, 1, 1, 1, 2]
    assert runner.screen.count(words) == 1
    assert runner.screen.count("labsite answers again.") == 1


def test_a_labsite_that_is_away_is_waited_for(runner):
    gone = f"http://127.0.0.1:{free_port()}"
    runner.play(turn(1, f"echo {gone} > {runner.session.address}"))
    process = runner.start()
    runner.until(lambda: "labsite does not answer; the next turn waits for it." in runner.screen)
    assert process.poll() is None
    site = runner.play(turn(2, "true"))
    assert process.wait(PATIENCE) == 0
    assert [r["number"] for r in site.reports] == [1, 2]


@pytest.mark.parametrize(
    ("status", "code"), [(409, "ended"), (401, "unknown_token"), (403, "unauthorized")]
)
def test_a_run_that_has_ended_ends_its_runner(runner, status, code):
    site = runner.play(turn(1, "true"), (status, {"code": code, "text": "This run has ended."}))
    assert runner.run() == 1
    assert len(site.reports) == 2
    assert runner.screen.endswith("This run has ended.\n")


def test_outside_a_session_it_says_so(tmp_path):
    session_env = Runner(tmp_path / "s")
    session_env.session.env.pop("LAB_RUN_FOLDER")
    assert session_env.run() == 1
    assert "none" in session_env.screen


@pytest.mark.parametrize("wanted", [["--pace"], ["--pace", "0"], ["x", "1"], ["--pace", "fast"]])
def test_wrong_arguments_are_refused(runner, wanted):
    said = runner.session.run("turns", *wanted)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("usage: labctl turns")


# Waits.


@pytest.mark.parametrize("kind", ["wait", "turn"])
def test_a_touch_of_the_wake_file_ends_a_wait(runner, kind):
    long = {
        "wait": {"do": "wait", "seconds": 3600, "why": "There is no issue."},
        "turn": turn(1, "exit 9", wait_seconds=3600, why="cooldown"),
    }
    site = runner.play(long[kind], long[kind], turn(1, "true"))
    process = runner.start()
    for number in (1, 2):
        runner.until(lambda number=number: len(site.reports) == number and runner.screen)
        (runner.loop / "wake").touch()
    assert process.wait(PATIENCE) == 0
    assert [r["number"] for r in site.reports] == [0, 0, 0, 1]
    assert site.results[0]["exit_code"] == 0
    words = {
        "wait": "Waiting: There is no issue.",
        "turn": "The next turn begins in 3600 s: cooldown",
    }
    assert runner.screen.count(words[kind]) == 1


def test_a_touch_of_before_ends_no_wait(runner):
    runner.loop.mkdir()
    (runner.loop / "wake").touch()
    site = runner.play({"do": "wait", "seconds": 3600, "why": "There is no issue."})
    process = runner.start()
    runner.until(lambda: runner.screen)
    time.sleep(0.2)  # ten looks
    assert len(site.reports) == 1
    (runner.loop / "wake").touch()
    assert process.wait(PATIENCE) == 0


def test_a_wake_while_labsite_answers_is_not_lost(runner):
    def answer(_report):
        (runner.loop / "wake").touch()
        return {"do": "wait", "seconds": 3600, "why": "There is no issue."}

    runner.play(answer)
    assert runner.run() == 0


def test_a_wait_that_is_over_leads_to_its_turn_without_another_question(runner):
    site = runner.play(turn(1, "true", wait_seconds=0.05), {"do": "wait", "seconds": 0, "why": "x"})
    assert runner.run() == 0
    assert [r["number"] for r in site.reports] == [0, 1, 1]


@pytest.mark.parametrize("name", ["stop", "restart"])
def test_files_by_which_people_ask_are_taken_away_and_told(runner, name):
    site = runner.play({"do": "wait", "seconds": 3600, "why": "There is no issue."}, (500, b""))
    process = runner.start()
    runner.until(lambda: site.reports and runner.screen)
    (runner.loop / name).touch()
    assert process.wait(PATIENCE) == 0
    assert [r.get("asks") for r in site.reports] == [None, name, name]
    assert not (runner.loop / name).exists()
    assert runner.run() == 0
    assert "asks" not in site.reports[-1]


def test_what_was_asked_for_survives_a_runner_that_is_killed(tmp_path):
    (tmp_path / "loop").mkdir()
    (tmp_path / "loop" / "restart").touch()
    assert LoopFolder(str(tmp_path)).take_asks() == "restart"
    again = LoopFolder(str(tmp_path))
    assert again.take_asks() == "restart"
    (tmp_path / "loop" / "stop").mkdir()
    assert again.take_asks() == "stop"
    again.told()
    assert LoopFolder(str(tmp_path)).take_asks() == ""


# What is shown.


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (
            '{"type":"assistant","message":{"content":[{"type":"text","text":"Hi\\u001b[1m"}]}}',
            ["Hi"],
        ),
        (
            '{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash"},1,{}]}}',
            ["[Bash]"],
        ),
        ('{"type":"item.completed","item":{"type":"agent_message","text":"Done."}}', ["Done."]),
        ('{"type":"item.completed","item":{"command":"git \\n status"}}', ["$ git status"]),
        ('{"type":"item.completed","item":3}', []),
        ('{"type":"system","subtype":"init"}', []),
        ('{"type":"assistant","message":{"content":null}}', []),
        ("warning: \x1b]0;title\x07old", ["warning: old"]),
        ("[" * 100_000, ["[" * 2000]),
        ("3", []),
        ("", []),
    ],
)
def test_of_json_lines_a_person_sees_words_and_calls(line, shown):
    assert turn_output.of_line(line) == shown


def test_json_lines_are_shown_line_by_line(runner):
    said = '{"type":"assistant","message":{"content":[{"type":"text","text":"Hello."}]}}'
    agent = f"printf '%s' '{said[:20]}'; sleep 0.05; echo '{said[20:]}'; echo oops >&2"
    runner.play(turn(1, agent, output="claude_stream_json"))
    assert runner.run() == 0
    assert runner.screen.splitlines()[1:-2] == ["Hello.", "oops"]


def test_more_than_a_person_can_follow_is_not_shown(tmp_path):
    now = [0.0]
    with (tmp_path / "screen").open("wb") as file:
        screen = Screen(file.fileno())
        shown = Shown(screen, is_json=False, clock=lambda: now[0])
        for _ in range(100):
            shown.feed(b"x" * 99_999 + b"\n")
        now[0] += 1.0
        shown.feed(b"later\n")
        screen.flush(1.0)
    text = (tmp_path / "screen").read_text()
    assert len(text) < 1_100_000
    assert text.count("not shown here") == 1
    assert text.endswith("later\n")


@pytest.mark.parametrize("size", [0, 1, 9, 10, 29, 30, 31, 45, 50, 51, 70, 1000])
@pytest.mark.parametrize("step", [1, 7, 1000])
def test_the_beginning_and_the_end_of_an_output_are_kept(tmp_path, size, step):
    data = bytes(33 + n % 90 for n in range(size))
    path = tmp_path / "output"
    kept = Kept(os.open(path, os.O_RDWR | os.O_CREAT), head=10, tail=20)
    for start in range(0, size, step):
        kept.keep(data[start : start + step])
    kept.close(str(path))
    gap = f"\n[{size - 30:,} bytes of the output are left out here]\n".encode()
    assert path.read_bytes() == (data if size <= 30 else data[:10] + gap + data[-20:])
    assert (kept.total, kept.is_cut) == (size, size > 30)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"do": 3},
        {"do": "turn", "generation": 1, "number": 1, "argv": []},
        {"do": "turn", "generation": 1, "number": 1, "argv": [1]},
        {"do": "turn", "generation": 1, "number": True, "argv": ["a"]},
        {"do": "turn", "generation": 0, "number": 1, "argv": ["a"]},
        {"do": "turn", "generation": 1, "number": 1, "argv": ["a"], "env": {"a": 1}},
        {"do": "turn", "generation": 1, "number": 1, "argv": ["a"], "limit_seconds": float("nan")},
        {"do": "turn", "generation": 1, "number": 1, "argv": ["a"], "prompt": 1},
        {"do": "wait", "seconds": -1},
        {"do": "wait", "seconds": "1"},
        {"do": "restart"},
        {"do": "end", "code": "0"},
        {"do": "end", "code": 256},
    ],
)
def test_an_answer_that_is_none_is_refused(answer):
    with pytest.raises(turn_orders.Unusable):
        turn_orders.read(answer)


def test_only_what_was_begun_has_a_result_whatever_lies_there(runner):
    forged = 'mkdir -p 1-2 && echo {"exit_code": 0} > 1-2/result.json'.replace('"', '\\"')
    site = runner.play(turn(1, f"cd $LAB_RUN_FOLDER/loop; {forged}; exit 3"), turn(2, "exit 4"))
    assert runner.run() == 0
    assert [one["exit_code"] for one in site.results] == [3, 4]


def test_the_output_of_older_turns_is_cut_once_labsite_has_read_it(runner):
    agent = "echo first; head -c 1000000 /dev/zero; echo last"
    sizes = []

    def look(report):
        outputs = [runner.loop / f"1-{n}" / "output" for n in range(1, report["number"] + 1)]
        sizes.append([one.stat().st_size for one in outputs])
        return turn(report["number"] + 1, agent) if report["number"] < 12 else END

    runner.play(turn(1, agent), *[look] * 12)
    assert runner.run() == 0

    whole, gap = 1_000_011, b"\n[744,011 bytes of the output are left out here]\n"
    cut = 256_000 + len(gap)
    assert sizes[:11] == [[whole] * n for n in range(1, 12)]
    assert sizes[11] == [cut, *[whole] * 11]
    for number in (1, 2):
        output = (runner.loop / f"1-{number}" / "output").read_bytes()
        assert output.startswith(b"first\n\0")
        assert output[64_000:].startswith(gap)
        assert output.endswith(b"\0last\n")
        assert len(output) == cut
    assert (runner.loop / "1-3" / "output").stat().st_size == whole
