"""Deep links into an agent's own page of a session: looked up for half a minute, gone with the run."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from runs import tick
from runs.agents import linking
from runs.agents.on_machine import AgentRegistry
from runs.core.ports import Registry
from runs.lifecycle import progress, reaper
from runs.lifecycle.stop import stop
from runs.models import AgentProfile, Project, Run, Settings
from tests import make
from tests.fakes import FakeRegistry, World
from tests.real import RealWorld
from tests.web.people import anna, text_of
from tests.world.stories import start

__all__ = ["anna"]

TREE = "/w/demo-7"
PROFILE = {
    "link_files": "~/.agent/*.json",
    "link_field": "id",
    "link_url": "https://agent.example/s/{id}",
    "link_generic": "https://agent.example/",
}


@pytest.mark.row("LAB-129", level="pure")
@pytest.mark.parametrize(
    ("content", "ident"),
    [
        pytest.param({"cwd": TREE, "id": "s_1"}, "s_1", id="one object"),
        pytest.param([{"cwd": "/x", "id": "a"}, {"cwd": TREE, "id": "b"}], "b", id="a list"),
        pytest.param({"1": {"cwd": TREE, "id": "c"}}, "c", id="objects by name"),
        pytest.param({"cwd": "/other", "id": "s"}, "", id="another worktree"),
        pytest.param({"cwd": f"{TREE}/sub", "id": "s"}, "", id="a folder in it"),
        pytest.param({"cwd": TREE, "id": "../evil?x"}, "", id="no plain id"),
        pytest.param({"cwd": TREE, "id": 7}, "", id="no text"),
        pytest.param({"cwd": TREE, "id": [TREE]}, "", id="a list as id"),
        pytest.param({"cwd": TREE}, "", id="no id yet"),
        pytest.param("text", "", id="something else"),
        pytest.param(None, "", id="null"),
    ],
)
def test_the_id_is_read_from_the_entry_of_this_worktree(content: object, ident: str) -> None:
    assert linking.find_id(json.dumps(content), TREE, "id") == ident


def test_what_is_no_json_holds_no_id() -> None:
    for text in ("", "{", "[" * 100_000):
        assert linking.find_id(text, TREE, "id") == ""


URL, GENERIC = PROFILE["link_url"], PROFILE["link_generic"]


@pytest.mark.row("LAB-129", level="pure")
@pytest.mark.parametrize(
    ("ident", "url", "generic", "seconds", "link"),
    [
        pytest.param("", URL, GENERIC, 0, None, id="connecting"),
        pytest.param("", URL, GENERIC, 29, None, id="still connecting"),
        pytest.param("s1", URL, GENERIC, 3, "https://agent.example/s/s1", id="found"),
        pytest.param("s1", URL, GENERIC, 90, "https://agent.example/s/s1", id="found late"),
        pytest.param("", URL, GENERIC, 30, GENERIC, id="not found: the general one"),
        pytest.param("", URL, "", 30, "", id="not found and no general one"),
        pytest.param("", "", GENERIC, 0, GENERIC, id="an agent with a general one only"),
    ],
)
def test_the_link_follows_from_what_was_found_and_when(
    ident: str, url: str, generic: str, seconds: int, link: str | None
) -> None:
    assert linking.settled(ident, url, generic, timedelta(seconds=seconds)) == link


@pytest.fixture(params=["fake", "real"])
def registry(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Registry, Path]:
    (tmp_path / ".agent").mkdir()
    if request.param == "real":
        return AgentRegistry({"HOME": str(tmp_path)}), tmp_path
    fake = FakeRegistry()
    fake.ids[TREE] = "s1"
    return fake, tmp_path


@pytest.mark.row("LAB-129", level="contract")
def test_a_session_is_found_by_its_worktree(registry: tuple[Registry, Path]) -> None:
    found, home = registry
    (home / ".agent" / "1.json").write_text(json.dumps({"cwd": TREE, "id": "s1"}))
    assert found.find("~/.agent/*.json", "id", TREE, {}) == "s1"
    assert found.find("~/.agent/*.json", "id", "/other", {}) == ""
    assert found.find("", "id", TREE, {}) == ""


def test_odd_files_of_the_agent_hold_nothing_up(tmp_path: Path) -> None:
    folder = tmp_path / "[odd]" / ".agent"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "pipe.json")
    (folder / "huge.json").write_text(" " * 300_000)
    (folder / "link.json").symlink_to("/dev/zero")
    (folder / "good.json").write_text(json.dumps({"cwd": TREE, "id": "s2"}))
    real = AgentRegistry({"HOME": "/nowhere"})
    assert real.find("~/.agent/*.json", "id", TREE, {"HOME": str(tmp_path / "[odd]")}) == "s2"
    assert real.find("relative/*.json", "id", TREE, {}) == ""


@pytest.fixture
def run(world: World, db: None) -> Run:
    Settings.current()
    project = make.a_project(agent=make.an_agent(**PROFILE))
    made = make.a_run(project, worktree=TREE, agent="Test agent", link_waits=True)
    world.live(made)
    return made


@pytest.mark.row("LAB-129", level="contract")
def test_the_page_shows_connecting_then_the_exact_link(
    anna: Client, world: World, run: Run
) -> None:
    page = f"/runs/{run.pk}/"
    tick.tick(world.lab, force=True)
    assert 'id="deep-link">connecting<' in text_of(anna.get(page))
    world.registry.ids[TREE] = "s7"
    world.clock.forward(seconds=6)
    tick.tick(world.lab)
    shown = text_of(anna.get(page))
    assert 'href="https://agent.example/s/s7"' in shown
    assert 'id="deep-link">connecting<' not in shown
    asked = world.registry.asked
    world.clock.forward(seconds=6)
    tick.tick(world.lab)
    assert world.registry.asked == asked


@pytest.mark.row("LAB-129", level="contract")
def test_after_half_a_minute_the_general_link_is_shown(
    anna: Client, world: World, run: Run
) -> None:
    world.clock.forward(seconds=31)
    tick.tick(world.lab)
    assert 'href="https://agent.example/"' in text_of(anna.get(f"/runs/{run.pk}/"))


@pytest.mark.row("LAB-45", level="contract")
def test_a_reaped_run_has_no_link(anna: Client, world: World, run: Run) -> None:
    world.registry.ids[TREE] = "s7"
    tick.tick(world.lab, force=True)
    stop(world.lab, run, "anna")
    reaper.settle(world.lab, run)
    run.refresh_from_db()
    assert (run.deep_link, run.link_waits) == ("", False)
    shown = text_of(anna.get(f"/runs/{run.pk}/"))
    assert "agent.example" not in shown
    assert "deep-link" not in shown


def test_an_agent_that_was_removed_has_no_link(world: World, run: Run) -> None:
    AgentProfile.objects.all().delete()
    assert progress.look_up_links(world.lab, [run]) == 1
    run.refresh_from_db()
    assert (run.deep_link, run.link_waits) == ("", False)


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        pytest.param({"link_url": "http://a/{id}"}, "link_url", id="not https"),
        pytest.param({"link_url": "https://a/"}, "link_url", id="no place for the id"),
        pytest.param({"link_files": ""}, "link_files", id="no files"),
        pytest.param({"link_field": ""}, "link_field", id="no name"),
    ],
)
def test_a_profile_that_could_find_nothing_is_refused(
    db: None, fields: dict[str, str], wrong: str
) -> None:
    profile = make.an_agent(**{"argv": ["a", "{prompt}"], **PROFILE, **fields})
    with pytest.raises(ValidationError) as refused:
        profile.full_clean()
    assert wrong in refused.value.message_dict


@pytest.mark.row("LAB-129", level="real")
def test_a_real_run_waits_for_its_link_only_if_its_agent_has_one(real: RealWorld) -> None:
    project: Project = real.project()
    assert start(real, project, "1").link_waits is False
    AgentProfile.objects.update(**PROFILE)
    run = start(real, project, "2")
    assert run.link_waits is True
    folder = Path(real.environ["HOME"]) / ".agent"
    folder.mkdir()
    (folder / "x.json").write_text(json.dumps({"cwd": run.worktree, "id": "real-1"}))
    tick.tick(real.lab, force=True)
    real.offset += timedelta(seconds=6)
    tick.tick(real.lab)
    run.refresh_from_db()
    assert run.deep_link == "https://agent.example/s/real-1"
