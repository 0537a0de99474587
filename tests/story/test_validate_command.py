"""`./lab validate` as a person or a script starts it: real processes, a real signal, its exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import databases
from tests.house.product import is_gone, until
from tests.story.commands import Command, alive, refuses, started
from tests.story.conftest import Story

SET_UP = """
from runs.models import CheckCommand, CheckTerms, Project
from runs.wiring import lab
from runs.projects import cloning
from runs.demo import making as demo
if not Project.objects.exists():
    demo.make(lab(), 'anna')
    cloning.carry_out_clone(lab(), Project.objects.get().pk)
project = Project.objects.get()
CheckTerms.objects.update_or_create(project=project, defaults={{"disabled": ["coverage"]}})
CheckCommand.objects.all().delete()
CheckCommand.objects.create(project=project, position=1, name="tests", kind="test",
    argv=["sh", "-c", {script!r}])
print(project.slug)
"""


@pytest.fixture(scope="module")
def story(with_anna: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """One folder for all: each test gives the project the commands that it wants."""
    made = Story(databases.copy(with_anna, tmp_path_factory.mktemp("validate") / "state"))
    yield made
    made.close()


@pytest.fixture
def validate(story) -> Iterator[Callable[..., Command]]:
    with started(story, "validate") as go:
        yield go


@pytest.mark.real
@pytest.mark.row("MALA-V-68", "MALA-V-69", "MALA-V-71", level="real")
@pytest.mark.parametrize(
    ("argv", "text"),
    [
        ([], "usage: ./lab validate"),
        (["x", "--disable-validations", "e2e,lints"], "lints is none of the switches"),
        (["x", "--disable-validations", "codex-review"], "codex-review is called review now"),
        (["x", "--coverage-threshold", "120"], "120 is no percentage from 0 to 100"),
        (["x", "--codex-thinking-mode", "high"], "unrecognized arguments: --codex-thinking-mode"),
        (["x", "--keep"], "unrecognized arguments: --keep"),
    ],
)
def test_wrong_arguments_end_it_with_two_before_anything_was_made(tmp_path, argv, text):
    refuses(tmp_path / "state", "validate", *argv, says=text)


@pytest.mark.row("MALA-V-06", "MALA-V-08", level="real")
def test_it_says_how_it_went_by_its_status_without_a_product(story, validate, tmp_path: Path):
    slug = story.shell(SET_UP.format(script="echo seen; test -e .git")).strip()
    good = validate(slug)
    assert good.ends() == 0, good.out + good.err
    assert "\ntests: sh -c 'echo seen; test -e .git'\n  passed after" in good.out
    assert good.out.splitlines()[-1].startswith("Passed after")

    story.shell(SET_UP.format(script="echo it is wrong >&2; exit 3"))
    bad = validate(slug, "--json")
    assert bad.ends() == 1, bad.out + bad.err
    ended = json.loads(bad.out.splitlines()[-1])
    assert (ended["passed"], ended["code"]) == (False, 1)
    assert ended["command_results"][0]["status"] == 3

    assert validate("no-such-project").ends() == 2
    nothing = validate(slug, "--disable-validations", "post-validate")
    assert nothing.ends() == 3, nothing.out + nothing.err
    assert "Add them on its page" in nothing.err or "kind test" in nothing.err
    assert "Traceback" not in nothing.err
    until(lambda: not alive(story))


@pytest.mark.row("MALA-V-42", level="real")
def test_ctrl_c_ends_what_it_started(story, validate, tmp_path: Path):
    pid = tmp_path / "pid"
    script = f"echo $$ > {pid}.new; mv {pid}.new {pid}; sleep 600"
    command = validate(story.shell(SET_UP.format(script=script)).strip())
    until(pid.exists, told=lambda: command.out + command.err)
    command.press()
    assert command.ends() == 130
    until(lambda: is_gone(int(pid.read_text())))
    rooms = story.paths.clean_rooms
    assert not rooms.exists() or not any(rooms.rglob("*.*"))
    until(lambda: not alive(story))
