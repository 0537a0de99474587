"""Kept work over the API: the same verbs as the pages, and refusals of the same shape."""

from __future__ import annotations

import pytest

from runs.models import Notice, Project, Rescue
from tests import make
from tests.api.program import Program, denied
from tests.fakes import World

pytestmark = pytest.mark.django_db


@pytest.fixture
def project(world: World) -> Project:
    world.tracker.add_root("demo")
    made = make.a_project()
    heads = {f"afk/{n}": "a" * 40 for n in range(1, 31)}
    world.repos.heads[made.repo(world.lab.paths)] = {**heads, "main": "c" * 40}
    make.a_run(made, "7")
    return made


def test_parked_work_is_listed_a_page_at_a_time(program: Program, project: Project) -> None:
    first = program.get(f"/projects/{project.pk}/parked").json()
    second = program.get(f"/projects/{project.pk}/parked", page=first["next"]).json()
    assert (first["total"], len(first["items"]), second["next"]) == (29, 20, None)
    names = {one["branch"] for one in first["items"] + second["items"]}
    assert "afk/7" not in names and "main" not in names and len(names) == 29


def test_a_list_that_git_does_not_give_is_no_empty_one(
    program: Program, world: World, project: Project
) -> None:
    world.repos.broken_list = "git for-each-ref failed"
    denied(program.get(f"/projects/{project.pk}/parked"), 502, "no_answer")


@pytest.mark.row("LAB-124", level="contract")
@pytest.mark.parametrize(
    ("branch", "status", "code"),
    [("main", 400, "not_managed"), ("afk/7", 409, "owned"), ("afk/99", 409, "gone")],
)
def test_what_may_not_go_is_refused_with_a_code(
    program: Program, world: World, project: Project, branch: str, status: int, code: str
) -> None:
    answer = program.post(f"/projects/{project.pk}/parked/discard", {"branch": branch})
    denied(answer, status, code)
    assert len(world.repos.heads[project.repo(world.lab.paths)]) == 31


def test_a_discard_is_rescued_listed_and_restored_once(
    program: Program, world: World, project: Project
) -> None:
    kept = program.post(f"/projects/{project.pk}/parked/discard", {"branch": "afk/8"})
    assert kept.status_code == 200, kept.content
    assert program.get(f"/projects/{project.pk}/rescues").json()["items"] == [kept.json()]
    where = f"/projects/{project.pk}/rescues/{kept.json()['id']}/restore"
    assert program.post(where).json()["restored_as"] == "afk/8"
    denied(program.post(where), 409, "already_restored")
    denied(program.post(f"/projects/{project.pk}/rescues/99/restore"), 404, "not_found")
    kinds = ("work.discarded", "work.restored")
    assert set(Notice.objects.filter(kind__in=kinds).values_list("by", flat=True)) == {"anna"}
    assert Rescue.objects.count() == 1
