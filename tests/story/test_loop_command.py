"""`./lab loop` as a person or a script starts it: a real process, real signals, the code it exits with."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from tests.house.product import is_gone, until
from tests.story.commands import Command, alive, refuses, started
from tests.story.test_loops import Shop

DONE = "labctl emit LOOP_COMPLETE"
RUNS = "from runs.models import Run; print(' '.join(f'{r.issue_key}:{r.outcome}' for r in Run.objects.order_by('pk')))"
ENDS = "from runs.models import Loop; print(' '.join(f'{l.run.issue_key}:{l.end}:{l.exit_code}' for l in Loop.objects.order_by('pk')))"
TERMS = "from runs.models import LoopTerms; print(*LoopTerms.objects.values_list('max_turns', 'completion', 'failures').get())"
ONE_FAILURE = "from runs.models import LoopTerms, Settings; LoopTerms.objects.update(failures=1); Settings.objects.update(session_cap=20)"
RESTART = "from runs.models import Run; from runs.loops import acts; from runs.wiring import lab; acts.ask_restart(lab(), Run.objects.get(issue_key='2'), by='anna')"
STOP = "from runs.models import Run; from runs.lifecycle import stop; from runs.wiring import lab; stop.stop(lab(), Run.objects.get(issue_key='6'), 'anna')"
REQUESTS = (
    "from runs.models import StartRequest; print(StartRequest.objects.filter(answer='').count())"
)


@pytest.fixture
def loop(story) -> Iterator[Callable[..., Command]]:
    with started(story, "loop") as go:
        yield go


@pytest.mark.real
@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["--max-turns", "0"], "Error: --max-turns is a whole number from 1"),
        (["--max-runtime", "soon"], "Error: --max-runtime is a length from 1s"),
        (["--max-cost", "0"], "Error: --max-cost is US dollars in whole cents"),
        (["--issue", " "], "Error: --issue is the number or the key of an issue"),
        (["--prompt", "  "], "Error: --prompt is empty. Nothing was started."),
        (["--prompt-file", "/nowhere/PROMPT.md"], "could not be read: No such file"),
        (["--prompt-file", "."], "could not be read: Is a directory"),
        (["--roles", "/dev/null"], "Error: /dev/null: it holds no settings"),
        (["--prompt", "x", "--issue", "1"], "not allowed with argument"),
        (["--prompt", "x", "--continue"], "--continue goes on with the prompt of before"),
        (["--forever", "--issue", "1"], "Error: --forever takes issue after issue"),
    ],
)
def test_wrong_arguments_end_it_with_two_before_anything_was_made(tmp_path, argv, text):
    refuses(tmp_path / "state", "loop", "shop", *argv, says=text)


@pytest.mark.row("RALPH-13", "RALPH-26", level="real")
def test_without_a_product_it_starts_the_same_programs_and_leaves_none(story, loop, tmp_path):
    shop = Shop(story, tmp_path, "Count the table", waits=False)

    command = loop("shop", "--json")
    shop.begins("1-1-1")
    shop.does("1-1-1", "commit one", "labctl emit build.done")
    shop.does("1-1-2", 'git push -q origin "$LAB_BRANCH"', "labctl pr create", DONE)

    assert command.ends() == 0, command.err
    assert "No worker runs" in command.err
    lines = [json.loads(line) for line in command.out.splitlines()]
    assert lines[0] == {"event": "opened", "run": 1, "issue": "1", "project": "shop"}
    turns = [line for line in lines if line["event"] == "turn"]
    assert [(turn["number"], turn["exit_code"], turn["commits"]) for turn in turns] == [
        (1, 0, 1),
        (2, 0, 0),
    ]
    last = lines[-1]
    assert (last["event"], last["code"], last["turns"], last["cost"]) == ("ended", 0, 2, None)
    assert last["reason"].startswith("its loop was completed after 2 turns")
    assert story.shell(RUNS) == "1:succeeded"
    assert story.sessions() == []
    until(lambda: not alive(story))


@pytest.mark.row("RALPH-14", "RALPH-17", "RALPH-20", "RALPH-21", "RALPH-22", level="real")
@pytest.mark.row("RALPH-12", "C-15", level="real")
def test_beside_a_running_product_every_end_has_its_code(story, loop, tmp_path):
    story.up()
    shop = Shop(story, tmp_path, *(f"Count {name}" for name in "abcdefg"))
    story.shell(ONE_FAILURE)
    before = story.shell(TERMS)
    nothing_before = loop("shop", "--continue")
    assert nothing_before.ends() == 2
    limit = loop("shop", "--issue", "1", "--max-turns", "1")
    typed = ("--completion-word", "FINISHED", "--cooldown", "0")
    again = loop("shop", "--issue", "2", *typed)
    fails, softly, twice, hangs = (loop("shop", "--issue", key) for key in "3456")
    unknown, costs = loop("nothing"), loop("shop", "--max-cost", "1")

    # A limit is 2, a turn that fails is 1, and what cannot be begun is 2 with an Error.
    shop.does("1-1-1", "labctl emit build.done")
    shop.does("3-1-1", "exit 7")
    assert limit.ends() == 2, limit.err
    assert "ended    2: its loop reached its most turns after 1 turn" in limit.out
    assert "turn 1 begins (coordinator)" in limit.out
    assert "Error" not in limit.err
    assert fails.ends() == 1, fails.err
    assert "turn 1 (coordinator) ended with exit status 7" in fails.out
    assert (unknown.ends(), costs.ends()) == (2, 2)
    assert "Error: there is no project nothing." in unknown.err
    assert "Error: Turner does not tell what a turn costs" in costs.err
    assert "no loop of shop ended before it was completed" in nothing_before.err
    assert story.shell(TERMS) == before

    # A restart is 3: the loop begins anew and goes on, and is followed by who asks for it again.
    shop.begins("2-1-1")
    story.shell(RESTART)
    shop.does("2-1-1", "labctl emit build.done")
    assert again.ends() == 3, again.err
    assert "begins anew, generation 2" in again.out
    followed = loop("shop", "--issue", "2", "--continue")
    followed.says("It runs already")
    shop.does("2-2-1", DONE)
    shop.does("2-2-2", "labctl emit FINISHED")
    assert followed.ends() == 0, followed.err

    # Ctrl-C once lets the turn finish, twice ends it.
    shop.begins("4-1-1")
    softly.press()
    softly.says("Stopping after this turn, which may finish.")
    shop.does("4-1-1", "commit one", "labctl emit build.done")
    assert softly.ends() == 130, softly.err
    assert "turn 1 (coordinator) ended after" in softly.out
    shop.begins("5-1-1")
    twice.press()
    twice.says("Stopping after this turn")
    twice.press()
    agent = shop.pid("5-1-1")
    until(lambda: is_gone(agent))
    assert twice.ends() == 130, twice.err

    # A closed terminal ends the command alone.
    shop.begins("6-1-1")
    hangs.hang_up()
    assert hangs.ends() == 129
    assert not is_gone(shop.pid("6-1-1"))
    story.shell(STOP)

    # Its turns count on, and nobody said anything that its agent would have to confirm.
    goes_on = loop("shop", "--continue", "--issue", "4")
    shop.does("4-1-2", DONE)
    assert goes_on.ends() == 0, goes_on.err
    assert "0: its loop was completed after 2 turns" in goes_on.out
    assert "4-1-2" in shop.began()

    ends = story.shell(ENDS).split()
    assert sorted(ends[:6]) == [
        "1:turns:2",
        "2:completed:0",
        "3:failures:1",
        "4:stopped:1",
        "5:interrupted:130",
        "6:stopped:1",
    ]
    assert ends[6:] == ["4:completed:0"]
    assert story.shell(REQUESTS) == "0"
    commands = (
        limit,
        again,
        followed,
        fails,
        softly,
        twice,
        hangs,
        goes_on,
        unknown,
        costs,
    )
    assert "Traceback" not in "".join(command.err for command in commands)
    assert "No worker runs" not in "".join(command.err for command in commands)
    until(lambda: story.sessions() == [])


OBJECTIVES = (
    "from runs.models import Loop; print(*[repr(l.objective) for l in Loop.objects.order_by('pk')])"
)
ISSUES = "from trackers.builtin.models import Issue; print(*[f'{i.number}:{i.title}' for i in Issue.objects.order_by('pk')])"
AGAIN = "from runs.models import Run; from runs.loops import acts; from runs.wiring import lab; acts.ask_restart(lab(), Run.objects.get(issue_key='3'), by='anna')"
ROLES = """
hats:
  finder:
    triggers: [loop.start, task.resume]
    publishes: [build.task]
    instructions: Look for the next work.
"""


@pytest.mark.row("RALPH-03", "RALPH-01", level="real")
def test_a_prompt_of_the_folder_of_the_command_or_of_a_file_is_what_a_loop_works_on(
    story, loop, tmp_path
):
    story.up()
    shop = Shop(story, tmp_path, waits=True)
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "PROMPT.md").write_text("# Count the chairs\n\nAll of them.\n")
    (folder / "roles.yml").write_text(ROLES)

    default = loop("shop", "--max-turns", "1", folder=folder)
    shop.does("1-1-1", "labctl emit build.done")
    assert default.ends() == 2, default.err
    assert "The prompt is PROMPT.md of this folder." in default.err
    assert "The prompt is issue 1 of shop." in default.err

    typed = ("--prompt", "Count forever", "--persistent", "--roles", "roles.yml")
    roles = loop("shop", *typed, folder=folder)
    shop.does("2-1-1", "commit one", "labctl emit build.task")
    shop.does("2-1-2", DONE)
    shop.begins("2-1-3")
    roles.press()
    roles.says("Stopping after this turn")
    shop.does("2-1-3", "labctl emit build.task")
    assert roles.ends() == 130, roles.err
    assert "turn 1 begins (finder)" in roles.out
    assert "turn 2 begins (coordinator)" in roles.out
    assert "turn 3 begins (finder)" in roles.out

    # The restart wrapper: after a restart the next loop is followed at once.
    wrapped = loop("shop", "--prompt-file", "PROMPT.md", "--forever", folder=folder)
    shop.begins("3-1-1")
    story.shell(AGAIN)
    shop.does("3-1-1", "labctl emit build.done")
    shop.does("3-2-1", DONE)
    wrapped.says("The next loop begins in 300 s.")
    wrapped.press()
    assert wrapped.ends() == 130, wrapped.err

    # What somebody has from Ralph is shown first, and taken over without a loop.
    (folder / "ralph.yml").write_text(f"event_loop: {{max_iterations: 7, tui: 1}}\n{ROLES}")
    shown = loop("shop", "--import", ".", "--dry-run", folder=folder)
    assert shown.ends() == 0, shown.err
    assert "not taken event_loop.tui" in shown.out
    assert story.shell(TERMS).split()[0] == "50"
    taken = loop("shop", "--import", ".", folder=folder)
    assert taken.ends() == 0, taken.err
    assert story.shell(TERMS).split()[0] == "7"
    nothing = loop("shop", "--import", str(tmp_path), folder=folder)
    assert nothing.ends() == 2
    assert "has no ralph.yml" in nothing.err

    first, second = "# Count the chairs\n\nAll of them.", "Count forever"
    assert story.shell(OBJECTIVES) == f"{first!r} {second!r} {first!r}"
    assert story.shell(ISSUES) == ("1:Count the chairs 2:Count forever 3:Count the chairs")
    until(lambda: story.sessions() == [])
