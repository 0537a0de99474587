"""The story on the page of a run: out of timeline, conversation and pull request."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from runs.core import masking
from runs.core.ports import Lab
from runs.core.states import NoticeKind
from runs.models import Notice, Run
from runs.run_pages import record_facts, story
from runs.transcript import own_record
from tests import make
from tests.conversation import long_talk
from tests.conversation.conftest import TREE
from tests.fakes import World
from tests.web import board_rows as rows
from tests.web.people import text_of
from tests.world import agent_homes as homes

pytestmark = pytest.mark.django_db
AUTH = 2


def told(page: str) -> list[str]:
    """The names of the events."""
    part = page[page.index('id="timeline"') : page.index("</section>", page.index('id="timeline"'))]
    return re.findall(r"<b>([^<]+)</b>", part)


@pytest.mark.row("LAB-130", level="contract")
def test_edits_and_tests_of_the_conversation_stand_between_the_steps_and_lead_there(
    anna: Client, home: Any, world: World, claude_run: Run
) -> None:
    long_talk.write_claude(home, TREE)
    rows.tell(world, "agent started", NoticeKind.RUN_STARTED, run=claude_run)
    page = text_of(anna.get(f"/runs/{claude_run.pk}/"))
    assert {"Agent started", "First edit", "Tests red"} <= set(told(page))
    there = re.search(r'href="([^"]+)"><b>First edit</b>', page)
    assert there is not None
    address, _, place = there[1].replace("&amp;", "&").partition("#")
    assert f'id="{place}"' in text_of(anna.get(address))


def test_a_new_edit_is_a_new_version_of_the_story_and_another_word_is_none(
    anna: Client, home: Any, world: World, claude_run: Run
) -> None:
    talk = long_talk.Claude(TREE)
    lines: list[Any] = [talk.says("I look.")]
    path = homes.write(homes.claude_path(home, TREE), lines)
    live = f"/runs/{claude_run.pk}/live"
    tag = anna.get(live)["HX-PTag"]
    homes.write(path, [*lines, talk.says("I think.")])
    assert anna.get(live, headers={"HX-PTag": tag}).status_code == 304
    homes.write(path, [*lines, *talk.edits("c1", "app.py")])
    answer = anna.get(live, headers={"HX-PTag": tag})
    assert "First edit" in text_of(answer)


def test_of_calls_without_an_answer_only_the_newest_are_waited_for(
    home: Any, world: World, claude_run: Run
) -> None:
    talk = long_talk.Claude(TREE)
    path = homes.claude_path(home, TREE)
    names = [f"t{n}" for n in range(record_facts.OPEN_CALLS + 5)]
    calls = [talk.does(name, "Bash", command="pytest -q") for name in names]
    homes.write(path, [*calls, *(talk.gets(name, "ok") for name in names)])
    told = story.of_conversation(world.lab, claude_run)
    assert len(told) == record_facts.OPEN_CALLS


def edits_of(path: Path, count: int, noise: int = 0, first: int = 0) -> None:
    """Append so many edits to a record, with so many bytes between each two."""
    talk = long_talk.Claude(TREE)
    lines: list[Any] = []
    for number in range(first, first + count):
        lines += [*talk.edits(f"c{number}", f"f{number}.py"), talk.says("x" * noise)]
    with path.open("ab") as file:
        file.writelines(json.dumps(one).encode() + b"\n" for one in lines)


def edited(lab: Lab, run: Run, at_once: int = record_facts.AT_ONCE) -> list[str]:
    (own,) = own_record.find(lab, run)
    facts = record_facts.of(lab, run, own, at_once)
    return [one.text or f"{one.count} more" for one in facts]


def test_a_long_record_is_told_whole_and_read_on_from_where_it_ended(
    home: Any, world: World, claude_run: Run
) -> None:
    path = homes.write(homes.claude_path(home, TREE), [long_talk.Claude(TREE).says("I look.")])
    edits_of(path, 40, noise=50_000)
    lab, read = counting(world.lab)
    assert edited(lab, claude_run) == [f"f{n}.py" for n in range(40)]
    assert sum(read) > 2_000_000
    read.clear()
    assert len(edited(lab, claude_run)) == 40
    edits_of(path, 1, first=40)
    assert edited(lab, claude_run)[-1] == "f40.py"
    assert sum(read) < 5_000


def test_one_look_reads_a_bounded_piece_and_the_end_and_the_next_look_goes_on(
    home: Any, world: World, claude_run: Run
) -> None:
    path = homes.write(homes.claude_path(home, TREE), [long_talk.Claude(TREE).says("I look.")])
    edits_of(path, 60, noise=50_000)
    lab, read = counting(world.lab)
    first = edited(lab, claude_run, at_once=500_000)
    assert first[0] == "f0.py" and first[-1] == "f59.py" and len(first) < 25
    assert sum(read) < 500_000 + 3 * record_facts.TAIL
    for _ in range(10):
        known = edited(lab, claude_run, at_once=500_000)
    assert known == [f"f{n}.py" for n in range(60)]


def test_a_record_that_is_written_anew_or_has_a_new_secret_is_read_from_its_beginning(
    home: Any, world: World, claude_run: Run
) -> None:
    path = homes.write(homes.claude_path(home, TREE), [long_talk.Claude(TREE).says("I look.")])
    edits_of(path, 3)
    assert edited(world.lab, claude_run) == ["f0.py", "f1.py", "f2.py"]
    lab = replace(world.lab, mask=masking.mask(["f1.py-and-longer", "f2.py is secret", "f2.py"]))
    path.write_bytes(path.read_bytes().replace(b"f1.py", b"f1.py-and-longer"))
    assert "f1.py" not in "".join(edited(lab, claude_run))
    homes.write(path, [long_talk.Claude(TREE).says("Once more, and in other words than before.")])
    edits_of(path, 1, first=7)
    assert edited(lab, claude_run) == ["f7.py"]


@pytest.mark.long
def test_of_thousands_of_edits_the_newest_are_kept_and_the_number_of_the_others(
    home: Any, world: World, claude_run: Run
) -> None:
    path = homes.write(homes.claude_path(home, TREE), [long_talk.Claude(TREE).says("I look.")])
    edits_of(path, 3000)
    told = edited(world.lab, claude_run)
    most = record_facts.MOST_FACTS
    assert told == ["f0.py", f"{2999 - most} more", *(f"f{n}.py" for n in range(3000 - most, 3000))]


def counting(lab: Lab) -> tuple[Lab, list[int]]:
    """The same, and how many bytes of records were read with each question."""
    read: list[int] = []

    class Counting:
        find = staticmethod(lab.records.find)

        @staticmethod
        def read(own: Any, start: int, limit: int) -> Any:
            found = lab.records.read(own, start, limit)
            read.append(len(found.data) if found else 0)
            return found

    return replace(lab, records=Counting()), read  # type: ignore[arg-type]


def test_a_step_is_one_press_away_and_all_of_them_on_a_page(anna: Client, world: World) -> None:
    run = make.a_run(rows.a_tracked_project(), "7", outcome="died")
    rows.tell(world, "agent started", NoticeKind.RUN_STARTED, run=run)
    rows.tell(world, "a small <step>", run=run)
    rows.tell(world, "exit status 1", NoticeKind.RUN_ENDED, run=run, outcome="died")
    page = text_of(anna.get(f"/runs/{run.pk}/"))
    assert told(page) == ["Agent started", "Died"]
    folded = page[page.index("<summary>1 more step</summary>") :]
    assert "a small &lt;step&gt;" in folded
    assert "a small &lt;step&gt;" in text_of(anna.get(f"/runs/{run.pk}/timeline/"))


@pytest.mark.long
@pytest.mark.parametrize("count", [1, 10_000])
def test_a_long_run_costs_as_many_queries_and_bounded_reading(
    anna: Client,
    home: Any,
    world: World,
    claude_run: Run,
    count: int,
    monkeypatch: pytest.MonkeyPatch,
    django_assert_num_queries: Any,
) -> None:
    run = claude_run
    long_talk.write_large(homes.claude_path(home, TREE), TREE, count * 1000)
    now = world.lab.now()
    entry = {"kind": NoticeKind.RUN_STEP, "project": run.project, "run": run}
    Notice.objects.bulk_create(
        Notice(
            at=now + timedelta(seconds=n),
            text=f"commit {n:07x} x" if n % 50 == 0 else "step",
            **entry,
        )
        for n in range(count)
    )
    read: list[int] = []
    plain = world.lab.records.read

    def counted(own: Any, start: int, limit: int) -> Any:
        found = plain(own, start, limit)
        read.append(len(found.data) if found else 0)
        return found

    monkeypatch.setattr(world.lab.records, "read", counted)
    anna.get(f"/runs/{run.pk}/")
    assert sum(read) < record_facts.AT_ONCE + 3 * record_facts.TAIL
    anna.get(f"/runs/{run.pk}/")
    read.clear()
    with django_assert_num_queries(AUTH + 5 + (3 if count > story.MOST_STEPS else 2)):
        page = text_of(anna.get(f"/runs/{run.pk}/"))
    assert sum(read) < 100_000
    if count > 1:
        hidden = sum(int(n) for n in re.findall(r"(\d+) more steps?", page))
        assert hidden + page.count(">step<") >= count - count // 50 - 200
    older = re.search(r'rel="next" href="([^"]+)"', text_of(anna.get(f"/runs/{run.pk}/timeline/")))
    assert (older is not None) == (count > 200)
