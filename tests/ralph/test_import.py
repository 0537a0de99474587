"""A Ralph project that is taken over: by the page, by the command, twice, and with what is unfit."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse

from runs.core.refusal import ActRefused
from runs.loop_command import follower
from runs.loops.acts import MOST_MEMORIES, MOST_TEXT
from runs.models import LoopMemory, LoopRole, LoopTerms, Notice, Project
from runs.ralph import acts
from runs.ralph.acts import ImportRefused
from runs.ralph.ralph_file import Files
from tests.fakes import World
from tests.loops.desk import project_of
from tests.ralph.test_ralph_file import MEMORIES, TASKS
from tests.specs.test_pages import origin
from tests.world.stories import ready
from trackers.base import Ability, TrackerError

pytestmark = pytest.mark.django_db

SETTINGS = """
event_loop:
  completion_promise: ALL_DONE
  max_iterations: 70
  max_cost_usd: 50
  persistent: true
cli: {backend: turner}
memories: {enabled: true}
hats:
  finder:
    triggers: [task.start, task.resume]
    publishes: [build.task]
    instructions: Find work.
  builder:
    triggers: [build.task]
    backend: gemini
    instructions: Build.
"""
FILES = Files(SETTINGS, "# Issue agent\n\nOne at a time.", MEMORIES, TASKS)


@pytest.fixture
def project(world: World) -> Project:
    return project_of(world)


def take(world: World, project: Project, files: Files = FILES) -> acts.Imported:
    return acts.take(world.lab, project, acts.preview(world.lab, project, files), by="anna")


def nothing_is_stored(project: Project) -> bool:
    terms = LoopTerms.objects.get()
    is_as_before = (terms.completion, terms.max_turns) == ("LOOP_COMPLETE", 50)
    return is_as_before and not LoopRole.objects.exists() and not LoopMemory.objects.exists()


def test_files_become_settings_roles_memories_and_an_issue_with_nobody_on_it(world, project):
    LoopRole.objects.create(project=project, name="old", instructions="x", subscriptions=["x.y"])
    found = acts.preview(world.lab, project, FILES)
    assert found.removed == ("old",)
    left = " ".join(found.not_taken)
    assert "event_loop.max_cost_usd: Turner does not tell what a turn costs" in left
    assert "backend gemini: There is no one-shot agent here" in left
    assert LoopRole.objects.get().name == "old"

    done = acts.take(world.lab, project, found, by="anna")
    terms = LoopTerms.objects.get()
    assert (terms.completion, terms.max_turns, terms.max_cost) == ("ALL_DONE", 70, None)
    assert (terms.is_persistent, terms.profile, terms.is_on) == (True, project.agent, True)
    roles = LoopRole.objects.order_by("position")
    assert [one.name for one in roles] == ["finder", "builder"]
    assert LoopMemory.objects.count() == done.memories == 2
    issue = world.tracker.issue("demo", done.issue)
    assert (issue.title, list(issue.labels)) == ("Issue agent", [])
    assert "- [ ] Sign in" in issue.body
    assert Notice.objects.filter(by="anna").exists()

    again = take(world, project)
    assert (again.memories, again.issue) == (0, done.issue)
    assert (LoopRole.objects.count(), LoopMemory.objects.count()) == (2, 2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hats: [", "ralph.yml: It is no YAML or JSON"),
        ("", "ralph.yml: It holds no settings"),
        ("hats: {a: {triggers: [], instructions: x}}", "Hat a, subscriptions: a subscribes to no"),
        ("hats: {a: {triggers: [x.y]}}", "Hat a, instructions"),
    ],
)
def test_what_is_unfit_is_one_sentence_and_stores_nothing(world, project, text, said):
    with pytest.raises(ImportRefused, match=said) as refused:
        acts.preview(world.lab, project, Files(text))
    assert refused.value.text.endswith("Nothing was imported.")
    assert nothing_is_stored(project)


def test_a_tracker_that_is_away_or_takes_no_issues(world, project):
    found = acts.preview(world.lab, project, FILES)
    world.tracker.fail(error=TrackerError("HTTP 500"))
    with pytest.raises(ImportRefused, match="No issue could be made of the prompt: HTTP 500"):
        acts.take(world.lab, project, found, by="anna")
    assert nothing_is_stored(project)
    world.tracker.heal()
    world.tracker.abilities -= {Ability.CREATE_ISSUE}
    found = acts.preview(world.lab, project, FILES)
    assert "takes no new issues" in found.not_taken[-1]
    assert acts.take(world.lab, project, found, by="anna").issue == ""


def test_roles_that_changed_meanwhile_leave_no_issue_behind(world, project):
    found = acts.preview(world.lab, project, FILES)
    found.roles[0]["subscriptions"].clear()  # type: ignore[index]
    with pytest.raises(ImportRefused, match="Nothing was imported"):
        acts.take(world.lab, project, found, by="anna")
    assert nothing_is_stored(project)
    assert not [one for one in world.tracker.open_issues("demo") if one.title == "Issue agent"]


def test_a_mistake_of_ours_leaves_no_issue_behind_either(world, project):
    found = acts.preview(world.lab, project, FILES)
    found.roles[0]["subscriptions"] = 7  # type: ignore[index]
    with pytest.raises(TypeError):
        acts.take(world.lab, project, found, by="anna")
    assert not [one for one in world.tracker.open_issues("demo") if one.title == "Issue agent"]


def test_an_issue_with_the_same_title_and_another_text_is_another_one(world, project):
    ready(world, "44")
    title = world.tracker.issue("demo", "44").title
    done = take(world, project, Files("max_iterations: 5", f"# {title}\n\nwrite the parser"))
    assert done.issue != "44"
    assert "write the parser" in world.tracker.issue("demo", done.issue).body


def test_memories_that_do_not_fit_are_listed_and_the_rest_is_taken(world, project):
    long = "x" * (MOST_TEXT + 1)
    rules = f"core: {{guardrails: [Be kind, '', ' ', {long}]}}"
    found = acts.preview(world.lab, project, Files(rules))
    assert found.not_taken == ("memories: “" + "x" * 39 + "…”: At most 4,000 characters.",)
    assert acts.take(world.lab, project, found, by="anna").memories == 1
    room = MOST_MEMORIES - 2
    rows = [LoopMemory(project=project, text=f"{one}", at=world.lab.now()) for one in range(room)]
    LoopMemory.objects.bulk_create(rows)
    found = acts.preview(world.lab, project, Files("agent: x", memories="- one\n\n- two\n\n- 5"))
    assert found.memories == ("two",)
    assert "memories: 1 of 2, since a project keeps at most 1,000" in found.not_taken
    assert acts.take(world.lab, project, found, by="anna").memories == 1
    assert LoopMemory.objects.count() == MOST_MEMORIES


@pytest.mark.parametrize(
    "text",
    [
        '{"\\ud800x": 1}',
        r'hats: {"a\0\ud800": {triggers: ["\ud800", x.y], instructions: "z\0", backend: "\ud800"}}',
        r'cli: {backend: "\ud800"}',
    ],
)
def test_letters_that_no_database_keeps_are_left_out(world, project, anna, text):
    at = reverse("runs:loop-import", args=[project.pk])
    assert anna.post(at, {"settings": text}).status_code == 200
    assert anna.post(at, {"settings": text, "sure": "yes"}).status_code == 303
    assert [one.name for one in LoopRole.objects.all()] == (["a?"] if "hats" in text else [])


def folder_of(tmp_path: Path) -> Path:
    folder = tmp_path / "theirs"
    (folder / ".agent").mkdir(parents=True)
    (folder / "ralph.yml").write_text(SETTINGS)
    (folder / "PROMPT.md").write_text(FILES.prompt)
    (folder / ".agent/memories.md").write_text(MEMORIES)
    return folder


def test_the_command_shows_it_and_takes_it(world, project, tmp_path):
    folder = folder_of(tmp_path)
    out = StringIO()
    assert follower.import_files("demo", folder, out, is_dry=True) == 0
    assert "role      finder: takes task.start, task.resume" in out.getvalue()
    assert "setting   max turns: 70" in out.getvalue()
    assert "not taken " in out.getvalue()
    assert nothing_is_stored(project)
    assert follower.import_files("demo", folder, out, is_dry=False) == 0
    assert "Imported into demo, 2 memories were new; the prompt is issue" in out.getvalue()
    with pytest.raises(ActRefused, match=r"Error: .* has no ralph\.yml"):
        follower.import_files("demo", tmp_path, out, is_dry=False)
    with pytest.raises(ActRefused, match="there is no project nothing"):
        follower.import_files("nothing", folder, out, is_dry=False)


def test_the_page_shows_it_first_and_takes_what_was_accepted(world, project, anna):
    client = anna
    at = reverse("runs:loop-import", args=[project.pk])
    assert "Paste" not in client.get(at).content.decode()
    assert client.post(at, {"settings": ""}).status_code == 422
    sent: dict[str, Any] = {"settings": SETTINGS, "prompt": FILES.prompt, "memories": MEMORIES}
    shown = client.post(at, sent)
    text = shown.content.decode()
    assert shown.status_code == 200
    assert "What would be imported" in text
    assert "Issue agent" in text and "finder" in text
    assert nothing_is_stored(project)
    answer = client.post(at, sent | {"sure": "yes"})
    assert (answer.status_code, answer["Location"]) == (
        303,
        reverse("runs:loop-settings", args=[project.pk]),
    )
    assert LoopRole.objects.count() == 2
    bad = client.post(at, {"settings": "hats: ["})
    assert bad.status_code == 422
    assert "is no YAML or JSON" in bad.content.decode()


def test_the_files_of_the_repository_are_filled_in(world, project, anna):
    origin(world, {"ralph.yml": "prompt_file: TASK.md", "TASK.md": "# Mine"})
    at = reverse("runs:loop-import", args=[project.pk])
    text = anna.get(at).content.decode()
    assert "prompt_file: TASK.md" in text
    assert "# Mine" in text
    assert acts.of_repository(world.lab, project).memories == ""
