"""Makes rows of attempts at the gates for pages: what evidence, clean room and review store."""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import Any

from runs.core.states import AttemptState, Claim, Gate
from runs.gates.rules import Decision, Unreviewed
from runs.models import Attempt, Project, Review, Run
from runs.validation import specs
from runs.validation.specs import Command, Kind, Scope, Terms
from tests import make
from tests.fakes import START

COMMANDS = (
    Command("deps", ("uv", "sync", "--all-extras"), Kind.DEPS, lock_files=("uv.lock",)),
    Command("lint", ("ruff", "check", "."), Kind.LINT),
    Command("types", ("mypy", "--strict", "src"), Kind.TYPECHECK, allow_fail=True),
    Command("test", ("pytest", "-q", "--cov=billing", "--cov-report=xml"), Kind.TEST),
)
PRINTED = "\x1b[31mFAILED\x1b[0m tests/test_retry.py::test_waits_twice - AssertionError\n" * 3


def after(seconds: float) -> Any:
    return START + timedelta(seconds=seconds)


def said(
    gate: Gate,
    *reasons: str,
    at: float,
    passed: bool = True,
    skipped: bool = False,
    retryable: bool = True,
    unreviewed: Unreviewed = Unreviewed.NOTHING,
) -> dict[str, Any]:
    """A decision as it is stored, so many seconds after the start."""
    made = Decision(gate, passed, reasons, retryable, skipped, unreviewed)
    return {**made.to_json(), "at": after(at).isoformat()}


def result(command: Command, number: int = 1, **fields: Any) -> dict[str, Any]:
    """What one command gave; it passed unless `fields` say otherwise."""
    name = f"0-{number}"
    return {
        **{"attempt": 0, "name": f"{name}.txt", "argv": list(command.argv), "is_running": False},
        **{"status": 0, "seconds": 1.5, "tail": "ok\n", "signal": None, "is_over_time": False},
        **{"is_given_up": False, "trouble": "", "began_at": START.isoformat()},
        **{"command": command.name, "kind": command.kind.value, "allow_fail": command.allow_fail},
        **{"stdout": f"{name}.txt", "stderr": f"{name}.err.txt", "tests": None, "skipped": ""},
        **fields,
    }


def proof(command: Command, status: int | None = 0, **fields: Any) -> dict[str, Any]:
    """The evidence of one expected command."""
    return {
        **{"command": command.name, "argv": " ".join(command.argv), "source": "transcript"},
        **{"status": status, "seconds": 4.2, "tree": "", "at": START.isoformat()},
        **{"needed": True, "proven": status == 0, "word": ""},
        **fields,
    }


def an_attempt(run: Run, number: int = 1, **fields: Any) -> Attempt:
    """An attempt of a run, running unless it has another state."""
    state = fields.setdefault("state", AttemptState.RUNNING)
    fields.setdefault("ended_at", None if state == AttemptState.RUNNING else after(90))
    spec = specs.to_json(specs.effective(Terms(COMMANDS), Scope.PER_ISSUE))
    known = {
        **{"claim": Claim.DONE, "spec": spec, "mark": secrets.token_hex(8), "began_at": START},
        **{"commit": "4f2c9e1d" * 5, "base": "8131de27" * 5},
    }
    row = Attempt.objects.create(
        run=run, project=run.project, host="local", number=number, **known | fields
    )
    Run.objects.filter(pk=run.pk).update(attempts=number)
    run.attempts = number
    return row


def checking(project: Project, key: str = "7", **fields: Any) -> Run:
    """A run whose gates are at work."""
    fields = {
        "state": "checking",
        "checking_at": START,
        "claim": Claim.DONE,
        "attempts": 1,
    } | fields
    return make.a_run(project, key, **fields)


def failed_in_clean_room(run: Run, number: int = 1, **fields: Any) -> Attempt:
    """The tests fail in the clean worktree, though the agent says that they passed."""
    deps, lint, types, test = COMMANDS
    tests = {
        "failed": ["tests.test_retry::test_waits_twice", "tests.test_retry::test_gives_up[503]"],
        **{"passed": 118, "total": 120},
    }
    why = "test failed with exit status 1: tests.test_retry::test_waits_twice and 1 more"
    return an_attempt(
        run,
        number,
        **{
            "state": AttemptState.FAILED,
            "gate": Gate.CLEAN_ROOM,
            "reason": f"{why}; coverage is 81.25 %, 85 % are needed",
            "evidence": [
                proof(deps, None, needed=False, word="its lock files have not changed"),
                proof(lint, source="check", tree="a1b2c3"),
                proof(types, 1, word="it failed, which this command may"),
                proof(test),
            ],
            "decisions": [
                said(Gate.EVIDENCE, at=1.8),
                said(
                    Gate.CLEAN_ROOM,
                    f"{why}. The end of its output:\n{PRINTED}",
                    "coverage is 81.25 %, 85 % are needed",
                    at=61,
                    passed=False,
                ),
            ],
            "results": [
                result(deps, 1, skipped="uv.lock has not changed", status=None),
                result(lint, 2),
                result(types, 3, status=1, tail="src/billing/retry.py:7: error: no overload\n"),
                result(test, 4, status=1, seconds=52.4, tail=PRINTED, tests=tests),
            ],
            "coverage": {
                **{"percent": 81.25, "needed": 85.0, "passed": False, "changed_percent": 62.5},
                **{"report_path": "coverage.xml", "reason": "coverage is 81.25 %, 85 % are needed"},
            },
            "artifacts": {
                "worktree_path": "/home/anna/.labsite/clean-rooms/billing/7/1",
                "worktree_state": "kept",
            },
            "context": {
                "changed_files": [
                    {"path": "src/billing/retry.py", "label": "code"},
                    {"path": "docs/retries.md", "label": "docs"},
                ]
            },
            **fields,
        },
    )


def failed_in_review(run: Run, number: int = 2, **fields: Any) -> Attempt:
    """Everything passes but one reviewer of three."""
    row = failed_in_clean_room(run, number, **fields)
    _, lint, types, test = COMMANDS
    row.gate, row.artifacts = Gate.REVIEW, {}
    row.reason = "sceptic: P1 Retries forever on 401"
    row.coverage = {**row.coverage, "percent": 91.0, "passed": True, "changed_percent": 100.0}
    row.coverage |= {"reason": ""}
    row.results = [result(lint, 1), result(types, 2), result(test, 3, seconds=48.0)]
    row.decisions = [
        said(Gate.EVIDENCE, at=1.2),
        said(Gate.CLEAN_ROOM, at=55),
        said(Gate.REVIEW, "sceptic: P1 Retries forever on 401", at=130, passed=False),
    ]
    row.save()
    findings = [
        {
            **{"priority": 2, "path": "docs/retries.md", "line": None},
            **{"title": "Says three, does two", "body": ""},
        },
        {
            **{"priority": 1, "path": "src/billing/retry.py", "line": 2},
            "title": "Retries forever on 401",
            "body": "A refused token is tried again without end.\nStop at the first 401.",
        },
    ]
    a_review(row, "reader", "passed")
    a_review(row, "sceptic", "failed", findings=findings, reason="1 of 2 findings is P0 or P1")
    a_review(row, "elsewhere", "unavailable", reason="codex is not installed")
    return row


def passed(run: Run, number: int = 3, **fields: Any) -> Attempt:
    """All three gates pass."""
    row = failed_in_review(run, number, **fields)
    row.state, row.reason, row.resolution = AttemptState.PASSED, "", "success"
    row.decisions = [*row.decisions[:2], said(Gate.REVIEW, at=110)]
    row.save()
    row.reviews.filter(reviewer="sceptic").update(state="passed", findings=[], reason="")
    return row


def make_unreviewed(run: Run, number: int = 1, **fields: Any) -> Attempt:
    """All gates pass, and the only reviewer gave no answer that counts."""
    row = passed(run, number, **fields)
    why = "no reviewer available (elsewhere: codex is not installed)"
    skipped = said(Gate.REVIEW, why, at=110, skipped=True, unreviewed=Unreviewed.ALL)
    row.decisions = [*row.decisions[:2], skipped]
    row.save()
    row.reviews.exclude(reviewer="elsewhere").delete()
    return row


def running(run: Run, number: int = 1, **fields: Any) -> Attempt:
    """In the clean room, the tests at work."""
    _, lint, _, test = COMMANDS
    at_work = result(test, 3, status=None, is_running=True, began_at=after(20).isoformat())
    return an_attempt(
        run,
        number,
        **{
            "gate": Gate.CLEAN_ROOM,
            "evidence": [proof(lint), proof(test, source="check")],
            "decisions": [said(Gate.EVIDENCE, at=1.8)],
            "results": [result(lint, 2), at_work],
            **fields,
        },
    )


def a_review(attempt: Attempt, name: str, state: str, **fields: Any) -> Review:
    """What one reviewer said."""
    more = {"seconds": 42.0, "began_at": START, "ended_at": after(42)} | fields
    return Review.objects.create(attempt=attempt, reviewer=name, state=state, **more)
