"""With what branches of runs begin: chosen for each project, and changed while work goes on."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from runs.core.states import TrackerKind
from runs.dispatch.eligibility import Why
from runs.followups import acts as follow_ups
from runs.kept import counts, discard, owners
from runs.lifecycle import adopt
from runs.models import Parked, Project, Run
from runs.overview import waiting
from runs.project_settings import acts
from runs.settings.acts import TuningRefused
from tests import make
from tests.dispatch.test_auto import carry_out, explained, sweep
from tests.dispatch.test_auto import project as project
from tests.fakes import World
from tests.followups.conftest import dead
from tests.web.people import text_of
from tests.world.stories import look, work
from trackers.base import NewPull
from trackers.builtin import queries, store

pytestmark = pytest.mark.django_db(transaction=True)

SETTINGS = {
    **dict.fromkeys(("setup", "setup_again", "setup_after", "setup_removal"), ""),
    "setup_minutes": "10",
}


def change(world: World, project: Project, prefix: str) -> None:
    acts.store(world.lab, project, {"branch_prefix": prefix}, by="anna")
    project.refresh_from_db()


def test_a_new_run_claims_under_the_prefix_and_older_claims_hold_under_theirs(
    world: World, project: Project
) -> None:
    repo = project.repo(world.lab.paths)
    world.repos.heads[repo] = {"afk/7": "a" * 40}
    change(world, project, "agent/issue-")
    assert project.claim_prefixes == ("agent/issue-", "afk/")
    sweep(world)
    carry_out(world)
    assert [(run.issue_key, run.branch) for run in Run.objects.all()] == [("8", "agent/issue-8")]
    assert set(world.repos.heads[repo]) == {"afk/7", "agent/issue-8"}
    (failed,) = [one for one in explained(world, project)["7"].failed if one.why == Why.CLAIMED]
    assert failed.text == "The branch afk/7 of an earlier run is kept and claims the issue."
    assert failed.change.text == "Discard afk/7"


def test_a_prefix_that_comes_back_is_the_first_again(world: World, project: Project) -> None:
    change(world, project, "bot/")
    change(world, project, "afk/")
    assert project.claim_prefixes == ("afk/", "bot/")
    assert project.branches_for("7") == ["afk/7", "bot/7"]
    assert project.claimed_key("bot/7") == project.claimed_key("afk/7") == "7"
    assert project.claimed_key("agent/7") is None


def test_work_under_an_older_prefix_is_parked_and_can_be_discarded(
    world: World, project: Project
) -> None:
    repo = project.repo(world.lab.paths)
    world.repos.heads[repo] = {"afk/7": "a" * 40, "bot/8": "b" * 40, "else/9": "c" * 40}
    change(world, project, "bot/")
    counts.take(world.lab, project)
    assert set(Parked.objects.values_list("branch", flat=True)) == {"afk/7", "bot/8"}
    with pytest.raises(discard.DiscardRefused, match="not a branch that labsite manages"):
        discard.begin(world.lab, project, "else/9", "anna")
    discard.begin(world.lab, project, "afk/7", "anna")
    assert set(world.repos.heads[repo]) == {"bot/8", "else/9"}


def test_the_folder_of_a_run_is_listed_under_the_branch_that_it_has(
    world: World, project: Project
) -> None:
    (world.lab.paths.worktrees / "demo-7").mkdir(parents=True)
    make.a_run(project, "7", outcome="died", branch="afk/7", worktree="demo-7")
    change(world, project, "bot/")
    known = owners.remembered(project)
    assert [one.name for one in counts.everything(world.lab, project, known)] == ["afk/7"]
    claims, left = counts.claims(world.lab, project)
    assert not claims
    assert left == {"7"}


@pytest.mark.parametrize("held", ["afk/7", "bot/7"])
def test_a_session_without_a_row_is_adopted_on_the_branch_that_is_there(
    world: World, project: Project, held: str
) -> None:
    change(world, project, "bot/")
    world.repos.heads[project.repo(world.lab.paths)] = {held: "a" * 40}
    world.sessions.appear("demo~1~afk-7")
    adopt.adopt(world.lab, world.lab.sessions.look(), [])
    assert Run.objects.get().branch == held


@pytest.mark.parametrize(
    ("prefix", "said"),
    [
        ("", "This field is required."),
        ("my work/", "Use letters, digits"),
        ("afk", "End it with /, - or _"),
        ("a..b/", "Git allows no // and no .."),
        ("lab/", "lab/ is for sessions that people drive."),
        ("main/", "Git allows no branch below main/ beside the branch main."),
    ],
)
def test_what_git_would_refuse_is_said_at_the_field(
    anna: Client, world: World, project: Project, prefix: str, said: str
) -> None:
    at = f"/projects/{project.pk}/settings/setup/"
    answer = anna.post(at, {**SETTINGS, "branch_prefix": prefix})
    assert answer.status_code == 422
    assert 'id="id_branch_prefix_error"' in text_of(answer)
    assert said in text_of(answer)
    project.refresh_from_db()
    assert (project.branch_prefix, project.past_prefixes) == ("afk/", [])
    assert anna.post(at, {**SETTINGS, "branch_prefix": "bot/"}).status_code == 303
    project.refresh_from_db()
    assert project.claim_prefixes == ("bot/", "afk/")


def test_a_default_branch_is_never_taken_for_a_claim(world: World, project: Project) -> None:
    Project.objects.update(default_branch="release-7")
    project.refresh_from_db()
    with pytest.raises(TuningRefused, match="would be taken for a claim"):
        change(world, project, "release-")


def test_a_pull_request_of_either_branch_is_that_of_the_issue(
    world: World, project: Project
) -> None:
    root = store.create_root("x")
    Project.objects.update(tracker=TrackerKind.BUILTIN, tracker_root=root)
    change(world, project, "bot/")
    at = world.clock.now
    about = {"body": "", "author": "anna", "labels": [project.ready_label], "at": at}
    keys = [store.create_issue(root, title=f"Issue {one}", **about) for one in range(3)]
    made = [
        store.create_pull(root, NewPull(f"{prefix}{key}", "main", "Add it", "", "demo"), at=at)
        for prefix, key in zip(("afk/", "bot/", "else/"), keys, strict=True)
    ]
    expected = [*made[:2], None]
    found = [queries.open_pull_of(root, project.branches_for(str(key))) for key in keys]
    assert found == expected
    ready, _ = waiting.of_trackers([project], with_pulls=False)
    assert [one.pull for one in ready] == expected


def test_whoever_goes_on_with_a_run_works_on_its_branch(world: World, project: Project) -> None:
    run: Any = dead(world, project)
    change(world, project, "bot/")
    follow_ups.resume(world.lab, run, "Go on.", by="anna")
    look(world)
    work(world)
    assert Run.objects.get(continues=run).branch == run.branch == "afk/7"
