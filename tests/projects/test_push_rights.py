"""The connection test of git: real git asks a server whether it may push, and pushes nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from runs.forges import acts as forges
from runs.forges import rules as forging
from runs.models import Project
from tests.real import RealWorld, git

GITEA = (
    "token does not have at least one of required scope(s), required=[write:repository], "
    "token scope=read:repository,write:issue"
)
GITHUB = "Write access to repository not granted."


@pytest.mark.parametrize(
    ("said", "may_not"),
    [
        (f"remote: {GITHUB} fatal: The requested URL returned error: 403", True),
        ("fatal: Authentication failed for 'https://forge.example/x.git/'", True),
        ("git@forge.example: Permission denied (publickey).", True),
        ("ERROR: Repository not found.", True),
        ("fatal: unable to access: Could not resolve host: forge.example", False),
        ("git push took longer than 20 s", False),
        ("fatal: unable to access: The requested URL returned error: 502", False),
    ],
)
def test_what_git_says_is_a_missing_right_or_passing_trouble(said: str, may_not: bool) -> None:
    assert forging.may_not_push(said) is may_not


class Server:
    """What forges answer to git: 401 without a credential, and words of theirs with one."""

    def __init__(self) -> None:
        self.status, self.words = 403, ""
        self.asked: list[str] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked.append(self.path)
                is_known = "Authorization" in self.headers
                self.send_response(server.status if is_known else 401)
                if not is_known:
                    self.send_header("WWW-Authenticate", 'Basic realm="forge"')
                body = server.words.encode() if is_known else b"who?"
                self.send_header("Content-Type", "text/plain; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/acme/shop.git"


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.http.serve_forever, daemon=True)
    thread.start()
    yield made
    made.http.shutdown()
    made.http.server_close()
    thread.join()


def git_of(real: RealWorld, project: Project) -> tuple[bool | None, str]:
    found = {one.name: one for one in forges.examine(real.lab, project)}
    return found["git"].ok, found["git"].text


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("words", [GITEA, GITHUB], ids=["Gitea", "GitHub"])
def test_a_credential_that_may_read_and_not_push_is_found_before_any_run(
    real: RealWorld, server: Server, words: str
) -> None:
    project = real.project()
    project.url, project.token = server.url, "s3cret"
    server.words = words
    project.save()
    ok, text = git_of(real, project)
    assert ok is False
    assert words.partition(",")[0] in text
    assert "s3cret" not in text
    assert {one.partition("?")[2] for one in server.asked} == {"service=git-receive-pack"}


@pytest.mark.django_db(transaction=True)
def test_a_server_in_trouble_proves_nothing(real: RealWorld, server: Server) -> None:
    project = real.project()
    project.url, project.token = server.url, "s3cret"
    project.save()
    server.status = 502
    assert git_of(real, project)[0] is None


@pytest.mark.django_db(transaction=True)
def test_what_may_be_pushed_to_is_told_and_left_as_it_is(real: RealWorld) -> None:
    project = real.project()
    before = git(real.folder / "demo-origin.git", "for-each-ref")
    assert git_of(real, project) == (True, f"git may push to {project.url}.")
    assert git(real.folder / "demo-origin.git", "for-each-ref") == before
