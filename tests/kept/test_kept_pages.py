"""Pages of kept work: the list, discard in two steps, rescues and restore, and who may do what."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from runs.core import budgets
from runs.kept import counts, discard, parked, removal
from runs.models import Discarding, Notice, Parked, Project, Rescue
from tests import make
from tests.fakes import FakeTree, World
from tests.web.people import confirmed, text_of
from trackers.base import Unreachable

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}


@pytest.fixture
def anna(anna: Client, world: World) -> Client:
    """She was asked who she is just now."""
    return confirmed(anna)


@pytest.fixture
def project(world: World) -> Project:
    """Issues 7 and 8 are parked: 7 dirty in its worktree, 8 as a branch alone."""
    world.tracker.add_root("demo")
    made = make.a_project()
    repo = made.repo(world.lab.paths)
    tree = world.lab.paths.worktrees / "demo-7"
    world.repos.heads[repo] = {"afk/7": "a" * 40, "afk/8": "b" * 40}
    world.repos.trees[tree] = FakeTree("afk/7", "a" * 40, is_dirty=True)
    tree.mkdir(parents=True)
    world.repos.counts = {"afk/7": 2, "afk/8": 0}
    make.a_run(made, "7", outcome="stopped", worktree=str(tree), fork_point="f" * 40)
    counts.take(world.lab, made)
    return made


@pytest.fixture
def at(project: Project) -> str:
    return f"/projects/{project.pk}/parked/"


def _discard(client: Client, at: str, branch: str = "afk/7", **more: Any) -> Any:
    return client.post(f"{at}discard", {"branch": branch, "sure": "yes"}, **more)


@pytest.mark.row("LAB-118", "LAB-121", level="contract")
def test_each_entry_shows_what_is_known_of_it(anna: Client, world: World, at: str) -> None:
    world.tracker.add_pull("demo", "afk/8", "closed")
    world.tracker.add_pull("demo", "afk/8", "open")
    Parked.objects.filter(branch="afk/7").update(bytes=5_000_000)
    before = world.tracker.calls["pulls"]
    shown = text_of(anna.get(at))
    assert world.tracker.calls["pulls"] == before + 1
    for words in (
        "#7",
        "afk/7",
        "dirty",
        "2 commits ahead",
        "2 unpushed",
        "demo-7",
        "stopped",
        "4.8",
    ):
        assert words in shown, words
    for words in ("afk/8", "0 commits ahead", "pull request 2 open"):
        assert words in shown, words
    assert "closed" not in shown
    assert "0 unpushed" not in shown


@pytest.mark.row("LAB-121", "LAB-122", level="contract")
def test_a_tracker_that_fails_drops_the_badges_and_lists_all(
    anna: Client, world: World, at: str
) -> None:
    world.tracker.add_pull("demo", "afk/8", "open")
    world.tracker.fail(error=Unreachable("The tracker answered 500."))
    shown = text_of(anna.get(at))
    assert "afk/7" in shown and "afk/8" in shown
    assert "The tracker answered 500." in shown
    assert "pull request" not in shown


@pytest.mark.row("LAB-122", level="contract")
def test_one_fact_that_cannot_be_read_blanks_only_itself(
    anna: Client, world: World, at: str
) -> None:
    next(iter(world.repos.trees.values())).is_dirty = None
    shown = text_of(anna.get(at))
    assert "worktree unread" in shown
    assert "2 unpushed" in shown


@pytest.mark.long
@pytest.mark.row("LAB-122", level="contract")
def test_a_list_that_fails_is_an_error_and_an_empty_one_says_so(
    anna: Client, world: World, project: Project, at: str
) -> None:
    world.repos.broken_list = "git for-each-ref failed: broken"
    shown = text_of(anna.get(at))
    assert "could not be listed" in shown and "broken" in shown
    assert "Nothing is parked" not in shown
    world.repos.broken_list = ""
    world.repos.heads.clear()
    for path in list(world.repos.trees):
        world.repos.force_remove(project.repo(world.lab.paths), path)
    assert "Nothing is parked" in text_of(anna.get(at))


@pytest.mark.long
@pytest.mark.row("LAB-117", "LAB-116", level="contract")
def test_pages_show_the_stored_number_and_never_ask_git(
    anna: Client, world: World, project: Project
) -> None:
    listed = world.repos.listed
    shown = text_of(anna.get(f"/projects/{project.pk}/"))
    assert '<span id="parked-count" class="pill">2</span>' in shown
    assert "data-none" not in shown
    anna.get(f"/projects/{project.pk}/live", headers=HTMX)
    anna.get("/")
    assert world.repos.listed == listed
    Project.objects.update(parked=0)
    assert "data-none" in text_of(anna.get(f"/projects/{project.pk}/"))


@pytest.mark.row("LAB-123", level="contract")
def test_without_the_second_press_the_question_is_a_page_and_nothing_goes(
    anna: Client, world: World, project: Project, at: str
) -> None:
    shown = text_of(anna.post(f"{at}discard", {"branch": "afk/7"}))
    assert "Discard afk/7?" in shown
    assert world.repos.claims(project.repo(world.lab.paths)) == {"7", "8"}


@pytest.mark.row("LAB-123", "LAB-124", "LAB-125", "X-11", level="contract")
def test_a_discard_answers_with_the_list_and_is_told_with_a_name(
    anna: Client, world: World, project: Project, at: str
) -> None:
    answer = _discard(anna, at, headers=HTMX)
    shown = text_of(answer)
    assert answer.status_code == 200
    assert "afk/8" in shown and "Restore" in shown
    assert world.repos.claims(project.repo(world.lab.paths)) == {"8"}
    assert not (world.lab.paths.worktrees / "demo-7").exists()
    assert Notice.objects.get(kind="work.discarded").by == "anna"
    assert Project.objects.get().parked == 1


@pytest.mark.row("LAB-124", level="contract")
@pytest.mark.parametrize("branch", ["main", "laboratory/x", "", "afk/../../main"])
def test_a_branch_that_is_not_managed_is_400(
    anna: Client, world: World, project: Project, at: str, branch: str
) -> None:
    world.repos.heads[project.repo(world.lab.paths)]["main"] = "c" * 40
    assert _discard(anna, at, branch, headers=HTMX).status_code == 400
    assert "main" in world.repos.heads[project.repo(world.lab.paths)]


@pytest.mark.row("LAB-124", level="contract")
def test_other_doors_stay_shut(anna: Client, vera: Client, world: World, at: str) -> None:
    assert anna.get(f"{at}discard").status_code == 405
    assert anna.get("/projects/987654321/parked/").status_code == 404
    assert _discard(anna, "/projects/987654321/parked/").status_code == 404
    assert _discard(vera, at).status_code == 403
    assert "Discard" not in text_of(vera.get(at))
    assert len(Parked.objects.all()) == 2


def test_a_discard_asks_again_who_it_is(anna: Client, world: World, at: str) -> None:
    world.clock.forward(minutes=11)
    answer = _discard(anna, at, headers=HTMX)
    assert answer.status_code == 403
    assert answer.headers["HX-Redirect"].startswith("/")
    assert len(Parked.objects.all()) == 2


def test_nothing_goes_when_the_rescue_cannot_be_written(
    anna: Client, world: World, project: Project, at: str
) -> None:
    world.repos.broken_keep = "git update-ref failed: no space left"
    answer = _discard(anna, at, headers=HTMX)
    assert answer.status_code == 502
    assert "no space left" in text_of(answer)
    assert world.repos.claims(project.repo(world.lab.paths)) == {"7", "8"}


def test_a_rescue_is_shown_restored_once_and_told(
    anna: Client, world: World, project: Project, at: str
) -> None:
    _discard(anna, at)
    kept = Rescue.objects.get()
    where = f"/projects/{project.pk}/rescues/{kept.pk}/"
    assert "Rescue of afk/7" in text_of(anna.get(where))
    answer = anna.post(f"{where}restore", headers=HTMX)
    assert "restored as afk/7" in text_of(answer)
    assert anna.post(f"{where}restore", headers=HTMX).status_code == 409
    assert Notice.objects.get(kind="work.restored").by == "anna"
    assert Project.objects.get().parked == 2
    assert anna.get("/projects/987654321/rescues/1/").status_code == 404


def test_git_is_not_asked_again_for_what_was_told_of_another_project(
    anna: Client, world: World, at: str
) -> None:
    sent = anna.get(f"{at}live", headers={"HX-Request": "true"})
    assert 'id="parked-list"' in sent.content.decode()
    other = make.a_project("other")
    Notice.objects.create(at=world.clock.now, kind="project.added", project=other, text="was added")
    counted = world.repos.counted
    headers = {"HX-Request": "true", "HX-PTag": sent["HX-PTag"]}
    frame = anna.get(f"{at}live", headers=headers)
    assert frame["HX-PTag"] != sent["HX-PTag"]
    assert 'id="nav-projects"' in frame.content.decode()
    assert 'id="parked-list"' not in frame.content.decode()
    assert world.repos.counted == counted


def test_two_thousand_parked_branches_stay_one_page_each(
    anna: Client, world: World, project: Project, at: str, django_assert_max_num_queries: Any
) -> None:
    repo = project.repo(world.lab.paths)
    world.repos.heads[repo] = {f"afk/{n}": "a" * 40 for n in range(1, 2001)}
    counted = world.repos.counted
    with django_assert_max_num_queries(14):
        shown = text_of(anna.get(f"{at}list", {"page": "100"}))
    assert f"Page 100 of {2000 // parked.PAGE}" in shown
    assert world.repos.counted - counted == 2 * parked.PAGE
    for odd in ("0", "-1", "x", "99999999999", "٣"):
        assert anna.get(f"{at}list", {"page": odd}).status_code == 200


@pytest.mark.row("LAB-120", level="pure")
@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        pytest.param(-60, "just now", id="from the future"),
        pytest.param(0, "just now", id="now"),
        pytest.param(59, "just now", id="under a minute"),
        pytest.param(60, "1m", id="a minute"),
        pytest.param(59 * 60 + 59, "59m", id="59 minutes"),
        pytest.param(23 * 3600 + 3599, "23h", id="23 hours"),
        pytest.param(6 * 86400 + 86399, "6d", id="six days"),
        pytest.param(7 * 86400, "1w", id="a week"),
        pytest.param(30 * 86400, "4w", id="thirty days"),
    ],
)
def test_ages_are_one_short_word(seconds: int, expected: str) -> None:
    from datetime import timedelta

    assert budgets.short(timedelta(seconds=seconds)) == expected


def test_a_worktree_without_its_branch_is_listed_with_its_path_and_can_be_discarded(
    anna: Client, world: World, project: Project, at: str
) -> None:
    repo, tree = project.repo(world.lab.paths), world.lab.paths.worktrees / "demo-7"
    world.repos.heads[repo] = {"other": "a" * 40}
    world.repos.trees[tree].branch = "other"
    shown = text_of(anna.get(at))
    for words in ("afk/7", "branch gone", "it is on <code>other</code> now", str(tree), "dirty"):
        assert words in shown, words
    assert "Nothing is parked" not in shown
    _discard(anna, at)
    assert not tree.exists()
    assert Rescue.objects.get().branch == "afk/7"
    assert world.repos.heads[repo] == {"other": "a" * 40}
    assert "Nothing is parked" in text_of(anna.get(at))


@pytest.fixture
def large(world: World, project: Project) -> Path:
    """The worktree of issue 7 holds 1.2 GB that no commit has."""
    path = world.lab.paths.worktrees / "demo-7"
    world.repos.sizes_of[path] = 1_200_000_000
    return path


def test_large_work_is_discarded_by_the_worker_and_its_page_shows_how_far(
    anna: Client, world: World, project: Project, at: str, large: Path
) -> None:
    answer = _discard(anna, at, headers=HTMX)
    assert "is being discarded" in text_of(answer)
    assert large.is_dir()
    assert removal.to_stop(world.lab, project) == ["wait until afk/7 is discarded"]
    (pk,) = world.queue.discards
    Discarding.objects.filter(pk=pk).update(done=600_000_000)
    shown = text_of(anna.get(at))
    assert "572.2\xa0MB of 1.1\xa0GB stored" in shown
    assert "every 2s" in shown
    assert "being discarded" in text_of(_discard(anna, at, headers=HTMX))
    assert len(world.queue.discards) == 1
    discard.carry_out(world.lab, pk)
    assert not large.exists()
    assert not Discarding.objects.exists()
    assert Rescue.objects.get().branch == "afk/7"
    after = text_of(anna.get(f"{at}discards"))
    assert 'hx-trigger="load"' in after
    assert "every 2s" not in text_of(anna.get(at))


def test_a_large_discard_that_fails_says_why_and_can_be_pressed_again(
    anna: Client, world: World, project: Project, at: str, large: Path
) -> None:
    _discard(anna, at)
    world.repos.broken_keep = "git add failed: No space left on device"
    discard.carry_out(world.lab, world.queue.discards.pop())
    shown = text_of(anna.get(at))
    assert "afk/7 was not discarded" in shown and "No space left" in shown
    assert large.is_dir()
    world.repos.broken_keep = ""
    _discard(anna, at)
    discard.carry_out(world.lab, world.queue.discards.pop())
    assert not large.exists()
    assert "was not discarded" not in text_of(anna.get(at))


def test_a_large_discard_whose_end_was_never_stored_is_begun_again_by_the_same_worker(
    anna: Client, world: World, project: Project, at: str, large: Path
) -> None:
    _discard(anna, at)
    pk = world.queue.discards.pop()
    Discarding.objects.filter(pk=pk).update(process=world.lab.process)
    discard.tend(world.lab)
    assert world.queue.discards == [pk]
    discard.carry_out(world.lab, pk)
    assert not large.exists()
    assert not Discarding.objects.exists()


def test_a_large_discard_whose_worker_is_gone_is_begun_again(
    anna: Client, world: World, project: Project, at: str, large: Path
) -> None:
    _discard(anna, at)
    pk = world.queue.discards.pop()
    discard.tend(world.lab)
    assert not world.queue.discards
    Discarding.objects.filter(pk=pk).update(process="boot:1:1")
    lab = replace(world.lab, is_process_alive=lambda name: name != "boot:1:1")
    discard.tend(lab)
    assert world.queue.discards == [pk]
    discard.carry_out(world.lab, pk)
    assert not large.exists()
    world.queue.discards.clear()
    discard.carry_out(world.lab, pk)
    assert Rescue.objects.count() == 1
