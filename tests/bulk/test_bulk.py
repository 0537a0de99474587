"""One act on many rows: asked once, each row through its own door, one result line each."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from runs.bulk import acts, rules
from runs.bulk.rules import Result
from runs.core.ports import SeamError
from runs.kept import counts
from runs.models import Discarding, Notice, Project, Rescue, Run
from tests import make
from tests.fakes import FakeTree, World
from tests.followups.conftest import dead
from tests.followups.conftest import project as one_shot
from tests.pulls.review_desk import Review
from tests.web.people import confirmed, text_of
from trackers.base import NewPull
from trackers.builtin import store
from trackers.builtin.models import PullRequest

pytestmark = pytest.mark.django_db
__all__ = ["one_shot"]


@pytest.mark.parametrize(
    ("sent", "keys", "wrong"),
    [
        pytest.param([], (), rules.NOTHING, id="none"),
        pytest.param(["7", "8", "7"], ("7", "8"), "", id="each once"),
        pytest.param([str(n) for n in range(100)], tuple(map(str, range(100))), "", id="as many as may go"),
        pytest.param([str(n) for n in range(101)], (), rules.TOO_MANY, id="too many"),
        pytest.param(["a\0b"], ("ab",), "", id="a letter that no key holds"),
    ],
)  # fmt: skip
def test_what_was_chosen(sent: list[str], keys: tuple[str, ...], wrong: str) -> None:
    assert rules.read(sent) == rules.Chosen(keys, wrong)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ([True, True], "2 done"),
        ([True, False, None], "1 done, 1 refused, 1 not tried"),
        ([False], "1 refused"),
    ],
)
def test_the_outcome_in_words(said: list[bool | None], words: str) -> None:
    assert rules.summary([Result("1", one, "") for one in said]) == words


def _lines(answer: Any) -> dict[str, str]:
    """What the page says of each row, by its link's words."""
    found = re.findall(
        r"<li><div class=\"what\">(?:<a [^>]*>|<code>)(.*?)(?:</a>|</code>)(.*?)</li>",
        text_of(answer),
    )
    return {label: re.sub(r"<[^>]+>", " ", rest).strip() for label, rest in found}


def test_runs_are_dismissed_once_and_one_line_says_what_became_of_each(
    anna: Client, world: World
) -> None:
    project = make.a_project()
    died = make.a_run(project, "1", outcome="died")
    seen = make.a_run(project, "2", outcome="died", seen_until=world.clock.now - timedelta(hours=1))
    live = make.a_run(project, "3", slot=3)
    query = f"item={died.pk}&item={seen.pk}&item={live.pk}&item=999&item=x"
    asked = anna.get(f"/bulk/runs/dismiss?{query}")
    assert "Dismiss 1 run?" in text_of(asked)
    assert "2 of what was chosen are not there any more" in text_of(asked)
    assert Run.objects.get(pk=died.pk).seen_until is None
    sent = {"item": [str(died.pk), str(seen.pk), str(live.pk), "999"]}
    done = anna.post("/bulk/runs/dismiss", sent)
    assert "Dismiss: 1 done, 3 refused" in text_of(done)
    said = _lines(done)
    assert "Dismissed." in said[f"Run {died.pk}: #1 Issue 1"]
    assert "It was dismissed already." in said[f"Run {seen.pk}: #2 Issue 2"]
    assert "has not ended" in said[f"Run {live.pk}: #3 Issue 3"]
    assert acts.GONE in said["999"]
    # The same form sent again does nothing again.
    assert "4 refused" in text_of(anna.post("/bulk/runs/dismiss", sent))
    assert Notice.objects.filter(kind="need.dismissed").count() == 1


def test_pull_requests_are_merged_as_somebody_saw_them(anna: Client, world: World) -> None:
    review = Review(world)
    root = review.project.tracker_root
    new = NewPull("afk/2", "main", "Clashes", "", "Claude", "c" * 40, review.base)
    gone = store.create_pull(root, new, at=world.clock.now)
    at = f"/projects/{review.project.pk}/bulk/pulls/merge"
    asked = anna.get(f"{at}?item={review.number}&item={gone}&item=77")
    text = text_of(asked)
    assert "Merge 1 pull request?" in text
    assert "Left as they are" in text
    assert f'name="seen-{review.number}" value="{review.head}"' in text
    # Commits that came after the page was shown are not merged unseen.
    review.more()
    late = anna.post(at, {"item": [str(review.number)], f"seen-{review.number}": review.head})
    assert "New commits have come" in text_of(late)
    assert PullRequest.objects.get(number=review.number).state == "open"
    done = anna.post(at, {"item": [str(review.number), str(gone)]})
    assert "1 done, 1 refused" in text_of(done)
    assert PullRequest.objects.get(number=review.number).state == "merged"
    again = anna.post(at, {"item": [str(review.number)]})
    assert "was merged by anna already" in text_of(again)


def test_a_run_without_a_pull_request_here_is_not_merged(anna: Client, world: World) -> None:
    run = make.a_run(make.a_project(), "1", outcome="succeeded", pull_number=3)
    done = anna.post("/bulk/runs/merge", {"item": [str(run.pk)]})
    assert acts.NO_PULL in text_of(done)


@pytest.fixture
def parked(world: World) -> Project:
    """Branches 7 and 8 are parked; work of 9 was accepted and its issue is still to be closed."""
    world.tracker.add_root("demo")
    project = make.a_project()
    repo = project.repo(world.lab.paths)
    tree = world.lab.paths.worktrees / "demo-7"
    heads = {f"afk/{n}": str(n) * 40 for n in (7, 8, 9)}
    world.repos.heads[repo] = heads
    world.repos.trees[tree] = FakeTree("afk/7", "7" * 40, is_dirty=True)
    tree.mkdir(parents=True)
    make.a_run(project, "7", outcome="stopped", worktree=str(tree), fork_point="f" * 40)
    make.a_run(project, "9", outcome="succeeded", accepted_commit="9" * 40)
    counts.take(world.lab, project)
    return project


def test_branches_are_discarded_and_rescued_but_not_accepted_work(
    anna: Client, world: World, parked: Project
) -> None:
    at = f"/projects/{parked.pk}/bulk/parked/discard"
    query = "?item=afk/7&item=afk/8&item=afk/9&item=main"
    # A password comes first, and the choice is still there after it.
    first = anna.get(at + query)
    assert first.status_code == 302
    assert "item%3Dafk" in first.headers["Location"] or "afk%252F7" in first.headers["Location"]
    confirmed(anna)
    asked = text_of(anna.get(at + query))
    assert "Discard 3 branches?" in asked
    assert "Left as they are" in asked
    sent = {"item": ["afk/7", "afk/8", "afk/9", "main"]}
    said = _lines(anna.post(at, sent))
    assert "Discarded" in said["afk/7"] and "Discarded" in said["afk/8"]
    assert "done" not in said["afk/9"]
    assert "not a branch that labsite manages" in said["main"]
    assert sorted(world.repos.heads[parked.repo(world.lab.paths)]) == ["afk/9"]
    assert Rescue.objects.count() == 2
    again = anna.post(at, sent)
    assert "4 refused" in text_of(again)
    assert Rescue.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_runs_are_retried_each_by_its_own_door(
    anna: Client, world: World, one_shot: Project
) -> None:
    confirmed(anna)
    died = dead(world, one_shot)
    done = make.a_run(one_shot, "9", outcome="succeeded", slot=4)
    page = text_of(anna.get(f"/bulk/runs/retry?item={died.pk}&item={done.pk}"))
    assert "Retry 1 run?" in page
    assert "It has delivered." in page
    sent = {"item": [str(died.pk), str(done.pk)]}
    text = text_of(anna.post("/bulk/runs/retry", sent))
    assert "It has delivered." in text
    assert "1 done, 1 refused" in text
    assert Discarding.objects.filter(branch="afk/7", restarts="7").count() == 1
    again = text_of(anna.post("/bulk/runs/retry", sent))
    assert "2 refused" in again
    assert Discarding.objects.count() == 1


def test_one_that_fails_keeps_no_other_from_its_turn_and_time_has_an_end(world: World) -> None:
    project = make.a_project()
    keys = [str(n) for n in range(5)]
    items = {key: acts.Item(key, key, project) for key in keys}

    def do(lab: Any, item: acts.Item, seen: str, by: str) -> str:
        if item.key == "1":
            raise SeamError("git did not answer")
        world.clock.now += timedelta(seconds=25)
        return f"done by {by}"

    act = acts.Act("Do", "", lambda *_: acts.Forecast(True), do)
    found = acts.carry_out(world.lab, act, keys, items, {}, "anna")
    assert [one.is_done for one in found] == [True, False, True, True, None]
    assert found[1].text == "git did not answer"
    assert found[4].text == acts.LATE


@pytest.mark.parametrize("at", ["/bulk/runs/dismiss", "/bulk/runs/merge", "/bulk/runs/retry"])
def test_who_may_only_look_chooses_and_does_nothing(vera: Client, world: World, at: str) -> None:
    run = make.a_run(make.a_project(), "1", outcome="died")
    assert vera.get(f"{at}?item={run.pk}").status_code == 403
    assert vera.post(at, {"item": [str(run.pk)]}).status_code == 403
    assert "data-pick" not in text_of(vera.get("/history/"))
    run.refresh_from_db()
    assert run.seen_until is None


def test_a_choice_that_makes_no_sense_is_said(anna: Client, world: World) -> None:
    assert rules.NOTHING in text_of(anna.get("/bulk/runs/dismiss"))
    many = anna.post("/bulk/runs/dismiss", {"item": [str(n) for n in range(101)]})
    assert many.status_code == 422
    assert rules.TOO_MANY in text_of(many)
    assert anna.get("/bulk/runs/explode?item=1").status_code == 404
    assert anna.get("/projects/987654321/bulk/pulls/merge?item=1").status_code == 404


def test_where_nothing_can_be_done_no_question_is_asked(
    anna: Client, world: World, one_shot: Project
) -> None:
    run = make.a_run(one_shot, "1")
    shown = text_of(anna.get(f"/bulk/runs/dismiss?item={run.pk}"))
    assert "Dismiss: nothing to do" in shown
    assert "0 runs" not in shown
    assert "Back to the list" in shown


def test_runs_of_one_group_of_needs_are_tried_again_with_one_question(
    anna: Client, world: World, one_shot: Project
) -> None:
    over = {"outcome": "died", "reason": "exit 1", "settled_at": world.clock.now}
    died = [make.a_run(one_shot, str(n), **over) for n in range(1, 4)]
    page = text_of(anna.get("/"))
    link = re.search(r'href="([^"]+)">Try all again', page)
    assert link is not None
    address = html.unescape(link[1])
    assert {f"item={run.pk}" for run in died} <= set(address.partition("?")[2].split("&"))
    confirmed(anna)
    asked = text_of(anna.get(address))
    assert "Retry 3 runs?" in asked
    assert 'href="/needs/"' in asked


def test_whoever_may_only_look_is_led_to_the_runs_of_a_group(
    client: Client, viewer: User, world: World
) -> None:
    project = make.a_project()
    for number in range(3):
        make.a_run(project, str(number + 1), outcome="died", reason="exit 1")
    client.force_login(viewer)
    page = text_of(client.get("/"))
    assert "Try all again" not in page
    assert "Open runs" in page
