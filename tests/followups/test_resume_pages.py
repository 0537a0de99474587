"""The form of Resume: on the run's page, with an error at its field, without JavaScript, and over the API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from runs import tick
from runs.followups import rules
from runs.models import Project, Run, StartRequest
from tests.api.program import Program
from tests.fakes import World
from tests.followups.conftest import dead
from tests.web.people import text_of
from tests.world.stories import work

pytestmark = pytest.mark.django_db(transaction=True)

HTMX = {"HX-Request": "true"}


@pytest.fixture
def run(world: World, project: Project) -> Run:
    """A run that ended; a worker looks whenever somebody waits for its answer."""
    found = dead(world, project)

    def look_and_work(seconds: float) -> None:
        tick.tick(world.lab, project="demo")
        work(world)

    object.__setattr__(world.lab, "pause", look_and_work)
    return found


def _press(client: Client, run: Run, text: str, **more: Any) -> Any:
    return client.post(f"/runs/{run.pk}/resume", {"text": text}, **more)


def test_the_page_of_a_run_that_died_offers_resume_and_says_what_it_does(
    anna: Client, run: Run
) -> None:
    shown = text_of(anna.get(f"/runs/{run.pk}/"))
    assert "Claude goes on in its own session, in the same worktree, with this text." in shown
    assert rules.GO_ON in shown


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"agent_session": ""}, "Claude did not tell its session, so it gets its task again"),
        ({"profile": None}, "Its agent is not set up any more. Claude gets the task,"),
    ],
)
def test_the_page_says_beforehand_when_the_session_cannot_go_on(
    anna: Client, run: Run, change: dict[str, Any], words: str
) -> None:
    Run.objects.update(**change)
    assert words in text_of(anna.get(f"/runs/{run.pk}/"))


def test_it_says_beforehand_that_the_worktree_is_made_again(
    anna: Client, run: Run, world: World
) -> None:
    world.repos.remove_worktree(run.project.repo(world.lab.paths), Path(run.worktree))
    assert "which is made again on afk/7" in text_of(anna.get(f"/runs/{run.pk}/"))


def test_on_a_tab_that_shows_something_else_the_form_is_folded(anna: Client, run: Run) -> None:
    story = text_of(anna.get(f"/runs/{run.pk}/"))
    assert 'class="reveal titled"' not in story
    assert story.index('id="steps"') < story.index('id="resume"') < story.index('id="timeline"')
    for tab in ("changes", "checks", "terminal", "conversation", "prompt", "raw"):
        for address in (f"/runs/{run.pk}/{tab}/", f"/runs/{run.pk}/{tab}/live"):
            shown = text_of(anna.get(address))
            assert '<details class="reveal titled">' in shown, address
            assert "Tell the agent" in shown, address


def test_resume_leads_to_the_new_run_and_both_pages_name_each_other(anna: Client, run: Run) -> None:
    answer = _press(anna, run, "Use the other parser.")
    made = Run.objects.get(continues=run)
    assert (answer.status_code, answer["Location"]) == (303, f"/runs/{made.pk}/")
    shown = text_of(anna.get(f"/runs/{made.pk}/"))
    assert f'goes on from <a class="link" href="/runs/{run.pk}/">' in shown
    assert "Use the other parser." in text_of(anna.get(f"/runs/{made.pk}/prompt/"))
    before = text_of(anna.get(f"/runs/{run.pk}/"))
    assert f'was continued by <a class="link" href="/runs/{made.pk}/">' in before
    assert "keeps the issue claimed" not in before  # somebody works on it
    assert "Tell the agent" not in before
    assert _press(anna, run, "Again.", headers=HTMX).status_code == 409


def test_with_javascript_the_answer_leads_there_too(anna: Client, run: Run) -> None:
    answer = _press(anna, run, "Go on.", headers=HTMX)
    assert answer["HX-Redirect"] == f"/runs/{Run.objects.get(continues=run).pk}/"


@pytest.mark.parametrize("headers", [{}, HTMX])
@pytest.mark.parametrize(("text", "words"), [("", rules.NO_TEXT), ("ä" * 4001, rules.TOO_LONG)])
def test_a_wrong_text_comes_back_with_an_error_at_its_field(
    anna: Client, run: Run, headers: dict[str, str], text: str, words: str
) -> None:
    answer = _press(anna, run, text, headers=headers)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert 'aria-invalid="true"' in page
    assert words in text_of(answer)
    assert text[:4001] in page
    assert not StartRequest.objects.filter(continues=run).exists()


def test_whoever_may_only_look_sees_no_form_and_may_not_press(vera: Client, run: Run) -> None:
    assert "Tell the agent" not in text_of(vera.get(f"/runs/{run.pk}/"))
    assert _press(vera, run, "Go on.").status_code == 403


def test_a_run_that_cannot_be_resumed_says_so_on_the_form_by_itself(anna: Client, run: Run) -> None:
    Run.objects.update(outcome="succeeded")
    assert "Nobody can go on with this run" in text_of(anna.get(f"/runs/{run.pk}/resume"))
    assert _press(anna, run, "Go on.", headers=HTMX).status_code == 409


def test_a_program_resumes_a_run_and_is_told_which_one_goes_on(
    world: World, operator: Any, run: Run
) -> None:
    program = Program.of(operator)
    answer = program.send("POST", f"/runs/{run.pk}/resume", {"text": "Go on."})
    made = Run.objects.get(continues=run)
    assert (answer.status_code, answer.json()["run"]["continues"]) == (201, run.pk)
    assert program.send("GET", f"/runs/{made.pk}").json()["follow_up"] == "Go on."
    wrong = program.send("POST", f"/runs/{made.pk}/resume", {"text": ""})
    assert (wrong.status_code, wrong.json()["fields"]) == (422, {"text": rules.NO_TEXT})
    late = program.send("POST", f"/runs/{run.pk}/resume", {"text": "Else."})
    assert (late.status_code, late.json()["code"]) == (409, "cannot_go_on")
