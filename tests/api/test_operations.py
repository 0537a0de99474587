"""What each operation of the API does: the same as the browser, told with the person's name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runs import tick
from runs.core.states import AnswerCode, Outcome, ProjectState, RunState
from runs.kept import removal
from runs.models import AgentProfile, Notice, Project, Run, Settings, StartRequest
from runs.projects import acts as projects
from tests import make
from tests.api.program import V1, Program, denied
from tests.fakes import START, World
from tests.pulls.review_desk import Review
from tests.web import board_rows as rows
from tests.web.people import text_of
from trackers.base import NewPull
from trackers.builtin import store
from trackers.builtin.models import Issue, IssueComment, PullRequest

pytestmark = pytest.mark.django_db


def told() -> list[tuple[str, str]]:
    """What the timeline tells beside the making of tokens, oldest first: who, and what."""
    notices = Notice.objects.exclude(text__startswith="token ").order_by("pk")
    return [(notice.by, notice.text) for notice in notices]


def an_issue(project: Project, title: str = "Add retries", labels: tuple[str, ...] = ()) -> int:
    return store.create_issue(
        project.tracker_root, title=title, body="Why.", author="bob", labels=labels, at=START
    )


def a_pull(project: Project, head: str = "afk/7") -> int:
    new = NewPull(head, "main", "Retry", "Closes #7", author="agent", head_commit="a" * 40)
    return store.create_pull(project.tracker_root, new, at=START)


def test_projects_are_listed_in_pages_and_shown(program: Program, world: World) -> None:
    made = [make.a_project(name, token="ghp_secret") for name in ("one", "two", "three")]

    first = program.get("/projects", limit=2).json()
    second = program.get("/projects", limit=2, cursor=first["next"]).json()

    assert [one["name"] for one in first["items"] + second["items"]] == ["one", "two", "three"]
    assert (first["next"], second["next"]) == (made[1].pk, None)
    shown = program.get(f"/projects/{made[0].pk}")
    assert shown.json() == first["items"][0]
    assert shown.json()["created_at"] == "2026-11-21T12:00:00Z"
    assert "ghp_secret" not in text_of(shown)
    denied(program.get("/projects/987654321"), 404, "not_found")


def test_a_project_is_added_by_the_verb_of_the_form(program: Program, world: World) -> None:
    world.repos.urls["https://forge.example/shop.git"] = "main"

    answer = program.post(
        "/projects", {"source": "https://forge.example/shop.git", "token": "ghp_secret"}
    )

    assert answer.status_code == 201, answer.content
    assert (answer.json()["name"], answer.json()["state"]) == ("shop", "cloning")
    assert "ghp_secret" not in text_of(answer)
    assert told() == [("anna", "was added and is being cloned")]
    again = program.post("/projects", {"source": "https://forge.example/shop.git"})
    assert "name" in denied(again, 422, "invalid")["fields"]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"source": "--upload-pack=evil"}, "source"),
        ({"source": "https://forge.example/none.git"}, "source"),
        ({"source": "/nowhere/at/all"}, "source"),
        ({"source": "/\ud83d"}, "source"),
        ({"source": "/x", "name": "…"}, "name"),
        ({"source": "x" * 501}, "source"),
        ({"source": "/x", "state": "ready"}, "state"),
    ],
)
def test_a_project_that_cannot_be_added_is_not_half_made(
    program: Program, world: World, given: dict[str, str], field: str
) -> None:
    assert field in denied(program.post("/projects", given), 422, "invalid")["fields"]
    assert not Project.objects.exists()
    assert told() == []


@pytest.mark.django_db(transaction=True)
def test_a_failed_clone_is_tried_again_or_forgotten(program: Program, world: World) -> None:
    world.repos.urls["https://forge.example/shop.git"] = "main"
    added = program.post("/projects", {"source": "https://forge.example/shop.git"}).json()["id"]
    denied(program.post(f"/projects/{added}/retry"), 409, "not_failed")
    world.repos.broken_fetch = "no route to host"
    projects.carry_out_clone(world.lab, added)

    assert "no route" in program.get(f"/projects/{added}").json()["error"]
    again = program.post(f"/projects/{added}/retry")
    assert (again.status_code, again.json()["state"]) == (202, "cloning")
    assert world.queue.clones == [added, added]
    assert ("anna", "is cloned again") in told()
    Project.objects.update(state=ProjectState.FAILED)
    gone = program.send("DELETE", f"/projects/{added}")
    assert (gone.status_code, gone.json()["state"]) == (202, "removing")
    removal.carry_out(world.lab, added)
    assert not Project.objects.exists()
    assert ("anna", "shop: is being removed") in told()


def test_agents_are_listed_without_arguments_and_environment(
    program: Program, world: World
) -> None:
    agent = make.an_agent(
        argv=["agent", "--key", "sk-argument", "{prompt}"],
        env={"API_KEY": "sk-environment"},
        model_names=["big"],
    )
    Settings.objects.update_or_create(pk=1, defaults={"agent": agent})

    answer = program.get("/agents")

    shown = next(one for one in answer.json()["items"] if one["id"] == agent.pk)
    assert (shown["models"], shown["is_chosen"]) == (["big"], True)
    for secret in ("sk-argument", "sk-environment", "API_KEY"):
        assert secret not in text_of(answer)


def test_issues_are_written_narrowed_and_paged(program: Program, project: Project) -> None:
    at = f"/projects/{project.pk}/issues"
    assert program.get(at).json() == {"items": [], "next": None}
    for title in ("first", "second", "third"):
        made = program.post(at, {"title": title, "labels": ["bug"] if title == "second" else []})
        assert made.status_code == 201
    program.send("PUT", f"{at}/1/state", {"state": "closed"})

    def numbers(**query: Any) -> list[int]:
        return [one["number"] for one in program.get(at, **query).json()["items"]]

    assert numbers() == [3, 2]
    assert numbers(state="all") == [3, 2, 1]
    assert numbers(state="closed") == [1]
    assert numbers(label="bug") == [2]
    assert numbers(label="no such") == []
    assert numbers(text="THIRD") == [3]
    first = program.get(at, state="all", limit=2).json()
    assert (first["next"], numbers(state="all", limit=2, cursor=first["next"])) == (2, [1])
    assert program.get(f"/projects/{project.pk}/labels").json()["items"][0] == "bug"


def test_an_issue_that_somebody_else_changed_is_not_overwritten_with_its_old_mark(
    program: Program, project: Project
) -> None:
    path = f"/projects/{project.pk}/issues"
    at = f"{path}/{program.post(path, {'title': 'Old', 'body': ''}).json()['number']}"

    def patch(title: str, mark: str) -> Any:
        return program.client.generic(
            "PATCH",
            f"{V1}{at}",
            json.dumps({"title": title}),
            content_type="application/json",
            headers={"If-Match": mark},
        )

    seen = program.get(at)["ETag"]
    assert program.send("PATCH", at, {"title": "Theirs"}).status_code == 200
    denied(patch("Mine", seen), 412, "changed")
    assert program.get(at).json()["title"] == "Theirs"
    answer = patch("Mine", program.get(at)["ETag"])
    assert (answer.status_code, answer.json()["title"]) == (200, "Mine")
    assert answer["ETag"] == program.get(at)["ETag"]
    assert patch("Whatever it is", "*").status_code == 200


def test_an_issue_goes_its_whole_way(program: Program, project: Project) -> None:
    number = an_issue(project)
    at = f"/projects/{project.pk}/issues/{number}"

    assert program.send("PATCH", at, {"body": "Better."}).json()["title"] == "Add retries"
    assert program.send("PATCH", at, {"title": "Retry"}).json()["body"] == "Better."
    assert program.post(f"{at}/comments", {"body": "Seen."}).status_code == 201
    assert program.send("PUT", f"{at}/labels", {"labels": ["bug"]}).json()["labels"] == ["bug"]
    assert program.send("PUT", f"{at}/state", {"state": "closed"}).json()["state"] == "closed"
    assert program.send("PUT", f"{at}/state", {"state": "open"}).json()["state"] == "open"

    shown = program.get(at).json()
    assert (shown["comment_count"], shown["comments"]["next"]) == (1, None)
    comment = shown["comments"]["items"][0]
    assert (comment["author"], comment["body"]) == ("anna", "Seen.")
    assert told() == [
        ("anna", "issue edited: Add retries"),
        ("anna", "issue edited: Retry"),
        ("anna", "comment: Seen."),
        ("anna", "labels are now: bug"),
        ("anna", "issue closed"),
        ("anna", "issue opened again"),
    ]


def test_what_is_so_already_is_not_told_twice(program: Program, project: Project) -> None:
    at = f"/projects/{project.pk}/issues/{an_issue(project)}"
    program.send("PUT", f"{at}/state", {"state": "open"})
    program.send("PATCH", at, {})
    program.send("PATCH", at, {"title": "Add retries"})
    program.post(f"{at}/comments", {"body": "Seen."})
    program.post(f"{at}/comments", {"body": "Seen."})
    assert told() == [("anna", "comment: Seen.")]


def test_wrong_words_are_told_at_their_field(program: Program, project: Project) -> None:
    at = f"/projects/{project.pk}/issues/{an_issue(project)}"
    for path, method, content, field in (
        ("/comments", "POST", {"body": " \n "}, "body"),
        ("/labels", "PUT", {"labels": ["no such"]}, "labels"),
        ("", "PATCH", {"title": "  "}, "title"),
        ("/state", "PUT", {"state": "merged"}, "state"),
    ):
        said = denied(program.send(method, at + path, content), 422, "invalid")
        assert list(said["fields"]) == [field]
    assert told() == []


def test_what_is_not_there_is_404(program: Program, project: Project) -> None:
    at = f"/projects/{project.pk}"
    for method, path, content in (
        ("GET", "/issues/9", None),
        ("PATCH", "/issues/9", {"title": "t"}),
        ("GET", "/issues/9/comments", None),
        ("POST", "/issues/9/comments", {"body": "b"}),
        ("PUT", "/issues/9/labels", {"labels": []}),
        ("PUT", "/issues/9/state", {"state": "open"}),
        ("GET", "/pulls/9", None),
        ("POST", "/pulls/9/close", None),
    ):
        said = denied(program.send(method, at + path, content), 404, "not_found")
        assert "9" in said["text"]


def test_a_project_with_another_tracker_says_so(program: Program, world: World) -> None:
    at = f"/projects/{make.a_project().pk}"
    for method, path, content in (
        ("GET", "/issues", None),
        ("GET", "/issues/1", None),
        ("GET", "/labels", None),
        ("GET", "/pulls", None),
        ("POST", "/issues", {"title": "t"}),
        ("POST", "/issues/1/comments", {"body": "b"}),
        ("POST", "/pulls/1/close", None),
    ):
        denied(program.send(method, at + path, content), 409, "refused")


def test_comments_come_in_pages(program: Program, project: Project) -> None:
    number = an_issue(project)
    issue = Issue.objects.get()
    IssueComment.objects.bulk_create(
        IssueComment(issue=issue, author="a", body=str(n), at=START) for n in range(120)
    )
    shown = program.get(f"/projects/{project.pk}/issues/{number}").json()
    assert shown["comment_count"] == 120
    seen, cursor = shown["comments"]["items"], shown["comments"]["next"]
    while cursor is not None:
        page = program.get(
            f"/projects/{project.pk}/issues/{number}/comments", cursor=cursor, limit=40
        ).json()
        seen, cursor = seen + page["items"], page["next"]
    assert [comment["body"] for comment in seen] == [str(n) for n in range(120)]


def test_pull_requests_are_listed_shown_and_closed(program: Program, project: Project) -> None:
    first, second = a_pull(project), a_pull(project, "afk/8")
    at = f"/projects/{project.pk}/pulls"

    assert [one["number"] for one in program.get(at).json()["items"]] == [second, first]
    assert program.get(f"{at}/{first}").json()["head_commit"] == "a" * 40
    assert program.post(f"{at}/{first}/close").json()["state"] == "closed"
    assert "not open" in denied(program.post(f"{at}/{first}/close"), 409, "not_open")["text"]

    assert [one["number"] for one in program.get(at, state="ended").json()["items"]] == [first]
    page = program.get(at, state="all", limit=1).json()
    assert page["next"] == second
    assert program.get(at, state="all", cursor=second).json()["items"][0]["number"] == first
    assert told() == [("anna", f"pull request {first} closed without a merge")]
    assert PullRequest.objects.filter(state="open").count() == 1


def test_pull_requests_are_commented_on_in_pages(program: Program, project: Project) -> None:
    at = f"/projects/{project.pk}/pulls/{a_pull(project)}/comments"
    assert program.get(at).json() == {"items": [], "next": None}
    made = [program.post(at, {"body": text}) for text in ("one", "two", "two", "three")]
    assert {answer.status_code for answer in made} == {201}
    assert made[1].json() == made[2].json()
    first = program.get(at, limit=2).json()
    rest = program.get(at, limit=2, cursor=first["next"]).json()
    assert [one["body"] for one in first["items"] + rest["items"]] == ["one", "two", "three"]
    assert (rest["next"], rest["items"][0]["author"], rest["items"][0]["path"]) == (
        None,
        "anna",
        "",
    )
    assert "body" in denied(program.post(at, {"body": " "}), 422, "invalid")["fields"]
    assert told()[0] == ("anna", f"comment on pull request {PullRequest.objects.get().number}: one")
    assert len(told()) == 3


def test_a_line_of_the_diff_is_commented_on(program: Program, world: World) -> None:
    review = Review(world)
    at = f"/projects/{review.project.pk}/pulls/{review.number}/comments"
    given = {"body": "Why?", "path": "src/app.py", "line": 5, "commit": review.head}
    shown = program.post(at, given).json()
    assert (shown["path"], shown["line"], shown["side"]) == ("src/app.py", 5, "new")
    assert "f'hello {name}'" in shown["quote"]
    assert told()[-1] == ("anna", "comment on pull request 1 on src/app.py:5: Why?")
    for wrong, field in (
        ({"line": 400}, "line"),
        ({"path": "x"}, "path"),
        ({"commit": "0"}, "line"),
    ):
        said = denied(program.post(at, {**given, **wrong}), 422, "invalid")
        assert field in said["fields"]


def test_a_line_that_the_diff_does_not_show_takes_no_comment(
    program: Program, project: Project
) -> None:
    at = f"/projects/{project.pk}/pulls/{a_pull(project)}/comments"
    for more, field in (
        ({"path": "no/such", "line": 1}, "path"),
        ({"path": "--output=/x", "line": 1}, "path"),
        ({"line": 1}, "path"),
        ({"path": "a", "line": 0}, "line"),
        ({"path": "a", "line": 1, "side": "both"}, "side"),
        ({"path": "a", "line": 1, "commit": "f" * 40}, "line"),
        ({"path": "a\0b", "line": 1}, "path"),
    ):
        refused = program.post(at, {"body": "b", **more})
        assert refused.status_code in (422, 502), refused.content
        if refused.status_code == 422:
            assert set(refused.json()["fields"]) <= {field, "line"}
    assert program.get(at).json()["items"] == []


def test_runs_are_listed_narrowed_and_shown(program: Program, world: World) -> None:
    one, two = make.a_project("one"), make.a_project("two")
    live = make.a_run(one, "7", prompt="Do it.", last_words="done")
    dead = make.a_run(one, "8", slot=2, outcome=Outcome.DIED)
    other = make.a_run(two, "7", outcome=Outcome.SUCCEEDED)

    def ids(**query: Any) -> list[int]:
        return [run["id"] for run in program.get("/runs", **query).json()["items"]]

    assert ids() == [other.pk, dead.pk, live.pk]
    assert ids(outcome="active") == [live.pk]
    assert ids(outcome="died") == [dead.pk]
    assert ids(project=two.pk) == [other.pk]
    assert ids(issue="7") == [other.pk, live.pk]
    assert ids(project=999) == []
    assert program.get("/runs", limit=2).json()["next"] == dead.pk
    assert ids(limit=2, cursor=dead.pk) == [live.pk]
    shown = program.get(f"/runs/{live.pk}").json()
    assert (shown["prompt"], shown["last_words"], shown["outcome"]) == ("Do it.", "done", None)
    assert "token_hash" not in shown


@pytest.mark.row("X-15", level="contract")
def test_times_are_utc_and_ages_never_below_zero(program: Program, world: World) -> None:
    run = make.a_run(make.a_project())
    world.clock.forward(minutes=10)
    shown = program.get(f"/runs/{run.pk}").json()
    assert shown["started_at"] == "2026-11-21T12:00:00Z"
    assert (shown["used_seconds"], shown["budget_seconds"]) == (600, 2700)

    world.clock.forward(hours=-1)

    assert program.get(f"/runs/{run.pk}").json()["used_seconds"] == 0
    assert program.get("/runs").json()["items"][0]["used_seconds"] == 0


@pytest.mark.parametrize("code", [code for code in AnswerCode if code])
def test_a_start_is_answered_as_the_button_answers(
    program: Program, world: World, code: AnswerCode
) -> None:
    from runs.dispatch.start_answers import STATUS

    project = make.a_project()
    run = make.a_run(project) if code is AnswerCode.STARTED else None
    rows.answer_starts(world, code, "Why it is so.", run)

    answer = program.post(f"/projects/{project.pk}/runs", {"issue": "7"})

    if run is None:
        assert denied(answer, STATUS[code], code.value)["text"] == "Why it is so."
    else:
        assert answer.status_code == 201
        assert (answer.json()["code"], answer.json()["run"]["id"]) == ("started", run.pk)
        assert "takes issue 7" in answer.json()["text"]
    asked = StartRequest.objects.get()
    assert (asked.by, asked.wanted_key) == ("anna", "7")


def test_a_worker_that_is_away_is_202_and_the_start_is_written_down(
    program: Program, world: World
) -> None:
    project = make.a_project()
    answer = program.post(f"/projects/{project.pk}/runs", {})
    assert answer.status_code == 202
    asked = StartRequest.objects.get()
    assert (answer.json()["code"], answer.json()["request"]) == ("", asked.pk)
    assert answer.json()["run"] is None
    assert world.bell.looks == ["demo"]


def test_a_run_that_is_still_being_made_is_202_with_the_run(program: Program, world: World) -> None:
    run = make.a_run(make.a_project(), state=RunState.STARTING, started_at=None)
    rows.answer_starts(world, AnswerCode.STARTED, "", run)
    answer = program.post(f"/projects/{run.project_id}/runs", {})
    assert answer.status_code == 202
    assert (answer.json()["code"], answer.json()["run"]["id"]) == ("started", run.pk)


def test_a_run_is_stopped_once(program: Program, world: World) -> None:
    run = make.a_run(make.a_project())
    world.live(run)

    assert program.post(f"/runs/{run.pk}/stop").json()["outcome"] == "stopped"
    denied(program.post(f"/runs/{run.pk}/stop"), 409, "already_ended")

    assert not world.sessions.all
    assert ("anna", "stopped by anna") in told()


@pytest.mark.row("C-40", level="contract")
def test_all_runs_of_one_project_are_stopped(program: Program, world: World) -> None:
    project = make.a_project()
    runs = [make.a_run(project, key, slot=int(key)) for key in "123"]
    stays = make.a_run(make.a_project("other"))
    for run in [*runs, stays]:
        world.live(run)

    assert program.post(f"/projects/{project.pk}/stop-all").json() == {"stopped": 3}
    assert program.post(f"/projects/{project.pk}/stop-all").json() == {"stopped": 0}
    assert list(Run.objects.active()) == [stays]
    world.tracker.add_root("demo")
    for _ in range(2):
        tick.tick(world.lab, force=True)
    ended = Run.objects.filter(project=project).values_list("outcome", flat=True)
    assert list(ended) == ["stopped"] * 3
    assert Project.objects.get(pk=project.pk).streak == 0


def test_the_timeline_is_read_from_an_id_without_loss(program: Program, project: Project) -> None:
    for number in range(7):
        program.post(f"/projects/{project.pk}/issues", {"title": f"Issue {number}"})
    seen, cursor, is_all = [], 0, False
    while not is_all:
        page = program.get("/timeline", after=cursor, limit=3).json()
        seen, cursor, is_all = seen + page["items"], page["cursor"], page["is_all"]
    assert [one["id"] for one in seen] == list(
        Notice.objects.order_by("pk").values_list("pk", flat=True)
    )
    assert {one["by"] for one in seen} == {"anna"}
    assert seen[-1]["issue"] == "7"
    assert program.get("/timeline", after=cursor).json() == {
        "items": [],
        "cursor": cursor,
        "is_all": True,
    }
    of_project = program.get("/timeline", project=project.pk).json()["items"]
    assert {one["project"] for one in of_project} == {project.pk}
    denied(program.get("/timeline", project=999), 404, "not_found")


def test_a_stream_needs_the_web_process(program: Program, world: World) -> None:
    denied(program.get("/timeline/stream"), 503, "no_streams")


@pytest.mark.row("X-08", level="contract")
def test_settings_are_shown_and_tuned_with_the_limits_of_the_admin(
    program: Program, world: World
) -> None:
    assert program.get("/settings").json()["session_cap"] == 6
    tuned = program.send("PATCH", "/settings", {"session_cap": 2.0, "tick_seconds": None})
    assert tuned.json()["session_cap"] == 2
    assert told() == [("anna", "session cap changed from 6 to 2")]
    for wrong in (0, 501, "5", 5.5, True, 2**70, 1e300, [], {}):
        said = denied(program.send("PATCH", "/settings", {"session_cap": wrong}), 422, "invalid")
        assert "session_cap" in said["fields"]
    denied(program.send("PATCH", "/settings", {"id": 2}), 422, "invalid")
    assert Settings.objects.get().session_cap == 2
    assert len(told()) == 1


def test_agent_model_and_effort_are_chosen_from_the_closed_lists(
    program: Program, world: World
) -> None:
    agent = make.an_agent(model_names=["big"], efforts=["high"])
    chosen = {"agent": agent.pk, "model": "big", "effort": "high"}
    shown = program.send("PUT", "/settings/agent", chosen).json()
    assert {name: shown[name] for name in chosen} == chosen
    for name, wrong in (("model", "small"), ("effort", "low"), ("agent", 999)):
        answer = program.send("PUT", "/settings/agent", {**chosen, name: wrong})
        assert list(denied(answer, 422, "invalid")["fields"]) == [name]
    assert told() == [("anna", "new sessions use Test agent big high")]


@pytest.mark.parametrize("size", [1, 50])
def test_a_list_costs_the_same_for_one_row_and_for_fifty(
    program: Program, project: Project, size: int, django_assert_num_queries: Any
) -> None:
    for number in range(1, size + 1):
        an_issue(project, labels=("bug",))
        a_pull(project, f"afk/{number}")
        make.a_run(project, str(number), slot=number)
        make.a_project(f"project {number}")
        AgentProfile.objects.create(name=f"agent {number}", argv=["x", "{prompt}"])
    Settings.current()
    at = f"/projects/{project.pk}"
    program.get("/me")
    for path, queries in (
        ("/projects", 2),
        ("/agents", 4),
        ("/runs", 3),
        (f"{at}/issues", 4),
        (f"{at}/pulls", 3),
        (f"{at}/labels", 3),
        ("/timeline", 2),
        ("/me", 1),
    ):
        with django_assert_num_queries(queries):
            answer = program.get(path)
        assert answer.status_code == 200, path


def test_an_answer_that_fits_no_description_is_an_error_of_ours(
    program: Program, world: World
) -> None:
    run = make.a_run(make.a_project())
    Run.objects.update(kind="nonsense")
    denied(program.get(f"/runs/{run.pk}"), 500, "failed")
