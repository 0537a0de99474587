"""The pages and the API of a project on beads: keys are words, there are no pull requests."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client

from runs.api import showing
from runs.dispatch import explain
from runs.lifecycle import delivery
from runs.models import Project, Run
from tests import make
from tests.real import RealWorld, git
from tests.web.people import text_of
from tests.world.stories import look, press_start

pytestmark = pytest.mark.django_db(transaction=True)

KEY = "bd-a1.2"
PAGES = [
    "/",
    "/projects/{project}/",
    "/projects/{project}/waiting",
    "/projects/{project}/parked/",
    "/history/",
    "/runs/{run}/",
    "/audit/",
]


@pytest.fixture
def client() -> Client:
    made = Client()
    made.force_login(make.a_user())
    return made


@pytest.fixture
def project(real: RealWorld) -> Project:
    made = real.project(tracker="beads")
    place = real.beads()
    place.issue(KEY, "Retry <b>uploads</b>", labels=["ready-for-agent"])
    place.issue("auto-1", "Unfit", labels=["ready-for-agent"])
    return made


@pytest.mark.row("C-53", level="real")
def test_every_page_shows_a_run_whose_key_is_a_word(
    real: RealWorld, project: Project, client: Client
) -> None:
    asked = press_start(real, project)
    assert asked.run is not None, asked.text
    run = asked.run
    for outcome in ("", "died"):
        if outcome:
            (Path(run.worktree) / "x").write_text("x")
            real.tmux("kill-session", "-t", run.session)
            look(real)
        assert Run.objects.get().outcome == outcome
        for page in PAGES:
            answer = client.get(page.format(project=project.pk, run=run.pk))
            assert answer.status_code == 200, page
            assert "<b>uploads</b>" not in text_of(answer)


@pytest.mark.row("C-53", level="real")
def test_the_waiting_page_says_why_an_unfit_key_never_starts(
    real: RealWorld, project: Project, client: Client
) -> None:
    text = text_of(client.get(f"/projects/{project.pk}/waiting"))
    assert "cannot name a branch and a session: it begins with auto-" in text
    shown = showing.waiting(*explain.explain(real.lab, project)).model_dump()
    assert "unfit_key" in str(shown)


@pytest.mark.row("C-07", level="real")
def test_the_run_page_shows_what_is_proven_and_no_pull_request(
    real: RealWorld, project: Project, client: Client
) -> None:
    run = press_start(real, project).run
    assert run is not None
    tree = Path(run.worktree)
    git(tree, "commit", "-q", "--allow-empty", "-m", f"feat: retry ({KEY})")
    delivery.ask(real.lab, run, "agent")

    text = text_of(client.get(f"/runs/{run.pk}/"))

    steps = text.partition('id="steps"')[2].partition("</ol>")[0]
    assert "Delivery" in steps
    assert "1 committed up to " in steps
    assert ", not pushed, named in " in steps
    assert "Pull request" not in steps
