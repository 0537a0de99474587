"""Who is let in, and that every refusal of the API has the one shape."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import timedelta
from io import BytesIO
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.handlers.asgi import ASGIRequest
from django.db import OperationalError
from django.test import Client, RequestFactory

from runs.api.api import description
from runs.api.gate import StrictJson
from runs.api.stream import admitted
from runs.core.ports import SeamError
from runs.models import Notice, Project, Run, StartRequest
from runs.people import api_tokens
from runs.web.refusals import Denied
from tests import make
from tests.api.program import V1, Program, a_token, denied
from tests.fakes import World
from trackers.builtin import store
from trackers.builtin.models import Issue

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

GROUP = "/projects/{project_id}/groups/{group_id}"
BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/projects"): {"source": "/x"},
    ("POST", "/projects/{project_id}/issues"): {"title": "t"},
    ("PATCH", "/projects/{project_id}/issues/{number}"): {"title": "t"},
    ("POST", "/projects/{project_id}/issues/{number}/comments"): {"body": "b"},
    ("POST", "/projects/{project_id}/pulls/{number}/comments"): {"body": "b"},
    ("PUT", "/projects/{project_id}/issues/{number}/labels"): {"labels": []},
    ("PUT", "/projects/{project_id}/issues/{number}/state"): {"state": "closed"},
    ("POST", "/projects/{project_id}/watch"): {},
    ("POST", "/projects/{project_id}/workflows"): {
        "name": "w",
        "phases": [{"name": "p", "group": "g"}],
    },
    ("POST", "/projects/{project_id}/groups"): {"name": "other"},
    ("POST", "/projects/{project_id}/groups/from-issues"): {"name": "other", "issues": ["1"]},
    ("POST", f"{GROUP}/tasks"): {"tasks": [{"subject": "s"}]},
    ("POST", f"{GROUP}/claim"): {"worker": "ash"},
    ("POST", f"{GROUP}/tasks/{{key}}/complete"): {},
    ("POST", f"{GROUP}/tasks/{{key}}/release"): {},
    ("POST", f"{GROUP}/monitors"): {},
    ("PUT", "/projects/{project_id}/auto"): {"is_auto": True},
    ("PATCH", "/projects/{project_id}/checks"): {"policy": "gates"},
    ("POST", "/projects/{project_id}/checks/import"): {
        **{"format": "labsite checks", "version": 1},
        "policy": "gates",
    },
    ("POST", "/projects/{project_id}/runs"): {},
    ("POST", "/runs/{run_id}/answer"): {"since": "2026-11-21T12:00:00Z", "text": "go on"},
    ("POST", "/runs/{run_id}/resume"): {"text": "Go on."},
    ("POST", "/runs/{run_id}/guidance"): {"text": "Use port 8080."},
    ("POST", "/projects/{project_id}/memories"): {"text": "The port is 8080."},
    ("PATCH", "/projects/{project_id}/loops"): {"max_turns": 3},
    ("PUT", "/projects/{project_id}/badge"): {"is_public": True},
    ("POST", "/runs/{run_id}/changes"): {"text": "Rename it."},
    ("PUT", "/projects/{project_id}/files"): {"path": ".env", "content": "A=1"},
    ("PATCH", "/settings"): {"session_cap": 3},
    ("PUT", "/settings/agent"): {"agent": 1},
    ("PATCH", "/hosts/{host_id}"): {"labels": ["gpu"]},
    ("POST", "/forges"): {"kind": "gitea", "name": "n", "web": "https://x.example", "token": "t"},
    ("PUT", "/forges/{forge_id}"): {"name": "n", "web": "https://x.example"},
    ("PUT", "/projects/{project_id}/tracker"): {"tracker": "builtin", "ready_label": "go"},
}


def operations() -> list[tuple[str, str]]:
    """Every operation that the description lists."""
    return [
        (method.upper(), path.removeprefix(V1))
        for path, methods in description()["paths"].items()
        for method in methods
    ]


def changes() -> list[tuple[str, str]]:
    return [(method, path) for method, path in operations() if method != "GET"]


@pytest.fixture
def filled(project: Project, world: World) -> Project:
    """A project with one issue, one pull request's number free, and one live run."""
    store.create_issue(
        project.tracker_root, title="t", body="", author="a", labels=[], at=world.clock.now
    )
    make.a_run(project, "1")
    return project


def ask(program: Program, method: str, path: str, project: Project) -> Any:
    run = Run.objects.order_by("pk").first()
    known = {"project_id": project.pk, "run_id": run.pk if run else 1}
    address = path.format_map(defaultdict(lambda: 1, known))
    return program.send(method, address, BODIES.get((method, path)))


def counted() -> list[int]:
    """What a change would have changed."""
    return [
        Project.objects.count(),
        Issue.objects.filter(title="t", is_open=True).count(),
        Run.objects.active().count(),
        StartRequest.objects.count(),
        Notice.objects.exclude(text__startswith="token ").count(),
    ]


def all_refuse(
    program: Program, project: Project, asked: list[tuple[str, str]], status: int, code: str
) -> list[Any]:
    """The refusals of these operations, none of which has changed anything.

    All are asked in one test: starting a test takes longer than asking.
    """
    before, answers = counted(), []
    assert len(asked) > 50
    for method, path in asked:
        answers.append(ask(program, method, path, project))
        try:
            denied(answers[-1], status, code)
            assert counted() == before
        except AssertionError as error:
            error.add_note(f"{method} {path}")
            raise
    return answers


@pytest.mark.long
@pytest.mark.row("X-10", level="contract")
def test_an_anonymous_program_is_told_how_to_ask(world: World, filled: Project) -> None:
    answers = all_refuse(Program(), filled, operations(), 401, "no_token")
    assert {answer["WWW-Authenticate"] for answer in answers} == {"Bearer"}


@pytest.mark.row("X-10", level="contract")
def test_a_login_of_a_browser_opens_nothing(world: World, filled: Project, operator: User) -> None:
    program = Program()
    program.client.force_login(operator)
    all_refuse(program, filled, operations(), 401, "no_token")


@pytest.mark.row("X-10", level="contract")
def test_a_token_that_may_look_changes_nothing_and_is_told_why(
    looking: Program, filled: Project
) -> None:
    answers = all_refuse(looking, filled, changes(), 403, "look_only")
    assert all("may look" in answer.json()["text"] for answer in answers)


@pytest.mark.long
@pytest.mark.row("X-10", level="contract")
def test_a_token_never_allows_more_than_its_owner(
    world: World, filled: Project, viewer: User
) -> None:
    answers = all_refuse(Program.of(viewer, "act"), filled, changes(), 403, "not_allowed")
    assert all("Ask an admin" in answer.json()["text"] for answer in answers)


@pytest.mark.row("X-10", level="contract")
def test_an_operator_who_is_no_admin_does_not_tune(world: World, viewer: User) -> None:
    viewer.user_permissions.add(Permission.objects.get(codename="act"))
    program = Program.of(viewer)
    denied(program.send("PATCH", "/settings", {"session_cap": 3}), 403, "not_allowed")
    assert program.get("/me").json()["may_tune"] is False
    User.objects.update(is_superuser=True)
    assert program.send("PATCH", "/settings", {"session_cap": 3}).status_code == 200


@pytest.mark.row("X-10", level="contract")
@pytest.mark.parametrize("header", ["Bearer wrong", "Bearer lab_", "Bearer ümläut", "Bearer a b c"])
def test_a_token_that_is_none_opens_nothing(world: World, db: None, header: str) -> None:
    client = Client(headers={"Authorization": header})
    denied(client.get(f"{V1}/projects"), 401, "unknown_token")
    denied(client.get(f"{V1}/openapi.json"), 401, "unknown_token")


@pytest.mark.parametrize("header", ["", "Bearer", "Basic abc", "lab_x", "bearer:x"])
def test_a_header_without_a_token_is_told_how_to_ask(world: World, db: None, header: str) -> None:
    client = Client(headers={"Authorization": header})
    assert client.get(f"{V1}/projects").status_code == 401


def test_revoked_expired_and_deactivated_tokens_end_at_once(world: World, operator: User) -> None:
    token, text = a_token(operator)
    program = Program(text)
    assert program.get("/me").status_code == 200
    api_tokens.revoke(world.lab, token, by="anna")
    denied(program.get("/me"), 401, "unknown_token")

    _, text = api_tokens.make(
        world.lab, operator, "short", token.Scope.LOOK, world.clock.now + timedelta(minutes=5)
    )
    assert Program(text).get("/me").status_code == 200
    world.clock.forward(minutes=5)
    denied(Program(text).get("/me"), 401, "unknown_token")

    program = Program.of(operator)
    User.objects.update(is_active=False)
    denied(program.get("/me"), 401, "unknown_token")


def test_a_token_tells_whose_it_is(program: Program, looking: Program) -> None:
    assert program.get("/me").json() == {
        "user": "anna",
        "token": "script",
        "scope": "act",
        "may_act": True,
        "may_tune": True,
        "expires_at": None,
    }
    assert looking.get("/me").json()["may_act"] is False


def test_wrong_methods_and_addresses(program: Program, filled: Project) -> None:
    answer = program.send("DELETE", "/runs")
    denied(answer, 405, "wrong_method")
    assert answer["Allow"] == "GET"
    denied(program.post("/me"), 405, "wrong_method")
    for address in (
        "/",
        "/nothing",
        "/%0A",
        "/projects/%0A/groups/1/tasks",
        "/runs/x",
        "/runs/0",
        "/runs/-1",
        "/projects/\0",
        f"/runs/{2**63}",
        f"/runs/{'9' * 400}",
        f"/projects/{filled.pk}/issues/{2**31}",
        f"/projects/{2**70}/issues/1",
        "/runs/1.0",
        "/projects/1_0",
        "/projects/987654321",
        "/runs/987654321",
    ):
        denied(Program.get(program, address), 404, "not_found")


@pytest.mark.parametrize(
    ("path", "query", "field"),
    [
        ("/runs", {"limit": "0"}, "limit"),
        ("/runs", {"limit": "201"}, "limit"),
        ("/runs", {"limit": "x"}, "limit"),
        ("/runs", {"limit": ""}, "limit"),
        ("/runs", {"cursor": str(2**63)}, "cursor"),
        ("/runs", {"cursor": "-1"}, "cursor"),
        ("/runs", {"outcome": "nonsense"}, "outcome"),
        ("/runs", {"stat": "open"}, "stat"),
        ("/runs", {"limit": ["1", "2"]}, "limit"),
        ("/runs", {"issue": "a\0b"}, "issue"),
        ("/runs", {"issue": "x" * 61}, "issue"),
        ("/runs", {"project": "0"}, "project"),
        ("/timeline", {"after": "9" * 30}, "after"),
        ("/timeline", {"limit": "1000000"}, "limit"),
        ("/me", {"verbose": "1"}, "verbose"),
        ("/timeline/stream", {"after": "-1"}, "after"),
    ],
)
def test_a_query_that_makes_no_sense_is_refused_by_name(
    program: Program, path: str, query: dict[str, Any], field: str
) -> None:
    said = denied(program.get(path, **query), 422, "invalid")
    assert field in said["fields"]
    assert said["text"].startswith(f"{field}: ")


LONG = "x" * 200_001


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ({}, "title"),
        ({"title": ""}, "title"),
        ({"title": "   "}, "title"),
        ({"title": 7}, "title"),
        ({"title": None}, "title"),
        ({"title": ["t"]}, "title"),
        ({"title": "a\0b"}, "title"),
        ({"title": "lone \ud800"}, "title"),
        ({"title": "x" * 10_001}, "title"),
        ({"title": "t", "body": LONG}, "body"),
        ({"title": "t", "labels": "bug"}, "labels"),
        ({"title": "t", "labels": ["no such"]}, "labels"),
        ({"title": "t", "labels": ["bug\0"]}, "labels.0"),
        ({"title": "t", "labels": ["bug"] * 101}, "labels"),
        ({"title": "t", "author": "somebody else"}, "author"),
        ({"title": "t", "\ud800": 1}, "body"),
        ({"title": "t", "x" * 5000: 1}, "x" * 60),
        ([], "body"),
        ("title", "body"),
        (None, "body"),
        (7, "body"),
    ],
    ids=str,
)
def test_a_body_that_does_not_fit_is_refused_by_field(
    program: Program, project: Project, content: Any, field: str
) -> None:
    said = denied(program.post(f"/projects/{project.pk}/issues", content), 422, "invalid")
    assert field in said["fields"]
    assert not Issue.objects.exists()
    assert not Notice.objects.exclude(text__startswith="token ").exists()


@pytest.mark.parametrize(
    "data",
    [b"{", b"\xff\xfe\x00", b"[" * 200_000, b'{"title": ' + b"9" * 5000 + b"}", b"title=x", b"\0"],
)
def test_what_is_not_json_is_refused(program: Program, project: Project, data: bytes) -> None:
    address = f"{V1}/projects/{project.pk}/issues"
    answer = program.client.post(address, data, content_type="application/json")
    denied(answer, 400, "bad_request")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "x"])
def test_another_content_type_is_refused(program: Program, project: Project, kind: str) -> None:
    address = f"{V1}/projects/{project.pk}/issues"
    answer = program.client.post(address, b'{"title": "t"}', content_type=kind)
    denied(answer, 415, "wrong_type")
    assert not Issue.objects.exists()


def test_too_much_text_is_refused(program: Program, project: Project) -> None:
    address = f"/projects/{project.pk}/issues"
    denied(program.post(address, {"title": "t", "body": "x" * 3_000_000}), 413, "too_big")


def test_too_much_text_in_pieces_of_unknown_length_is_refused(rf: RequestFactory) -> None:
    request = rf.post("/", b"{}", content_type="application/json")
    request._body = b" " * 3_000_000
    with pytest.raises(Denied) as refused:
        StrictJson().parse_body(request)
    assert refused.value.status == 413


def test_a_stream_takes_no_token_in_the_clear_behind_tls(settings: Any, world: World) -> None:
    headers = [(b"host", b"testserver"), (b"authorization", b"Bearer x")]
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": headers}
    settings.SECURE_SSL_REDIRECT = True
    with pytest.raises(Denied) as refused:
        admitted(ASGIRequest(scope, BytesIO()))
    assert (refused.value.status, refused.value.code) == (403, "needs_https")


def test_too_many_parts_of_a_query_are_refused(program: Program) -> None:
    denied(program.get("/runs", **{f"a{n}": "1" for n in range(1100)}), 400, "bad_request")


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (SeamError("git ls-remote failed: no route."), 502, "no_answer"),
        (OperationalError("database is locked"), 503, "busy"),
        (KeyError("a bug"), 500, "failed"),
    ],
    ids=["seam", "busy", "bug"],
)
def test_every_error_is_a_sentence_with_its_status(
    program: Program, project: Project, world: World, error: Exception, status: int, code: str
) -> None:
    def broken(kind: str) -> Any:
        raise error

    object.__setattr__(world.lab, "tracker_for", broken)
    store.create_issue(
        project.tracker_root, title="t", body="", author="a", labels=[], at=world.clock.now
    )
    said = denied(
        program.post(f"/projects/{project.pk}/issues/1/comments", {"body": "b"}), status, code
    )
    assert "a bug" not in said["text"]
    assert "locked" not in said["text"]


def test_the_description_is_for_those_who_may_look(
    client: Client, program: Program, viewer: User, world: World
) -> None:
    denied(client.get(f"{V1}/openapi.json"), 401, "no_token")
    assert program.get("/openapi.json").json()["info"]["title"] == "labsite"
    client.force_login(viewer)
    made = client.get(f"{V1}/openapi.json")
    assert json.loads(made.content)["openapi"].startswith("3.1")
    assert made["Cache-Control"] == "no-store"
