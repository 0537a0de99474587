"""Specs, attempts and the document of a run's checks over the API."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from runs.core.states import AttemptState, Claim, CompletionPolicy, Gate
from runs.gates import rules
from runs.models import Attempt, CheckCommand, Project, Review, Run, Validation, WatchSession
from runs.validation import specs
from runs.validation.spec_models import terms_of
from runs.validation.specs import Scope
from tests import make
from tests.api.program import Program, denied
from tests.fakes import START, World

pytestmark = pytest.mark.django_db

LATER = START + timedelta(seconds=90)
RESULT = {
    **{"attempt": 1, "name": "1-1.txt", "argv": ["pytest", "-q"], "is_running": False},
    **{"status": 1, "seconds": 2.5, "tail": "E", "signal": None, "is_over_time": False},
    **{"trouble": "", "began_at": START.isoformat(), "command": "tests", "kind": "test"},
    **{"allow_fail": False, "stdout": "1-1.out.txt", "stderr": "1-1.err.txt", "skipped": ""},
    "tests": {"failed": ["test_a"], "passed": 3, "total": 4},
}
COVERAGE = {"percent": 84.9, "needed": 85.0, "passed": False, "report_path": "coverage.xml"}
ROOM = {"log_dir": "/s/gates/1", "worktree_path": "/s/rooms/1/1/1", "worktree_state": "removed"}


@pytest.fixture
def run(project: Project) -> Run:
    Project.objects.filter(pk=project.pk).update(policy=CompletionPolicy.GATES)
    project.refresh_from_db()
    for position, kind in enumerate(["test", "lint", "e2e"]):
        CheckCommand.objects.create(
            project=project, position=position, name=kind, argv=[kind], kind=kind
        )
    session = WatchSession.objects.create(project=project, opened_at=START)
    return make.a_run(project, "1", watch=session, agent="Claude", agent_session="abc", attempts=2)


def attempted(run: Run, number: int, **fields: Any) -> Attempt:
    spec = specs.to_json(specs.effective(terms_of(run.project), Scope.PER_ISSUE))
    facts = {
        **{"state": AttemptState.FAILED, "gate": Gate.CLEAN_ROOM, "claim": Claim.DONE},
        **{"began_at": START, "ended_at": LATER, "commit": "c" * 40, "mark": f"m{number}"},
        **{"results": [RESULT], "coverage": COVERAGE, "artifacts": ROOM},
        "spec": {**spec, "off": []},
        "context": {"issue_id": "1", "commit_hash": "c" * 40, "log_path": "/s/log", "scope": "x"},
        "decisions": [
            rules.Decision(Gate.EVIDENCE, True).to_json(),
            rules.Decision(Gate.CLEAN_ROOM, False, ("pytest failed",)).to_json(),
        ],
    }
    made = {**facts, **fields}
    return Attempt.objects.create(run=run, project=run.project, host="local", number=number, **made)


@pytest.mark.row("MALA-V-01", "MALA-V-26", level="contract")
def test_the_specs_of_a_project_have_the_six_fields_for_both_scopes(
    program: Program, run: Run
) -> None:
    told = program.get(f"/projects/{run.project_id}/checks").json()
    fields = {"commands", "require_clean_git", "require_pytest_for_code_changes"}
    assert set(told["per_issue"]) == set(told["run_level"]) == fields | {"coverage", "e2e", "scope"}
    assert [one["name"] for one in told["per_issue"]["commands"]] == ["lint", "test"]
    assert [one["name"] for one in told["run_level"]["commands"]] == ["lint", "test", "e2e"]
    assert (told["policy"], told["per_issue"]["scope"]) == ("gates", "per_issue")
    assert "measures coverage" in told["lacking"][0]


@pytest.mark.row("MALA-V-08", "MALA-V-09", "MALA-V-11", "MALA-V-14", level="contract")
@pytest.mark.row("MALA-V-18", "MALA-V-19", level="contract")
def test_an_attempt_is_told_in_the_names_of_the_rows(program: Program, run: Run) -> None:
    row = attempted(run, 1)
    Review.objects.create(
        attempt=row, reviewer="second", state="passed", began_at=START, log_name="review-1.txt"
    )
    told = program.get(f"/runs/{run.pk}/attempts/1").json()
    assert told["decisions"][1] == {
        "gate": "clean_room",
        "passed": False,
        "reasons": ["pytest failed"],
        "retryable": True,
        "skipped": False,
        "unreviewed": "",
    }
    room = told["validation"]
    assert (room["passed"], room["failures"], room["duration_seconds"]) == (
        False,
        ["pytest failed"],
        2.5,
    )
    command = room["command_results"][0]
    assert (command["name"], command["exit_code"], command["duration_seconds"]) == ("tests", 1, 2.5)
    assert command["stdout_path"] == "/s/gates/1/1-1.out.txt"
    assert command["stderr_path"] == "/s/gates/1/1-1.err.txt"
    assert (room["coverage_result"]["percent"], room["coverage_result"]["passed"]) == (84.9, False)
    assert room["e2e_result"] is None
    assert room["artifacts"] == {
        "log_dir": "/s/gates/1",
        "worktree_path": "/s/rooms/1/1/1",
        "worktree_state": "removed",
        "coverage_report": None,
        "e2e_fixture_path": None,
    }
    assert told["worktree"] == {"path": "/s/rooms/1/1/1", "removed": True}
    assert told["reviews"][0]["review_log_path"].endswith("/review-1.txt")
    denied(program.get(f"/runs/{run.pk}/attempts/2"), 404, "not_found")


@pytest.mark.long
def test_attempts_come_in_pages(program: Program, run: Run) -> None:
    for number in (1, 2, 3):
        attempted(run, number)
    first = program.get(f"/runs/{run.pk}/attempts?limit=2").json()
    assert ([one["number"] for one in first["items"]], first["next"]) == ([3, 2], 2)
    rest = program.get(f"/runs/{run.pk}/attempts?limit=2&cursor=2").json()
    assert ([one["number"] for one in rest["items"]], rest["next"]) == ([1], None)


@pytest.mark.row("MALA-V-96", level="contract")
def test_what_a_command_printed_is_read_in_whole_letters(
    program: Program, run: Run, world: World
) -> None:
    row = attempted(run, 1)
    folder = row.folder(world.lab.paths)
    world.checks.printed[folder, "1-1.out.txt"] = "grün".encode()
    address = f"/runs/{run.pk}/attempts/1/output"
    told = program.get(f"{address}?name=1-1.out.txt").json()
    assert told == {"text": "grün", "next": 5, "size": 5}
    assert program.get(f"{address}?name=1-1.out.txt&cursor=4").json()["text"] == "n"
    denied(program.get(f"{address}?name=../1/1-1.out.txt"), 404, "not_found")
    denied(program.get(f"{address}?name=1-1.err.txt"), 404, "not_found")
    denied(program.get(address), 422, "invalid")


@pytest.mark.row("MALA-V-12", "MALA-V-95", "MALA-V-97", "MALA-V-98", level="contract")
def test_the_checks_of_a_run_are_one_document(program: Program, run: Run) -> None:
    attempted(run, 1)
    attempted(
        run,
        2,
        state=AttemptState.PASSED,
        gate=Gate.REVIEW,
        resolution="success",
        decisions=[rules.Decision(gate, True).to_json() for gate in rules.ORDER],
        results=[{**RESULT, "status": 0}],
    )
    Validation.objects.create(
        **{"project": run.project, "session": run.watch, "number": 1, "count": 1, "host": "local"},
        **{"minutes": 30, "most_fixers": 0, "began_at": START, "ended_at": LATER, "mark": "v"},
        **{"state": "failed", "reason": "issue 1 and issue 2 conflict", "follow_up_key": "9"},
    )
    ended = {"started_at": START, "ended_at": LATER, "state": "ended", "outcome": "failed"}
    Run.objects.filter(pk=run.pk).update(reason="gate review: P1", **ended)
    told = program.get(f"/runs/{run.pk}/checks").json()
    assert [told["started_at"][:19], told["ended_at"][:19]] == [
        at.isoformat()[:19] for at in (START, LATER)
    ]
    assert (told["duration_seconds"], told["error"]) == (90.0, "gate review: P1")
    assert (told["run_id"], told["issue_id"], told["agent_id"]) == (run.pk, "1", "Claude")
    assert (told["session_id"], told["log_path"], told["gate_attempts"]) == ("abc", "/s/log", 2)
    assert (told["review_enabled"], told["review_attempts"]) == (True, 0)
    assert told["resolution"] == {"outcome": "success", "rationale": ""}
    assert told["validation"]["passed"]
    assert told["artifacts"]["log_dir"] == "/s/gates/1"
    assert told["configuration"]["coverage"]["min_percent"] == 85.0
    assert [one["number"] for one in told["attempts"]] == [1, 2]
    level = told["run_level"][0]
    assert (level["decision"]["gate"], level["decision"]["passed"]) == ("run_level", False)
    assert (level["validation"]["failures"], level["follow_up_key"]) == (
        ["issue 1 and issue 2 conflict"],
        "9",
    )
    assert not [name for name in str(told) if "codex" in name]


@pytest.mark.parametrize(
    ("state", "spec", "passed", "skipped"),
    [
        ("passed", {}, True, False),
        ("nothing to check", {}, True, True),
        ("nothing to check", None, False, False),
        ("cancelled", {}, False, False),
    ],
)
def test_a_run_level_with_nothing_to_run_has_passed(
    program: Program, run: Run, state: str, spec: Any, passed: bool, skipped: bool
) -> None:
    Validation.objects.create(
        **{"project": run.project, "run": run, "number": 1, "count": 1, "host": "local"},
        **{"minutes": 30, "most_fixers": 0, "began_at": START, "ended_at": LATER, "mark": "v"},
        **{"state": state, "reason": "it is turned off", "spec": spec},
    )
    (level,) = program.get(f"/runs/{run.pk}/checks").json()["run_level"]
    decision = level["decision"]
    assert (decision["passed"], decision["skipped"]) == (passed, skipped)
    assert level["validation"]["passed"] is passed
    assert bool(level["validation"]["failures"]) is not passed


def test_a_run_without_gates_has_an_empty_document(program: Program, run: Run) -> None:
    told = program.get(f"/runs/{run.pk}/checks").json()
    assert (told["attempts"], told["run_level"], told["resolution"]) == ([], [], None)
    assert program.get(f"/runs/{run.pk}/attempts").json() == {"items": [], "next": None}


@pytest.mark.row("MALA-V-02", "MALA-V-60", "MALA-V-69", level="contract")
def test_specs_are_changed_all_of_it_or_nothing(program: Program, run: Run) -> None:
    address = f"/projects/{run.project_id}/checks"
    wish = {
        "policy": "pull_request",
        "disabled": ["e2e"],
        "coverage_min_percent": 90.5,
        "commands": [
            {"name": "test", "argv": ["pytest", "-q"], "kind": "test", "coverage_args": ["--cov"]},
            {"name": "types", "argv": ["mypy"], "kind": "typecheck"},
        ],
    }
    told = program.send("PATCH", address, wish).json()
    commands = told["per_issue"]["commands"]
    assert [(one["name"], one["argv"]) for one in commands] == [
        ("types", ["mypy"]),
        ("test", ["pytest", "-q", "--cov"]),
    ]
    assert [one["allow_fail"] for one in commands] == [False, False]
    assert (told["policy"], told["disabled"], told["lacking"]) == ("pull_request", ["e2e"], [])
    assert told["per_issue"]["coverage"]["min_percent"] == 90.5
    bad = [{"name": "x", "argv": [], "kind": "lint"}]
    denied(program.send("PATCH", address, {"policy": "gates", "commands": bad}), 422, "invalid")
    assert program.get(address).json() == told, "the policy was not changed either"


@pytest.mark.row("MALA-V-98", level="contract")
def test_specs_are_exported_and_imported(program: Program, run: Run) -> None:
    address = f"/projects/{run.project_id}/checks"
    kept = program.get(f"{address}/export").json()
    assert (kept["format"], kept["version"], len(kept["commands"])) == ("labsite checks", 1, 3)
    program.send("PATCH", address, {"policy": "pull_request", "commands": []})
    told = program.send("POST", f"{address}/import", kept).json()
    assert (told["changed"], told["removed"], told["not_taken"]) == (True, [], [])
    assert program.get(f"{address}/export").json() == kept
    bad = program.send("POST", f"{address}/import", {**kept, "version": 2, "codex_review": True})
    assert list(denied(bad, 422, "invalid")["fields"]) == ["version", "codex_review"]
    first = {**kept["commands"][0], "argv": []}
    bad = program.send(
        "POST", f"{address}/import", {**kept, "policy": "gates", "commands": [first]}
    )
    assert list(denied(bad, 422, "invalid")["fields"]) == ["commands.0.argv"]
    assert program.get(f"{address}/export").json() == kept, "nothing was imported by half"


@pytest.mark.row("MALA-V-03", "MALA-V-68", level="contract")
@pytest.mark.parametrize(
    "wish",
    [
        {"commands": [{"name": "x", "argv": ["x"], "kind": "foo"}]},
        {"disabled": ["codex-review"]},
        {"coverage_min_percent": 101},
        {"policy": "trust"},
        {"thinking_mode": "high"},
    ],
)
def test_unknown_kinds_and_switches_are_refused(
    program: Program, run: Run, wish: dict[str, Any]
) -> None:
    denied(program.send("PATCH", f"/projects/{run.project_id}/checks", wish), 422, "invalid")
    assert run.project.check_commands.count() == 3
