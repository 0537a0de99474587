"""One-shot agents from start to outcome: what is read of them, and how their end is judged (C-47)."""

from __future__ import annotations

import json
import os
import signal
import sys
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from runs.core.states import AgentState, Outcome
from runs.kept.teardown_rules import CLOSING, may_close
from runs.lifecycle import stop
from runs.lifecycle.verdict import LINGERS_FOR, did_run
from runs.models import AgentProfile, Host, Notice, Run
from runs.transcript import listening
from tests import make
from tests.fakes import START
from tests.transcript import agent_lines as x
from tests.world.stories import look, press_start, ready, start

pytestmark = pytest.mark.django_db(transaction=True)

ONE_SHOT = {"mode": "one_shot", "output": "claude_stream_json"}
SECOND = timedelta(seconds=1)


def _live(world, key="7", project=None, **fields):  # type: ignore[no-untyped-def]
    """A working one-shot run with a live session on the fake outside."""
    if project is None:
        project = make.a_project()
        world.tracker.add_root("demo")
        world.tracker.add_issue("demo", f"Issue {key}", key)
    run = make.a_run(project, key, slot=int(key), **{**ONE_SHOT, **fields})
    world.live(run)
    return run


def _prints(world, run, *lines):  # type: ignore[no-untyped-def]
    folder = world.lab.paths.run_folder(run.pk)
    before = world.sessions.outputs.get(folder, b"")
    world.sessions.outputs[folder] = before + x.written(*lines)


def _after_look(world, run):  # type: ignore[no-untyped-def]
    look(world)
    run.refresh_from_db()
    return run


def test_what_an_agent_tells_is_on_its_row_after_a_look(world):
    run = _live(world)
    _prints(world, run, x.claude_init(), x.claude_does("make test"))
    looked = Host.objects.create(name="local").looked
    _after_look(world, run)
    assert (run.agent_session, run.agent_model) == (x.SESSION, "claude-sonnet-5")
    assert (run.state_of_agent, run.turns, run.cost_usd) == (AgentState.WORKING, 1, None)
    assert run.last_line == "▸ Bash: make test"
    assert Host.objects.get().looked == looked + 1
    assert Notice.objects.filter(kind="run.output").count() == 1
    _after_look(world, run)
    assert Host.objects.get().looked == looked + 1


def test_only_changes_of_state_are_told_and_each_once(world):
    run = _live(world)
    _prints(world, run, x.claude_init())
    look(world)
    for lines in (
        [x.claude_retry(1)],
        [x.claude_retry(2)],
        [x.claude_says("so")],
        [x.claude_says("and so on")],
        [x.claude_retry(1, "overloaded", 529)],
        [x.claude_refused(529, "Overloaded")],  # told by the run that is held for it
    ):
        _prints(world, run, *lines)
        look(world)
    told = list(Notice.objects.filter(run=run).order_by("pk").values_list("kind", "text"))
    assert told == [
        ("run.output", "first output"),
        ("run.troubled", "the agent is held up by a rate limit: rate limit (429), try 1 of 2"),
        ("run.goes_on", "the agent goes on"),
        ("run.troubled", "the agent is retrying: overloaded (529), try 1 of 2"),
    ]


def test_the_end_of_a_wait_is_kept_and_forgotten_when_it_goes_on(world):
    run = _live(world)
    _prints(world, run, x.claude_init(), x.claude_retry(delay=60_000))
    _after_look(world, run)
    assert (run.agent_state, run.agent_until) == ("rate_limited", START + timedelta(minutes=1))
    _prints(world, run, x.claude_says("on"))
    _after_look(world, run)
    assert (run.agent_state, run.agent_until, run.agent_note) == ("working", None, "")


def test_reading_goes_on_where_it_ended_whoever_reads(world):
    """Nothing but the row and the record is asked, so a restarted worker goes on alike."""
    run = _live(world)
    whole = x.written(x.claude_init(), *(x.claude_says("x", f"m{n}") for n in range(50)))
    folder = world.lab.paths.run_folder(run.pk)
    for cut in (10, 300, 301, 2000, len(whole)):
        world.sessions.outputs[folder] = whole[:cut]
        look(world)
    run.refresh_from_db()
    assert (run.turns, run.output_read) == (50, len(whole))
    assert Run.objects.get().reading == listening.hear(world.lab, make_unread(run))


def make_unread(run: Run) -> Run:
    """The same run as if nothing had been read of it yet."""
    fresh = Run.objects.get(pk=run.pk)
    fresh.output_read, fresh.turns, fresh.message_id, fresh.agent_session = 0, None, "", ""
    return fresh


def test_a_record_that_was_replaced_by_a_shorter_one_is_read_from_its_start(world):
    run = _live(world)
    _prints(world, run, x.claude_init(), *(x.claude_says("x", f"m{n}") for n in range(5)))
    look(world)
    world.sessions.outputs[world.lab.paths.run_folder(run.pk)] = x.written(x.claude_says("y"))
    _after_look(world, run)
    assert (run.turns, run.last_line) == (1, "y")


def test_one_look_reads_a_bounded_part_of_all_records_and_the_next_ones_the_rest(world):
    project = make.a_project()
    world.tracker.add_root("demo")
    for key in ("1", "2", "3"):
        run = _live(world, key, project)
        _prints(world, run, *(x.claude_says("x" * 200_000, f"m{n}") for n in range(15)))
    look(world)
    read = list(Run.objects.order_by("pk").values_list("output_read", flat=True))
    assert 0 < sum(read) < listening.AT_A_LOOK + listening.PIECE
    for _ in range(2):
        look(world)
    assert set(Run.objects.values_list("turns", flat=True)) == {15}


def test_a_long_record_is_read_in_bounded_pieces(world):
    run = _live(world)
    _prints(world, run, *(x.claude_says("x" * 200_000, f"m{n}") for n in range(20)))
    after = listening.hear(world.lab, run, 1)
    assert 0 < after.output_read <= listening.PIECE
    assert listening.finish(world.lab, run).report.turns == 20


@pytest.mark.row("LAB-12", level="contract")
def test_a_tick_over_one_shot_runs_has_a_fixed_number_of_queries(
    world, django_assert_max_num_queries
):
    project = make.a_project()
    world.tracker.add_root("demo")
    counts = []
    for total in (1, 20):
        for number in range(Run.objects.count() + 1, total + 1):
            run = _live(world, str(number), project)
            _prints(world, run, x.claude_init())
        look(world)
        for run in Run.objects.all():
            _prints(world, run, x.claude_says("more", "msg_9"))
        with django_assert_max_num_queries(19) as seen:
            look(world)
        counts.append(len(seen))
    assert counts[0] == counts[1]
    assert set(Run.objects.values_list("last_line", flat=True)) == {"more"}


def test_what_is_heard_of_a_run_that_was_stopped_meanwhile_changes_nothing(world):
    run = _live(world)
    _prints(world, run, x.claude_init(), x.claude_retry())
    Run.objects.filter(pk=run.pk).update(
        outcome="stopped", state="ended", ended_at=START, settled_at=START
    )
    assert listening.listen(world.lab, [run]) == 0
    run.last_output_at = START
    _prints(world, run, x.claude_says("on"))
    assert listening.listen(world.lab, [run]) == 0
    assert Run.objects.get().agent_state == ""
    assert not Notice.objects.filter(kind__startswith="run.").exists()


DEATHS = [
    pytest.param((x.claude_init(), x.claude_result()), 0, "the agent finished (ended with exit status 0)", "finished", id="its word"),
    pytest.param((x.claude_init(), x.claude_refused(401, "Invalid API key")), 1, "the agent is not logged in: Invalid API key", "needs_login", id="login"),
    pytest.param((x.claude_init(),), 0, "the agent was interrupted: it ended with exit status 0 without a result line", "interrupted", id="SIGINT"),
    pytest.param((x.claude_init(), b'{"type": "result", "subty'), 143, "the agent was interrupted: it ended with exit status 143", "interrupted", id="half a line"),
    pytest.param((x.claude_init(), x.written(x.claude_refused(400, "no credit")).rstrip()), 1, "the agent ended with an error (HTTP 400): no credit", "failed", id="no line end"),
]  # fmt: skip


@pytest.mark.every_case
@pytest.mark.row("C-47", "LAB-24", level="contract")
@pytest.mark.parametrize(("lines", "status", "reason", "state"), DEATHS)
def test_an_end_without_a_pull_request_is_a_death_with_an_honest_reason(
    world, lines, status, reason, state
):
    run = _live(world)
    _prints(world, run, *lines)
    world.sessions.end(run.session, status)
    _after_look(world, run)
    assert run.outcome == Outcome.DIED
    assert run.reason.startswith(reason)
    assert run.reason.endswith(", and there is no pull request")
    assert (run.agent_state, run.exit_status) == (state, status)
    before = [str(value) for value in Run.objects.values_list()]
    look(world)
    assert [str(value) for value in Run.objects.values_list()] == before


@pytest.mark.row("C-47", "LAB-22", level="contract")
@pytest.mark.parametrize("status", [0, 1, 143])
def test_a_pull_request_of_the_last_breath_counts_whatever_the_program_says(world, status):
    """It appears after the row was read and while the sessions are looked at."""
    run = _live(world)
    _prints(world, run, x.claude_init(), x.claude_refused(500, "it broke"))
    asked = world.sessions.look

    def ends_now():  # type: ignore[no-untyped-def]
        world.sessions.end(run.session, status)
        world.tracker.add_pull("demo", "afk/7")
        return asked()

    world.sessions.look = ends_now
    _after_look(world, run)
    assert run.outcome == Outcome.SUCCEEDED
    assert run.agent_note == "it broke"


@pytest.mark.parametrize(
    ("more", "is_told"),
    [
        ({"head": "fix"}, True),
        ({"head": "fix", "state": "merged"}, True),
        ({"head": "fix", "state": "closed"}, False),
        ({"head": "fix", "is_fork": True}, False),
        ({"head": "fix", "created_at": START - timedelta(days=1)}, False),
        ({"head": "theirs"}, False),
    ],
)
def test_a_pull_request_from_another_branch_of_the_run_is_told_with_its_end(world, more, is_told):
    run = _live(world, worktree="/x/demo-7", fork_point="f" * 40)
    refs = {"refs/heads/fix": "a" * 40, "HEAD": "a" * 40, "refs/remotes/origin/theirs": "c" * 40}
    world.repos.beside[Path(run.worktree)] = refs
    number = world.tracker.add_pull("demo", **more)
    _prints(world, run, x.claude_init(), x.claude_result())
    world.sessions.end(run.session, 0)
    _after_look(world, run)
    assert run.outcome == Outcome.DIED
    end = f"; it opened pull request {number} from its branch fix instead of afk/7: look at what it holds"
    assert run.reason.endswith(f"there is no pull request{end}") is is_told


@pytest.mark.row("C-47", level="contract")
def test_a_tracker_that_cannot_say_leaves_a_program_that_ended_unjudged(world):
    run = _live(world)
    _prints(world, run, x.claude_init(), x.claude_result())
    world.sessions.end(run.session, 0)
    world.tracker.fail()
    assert _after_look(world, run).is_active
    world.tracker.heal()
    world.tracker.add_pull("demo", "afk/7")
    assert _after_look(world, run).outcome == Outcome.SUCCEEDED


@pytest.mark.parametrize(
    ("outcome", "mode", "alive", "since", "expected"),
    [
        pytest.param(Outcome.SUCCEEDED, "one_shot", True, CLOSING - SECOND, True, id="closing"),
        pytest.param(Outcome.SUCCEEDED, "one_shot", True, CLOSING, False, id="time is up"),
        pytest.param(Outcome.SUCCEEDED, "one_shot", False, SECOND, False, id="it has ended"),
        pytest.param(Outcome.SUCCEEDED, "interactive", True, SECOND, False, id="idles"),
        pytest.param(Outcome.STOPPED, "one_shot", True, SECOND, False, id="stopped"),
        pytest.param(Outcome.TIMED_OUT, "one_shot", True, SECOND, False, id="timed out"),
        pytest.param(Outcome.DIED, "one_shot", True, SECOND, False, id="died"),
    ],
)
def test_only_a_one_shot_success_may_end_by_itself(outcome, mode, alive, since, expected):
    assert may_close(outcome, mode == "one_shot", alive, since) is expected


def test_a_delivered_one_shot_run_tells_its_cost_before_it_is_reaped(world):
    run = _live(world)
    _prints(world, run, x.claude_init(), x.claude_does("labctl pr create"))
    world.tracker.add_pull("demo", "afk/7")
    _after_look(world, run)
    assert (run.outcome, run.settled_at, run.cost_usd) == (Outcome.SUCCEEDED, None, None)
    assert run.session in world.sessions.all
    _prints(world, run, x.claude_says("Done.", "m2"), x.claude_result())
    world.sessions.end(run.session, 0)
    world.clock.forward(seconds=20)
    _after_look(world, run)
    assert run.settled_at is not None
    assert (run.cost_usd, run.turns, run.agent_state) == (Decimal("0.001449"), 2, "finished")
    assert "Done." in run.last_words and '"type"' not in run.last_words
    assert world.sessions.all == {}


@pytest.mark.row("LAB-37", level="contract")
def test_a_delivered_one_shot_run_that_does_not_end_is_ended_after_a_minute(world):
    run = _live(world)
    world.tracker.add_pull("demo", "afk/7")
    look(world)
    world.clock.forward(seconds=59)
    assert _after_look(world, run).settled_at is None
    world.clock.forward(seconds=1)
    assert _after_look(world, run).settled_at is not None
    assert world.sessions.all == {}
    assert run.agent_state == "interrupted"


def test_processes_that_outlive_their_run_are_named_on_it(world):
    run = _live(world, worktree="/x/demo-7")
    world.sessions.left_behind = [(4711, "node"), *((n, "sleep") for n in range(1, 6))]
    world.tracker.add_pull("demo", "afk/7")
    world.sessions.end(run.session, 0)
    _after_look(world, run)
    assert run.settled_at is not None
    assert run.warning.endswith(
        "in its worktree there still run node (4711), sleep (1), sleep (2), sleep (3), sleep (4) and "
        "1 more, which its session may have left behind: end them if nobody needs them"
    )


LINGERS = int(LINGERS_FOR.total_seconds())
KEPT_OPEN = (x.claude_init(), x.claude_background("local_bash"), x.claude_result())


def _lingers(world, run, *lines):  # type: ignore[no-untyped-def]
    """It prints these lines and goes on running."""
    _prints(world, run, *lines)
    look(world)
    world.clock.forward(seconds=LINGERS - 1)
    assert _after_look(world, run).is_active
    world.clock.forward(seconds=1)
    return _after_look(world, run)


def test_a_run_that_printed_its_result_and_does_not_exit_ends_by_it(world):
    run = _lingers(world, _live(world), *KEPT_OPEN)
    assert run.reason == (
        "the agent finished (it printed its result and did not exit, so its session was closed), "
        "and there is no pull request"
    )
    assert (run.outcome, run.exit_status, run.agent_state) == (Outcome.DIED, None, "finished")
    assert world.sessions.all == {} and run.settled_at is not None


def test_a_result_that_is_an_error_is_told_as_one_though_the_program_stays(world):
    run = _lingers(world, _live(world), x.claude_init(), x.claude_refused(400, "no credit"))
    assert run.reason.startswith("the agent ended with an error (HTTP 400): no credit (it printed")
    assert (run.outcome, world.sessions.all) == (Outcome.DIED, {})


def test_agents_in_the_background_keep_a_run_that_printed_a_result(world):
    run = _live(world)
    _prints(world, run, x.claude_init(), x.claude_background("local_agent"), x.claude_result())
    look(world)
    world.clock.forward(seconds=LINGERS)
    assert _after_look(world, run).background_agents == 1
    assert run.is_active
    back = (x.claude_background(), x.claude_init(), x.claude_says("It is back.", "m2"))
    _prints(world, run, *back)
    look(world)
    world.clock.forward(seconds=LINGERS)
    assert _after_look(world, run).is_active  # a turn that has no result yet
    assert _lingers(world, run, x.claude_result()).outcome == Outcome.DIED


def test_a_clock_that_is_set_does_not_end_a_run_that_printed_its_result(world):
    run = _live(world)
    _prints(world, run, *KEPT_OPEN)
    look(world)
    world.clock.jump(hours=3)
    assert _after_look(world, run).is_active


def test_a_wait_that_a_program_counts_down_goes_on_when_the_clock_is_set(world):
    run = _live(world)
    look(world)
    _prints(world, run, x.claude_init(), x.claude_retry(delay=60_000))
    _after_look(world, run)
    world.clock.jump(hours=3)
    assert _after_look(world, run).agent_until == START + timedelta(hours=3, minutes=1)


def test_a_reset_that_the_service_named_is_no_other_when_the_clock_is_set(world):
    run = _live(world)
    look(world)
    reset = START + timedelta(hours=4)
    _prints(world, run, x.claude_init(), x.claude_used_up(reset))
    _after_look(world, run)
    world.clock.jump(hours=3)
    assert _after_look(world, run).agent_until == reset


def test_stop_ends_a_one_shot_run_at_once_and_keeps_what_it_told(world):
    run = _live(world)
    _prints(world, run, x.claude_init(), x.claude_says("I am", "m1"))
    assert stop.stop(world.lab, run, "anna")
    run.refresh_from_db()
    assert world.sessions.all == {} and run.settled_at is not None
    assert (run.agent_session, run.turns, run.agent_state) == (x.SESSION, 1, "interrupted")
    assert "I am" in run.last_words


@pytest.mark.parametrize(
    ("mode", "alive", "status", "expected"),
    [
        ("interactive", True, None, True),
        ("interactive", False, 0, False),
        ("one_shot", True, None, True),
        ("one_shot", False, 0, True),
        ("one_shot", False, 1, False),
        ("one_shot", False, None, False),
    ],
)
def test_a_start_failed_when_its_program_ended_at_once_unless_it_may_be_done(
    mode, alive, status, expected
):
    assert did_run(mode, alive, status) is expected


# On real tmux, with a scripted program that prints lines as a real one does.

SCRIPT = """
import json, os, signal, sys, time
said = json.loads(open(os.environ["LINES"]).read())
def say(n=1):
    for _ in range(n): os.write(1, said.pop(0).encode())
def until(name):
    while not os.path.exists(os.path.join(os.environ["STEPS"], name)): time.sleep(0.02)
"""


def _project(real, code: str, *lines: bytes | x.Line, output: str = "claude_stream_json"):  # type: ignore[no-untyped-def]
    """A project whose agent runs this code; `say()` prints the next line, `until(name)` waits."""
    told = [(x.written(line)).decode() for line in lines]
    (real.folder / "lines").write_text(json.dumps(told))
    steps = real.folder / "steps"
    steps.mkdir()
    project = real.project(argv=[sys.executable, "-c", SCRIPT + code, "{prompt}"])
    AgentProfile.objects.filter(pk=project.agent_id).update(
        mode="one_shot",
        output=output,
        resume_argv=["claude", "--resume", "{session}"],
        env={"LINES": str(real.folder / "lines"), "STEPS": str(steps)},
    )
    project.refresh_from_db()
    return project


def _step(real, name: str) -> None:
    (real.folder / "steps" / name).touch()


def _looked(real, run, happened):  # type: ignore[no-untyped-def]
    def seen() -> bool:
        look(real)
        run.refresh_from_db()
        return bool(happened())

    real.until(seen)


@pytest.mark.row("C-47", "LAB-21", level="real")
def test_a_real_one_shot_run_waits_goes_on_delivers_and_tells_its_cost(real):
    lines = (
        x.claude_init(),
        x.claude_retry(delay=60_000),
        x.claude_says("on"),
        x.claude_says("Done.", "m2"),
        x.claude_result(),
    )
    code = "say(2); until('go'); say(); until('end'); say(2)"
    run = start(real, _project(real, code, *lines))
    assert (run.mode, run.output) == ("one_shot", "claude_stream_json")
    _looked(real, run, lambda: run.agent_state == "rate_limited")
    assert run.agent_until is not None
    _step(real, "go")
    _looked(real, run, lambda: run.agent_state == "working")
    real.memory.add_pull("demo", "afk/7")
    _looked(real, run, lambda: run.outcome == "succeeded")
    assert run.settled_at is None
    _step(real, "end")
    _looked(real, run, lambda: run.settled_at is not None)
    assert (run.cost_usd, run.agent_state, run.exit_status) == (
        Decimal("0.001449"),
        "finished",
        None,
    )
    assert "Done." in run.last_words
    assert real.session_names() == []


@pytest.mark.row("C-47", "LAB-24", level="real")
@pytest.mark.parametrize(
    ("code", "lines", "reason"),
    [
        pytest.param(
            "say(1); until('go'); say(1); sys.exit(1)",
            (x.claude_init(), x.claude_refused(400, "Prompt is too long")),
            "the agent ended with an error (HTTP 400): Prompt is too long (ended with exit status 1)",
            id="refused",
        ),
        pytest.param(
            "say(1); signal.signal(2, lambda *_: sys.exit(0)); until('go'); os.kill(os.getpid(), 2); time.sleep(9)",
            (x.claude_init(),),
            "the agent was interrupted: it ended with exit status 0 without a result line",
            id="SIGINT",
        ),
        pytest.param(
            "say(1); signal.signal(15, lambda *_: sys.exit(143)); until('go'); os.kill(os.getpid(), 15); time.sleep(9)",
            (x.claude_init(),),
            "the agent was interrupted: it ended with exit status 143 without a result line",
            id="SIGTERM",
        ),
        pytest.param(
            "say(1); until('go'); os.write(1, said[0][:30].encode()); os.kill(os.getpid(), 9)",
            (x.claude_init(), x.claude_result()),
            "the agent was interrupted: it was ended by signal 9 without a result line",
            id="killed in half a line",
        ),
        pytest.param(
            "say(1); until('go'); os.spawnlp(os.P_NOWAIT, 'setsid', 'setsid', 'sleep', '600'); say(1)",
            (x.claude_init(), x.claude_result()),
            "the agent finished (ended with exit status 0)",
            id="a child holds its output",
        ),
    ],
)
def test_how_a_real_one_shot_program_ends_is_the_reason(real, code, lines, reason):
    run = start(real, _project(real, code, *lines))
    _step(real, "go")
    _looked(real, run, lambda: run.settled_at is not None)
    assert (run.outcome, run.worktree_fate) == ("died", "kept")
    assert run.reason.startswith(reason), run.reason


def test_a_program_that_is_refused_at_once_fails_the_start_with_its_own_words(real):
    project = _project(
        real, "say(2); sys.exit(1)", x.claude_init(), x.claude_refused(400, "Prompt is too long")
    )
    real.look_again_at_the_end()
    ready(real)
    asked = press_start(real, project)
    assert asked.answer == "start_failed"
    assert asked.text == (
        "the agent exited immediately with status 1. Its final output: Prompt is too long"
    )
    run = Run.objects.get()
    assert (run.outcome, run.agent_state) == ("failed", "failed")


@pytest.mark.row("C-47", level="real")
def test_a_program_that_is_done_at_once_did_run(real):
    project = _project(real, "say(2)", x.claude_init(), x.claude_result())
    real.look_again_at_the_end()
    real.memory.add_pull("demo", "afk/7")
    run = start(real, project)
    assert real.bell.looks[-1] == "demo"  # nothing else would wake the worker for it
    _looked(real, run, lambda: run.settled_at is not None)
    assert (run.outcome, run.cost_usd) == ("succeeded", Decimal("0.001449"))


@pytest.mark.row("X-14", level="real")
def test_the_task_reaches_a_one_shot_agent_as_one_argument(real):
    code = "open(os.path.join(os.environ['STEPS'], 'argv'), 'w').write(json.dumps(sys.argv[1:])); time.sleep(600)"
    run = start(real, _project(real, code))
    argv = real.folder / "steps" / "argv"
    real.until(lambda: argv.exists() and argv.read_text())
    run.refresh_from_db()
    assert json.loads(argv.read_text()) == [run.prompt]


def test_a_killed_agent_whose_tmux_server_died_too_is_judged_from_its_record(real):
    run = start(real, _project(real, "say(1); time.sleep(600)", x.claude_init()))
    _looked(real, run, lambda: run.agent_session == x.SESSION)
    os.kill(int(real.tmux("display-message", "-p", "#{pid}")), signal.SIGKILL)
    _looked(real, run, lambda: run.settled_at is not None)
    assert run.outcome == "died"
    assert "without a result line" in run.reason
    assert run.last_words.startswith("\x1b[2mclaude-sonnet-5")
