"""What will happen with the work of an issue and of a session, said in sentences. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runs.core.states import CompletionPolicy
from runs.validation import specs
from runs.validation.specs import Command, Kind, Scope, Spec, Switch, Terms


@dataclass(frozen=True, slots=True)
class Chain:
    """What a project's *Checks* page says, as far as it decides what happens.

    `reviewers` are the names of those that are on.
    """

    policy: CompletionPolicy
    terms: Terms
    most_gate: int = 3
    most_review: int = 3
    reviewers: tuple[str, ...] = ()
    skip_without_reviewers: bool = False
    track_low_findings: bool = False
    most_fixers: int = 0
    person_for_check_changes: bool = False


@dataclass(frozen=True, slots=True)
class Sentence:
    """What one step does; `title` is the step."""

    title: str
    text: str


_PERSON = "What changes the checks themselves waits for a person, who accepts it or sends it back."


def per_issue(chain: Chain) -> list[Sentence]:
    """What happens with the work on one issue once its agent says that it is done."""
    if chain.policy is CompletionPolicy.PULL_REQUEST:
        return [Sentence("Pull request", _PULL_REQUEST)]
    terms = chain.terms
    spec = specs.effective(terms, Scope.PER_ISSUE)
    return [
        Sentence("Evidence", _evidence(spec)),
        Sentence("Clean room", " ".join([_clean_room(spec), *_kept(terms)])),
        Sentence("Review", _review(chain)),
        Sentence("When one of them fails", _failed(chain)),
        Sentence("When all have passed", _end_issue(chain)),
    ]


def _end_issue(chain: Chain) -> str:
    said = _accepted(chain.terms, chain.terms.disabled)
    return f"{_PERSON} {said}" if chain.person_for_check_changes else said


def per_session(chain: Chain) -> list[Sentence]:
    """What happens with all that a watch session delivered."""
    if chain.policy is CompletionPolicy.PULL_REQUEST:
        return [Sentence("Watch session", _SESSION)]
    terms, off = chain.terms, chain.terms.disabled
    if Switch.RUN_LEVEL in off:
        return [
            Sentence(
                "Run level",
                "It is turned off. Issues are closed as soon as their work is accepted.",
            )
        ]
    spec = specs.effective(terms, Scope.RUN_LEVEL)
    follow_up = (
        "no follow-up issue is opened, since that is turned off"
        if Switch.FOLLOW_UP in off
        else "a follow-up issue names what failed"
    )
    return [
        Sentence(
            "Run level",
            "All accepted work of a session is merged in one clean worktree. "
            + _clean_room(spec, "there"),
        ),
        Sentence("End to end", _e2e(spec)),
        Sentence("When it passes", "The issues are closed."),
        Sentence("When it fails", _run_level_failed(chain.most_fixers, follow_up)),
    ]


def _run_level_failed(most_fixers: int, follow_up: str) -> str:
    if not most_fixers:
        return f"The issues stay open, and {follow_up}."
    return (
        f"An agent may try to mend it, {_times(most_fixers)} in total. If that fails too, the issues "
        f"stay open, and {follow_up}."
    )


_PULL_REQUEST = (
    "A run has succeeded when the pull request of its branch is there. Nothing on this page is run "
    "for it, and its issue is closed when the pull request is merged."
)
_SESSION = "A watch session runs its own validation commands on all that it delivered, as they are set there."


def _evidence(spec: Spec) -> str:
    wanted = [one.name for one in spec.commands if not one.allow_fail]
    if not wanted:
        return "A commit has to name the issue. No command is expected, since there is none."
    return (
        f"A commit has to name the issue, and the agent has to have run {listed(wanted)} since the "
        "last attempt, by itself or with labctl check. labsite reads what it did; nothing is run."
    )


def _clean_room(spec: Spec, where: str = "in a new worktree of exactly that commit") -> str:
    if not spec.commands:
        return "No command is run, since there is none: nothing is proven."
    names = [one.name for one in spec.commands]
    text = f"labsite runs {listed(names)} {where}, in this order; the first that fails ends it."
    return " ".join([text, *_bootstrap(spec.commands), *_allowed(spec.commands), *_coverage(spec)])


def _bootstrap(commands: Sequence[Command]) -> list[str]:
    return [
        f"{one.name} is left out when {listed(one.lock_files)} have not changed."
        for one in commands
        if one.lock_files
    ]


def _allowed(commands: Sequence[Command]) -> list[str]:
    names = [one.name for one in commands if one.allow_fail]
    return [f"{listed(names)} may fail."] if names else []


def _coverage(spec: Spec) -> list[str]:
    if not any(one.kind is Kind.TEST for one in spec.commands):
        return ["No tests are run."]
    if not spec.coverage.enabled:
        return ["Coverage is not looked at."]
    what = "lines and branches" if spec.coverage.branch else "lines"
    return [f"Tests have to reach {spec.coverage.min_percent:g} % of {what}."]


def _kept(terms: Terms) -> list[str]:
    if terms.worktrees.keep_on_failure:
        return ["A worktree in which something failed is kept; others are removed."]
    return ["The worktree is removed afterwards, whatever came out."]


def _review(chain: Chain) -> str:
    if Switch.REVIEW in chain.terms.disabled:
        return "It is turned off."
    low = (
        "P2 and P3 do not, and are written down in one issue."
        if chain.track_low_findings
        else "P2 and P3 do not, and stand on the run's page."
    )
    none = (
        "the review is skipped with a warning"
        if chain.skip_without_reviewers
        else "the review fails, and the run with it"
    )
    if not chain.reviewers:
        return f"No reviewer is set up, so {none}."
    if len(chain.reviewers) == 1:
        who = f"{chain.reviewers[0]} reads the change and has to agree."
    else:
        who = f"{listed(chain.reviewers)} read the change; all that are available have to agree."
    return f"{who} A finding of P0 or P1 fails it; {low} If none is available, {none}."


def _failed(chain: Chain) -> str:
    return (
        "The agent is told why in its own session and may try again: "
        f"{_times(chain.most_gate)} in total for evidence and clean room, "
        f"{_times(chain.most_review)} for reviews. After that the run has failed, its work is kept, "
        "and the issue stays open."
    )


def _times(number: int) -> str:
    return "1 attempt" if number == 1 else f"{number} attempts"


def _accepted(terms: Terms, off: frozenset[Switch]) -> str:
    clean = (
        "The work is accepted if nothing is left uncommitted in the agent's worktree."
        if terms.require_clean_git
        else "The work is accepted."
    )
    then = (
        "Its issue is closed at once."
        if Switch.RUN_LEVEL in off
        else "Its issue is closed after the run level has passed."
    )
    return f"{clean} {then}"


def _e2e(spec: Spec) -> str:
    if not spec.e2e.enabled:
        return "It is turned off."
    command = "the end-to-end command" if spec.e2e.command else "labsite itself"
    return (
        f"On a new small repository with one issue {command} has to close that issue within "
        f"{spec.e2e.minutes} min, with one agent. The repository is "
        f"{'kept' if spec.e2e.keep else 'removed afterwards'}."
    )


def listed(names: Sequence[str]) -> str:
    """Names as a sentence holds them."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
