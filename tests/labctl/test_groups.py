"""`labctl group` and `labctl task` as real processes: a group made, worked on by two, and its gate."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from runs.core import tokens
from runs.groups import acts as groups
from runs.issues import acts as issues
from runs.models import Monitor, Run, Task, TaskGroup
from tests import make
from tests.desk import Desk
from tests.fakes import World
from tests.labctl.session import Said, Session
from tests.real import RealWorld

TOKEN = tokens.new_token()


def ok(said: Said) -> str:
    assert (said.code, said.err) == (0, "")
    return said.out


@pytest.mark.django_db(transaction=True)
@pytest.mark.row("RUNE-02", "RUNE-41", "RUNE-87", "C-21", level="real")
def test_a_group_is_made_shared_out_and_finished(
    real: RealWorld, live_server: Any, tmp_path: Any
) -> None:
    desk = Desk(real)
    Run.objects.update(worktree=str(desk.tree))
    issues.create(real.lab, desk.project, title="Seven", labels=[], by="anna")
    session = Session(tmp_path / "session", token=desk.token, cwd=desk.tree)
    session.address.write_text(live_server.url)
    run = session.run

    made = ok(
        run(
            *("group", "create", "review-7", "--preset", "review", "--tasks-file", "-"),
            *("--worker", "ash=ash.md", "--worker", "rowan", "--output-dir", "out"),
            text="Read the parser\n\nRead the \x1b[31mlexer\n",
        )
    )
    assert made == (
        "review-7\t0/2 completed\npreset: review\n"
        "#1\tpending\tRead the parser\n#2\tpending\tRead the [31mlexer\n"
    )
    assert ok(run("group", "list")) == "review-7\t0/2 completed\treview\n"
    assert ok(run("task", "add", "review-7", "Read the tests", "--key", "tests")).startswith(
        "#tests\tpending"
    )
    first = json.loads(ok(run("task", "claim", "review-7", "--as", "ash", "--json")))
    assert (first["key"], first["owner"], first["run"]) == ("1", "ash", desk.run.pk)
    taken = run("task", "claim", "review-7", "1", "--as", "rowan")
    assert (taken.code, taken.err) == (
        1,
        "labctl: Task #1 was taken by ash. Nothing was changed.\n",
    )

    # The gate: no file, too little, no seal, accepted.
    out = desk.tree / "out" / "ash.md"
    out.parent.mkdir()
    finding = "The parser forgets the last line of a file that has no newline at its end."
    for text, word in ((None, "missing"), ("nothing", "7 bytes"), (finding, "not sealed")):
        if text is not None:
            out.write_text(text)
        said = run("task", "done", "review-7", "1", "--as", "ash")
        assert said.code == 1 and word in said.err, said
    out.write_text(f"{finding}\nSEAL: ash\n")
    assert ok(run("task", "done", "review-7", "1", "--as", "ash")) == "Task #1 is completed.\n"

    ok(run("task", "claim", "review-7", "2", "--as", "ash"))
    said = ok(run("task", "release", "review-7", "2", "--as", "ash", "-m", "too hard"))
    assert said == "Task #2 is free again.\n"
    ok(run("task", "claim", "review-7", "2", "--as", "rowan"))
    lost = run("task", "done", "review-7", "2", "--as", "ash")
    assert lost.code == 1 and "rowan has it now" in lost.err
    ok(run("task", "done", "review-7", "2", "--as", "rowan"))
    assert ok(run("task", "list", "review-7")).splitlines()[1].startswith("#2\tcompleted (rowan)")
    watched = ok(run("group", "watch", "review-7", "--expected", "2"))
    assert watched == "monitor: running, 2 tasks expected\n"
    assert ok(run("group", "watch", "review-7")) == watched, "one that this run started is told"
    ended = {"state": "timed out", "ended_at": real.lab.now(), "timed_out": True}
    Monitor.objects.update(
        look_at=None, pass_at=None, completed=["1"], incomplete=["2", "tests"], **ended
    )
    assert "2/3 completed" in (shown := ok(run("group", "show", "review-7")))
    assert "monitor: timed out, 2 tasks expected\ncompleted: 1\n" in shown
    assert "incomplete: 2, tests\ntimed out: yes\n" in shown
    assert ok(run("group", "close", "review-7")) == "Closed review-7.\n"
    assert run("task", "claim", "review-7").code == 1

    of_issues = ok(run("group", "create", "sevens", "--issue", "1"))
    assert "#1\tpending\tSeven" in of_issues
    follows = run("task", "claim", "sevens", "1")
    assert follows.code == 1 and "follows its run" in follows.err
    assert run("group", "create", "a b").code == 1
    mixed = run("group", "create", "mixed", "--issue", "1", "--task", "x")
    assert (mixed.code, TaskGroup.objects.count()) == (2, 2)


@pytest.fixture
def run(world: World) -> Run:
    world.tracker.add_root("demo")
    project = make.a_project()
    return make.a_run(project, agent="Claude", token_hash=tokens.hash_token(TOKEN))


@pytest.fixture
def agent() -> Client:
    return Client(headers={"Authorization": f"Bearer {TOKEN}"}, enforce_csrf_checks=True)


def sent(agent: Client, address: str, **content: Any) -> Any:
    return agent.post(f"/agent/groups{address}", json.dumps(content), "application/json")


@pytest.mark.postgres
@pytest.mark.django_db
def test_a_request_that_is_sent_again_changes_nothing_more(agent: Client, run: Run) -> None:
    new = {"name": "g", "tasks": [{"subject": "one"}]}
    assert sent(agent, "", **new).status_code == sent(agent, "", **new).status_code == 201
    for _ in range(2):
        more = sent(agent, "/g/tasks", tasks=[{"subject": "two"}, {"subject": "three"}])
        assert [one["key"] for one in more.json()["tasks"]] == ["2", "3"]
        claimed = sent(agent, "/g/claim").json()["task"]
        assert (claimed["key"], claimed["owner"], claimed["claim"]) == ("1", f"run-{run.pk}", 1)
    for _ in range(2):
        assert sent(agent, "/g/tasks/1/release").json()["task"]["status"] == "pending"
    sent(agent, "/g/claim")
    for _ in range(2):
        assert sent(agent, "/g/tasks/1/done").json()["task"]["status"] == "completed"
    assert Task.objects.count() == 3


@pytest.mark.django_db
@pytest.mark.row("RUNE-74", "RUNE-03", level="contract")
def test_what_does_not_fit_is_refused_with_a_sentence(agent: Client, run: Run) -> None:
    for name in ("../x", "a b", "x" * 129):
        said = sent(agent, "", name=name)
        assert (said.status_code, said.json()["code"]) == (422, "name")
    said = sent(agent, "", name="g", tasks="no list")
    assert (said.status_code, said.json()["text"][:6]) == (422, "tasks:")
    assert sent(agent, "", name="g", more="x").status_code == 422
    assert sent(agent, "/none/claim").status_code == 404
    assert agent.get("/agent/groups/none").status_code == 404
    assert not TaskGroup.objects.exists()


@pytest.mark.django_db
def test_an_agent_reaches_its_own_project_only(agent: Client, run: Run, world: World) -> None:
    other = make.a_project("other")
    theirs = groups.make(world.lab, other, "theirs", by="anna")
    assert agent.get("/agent/groups").json() == {"groups": []}
    assert agent.get(f"/agent/groups/{theirs.name}").status_code == 404
    ours = groups.make(world.lab, run.project, "ours", by="anna")
    closing = sent(agent, f"/{ours.name}/close")
    assert (closing.status_code, closing.json()["code"]) == (409, "not_yours")
