"""The record of a settled run stays readable: copied once, without secrets, whole or not at all."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from runs.conversation import keeping
from runs.core.states import Outcome
from runs.lifecycle import outcomes, reaper
from runs.models import RecordToKeep, Run
from runs.secrets import masked
from runs.secrets.known import Known
from runs.transcript import own_record
from tests.conversation import long_talk
from tests.conversation.conftest import TREE
from tests.world import agent_homes as homes

pytestmark = pytest.mark.django_db

KEY = "sk-ant-Qw3rTy-0123456789"


def end(world: Any, run: Run) -> Run:
    """The run dies and is settled."""
    assert outcomes.record(world.lab, run, Outcome.DIED, "it died")
    run.refresh_from_db()
    assert reaper.settle(world.lab, run)
    return Run.objects.select_related("project", "profile").get(pk=run.pk)


def folder(world: Any, run: Run) -> Path:
    return world.lab.paths.run_folder(run.pk) / own_record.KEPT


def html(client: Any, run: Run, query: str = "") -> str:
    return client.get(f"/runs/{run.pk}/conversation/{query}").content.decode()


@pytest.mark.long
def test_it_is_there_when_the_program_has_deleted_its_own(anna, home, world, claude_run):
    long_talk.write_claude(home, TREE)
    run = end(world, claude_run)
    before = html(anna, run)
    assert keeping.tend(world.lab) == 1
    shutil.rmtree(home)
    after = html(anna, run)
    assert after.count("<article") == before.count("<article") > 20
    assert "grep -rn parse_all" in after
    assert RecordToKeep.objects.count() == 0


def test_codexs_too(anna, home, world, codex_run):
    long_talk.write_codex(home, TREE)
    run = end(world, codex_run)
    keeping.tend(world.lab)
    shutil.rmtree(home)
    assert "two tests cover it" in html(anna, run)


def test_a_copy_holds_no_secret(home, world, claude_run):
    profile = claude_run.profile
    profile.env = {"ANTHROPIC_API_KEY": KEY}
    profile.save()
    world.lab = masked.lab(world.lab, Known({}))
    talk = long_talk.Claude(TREE)
    lines = [talk.says(f"key {KEY}"), talk.says("Fine."), f"odd {KEY}\n".encode()]
    homes.write(homes.claude_path(home, TREE), lines)
    run = end(world, claude_run)
    keeping.tend(world.lab)
    text = (folder(world, run) / f"{homes.SESSION}.jsonl").read_text()
    assert KEY not in text
    assert text.count("[hidden]") == 2
    assert json.loads(text.split("\n")[0])["type"] == "assistant"
    assert (folder(world, run) / f"{homes.SESSION}.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_line_of_fifty_megabytes_is_left_out_and_said(anna, home, world, claude_run):
    talk = long_talk.Claude(TREE)
    lines = [talk.says("Before."), talk.gets("toolu_1", "x" * 50_000_000), talk.says("After.")]
    homes.write(homes.claude_path(home, TREE), lines)
    run = end(world, claude_run)
    keeping.tend(world.lab)
    assert (folder(world, run) / f"{homes.SESSION}.jsonl").stat().st_size < 10_000
    shown = html(anna, run)
    assert "50.0 MB" in shown
    assert "Before." in shown
    assert "After." in shown


def test_of_a_very_long_record_the_end_is_kept(home, world, claude_run):
    talk = long_talk.Claude(TREE)
    homes.write(homes.claude_path(home, TREE), [talk.says(f"N{n}.") for n in range(50)])
    run = end(world, claude_run)
    keeping.keep(world.lab, run, 2000)
    lines = (folder(world, run) / f"{homes.SESSION}.jsonl").read_bytes().split(b"\n")
    assert json.loads(lines[0])["type"] == "labsite.left_out"
    assert b"N49." in lines[-2]
    assert all(json.loads(line) for line in lines[:-1])


def test_killed_in_the_middle_it_is_begun_anew(home, world, claude_run):
    long_talk.write_claude(home, TREE)
    run = end(world, claude_run)
    # The first of two copies is there, half of the second, and no list: so it was killed.
    folder(world, run).mkdir(parents=True)
    (folder(world, run) / f"{homes.SESSION}.jsonl").write_text("{}\n")
    (folder(world, run) / "x.jsonl.1.part").write_text("{")
    RecordToKeep.objects.update(begun_at=world.clock.now)
    assert own_record.find(world.lab, run)[0].base.startswith(str(home))
    assert keeping.tend(world.lab) == 0  # whoever took it up may still be at it
    world.clock.forward(minutes=11)
    assert keeping.tend(world.lab) == 1
    assert own_record.find(world.lab, run)[0].path[0] == own_record.KEPT


def test_twice_is_once(home, world, claude_run):
    long_talk.write_claude(home, TREE)
    run = end(world, claude_run)
    assert keeping.keep(world.lab, run) == 2
    before = sorted(one.name for one in folder(world, run).iterdir())
    assert keeping.keep(world.lab, run) == 0
    assert sorted(one.name for one in folder(world, run).iterdir()) == before


def test_a_folder_that_cannot_be_written_keeps_nothing_and_holds_nobody_up(
    anna, home, world, claude_run
):
    long_talk.write_claude(home, TREE)
    run = end(world, claude_run)
    folder(world, run).parent.mkdir(parents=True)
    folder(world, run).write_text("in its place")
    assert keeping.tend(world.lab) == 0
    assert "two tests cover it" in html(anna, run)


def test_what_could_not_be_kept_is_kept_later(home, world, claude_run):
    long_talk.write_claude(home, TREE)
    run = end(world, claude_run)
    folder(world, run).parent.mkdir(parents=True)
    folder(world, run).write_text("in its place")
    assert keeping.tend(world.lab) == 0
    folder(world, run).unlink()
    assert keeping.tend(world.lab) == 0  # not again at once
    world.clock.forward(minutes=11)
    assert keeping.tend(world.lab) == 1
    assert own_record.find(world.lab, run)[0].path[0] == own_record.KEPT


def test_what_can_never_be_kept_is_given_up_after_a_day(home, world, claude_run):
    long_talk.write_claude(home, TREE)
    run = end(world, claude_run)
    folder(world, run).parent.mkdir(parents=True)
    folder(world, run).write_text("in its place")
    world.clock.forward(hours=25)
    assert keeping.tend(world.lab) == 0
    assert RecordToKeep.objects.count() == 0


def test_only_the_host_of_a_run_keeps_its_record(home, world, claude_run):
    long_talk.write_claude(home, TREE)
    run = end(world, claude_run)
    Run.objects.filter(pk=run.pk).update(host="elsewhere")
    assert keeping.tend(world.lab) == 0
    assert RecordToKeep.objects.count() == 1


class Growing:
    """The records of a world, one of which grows whenever it is read."""

    def __init__(self, inner: Any, path: Path) -> None:
        self._inner, self._path, self._left = inner, path, 200

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def read(self, record: Any, start: int, limit: int) -> Any:
        found = self._inner.read(record, start, limit)
        if self._left:
            self._left -= 1
            with self._path.open("ab") as file:
                file.write(b'{"type": "x"}\n')
        return found


def test_a_record_that_still_grows_is_kept_as_long_as_it_was(home, world, claude_run):
    path = homes.write(homes.claude_path(home, TREE), [homes.said(TREE, "Start.")])
    run = end(world, claude_run)
    records = Growing(world.lab.records, path)
    world.lab = dataclasses.replace(world.lab, records=records)
    assert keeping.keep(world.lab, run) == 1
    copy = (folder(world, run) / f"{homes.SESSION}.jsonl").read_bytes()
    assert copy.count(b'{"type": "x"}') < 10


def test_a_run_without_a_record_keeps_nothing(world, claude_run):
    run = end(world, claude_run)
    assert keeping.tend(world.lab) == 1
    assert not folder(world, run).exists()


def test_a_copy_goes_with_the_folder_of_its_run(anna, home, world, claude_run):
    long_talk.write_claude(home, TREE)
    run = end(world, claude_run)
    keeping.tend(world.lab)
    shutil.rmtree(home)
    shutil.rmtree(world.lab.paths.run_folder(run.pk))  # what retention does after some weeks
    assert "own record is not there" in html(anna, run)
