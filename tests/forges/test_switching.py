"""A project's tracker is changed: what stays, what is forgotten, and when it is refused."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from runs.forges import acts as forges
from runs.forges import switching
from runs.forges.switching import SwitchRefused, Wanted
from runs.models import Forge, Notice, Project
from tests import make
from tests.fakes import START, World
from tests.web import board_rows as rows
from tests.world.memory_tracker import MemoryTracker
from tests.world.stories import press_start, ready
from trackers.builtin.models import Issue, Root

pytestmark = pytest.mark.django_db

WEB = "https://git.example"


@pytest.fixture
def forge(world: World) -> Forge:
    credential = {"token": "tok"}
    return forges.add(
        world.lab, name="Ours", kind="gitea", web=WEB, credential=credential, by="anna"
    )


@pytest.fixture
def project(world: World) -> Project:
    made = rows.a_tracked_project()
    rows.a_ready_issue(made)
    Project.objects.update(url=f"{WEB}/lab/demo.git")
    made.refresh_from_db()
    return made


def wanted(forge: Forge | None = None, **more: Any) -> Wanted:
    tracker = forge.kind if forge is not None else "builtin"
    return Wanted(**{"tracker": tracker, "forge": forge, "ready_label": "ready", **more})


def choose(world: World, project: Project, what: Wanted) -> Project:
    assert switching.choose(world.lab, project, what, by="anna")
    return Project.objects.get(pk=project.pk)


def test_built_in_issues_stay_hidden_while_the_project_is_elsewhere(
    world: World, project: Project, forge: Forge
) -> None:
    root = project.tracker_root
    Project.objects.update(queue_seen=[["1", "x"]], queue_count=1, queue_seen_at=START, claimable=3)

    there = choose(world, project, wanted(forge))

    assert (there.tracker, there.tracker_root) == ("gitea", f"{forge.pk}/lab/demo")
    assert (there.builtin_root, there.queue_seen, there.queue_count) == (root, [], None)
    assert there.claimable is None
    assert Issue.objects.count() == 1
    told = Notice.objects.first()
    assert told is not None
    assert (told.by, told.text) == (
        "anna",
        f"its issues are those of lab/demo on {WEB} from now on",
    )

    back = choose(world, there, wanted())
    assert (back.tracker, back.tracker_root, back.forge) == ("builtin", root, None)
    assert Root.objects.count() == 1


def test_a_project_that_had_no_built_in_tracker_gets_one(world: World, forge: Forge) -> None:
    there = make.a_project(tracker="gitea", tracker_root=f"{forge.pk}/a/b", forge=forge)
    back = choose(world, there, wanted())
    assert Root.objects.get().pk == int(back.tracker_root)


def test_the_same_again_changes_nothing(world: World, project: Project, forge: Forge) -> None:
    there = choose(world, project, wanted(forge))
    before = Notice.objects.count()
    assert not switching.choose(world.lab, there, wanted(forge), by="anna")
    assert Notice.objects.count() == before


def test_active_runs_keep_the_tracker_and_let_labels_change(
    world: World, project: Project, forge: Forge
) -> None:
    make.a_run(project)
    with pytest.raises(SwitchRefused, match="Runs are active"):
        switching.choose(world.lab, project, wanted(forge), by="anna")
    same = Project.objects.get()
    assert (same.tracker, same.forge, same.ready_label) == ("builtin", None, "ready-for-agent")
    assert choose(world, project, wanted(ready_label="go")).ready_label == "go"


def test_another_account_for_the_same_place_is_no_move(
    world: World, project: Project, forge: Forge
) -> None:
    there = choose(world, project, wanted(forge))
    make.a_run(there)
    other = forges.add(
        world.lab, name="Robot", kind="gitea", web=WEB, credential={"token": "two"}, by="anna"
    )
    now = choose(world, there, wanted(other))
    assert (now.forge, now.tracker_root) == (other, f"{other.pk}/lab/demo")
    with pytest.raises(SwitchRefused, match="Runs are active"):
        switching.choose(world.lab, now, wanted(other, repository="lab/other"), by="anna")


@pytest.mark.parametrize(
    ("field", "more"),
    [
        pytest.param("repository", {"repository": "only-a-name"}, id="no owner"),
        pytest.param("repository", {"repository": "a/b/c"}, id="too deep"),
        pytest.param("ready_label", {"ready_label": " "}, id="no label"),
        pytest.param("ready_label", {"ready_label": "a,b"}, id="a comma"),
        pytest.param("working_label", {"working_label": "w" * 51}, id="a long label"),
        pytest.param("mirror", {"mirror": "everything"}, id="no such mirror"),
        pytest.param("tracker", {"tracker": "beads", "forge": None}, id="no beads there"),
        pytest.param("tracker", {"tracker": "github"}, id="an account of another kind"),
        pytest.param("tracker", {"tracker": "gitea", "forge": None}, id="no account"),
        pytest.param("tracker", {"tracker": "nonsense", "forge": None}, id="no such tracker"),
    ],
)
def test_what_cannot_be_is_refused_at_its_field(
    world: World, project: Project, forge: Forge, field: str, more: dict[str, Any]
) -> None:
    with pytest.raises(SwitchRefused) as refused:
        switching.choose(world.lab, project, wanted(**{"forge": forge, **more}), by="anna")
    assert refused.value.field == field
    assert Project.objects.get().tracker == "builtin"


def test_a_clone_address_elsewhere_asks_for_the_repository(
    world: World, project: Project, forge: Forge
) -> None:
    Project.objects.update(url="https://elsewhere.example/lab/demo.git")
    project.refresh_from_db()
    with pytest.raises(SwitchRefused, match="owner/name"):
        switching.choose(world.lab, project, wanted(forge), by="anna")
    there = choose(world, project, wanted(forge, repository="lab/demo"))
    assert there.tracker_root == f"{forge.pk}/lab/demo"


def test_a_folder_with_beads_can_be_chosen(world: World, project: Project, tmp_path: Any) -> None:
    (tmp_path / ".beads").mkdir()
    Project.objects.update(source=str(tmp_path))
    project.refresh_from_db()
    there = choose(world, project, wanted(None, tracker="beads", ready_label=""))
    assert there.ready_label == ""
    assert (there.tracker, there.tracker_root) == ("beads", str(tmp_path))


class Moving(MemoryTracker):
    """A tracker that a project leaves while it is asked."""

    def queues(self, labels: Any) -> Any:
        found = super().queues(labels)
        Project.objects.update(tracker="gitea", tracker_root="1/lab/demo")
        return found


def test_a_start_that_was_decided_on_the_old_tracker_takes_nothing(world: World) -> None:
    """Its issue means another one now; the next pass asks the new tracker."""
    world.tracker = Moving()
    world.lab = dataclasses.replace(world.lab, tracker_for={"memory": world.tracker}.get)
    world.tracker.add_root("demo")
    project = make.a_project(agent=make.an_agent())
    ready(world)
    asked = press_start(world, project)
    assert asked.run is None
    assert world.tracker.calls["queues"] == 1
    assert not project.runs.exists()


def test_beads_need_no_label_and_everything_else_does(
    world: World, project: Project, forge: Forge, tmp_path: Any
) -> None:
    (tmp_path / ".beads").mkdir()
    Project.objects.update(source=str(tmp_path))
    project.refresh_from_db()
    there = choose(world, project, wanted(None, tracker="beads", ready_label=""))
    assert (there.tracker, there.ready_label) == ("beads", "")
    for what in (wanted(forge, ready_label=""), wanted(None, ready_label="")):
        with pytest.raises(SwitchRefused, match="Write the label"):
            switching.choose(world.lab, there, what, by="anna")
