"""Files that a project brings along: stored, never shown, masked, and in each new worktree."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from runs import tick
from runs.core import masking
from runs.core.history_ports import Commit
from runs.core.states import Outcome, RunState
from runs.dispatch import start_requests
from runs.models import (
    ManualSession,
    Notice,
    Parked,
    Project,
    ProjectFile,
    RetiredFile,
    Run,
    StartRequest,
)
from runs.secrets.known import Known
from runs.setup import file_acts
from runs.setup.file_acts import FileRefusedError
from tests import make
from tests.api.program import Program, denied
from tests.fake_history import AT, Made
from tests.fakes import World
from tests.web.people import text_of
from tests.world.stories import look, ready, work

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "s3cret-of-the-operator"
ENV = f"API_KEY={SECRET}\nPORT=8000\n"


@pytest.fixture
def project(world: World) -> Project:
    made = make.a_project(agent=make.an_agent())
    world.tracker.add_root("demo")
    ready(world, "7", made.tracker_root)
    return made


def _press(world: World, project: Project) -> StartRequest:
    asked = start_requests.request(world.lab, project, "anna", "7")
    tick.tick(world.lab, project=project.slug)
    work(world)
    return StartRequest.objects.select_related("run").get(pk=asked.pk)


def _at(project: Project, rest: str = "") -> str:
    return f"/projects/{project.pk}/settings/setup/{rest}"


def _send(client: Client, project: Project, path: str, content: str) -> Any:
    return client.post(_at(project, "files"), {"file-path": path, "file-content": content})


def _main_has(world: World, files: dict[str, str]) -> None:
    commit = world.repos.upstream(Path(), "main")
    world.repos.made[commit] = Made(Commit(commit, (), "", AT, ""), files)


def test_they_are_in_the_new_worktree_before_the_set_up_commands(
    world: World, project: Project
) -> None:
    file_acts.store(world.lab, project, ".env", ENV, by="anna")
    Project.objects.update(setup="npm ci")
    placed: list[dict[str, str]] = []
    world.checks.meanwhile = lambda check: placed.append(world.repos.placed[check.cwd])
    run = _press(world, project).run
    assert run is not None
    assert placed == [{".env": ENV}]
    assert run.setup["has_passed"] is True
    assert Notice.objects.filter(run=run, text="files of the set-up: .env").count() == 1


def test_they_need_no_command(world: World, project: Project, anna: Client) -> None:
    file_acts.store(world.lab, project, ".env", ENV, by="anna")
    run = _press(world, project).run
    assert run is not None
    assert world.repos.placed[Path(run.worktree)] == {".env": ENV}
    assert (run.state, run.setup) == (RunState.WORKING, {"has_passed": True, "results": []})
    assert "setup-title" not in text_of(anna.get(f"/runs/{run.pk}/"))


def test_one_that_git_tracks_starts_nothing_and_gives_the_issue_back(
    world: World, project: Project
) -> None:
    file_acts.store(world.lab, project, ".env", ENV, by="anna")
    world.repos.tracked = {".env"}
    asked = _press(world, project)
    run = Run.objects.get()
    assert asked.text == (
        "the set-up of the project failed: .env is tracked by git; not overwritten"
    )
    assert (run.outcome, run.worktree) == (Outcome.FAILED, "")
    assert not world.repos.claims(project.repo(world.lab.paths))
    look(world)
    assert Run.objects.get().settled_at is not None


def test_one_that_cannot_be_decrypted_any_more_says_so(
    world: World, project: Project, settings: Any
) -> None:
    file_acts.store(world.lab, project, ".env", ENV, by="anna")
    settings.SECRET_KEY = "another" * 8
    asked = _press(world, project)
    assert ".env cannot be read any more, because labsite's secret key was replaced" in asked.text


def test_a_content_is_stored_encrypted_and_shown_nowhere(
    world: World, project: Project, anna: Client, operator: User
) -> None:
    assert _send(anna, project, ".env", ENV.replace("\n", "\r\n")).status_code == 303
    row = ProjectFile.objects.get()
    assert (row.content, row.size, row.changed_by) == (ENV, len(ENV), "anna")
    with connection.cursor() as cursor:
        cursor.execute("SELECT content FROM runs_projectfile")
        assert SECRET not in cursor.fetchone()[0]
    text = text_of(anna.get(_at(project)))
    assert ">.env</code>" in text
    assert "changed by anna" in text
    assert SECRET not in text
    program = Program.of(operator)
    answer = program.get(f"/projects/{project.pk}/files")
    shown = answer.json()["items"]
    assert [(one["path"], one["size"], one["changed_by"]) for one in shown] == [
        (".env", len(ENV), "anna")
    ]
    assert SECRET not in answer.content.decode()
    assert SECRET not in repr(row.content)
    told = Notice.objects.get(text__startswith="file ")
    assert (told.by, told.project_id) == ("anna", project.pk)
    assert told.text == f"file .env was added to the set-up ({len(ENV)} bytes)"


def test_its_values_are_masked_as_long_as_it_is_there(world: World, project: Project) -> None:
    known = Known({})
    assert known(SECRET) == SECRET
    made = file_acts.store(world.lab, project, ".env", ENV, by="anna")
    assert known(f"<{SECRET}> on 8000") == "<[hidden]> on 8000"
    world.clock.forward(seconds=1)
    file_acts.store(world.lab, project, ".env", "API_KEY=another-s3cret\n", by="anna")
    assert known("<another-s3cret>") == "<[hidden]>"
    file_acts.remove(world.lab, project, made.pk, by="anna")
    assert known.mask(fresh=True)("<another-s3cret>") == "<another-s3cret>"


def test_what_was_replaced_is_masked_as_long_as_a_worktree_may_hold_it(
    world: World, project: Project, anna: Client
) -> None:
    file_acts.store(world.lab, project, ".env", ENV, by="anna")
    run = make.a_run(project, "7")
    world.clock.forward(seconds=1)
    file_acts.store(world.lab, project, ".env", ENV, by="anna")
    assert not RetiredFile.objects.exists()
    made = file_acts.store(world.lab, project, ".env", "API_KEY=another-s3cret\n", by="anna")
    file_acts.remove(world.lab, project, made.pk, by="anna")
    text = f"<{SECRET}> <another-s3cret>"
    assert Known({})(text) == "<[hidden]> <[hidden]>"
    assert "Remove .env" not in text_of(anna.get(_at(project)))

    def is_masked() -> bool:
        file_acts.forget_retired(world.lab, project)
        return Known({})(text) != text

    world.clock.forward(hours=1)
    assert is_masked()
    ended = {"state": RunState.ENDED, "outcome": Outcome.STOPPED}
    ended |= {"ended_at": world.clock.now, "settled_at": world.clock.now}
    parked = {"branch": run.branch, "tip": "a" * 40, "committed_at": world.clock.now}
    Parked.objects.create(project=project, worktree="demo-7", **parked)
    Run.objects.update(**ended)
    assert is_masked()
    make.a_run(project, "7", continues=run, requested_at=world.clock.now)
    Parked.objects.all().delete()
    assert is_masked()
    Run.objects.update(**ended)
    make.a_run(project, "8", requested_at=world.clock.now)
    assert not is_masked()
    assert not RetiredFile.objects.exists()


def test_a_session_of_a_person_may_hold_what_was_removed(world: World, project: Project) -> None:
    made = file_acts.store(world.lab, project, ".env", ENV, by="anna")
    known = {"session": "demo~hand", "branch": "by/anna", "asked_at": world.clock.now}
    ManualSession.objects.create(project=project, host="local", label="hand", by="anna", **known)
    file_acts.remove(world.lab, project, made.pk, by="anna")
    file_acts.forget_retired(world.lab, project)
    assert Known({})(SECRET) == "[hidden]"


def test_many_values_of_files_keep_those_of_others_hidden(
    world: World, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(masking, "MOST", 150)
    project.token = "sh0rt-t0k"
    project.save()
    many = "".join(f"TOKEN_{number}=abcd-1234-efgh-5678-{number}\n" for number in range(199))
    file_acts.store(world.lab, project, ".env", many, by="anna")
    known = Known({})
    assert known("<sh0rt-t0k>") == "<[hidden]>"
    assert len(known.mask().secrets) == 50


def test_one_is_replaced_and_removed(world: World, project: Project, anna: Client) -> None:
    _send(anna, project, ".env", ENV)
    _send(anna, project, "./.env", "B=2\n")
    row = ProjectFile.objects.get()
    assert (row.path, row.content) == (".env", "B=2\n")
    at = _at(project, f"files/{row.pk}/remove")
    assert anna.post(at).status_code == 303
    assert anna.post(at).status_code == 303
    assert not ProjectFile.objects.exists()
    texts = Notice.objects.order_by("pk").values_list("text", flat=True)
    assert [re.sub(r" \(.*", "", text) for text in texts] == [
        "file .env was added to the set-up",
        "file .env of the set-up was replaced",
        "file .env was removed from the set-up",
    ]


def test_what_is_wrong_stands_at_its_field_and_what_was_pasted_is_not_shown(
    world: World, project: Project, anna: Client
) -> None:
    answer = _send(anna, project, "../.env", ENV)
    text = text_of(answer)
    assert answer.status_code == 422
    assert 'id="id_file-path_error">The file has to stay inside the worktree' in text
    assert SECRET not in text
    large = _send(anna, project, ".env", "x" * 300_000)
    assert 'id="id_file-content_error">A file has at most 256 KB; this one has 293 KB.' in text_of(
        large
    )
    assert 'id="id_file-content_error"' in text_of(_send(anna, project, ".env", ""))
    assert not ProjectFile.objects.exists()
    assert not Notice.objects.exists()


def test_whoever_may_only_look_changes_nothing(
    world: World, project: Project, anna: Client, vera: Client
) -> None:
    made = file_acts.store(world.lab, project, ".env", ENV, by="anna")
    text = text_of(vera.get(_at(project)))
    assert ">.env</code>" in text
    assert "Store file" not in text
    assert "Remove .env" not in text
    assert _send(vera, project, "other", "x").status_code == 403
    assert vera.post(_at(project, f"files/{made.pk}/remove")).status_code == 403
    assert ProjectFile.objects.count() == 1


def test_programs_store_and_remove_them(world: World, project: Project, operator: User) -> None:
    at, program = f"/projects/{project.pk}/files", Program.of(operator)
    made = program.send("PUT", at, {"path": ".env", "content": ENV})
    assert made.status_code == 200
    assert SECRET not in made.content.decode()
    refused = program.send("PUT", at, {"path": ".git/config", "content": ENV})
    assert denied(refused, 422, "invalid")["fields"] == {"path": "Nothing is written into .git."}
    looking = Program.of(operator, "look")
    assert looking.send("PUT", at, {"path": ".env", "content": "B=2"}).status_code == 403
    assert program.send("DELETE", f"{at}/{made.json()['id']}").status_code == 204
    denied(program.send("DELETE", f"{at}/{made.json()['id']}"), 404, "not_found")


def test_a_file_of_another_project_is_not_removed(world: World, project: Project) -> None:
    other = make.a_project("other")
    made = file_acts.store(world.lab, other, ".env", ENV, by="anna")
    assert file_acts.remove(world.lab, project, made.pk, by="anna") is False
    assert ProjectFile.objects.count() == 1


def test_there_are_bounds(world: World, project: Project) -> None:
    for number in range(50):
        file_acts.store(world.lab, project, f"file-{number}", "x", by="anna")
    with pytest.raises(FileRefusedError, match="at most 50 files"):
        file_acts.store(world.lab, project, "one-more", "x", by="anna")
    file_acts.store(world.lab, project, "file-7", "y", by="anna")
    many = "".join(f"TOKEN_{number}=abcd-1234-{number}\n" for number in range(201))
    with pytest.raises(FileRefusedError, match="holds 201 values"):
        file_acts.store(world.lab, project, "file-7", many, by="anna")


def test_the_page_says_what_the_repository_wants_included(
    world: World, project: Project, anna: Client, vera: Client
) -> None:
    Project.objects.update(source="https://forge.example/shop.git")
    assert ".worktreeinclude" not in text_of(anna.get(_at(project)))
    _main_has(world, {".worktreeinclude": ".env\n*.local\n"})
    text = text_of(anna.get(_at(project)))
    assert ".worktreeinclude</code> names<code>.env</code>, <code>*.local</code>." in text
    assert "Paste these files here." in text
    assert "Paste these files" not in text_of(vera.get(_at(project)))


def test_they_are_stored_from_the_folder_that_the_project_was_added_by(
    world: World, project: Project, anna: Client, vera: Client, tmp_path: Path
) -> None:
    (tmp_path / ".git").mkdir()
    Project.objects.update(source=str(tmp_path))
    _main_has(world, {".worktreeinclude": "*.env\n"})
    world.repos.in_checkout = {".env": ENV, "large.env": None}
    at = _at(project, "files/included")
    text = text_of(anna.get(_at(project)))
    assert f"They are looked for in <code>{tmp_path}</code>" in text
    assert "Store these files" in text
    assert vera.post(at).status_code == 403
    told = text_of(anna.post(at, follow=True))
    assert "Stored .env. large.env was not stored. It is no text of at most 256 KB." in told
    assert SECRET not in told
    assert [(row.path, row.content) for row in ProjectFile.objects.all()] == [(".env", ENV)]
    Project.objects.update(source="https://forge.example/shop.git")
    assert "No file was stored." in text_of(anna.post(at, follow=True))


def test_a_folder_that_labsite_may_not_enter_has_nothing_to_store(
    world: World, project: Project, tmp_path: Path
) -> None:
    (tmp_path / "closed/.git").mkdir(parents=True)
    project.source = str(tmp_path / "closed")
    assert file_acts.checkout_of(world.lab, project) == tmp_path / "closed"
    (tmp_path / "closed").chmod(0)
    us = os.geteuid()
    try:
        if us == 0:  # whom no mode stops
            os.seteuid(65534)
        assert file_acts.checkout_of(world.lab, project) is None
    finally:
        os.seteuid(us)
        (tmp_path / "closed").chmod(0o700)
