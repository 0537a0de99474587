"""Request changes: what a review says becomes new commits on the same pull request (World: all faked)."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from runs import tick
from runs.agents import agent_api
from runs.core import tokens
from runs.core.states import Outcome, RunState
from runs.followups import acts, rules
from runs.lifecycle import delivery
from runs.models import Project, Run, StartRequest
from tests.api.program import Program
from tests.fakes import World
from tests.followups.conftest import prints
from tests.transcript import agent_lines as x
from tests.web.people import text_of
from tests.world.stories import look, start, work
from trackers.base import Unreachable

pytestmark = pytest.mark.django_db(transaction=True)

HTMX = {"HX-Request": "true"}


def _commit(world: World, project: Project, text: str, *, is_pushed: bool = True) -> str:
    """What an agent does on its branch."""
    repo = project.repo(world.lab.paths)
    parent = world.repos.heads[repo]["afk/7"]
    known = (parent,) if parent in world.repos.made else ()
    made = world.repos.commit({"work.txt": text}, *known, subject=text)
    world.repos.heads[repo]["afk/7"] = made
    if is_pushed:
        world.repos.origins.setdefault(str(repo), {})["afk/7"] = made
    return made


@pytest.fixture
def delivered(world: World, project: Project) -> Run:
    """A run that opened pull request 8 and was tidied up."""
    run = start(world, project)
    prints(world, run, x.claude_init(), x.claude_result())
    look(world)
    _commit(world, project, "first")
    world.tracker.add_pull("demo", "afk/7", created_at=world.clock(), number=8)
    world.sessions.end(run.session, 0)
    look(world)
    look(world)
    run.refresh_from_db()
    assert (run.outcome, run.pull_number, run.settled_at is not None) == ("succeeded", 8, True)
    world.clock.forward(hours=1)
    return run


def _requested(world: World, run: Run, text: str = "Rename it.") -> Run:
    asked = acts.request_changes(world.lab, run, text, by="anna")
    tick.tick(world.lab, project="demo")
    work(world)
    asked = StartRequest.objects.select_related("run__project").get(pk=asked.pk)
    assert asked.run is not None, asked.text
    return asked.run


def _ends(world: World, run: Run, status: int = 0) -> Run:
    prints(world, run, x.claude_init(), x.claude_result())
    world.sessions.end(run.session, status)
    look(world)
    run.refresh_from_db()
    return run


def test_a_new_commit_and_a_good_end_are_what_was_asked_for(
    world: World, project: Project, delivered: Run
) -> None:
    run = _requested(world, delivered)
    assert (run.state, run.amends, run.branch) == (RunState.WORKING, 8, "afk/7")
    words = world.sessions.orders[run.session].argv[-1]
    assert "Changes are requested on pull request 8.\n\nRename it." in words
    assert "Pull request 8 of this branch is open already" in words
    look(world)
    run.refresh_from_db()
    assert run.outcome == ""  # that the pull request is there proves nothing
    _commit(world, project, "second")
    look(world)
    run.refresh_from_db()
    assert run.outcome == ""  # it has not said that it is done
    _ends(world, run)
    assert (run.outcome, run.pull_number) == (Outcome.SUCCEEDED, 8)
    assert run.reason == "pull request 8 has new commits"


@pytest.mark.parametrize(
    ("is_pushed", "status"), [(None, 0), (False, 0), (True, 1)], ids=["none", "unpushed", "crashed"]
)
def test_an_end_without_a_new_commit_on_origin_or_a_bad_one_is_a_death_with_a_reason(
    world: World, project: Project, delivered: Run, is_pushed: bool | None, status: int
) -> None:
    run = _requested(world, delivered)
    if is_pushed is not None:
        _commit(world, project, "second", is_pushed=is_pushed)
    _ends(world, run, status)
    assert run.outcome == Outcome.DIED
    assert run.reason.endswith("there is no new commit on pull request 8") or status


@pytest.mark.parametrize("has_moved", [True, False])
def test_an_agent_may_say_that_it_is_done_by_a_command(
    world: World, project: Project, delivered: Run, has_moved: bool
) -> None:
    run = _requested(world, delivered)
    if has_moved:
        _commit(world, project, "second")
    assert delivery.ask_amended(world.lab, run, "Claude") is has_moved
    look(world)
    run.refresh_from_db()
    assert run.outcome == (Outcome.SUCCEEDED if has_moved else "")


def test_labctl_done_answers_what_is_missing(
    client: Client, world: World, project: Project, delivered: Run
) -> None:
    run = _requested(world, delivered)
    token = tokens.new_run_token()
    Run.objects.filter(pk=run.pk).update(token_hash=tokens.hash_token(token))
    answer = client.post("/agent/done", headers={"Authorization": f"Bearer {token}"})
    assert answer.json()["is_done"] is False
    assert answer.json()["missing"] == ["no new commit of yours on origin (git push origin afk/7)"]
    assert agent_api.done


def test_the_end_of_an_interactive_turn_is_its_word(
    world: World, project: Project, delivered: Run
) -> None:
    run = _requested(world, delivered)
    Run.objects.filter(pk=run.pk).update(mode="interactive", output="")
    _commit(world, project, "second")
    look(world)
    Run.objects.filter(pk=run.pk).update(turn_ended_at=world.clock())
    look(world)
    run.refresh_from_db()
    assert run.outcome == Outcome.SUCCEEDED


@pytest.mark.parametrize("state", ["merged", "closed"])
def test_one_that_was_merged_or_closed_between_press_and_start_refuses_with_a_sentence(
    world: World, project: Project, delivered: Run, state: str
) -> None:
    asked = acts.request_changes(world.lab, delivered, "Rename it.", by="anna")
    world.tracker.shelves["demo"].pulls[0]["state"] = state
    tick.tick(world.lab, project="demo")
    asked.refresh_from_db()
    assert (asked.answer, asked.run) == ("cannot_go_on", None)
    assert asked.text == (f"Pull request 8 is {state} already, so nothing more can be added to it.")


def test_what_was_commented_on_a_forge_goes_along(
    world: World, project: Project, delivered: Run
) -> None:
    said = [{"author": "vera", "body": "Why two parsers?\x1b[31m"}]
    world.tracker.shelves["demo"].pulls[0]["comments"] = said
    words = _requested(world, delivered, "").follow_up
    assert "vera:\nWhy two parsers?" in words
    assert "\x1b" not in words


def test_a_tracker_that_does_not_tell_its_comments_starts_nothing(
    world: World, project: Project, delivered: Run
) -> None:
    world.tracker.fail()
    with pytest.raises(Unreachable):
        acts.request_changes(world.lab, delivered, "Rename it.", by="anna")
    assert not StartRequest.objects.filter(continues=delivered).exists()


def test_without_a_text_and_without_comments_the_field_says_so(
    world: World, project: Project, delivered: Run
) -> None:
    with pytest.raises(acts.FollowUpRefused) as refused:
        acts.request_changes(world.lab, delivered, " ", by="anna")
    assert refused.value.fields == {"text": rules.NO_CHANGES}


def test_a_second_review_goes_on_with_the_run_that_made_the_changes(
    world: World, project: Project, delivered: Run
) -> None:
    first = _requested(world, delivered)
    _commit(world, project, "second")
    _ends(world, first)
    look(world)
    first.refresh_from_db()
    second = _requested(world, first, "And once more.")
    assert (second.continues_id, second.amends) == (first.pk, 8)
    with pytest.raises(acts.FollowUpRefused, match="came after this one"):
        acts.request_changes(world.lab, delivered, "Old.", by="bob")


def test_a_closed_pull_request_is_no_delivery_of_whoever_was_to_change_it(
    world: World, project: Project, delivered: Run
) -> None:
    run = _requested(world, delivered)
    _commit(world, project, "second")
    world.tracker.shelves["demo"].pulls[0]["state"] = "closed"
    _ends(world, run)
    assert run.outcome == Outcome.DIED
    assert run.reason.endswith("there is no open pull request 8: it was closed")


@pytest.fixture
def worker(world: World) -> None:
    """A worker looks whenever somebody waits for its answer."""

    def look_and_work(seconds: float) -> None:
        tick.tick(world.lab, project="demo")
        work(world)

    object.__setattr__(world.lab, "pause", look_and_work)


def test_the_page_of_a_forges_pull_request_has_the_form_and_leads_to_the_new_run(
    anna: Client, worker: None, delivered: Run
) -> None:
    page = text_of(anna.get(f"/runs/{delivered.pk}/pull"))
    assert (
        "Claude goes on in its own session, in its worktree, which is made again on afk/7" in page
    )
    assert "and with no comment." in page
    answer = anna.post(f"/runs/{delivered.pk}/changes", {"text": "Rename it."})
    made = Run.objects.get(continues=delivered)
    assert (answer.status_code, answer["Location"]) == (303, f"/runs/{made.pk}/")
    assert 'id="changes-form"' not in text_of(anna.get(f"/runs/{delivered.pk}/pull"))


@pytest.mark.parametrize("headers", [{}, HTMX])
def test_an_empty_request_comes_back_with_an_error_at_its_field(
    anna: Client, delivered: Run, headers: dict[str, str]
) -> None:
    answer = anna.post(f"/runs/{delivered.pk}/changes", {"text": ""}, headers=headers)
    assert answer.status_code == 422
    assert rules.NO_CHANGES in text_of(answer)
    assert 'aria-invalid="true"' in text_of(answer)


def test_whoever_may_only_look_sees_no_form(vera: Client, delivered: Run) -> None:
    assert 'id="changes-form"' not in text_of(vera.get(f"/runs/{delivered.pk}/pull"))
    assert vera.post(f"/runs/{delivered.pk}/changes", {"text": "x"}).status_code == 403


def test_a_program_requests_changes(
    world: World, worker: None, operator: Any, delivered: Run
) -> None:
    answer = Program.of(operator).send(
        "POST", f"/runs/{delivered.pk}/changes", {"text": "Rename it."}
    )
    assert (answer.status_code, answer.json()["run"]["amends"]) == (201, 8)
