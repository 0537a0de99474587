"""What the doctor sees of forges: each account that a project uses is asked once, and says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from labsite.doctor import facts, product
from labsite.doctor.lines import Line, Status
from runs.models import Forge
from tests import make
from tests.fakes import START
from tests.trackers.forge import Double, Gitea, GitHub, faults

pytestmark = pytest.mark.django_db


@pytest.fixture(params=[Gitea, GitHub], ids=["gitea", "github"])
def forge(request: pytest.FixtureRequest) -> Iterator[Double]:
    make_it: Callable[[], Double] = request.param
    made = make_it()
    with made.serving():
        yield made


def an_account(forge: Double, name: str, token: str) -> Forge:
    return Forge.objects.create(
        name=name, kind=forge.style, api=forge.api, web=forge.web, created_at=START,
        credential={"token": token},
    )  # fmt: skip


def lines() -> list[Line]:
    return list(product.forges(facts.told()["forges"]["value"]))


def test_each_account_in_use_is_asked_once_whatever_number_of_projects_it_has(
    forge: Double,
) -> None:
    account = an_account(forge, "ours", forge.token("bot"))
    an_account(forge, "unused", forge.token("bot"))
    for name in ("demo", "web"):
        make.a_project(name, tracker=forge.style, forge=account, tracker_root=f"1/acme/{name}")
    (line,) = lines()
    assert (line.status, line.check) == (Status.OK, "forges")
    assert line.seen.startswith("ours (2 projects), asked once: ")
    assert line.seen.endswith("knows labsite as bot.")
    assert len(forge.log) == 1


def test_what_is_refused_and_what_does_not_answer_are_told_apart(forge: Double) -> None:
    account = an_account(forge, "ours", "revoked")
    make.a_project(tracker=forge.style, forge=account, tracker_root="1/acme/demo")
    (line,) = lines()
    assert line.status is Status.WRONG
    assert "does not accept" in line.seen
    forge.faults.add(faults.status(500), times=faults.FOREVER)
    (line,) = lines()
    assert line.status is Status.WARNING


def test_without_a_forge_nobody_is_asked() -> None:
    make.a_project()
    assert lines() == []
