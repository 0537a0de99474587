"""The agent's command, as real processes against the real server, real git and the built-in tracker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runs.core.states import Outcome
from runs.issues import acts as issues
from runs.lifecycle import outcomes
from runs.models import Notice
from tests.desk import Desk
from tests.labctl.session import Said, Session
from tests.real import RealWorld
from trackers.builtin.models import IssueComment, PullRequest

UMLAUTS = 'Größe & "Quotes" $(reboot) `id` 漢字'


@pytest.fixture
def desk(real: RealWorld) -> Desk:
    made = Desk(real)
    for number in range(1, 8):
        issues.create(
            real.lab,
            made.project,
            title=f"Issue {number} {UMLAUTS}" if number == 7 else f"Issue {number}",
            body="Line one\nLine two \x1b[31mred\x07",
            labels=["bug", "ready-for-agent"] if number == 7 else [],
            by="anna",
        )
    return made


@pytest.fixture
def session(desk: Desk, live_server: Any, tmp_path: Path) -> Session:
    made = Session(tmp_path / "session", token=desk.token, cwd=desk.tree)
    made.address.write_text(live_server.url)
    return made


def ok(said: Said) -> str:
    assert (said.code, said.err) == (0, "")
    return said.out


@pytest.mark.row("LAB-62", level="real")
def test_an_agent_reads_its_own_issue_without_naming_it(session: Session, desk: Desk) -> None:
    issues.comment(desk.real.lab, desk.project, "7", body="Mind the tests.", by="anna")

    assert ok(session.run("issue", "view")) == (
        f"#7 Issue 7 {UMLAUTS}\n"
        "state: open\n"
        "labels: bug, ready-for-agent\n"
        "author: anna\n"
        "\n"
        "Line one\nLine two [31mred\n"
        "\n"
        "--- comment by anna ---\n"
        "Mind the tests.\n"
    )


def test_another_issue_is_read_by_its_number(session: Session) -> None:
    assert ok(session.run("issue", "view", "#3")).startswith("#3 Issue 3\n")
    assert json.loads(ok(session.run("issue", "view", "3", "--json")))["key"] == "3"


def test_open_issues_are_listed_lowest_first(session: Session, desk: Desk) -> None:
    issues.set_open(desk.real.lab, desk.project, 2, is_open=False, by="anna")

    lines = ok(session.run("issue", "list")).splitlines()

    assert [line.split("\t")[0] for line in lines] == ["#1", "#3", "#4", "#5", "#6", "#7"]
    assert lines[-1] == f"#7\tIssue 7 {UMLAUTS}\t[bug, ready-for-agent]"
    assert [row["key"] for row in json.loads(ok(session.run("issue", "list", "--json")))] == [
        "1",
        "3",
        "4",
        "5",
        "6",
        "7",
    ]


def test_a_comment_comes_from_an_argument_a_file_or_a_pipe(
    session: Session, desk: Desk, tmp_path: Path
) -> None:
    (tmp_path / "note.md").write_text(f"from a file\n{UMLAUTS}\n")

    assert ok(session.run("issue", "comment", "-m", UMLAUTS)) == "Commented on #7.\n"
    ok(session.run("issue", "comment", "3", "-F", str(tmp_path / "note.md")))
    ok(session.run("issue", "comment", "-F", "-", text="from a pipe\n"))
    ok(session.run("issue", "comment", "--body", "as pr create takes it"))
    ok(session.run("issue", "comment", text="piped without a word"))

    author = f"Test agent, run {desk.run.pk}"
    assert list(IssueComment.objects.values_list("issue__number", "author", "body")) == [
        (7, author, UMLAUTS),
        (3, author, f"from a file\n{UMLAUTS}"),
        (7, author, "from a pipe"),
        (7, author, "as pr create takes it"),
        (7, author, "piped without a word"),
    ]
    assert Notice.objects.filter(run=desk.run, by=author).count() == 4


@pytest.mark.row("LAB-30", "LAB-38", level="real")
def test_pushed_work_becomes_a_pull_request_titled_like_its_commit(
    session: Session, desk: Desk
) -> None:
    head = desk.commit()
    desk.push()

    said = ok(session.run("pr", "create"))

    stored = PullRequest.objects.get()
    assert (stored.title, stored.body, stored.head_commit) == (
        "feat: greet again",
        "Closes #7",
        head,
    )
    assert said.startswith(
        "Pull request #8 feat: greet again\nstate: open\nhead: afk/7\nbase: main\nurl: http"
    )
    assert ok(session.run("pr", "view")) == said
    assert ok(session.run("pr", "create", "--title", "once more")) == said
    assert "Commented on pull request #8." in ok(session.run("pr", "comment", "-m", UMLAUTS))
    assert f"--- comment by Test agent, run {desk.run.pk} ---\n{UMLAUTS}" in ok(
        session.run("pr", "view")
    )
    assert desk.real.bell.looks == ["demo", "demo"]


def test_title_and_text_of_a_pull_request_are_taken_as_given(
    session: Session, desk: Desk, tmp_path: Path
) -> None:
    desk.commit()
    desk.push()
    (tmp_path / "body.md").write_text("It greets.\n\nFixes #7\n")

    ok(session.run("pr", "create", "--title", UMLAUTS, "--body-file", str(tmp_path / "body.md")))

    stored = PullRequest.objects.get()
    assert (stored.title, stored.body) == (UMLAUTS, "It greets.\n\nFixes #7")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["pr", "create", "-t", "x"], "Push first: git push origin afk/7"),
        (["pr", "view"], "no pull request for afk/7 yet"),
        (["issue", "view", "99"], "There is no issue 99."),
        (["issue", "view", "../whoami"], "There is no"),
        (["issue", "comment", "-m", " "], "Write a comment first."),
        (["pr", "create", "-t", "x", "--base", "nope"], "no branch nope"),
    ],
)
def test_a_refusal_is_one_sentence_and_exit_code_1(
    session: Session, desk: Desk, arguments: list[str], says: str
) -> None:
    desk.commit()

    said = session.run(*arguments)

    assert (said.code, said.out) == (1, "")
    assert says in said.err
    assert said.err.startswith("labctl: ")
    assert said.err.count("\n") == 1
    assert not PullRequest.objects.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["issue"],
        ["fly"],
        ["issue", "view", "1", "2"],
        ["issue", "comment", "-m", "a", "-F", "b"],
        ["issue", "comment", "-F", "/nowhere/at/all"],
        ["pr", "create", "--titel", "x"],
        ["wake", "--socket"],
        ["wake", "a", "b"],
    ],
    ids=" ".join,
)
def test_wrong_arguments_are_exit_code_2(session: Session, arguments: list[str]) -> None:
    said = session.run(*arguments)
    assert said.code == 2
    assert said.err
    assert "Traceback" not in said.err


@pytest.mark.row("X-05", level="real")
def test_the_token_dies_with_the_run(session: Session, desk: Desk) -> None:
    outcomes.record(desk.real.lab, desk.run, Outcome.STOPPED, "stopped by anna", by="anna")

    said = session.run("issue", "comment", "-m", "am I still here?")

    assert said.code == 1
    assert "its run has ended, and the token ended with it" in said.err
    assert not IssueComment.objects.exists()


@pytest.mark.real
def test_outside_a_session_it_says_so(tmp_path: Path) -> None:
    session = Session(tmp_path / "s")
    (Path(session.env["LAB_RUN_FOLDER"]) / "token").unlink()
    assert "token of this run cannot be read" in session.run("issue", "list").err
    session.env.pop("LAB_RUN_FOLDER")
    said = session.run("issue", "list")
    assert (said.code, said.out) == (1, "")
    assert "inside a session that labsite started" in said.err


def test_without_a_commit_a_title_is_asked_for(session: Session, tmp_path: Path) -> None:
    session.cwd = tmp_path
    session.env["GIT_CEILING_DIRECTORIES"] = str(tmp_path.parent)
    said = session.run("pr", "create")
    assert (said.code, said.out) == (2, "")
    assert "use --title" in said.err
