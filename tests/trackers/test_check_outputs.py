"""What failed checks printed, as each forge tells it: the log of a job, else its own words."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.trackers.forge import SHA, Double, Gitea, GitHub, faults, forgejo
from tests.trackers.forge.actions import end_job
from tests.trackers.stand import ROOT, Stand, a_stand
from trackers.base import CheckOutput

LOG = "2026-11-27T08:00:00.1234567Z E  assert 1 == 2\n"
FORGES: dict[str, Callable[[], Double]] = {
    "github": GitHub,
    "enterprise": lambda: GitHub(enterprise=True),
    "gitea": lambda: Gitea(version="1.25.0"),
    "gitea of before": Gitea,
    "forgejo": lambda: forgejo(version="1.25.0"),
}


@pytest.fixture
def stand(request: pytest.FixtureRequest) -> Iterator[Stand]:
    made = a_stand(FORGES[getattr(request, "param", "github")]())
    yield made
    made.forge.check()


def output(stand: Stand, name: str = "unit") -> CheckOutput:
    (check,) = [one for one in stand.tracker.checks(ROOT, SHA) if one.name == name]
    return stand.tracker.check_output(ROOT, SHA, check)


@pytest.mark.parametrize("stand", ["github", "enterprise", "gitea"], indirect=True)
def test_the_log_of_the_job_of_this_commit_is_read(stand: Stand) -> None:
    end_job(stand.repo, "b" * 40, "unit", is_red=True, log="of another commit")
    end_job(stand.repo, SHA, "lint", is_red=True, log="of another job")
    end_job(stand.repo, SHA, "unit", is_red=True, log=LOG)
    assert output(stand) == CheckOutput(log=LOG)


@pytest.mark.parametrize("stand", ["gitea of before", "forgejo"], indirect=True)
def test_a_server_that_tells_of_no_jobs_has_the_description(stand: Stand) -> None:
    end_job(stand.repo, SHA, "unit", is_red=True, log=LOG)
    found = output(stand)
    said = "the forge keeps no log of it"
    assert found == CheckOutput(why=said, summary="Failing after 3s")


@pytest.mark.parametrize("stand", ["github", "gitea"], indirect=True)
def test_a_log_that_is_gone_is_no_error(stand: Stand) -> None:
    end_job(stand.repo, SHA, "unit", is_red=True, log=None)
    found = output(stand)
    assert found.log is None
    assert found.why


@pytest.mark.parametrize("stand", ["github", "gitea"], indirect=True)
def test_a_forge_that_breaks_off_is_no_error(stand: Stand) -> None:
    end_job(stand.repo, SHA, "unit", is_red=True, log=LOG)
    (check,) = stand.tracker.checks(ROOT, SHA)
    stand.forge.faults.add(faults.status(503), times=faults.FOREVER, path="/actions/")
    found = stand.tracker.check_output(ROOT, SHA, check)
    assert found.log is None
    assert "503" in found.why


@pytest.mark.parametrize("stand", ["github", "gitea"], indirect=True)
def test_a_check_that_is_no_job_has_what_its_service_says(stand: Stand) -> None:
    stand.repo.check(SHA, "unit", "failure", url="https://ci.test/1", summary="2 tests failed")
    before = stand.count()
    assert output(stand) == CheckOutput(
        why="the forge keeps no log of it", summary="2 tests failed"
    )
    assert [one for one in stand.forge.log[before:] if "/actions/" in one.path] == []


def test_a_check_run_of_an_app_has_its_words_and_notes(stand: Stand) -> None:
    stand.repo.check(
        SHA, "unit", "completed", is_run=True, conclusion="failure", summary="1 problem"
    )
    stand.repo.notes = [
        {"path": "a.py", "start_line": 3, "message": "undefined name"},
        {"path": "", "start_line": 1, "title": "no place"},
        {"start_line": "x"},
    ]
    assert output(stand).summary == "1 problem\na.py:3: undefined name\nno place"


def test_a_token_without_the_right_to_logs_says_which_it_lacks(stand: Stand) -> None:
    end_job(stand.repo, SHA, "unit", is_red=True, log=LOG)
    stand.forge.tokens[stand.token].permissions = {
        "checks": "read",
        "statuses": "read",
        "metadata": "read",
    }
    found = output(stand)
    assert found.log is None
    assert "“Actions: read”" in found.why


@pytest.mark.parametrize("stand", ["gitea"], indirect=True)
def test_a_job_of_gitea_is_linked_to_on_its_server(stand: Stand) -> None:
    job = end_job(stand.repo, SHA, "unit", is_red=True)
    (check,) = stand.tracker.checks(ROOT, SHA)
    assert check.url == stand.forge.web + job.page
