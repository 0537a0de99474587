"""What will happen, in sentences: each term that decides something is heard in them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runs.core.states import CompletionPolicy
from runs.specs import words
from runs.specs.words import Chain
from runs.validation.specs import Command, Coverage, Kind, Switch, Terms, WorktreePlan

DEPS = Command("deps", ("uv", "sync"), Kind.DEPS, lock_files=("pyproject.toml", "uv.lock"))
TESTS = Command("pytest", ("pytest",), Kind.TEST, coverage_args=("--cov",))
SCAN = Command("scan", ("scan",), Kind.LINT, allow_fail=True)
TERMS = Terms((DEPS, SCAN, TESTS))
GATES = Chain(CompletionPolicy.GATES, TERMS, reviewers=("claude", "codex"))


def off(*switches: Switch) -> Chain:
    return replace(GATES, terms=replace(TERMS, disabled=frozenset(switches)))


def issue(chain: Chain) -> str:
    return " ".join(f"{one.title}: {one.text}" for one in words.per_issue(chain))


def session(chain: Chain) -> str:
    return " ".join(f"{one.title}: {one.text}" for one in words.per_session(chain))


@pytest.mark.parametrize(
    ("chain", "said"),
    [
        (
            GATES,
            "the agent has to have run deps and pytest since the last attempt, by itself or with",
        ),
        (GATES, "labsite runs deps, scan and pytest in a new worktree of exactly that commit"),
        (GATES, "deps is left out when pyproject.toml and uv.lock have not changed"),
        (GATES, "scan may fail"),
        (GATES, "Tests have to reach 85 % of lines and branches"),
        (GATES, "The worktree is removed afterwards"),
        (GATES, "claude and codex read the change; all that are available have to agree"),
        (GATES, "If none is available, the review fails"),
        (GATES, "3 attempts in total for evidence and clean room, 3 attempts for reviews"),
        (GATES, "accepted if nothing is left uncommitted"),
        (GATES, "closed after the run level has passed"),
        (replace(GATES, reviewers=("claude",)), "claude reads the change and has to agree"),
        (replace(GATES, reviewers=()), "No reviewer is set up, so the review fails"),
        (
            replace(GATES, reviewers=(), skip_without_reviewers=True),
            "No reviewer is set up, so the review is skipped with a warning",
        ),
        (GATES, "A finding of P0 or P1 fails it; P2 and P3 do not, and stand on the run's page"),
        (
            replace(GATES, track_low_findings=True),
            "P2 and P3 do not, and are written down in one issue",
        ),
        (replace(GATES, most_gate=1, most_review=5), "1 attempt in total"),
        (
            replace(GATES, terms=replace(TERMS, require_clean_git=False)),
            "all have passed: The work is accepted. Its",
        ),
        (
            replace(GATES, terms=replace(TERMS, worktrees=WorktreePlan("", True))),
            "in which something failed is kept",
        ),
        (
            replace(GATES, terms=replace(TERMS, coverage=Coverage(branch=False, min_percent=90.5))),
            "reach 90.5 % of lines.",
        ),
        (replace(GATES, terms=Terms()), "nothing is proven"),
        (off(Switch.COVERAGE), "Coverage is not looked at"),
        (off(Switch.POST_VALIDATE), "No tests are run"),
        (off(Switch.REVIEW), "Review: It is turned off"),
        (off(Switch.RUN_LEVEL), "closed at once"),
        (
            replace(GATES, policy=CompletionPolicy.PULL_REQUEST),
            "when the pull request of its branch",
        ),
    ],
)
def test_what_happens_with_an_issue(chain: Chain, said: str) -> None:
    assert said in issue(chain)


@pytest.mark.parametrize(
    ("chain", "said"),
    [
        (GATES, "merged in one clean worktree. labsite runs deps, scan and pytest there"),
        (GATES, "labsite itself has to close that issue within 5 min"),
        (GATES, "The repository is removed afterwards"),
        (GATES, "a follow-up issue names what failed"),
        (GATES, "When it fails: The issues stay open"),
        (
            replace(GATES, most_fixers=2),
            "An agent may try to mend it, 2 attempts in total. If that fails too, the issues stay open",
        ),
        (off(Switch.FOLLOW_UP), "no follow-up issue is opened"),
        (off(Switch.E2E), "End to end: It is turned off"),
        (off(Switch.RUN_LEVEL), "closed as soon as their work is accepted"),
        (replace(GATES, policy=CompletionPolicy.PULL_REQUEST), "its own validation commands"),
    ],
)
def test_what_happens_with_a_session(chain: Chain, said: str) -> None:
    assert said in session(chain)


def test_every_policy_has_its_sentences() -> None:
    for policy in CompletionPolicy:
        assert issue(replace(GATES, policy=policy))
        assert session(replace(GATES, policy=policy))
