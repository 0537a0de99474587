"""The recording of a run's screen read back: page, player's parts, text, asciicast, holes, secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from runs.core.states import NoticeKind
from runs.models import Run
from runs.run_pages import live_screen
from runs.run_pages.live_screen import Shot
from runs.run_pages.screen_socket import Pace
from runs.secrets import masked
from runs.secrets.known import Known
from runs.transcript import frames
from runs.transcript.frames import Frame
from tests import make
from tests.fakes import World
from tests.web import board_rows as rows
from tests.web.people import text_of

pytestmark = pytest.mark.django_db
START = datetime(2026, 11, 23, 20, tzinfo=UTC).timestamp()
SECRET = "gLp-Kq3vX9tR7wZ2mN5b"


def at(seconds: float, whole: str, number: int, lines: Sequence[str]) -> Frame:
    return Frame(START + seconds, whole, number, (80, 3), lines)


def then(seconds: float, *by: Any, lost: int = 0) -> Frame:
    return Frame(START + seconds, by=by, lost=lost)


TAKEN: Sequence[Sequence[Frame]] = (
    (
        at(0, frames.FIRST, 1, ["\x1b[31mone\x1b[0m", "", ""]),
        then(2, (1, 1, ["<b>two</b>\x1b]52;c;ZXZpbA==\x07"])),
        then(40, (2, 1, [f"key {SECRET[:9]}", f"{SECRET[9:]} end"]), lost=7),
    ),
    (at(100, frames.KEY, 4, ["x", "y", "z"]), then(101, (3, 0, ["last"]))),
    (at(60, frames.KEY, 3, ["early", "", ""]), at(70, frames.GAP, 3, ["again", "", ""])),
)


@pytest.fixture
def run(world: World) -> Run:
    project = rows.a_tracked_project()
    found = make.a_run(project, "7", outcome="died", last_words="the end")
    folder = world.lab.paths.run_folder(found.pk)
    for name, taken in zip(frames.FILES, TAKEN, strict=True):
        world.sessions.files[folder / name] = b"".join(one.written() for one in taken)
    make.an_agent("Mine", env={"API_KEY": SECRET})
    world.lab = masked.lab(world.lab, Known({}))
    return found


def whole(answer: Any) -> str:
    return b"".join(answer.streaming_content).decode()


@pytest.mark.row("LAB-130", level="contract")
def test_text_has_what_went_past_and_says_what_nobody_saw(anna: Client, run: Run) -> None:
    told = whole(anna.get(f"/runs/{run.pk}/replay.txt")).split("\n")[1:]
    assert told == [
        *("# 7 lines went past unseen", "one", "<b>two</b>", "key [hidden]", " end", ""),
        *("# 20:00:40 to 20:01:00: cut, the recording was too long", "early", "", "", ""),
        *("# 20:01:00 to 20:01:10: not recorded", "x", "y", "z", "last", ""),
    ]


@pytest.mark.row("LAB-130", level="contract")
def test_an_asciicast_holds_nothing_that_a_terminal_would_obey(
    anna: Client, world: World, run: Run
) -> None:
    world.clock.now = datetime.fromtimestamp(START + 1, UTC)
    rows.tell(world, "agent started", NoticeKind.RUN_STARTED, run=run)
    head, *events = map(json.loads, whole(anna.get(f"/runs/{run.pk}/replay.cast")).splitlines())
    assert (head["version"], head["width"], head["height"]) == (2, 80, 3)
    assert head["timestamp"] == int(START)
    moments = [moment for moment, _, _ in events]
    assert moments == sorted(moments)
    assert ("m", "Agent started") in [(code, data) for _, code, data in events]
    drawn = "".join(data for _, code, data in events if code == "o")
    assert "\x1b[31mone" in drawn
    assert not re.sub(r"\x1b\[(?:[0-9;]*[mHK]|2J)", "", drawn).count("\x1b")
    assert "]52" not in drawn
    assert SECRET[:9] not in drawn
    assert SECRET[9:] not in drawn


@pytest.mark.row("LAB-130", level="contract")
def test_without_scripts_a_link_shows_a_moment_and_says_what_is_missing(
    anna: Client, run: Run
) -> None:
    page = text_of(anna.get(f"/runs/{run.pk}/replay/?at=3"))
    shown = page[page.index('id="screen"') : page.index("asciicast")]
    assert "&lt;b&gt;two&lt;/b&gt;" in shown
    assert "key" not in shown
    assert "not recorded" in page
    assert f'href="/runs/{run.pk}/replay.txt"' in page
    assert f'href="/runs/{run.pk}/replay/"' in text_of(anna.get(f"/runs/{run.pk}/terminal/"))
    assert anna.get(f"/runs/{run.pk}/replay/?at=nonsense").status_code == 200


@pytest.mark.row("LAB-130", level="contract")
def test_a_player_gets_one_part_after_the_other_as_escaped_lines(anna: Client, run: Run) -> None:
    told, place = [], 0.0
    while True:
        one = anna.get(f"/runs/{run.pk}/replay/part?at={place}").json()
        told.append((one["at"] - START, one["hole"], len(one["frames"])))
        if one["next"] is None:
            break
        place = one["next"] - START
    assert told == [(0, "cut", 2), (60, "gap", 0), (70, "", 0), (100, "", 1)]
    first = anna.get(f"/runs/{run.pk}/replay/part?at=0").json()
    assert 'class="ansi31"' in first["lines"][0]
    assert first["frames"][0][1][0][2] == ["&lt;b&gt;two&lt;/b&gt;"]


def test_a_run_without_a_recording_has_none(anna: Client, world: World) -> None:
    other = make.a_run(rows.a_tracked_project(), "8", outcome="died")
    for name in ("replay/", "replay.cast", "replay.txt", "replay/part"):
        assert anna.get(f"/runs/{other.pk}/{name}").status_code == 404
    assert "Replay" not in text_of(anna.get(f"/runs/{other.pk}/terminal/"))


@pytest.mark.row("LAB-130", level="contract")
def test_a_page_without_a_socket_is_told_what_changed_since_its_mark(
    anna: Client, world: World
) -> None:
    run = make.a_run(rows.a_tracked_project(), "7")
    world.live(run)
    world.sessions.text[run.session] = "one\n<two>"
    page = text_of(anna.get(f"/runs/{run.pk}/terminal/"))
    mark = re.search(r'data-mark="([^"]+)"', page)
    assert mark is not None
    url = f"/runs/{run.pk}/terminal/screen"
    assert anna.get(url, {"mark": mark[1]}).status_code == 204
    world.sessions.text[run.session] = "one\n<two>\nthree"
    assert anna.get(url, {"mark": mark[1]}).json()["d"] == [[2, 0, ["three"]]]
    whole = anna.get(url, {"mark": "unknown"}).json()
    assert whole["all"]
    assert whole["d"] == [[0, 0, ["one", "&lt;two&gt;", "three"]]]
    live = anna.get(f"/runs/{run.pk}/terminal/live", headers={"HX-Request": "true"})
    assert "three" not in text_of(live)


def test_a_shot_of_what_a_page_has_changes_nothing() -> None:
    assert live_screen.news(Shot(["a", "b"]), ["a", "b"])["d"] == []


@pytest.mark.parametrize(
    ("sizes", "gap", "waits"),
    [
        ([300] * 10, 1.0, [0.0] * 10),
        ([6000, 650], 0.0, [0.0, 1.0]),
        ([60_000], 0.0, [(60_000 - 6000) / 650]),
    ],
)
def test_a_page_that_stays_busy_is_sent_less_often(
    sizes: list[int], gap: float, waits: list[float]
) -> None:
    pace = Pace(0.0)
    assert [pace.spent(size, number * gap) for number, size in enumerate(sizes)] == waits
