"""Whether a pull request's head commit passed the project's own checks, and what a merge needs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

SHOWN_COMMIT = 7
SHOWN_OTHERS = 5
REASON_CHARACTERS = 300


class ProofState(StrEnum):
    """What the project's checks say of a head commit.

    *none*: the project has no checks. *missing*: it has some, and none was run on this commit.
    """

    NONE = "none"
    PASSED = "passed"
    RUNNING = "running"
    FAILED = "failed"
    MISSING = "missing"

    @property
    def words(self) -> str:
        """The state on a pill."""
        return _INFO[self][0]

    @property
    def tone(self) -> str:
        """The colour of that pill."""
        return _INFO[self][1]

    @property
    def needs_consent(self) -> bool:
        """Whether a person has to say that they merge all the same."""
        return _INFO[self][2]


_INFO: dict[ProofState, tuple[str, str, bool]] = {
    ProofState.NONE: ("no checks", "", False),
    ProofState.PASSED: ("checks passed", "good", False),
    ProofState.RUNNING: ("checks running", "info", True),
    ProofState.FAILED: ("checks failed", "bad", True),
    ProofState.MISSING: ("not checked", "warn", True),
}


@dataclass(frozen=True, slots=True)
class CheckRecord:
    """One time that the project's checks were run on a commit, alone or together with others.

    `source` is a word by which newer records replace older ones: the gates of a run, or a
    validation. `others` names the deliveries that were merged with it. `suspects`: the deliveries
    without which the others passed; None where that was not tried. `fix`: the fixer's branch without
    which it did not pass.
    """

    source: str
    state: ProofState
    commit: str
    what: str
    name: str = ""
    reason: str = ""
    others: tuple[str, ...] = ()
    suspects: tuple[str, ...] | None = None
    fix: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class ProofFacts:
    """What is known of one pull request. `records`: newest first. `head` is None: could not tell."""

    head: str | None
    records: Sequence[CheckRecord] = ()


@dataclass(frozen=True, slots=True)
class Proof:
    """What the checks say of a pull request, in a sentence; `url` is where their record is."""

    state: ProofState
    text: str = ""
    url: str = ""


def judge_proof(facts: ProofFacts) -> Proof:
    """Judge a pull request by the newest record of each source on its head.

    One failure outweighs all else. Without a known head the newest records are named with their
    commits, and nothing counts as passed.
    """
    newest = list(_keep_newest(facts.records, facts.head))
    for state in (ProofState.FAILED, ProofState.RUNNING):
        for record in newest:
            if _find_state(record) is state:
                return Proof(state, _describe(record), record.url)
    if newest and facts.head is not None:
        return Proof(ProofState.PASSED, _describe(newest[0]), newest[0].url)
    return _missing(facts)


def _keep_newest(records: Sequence[CheckRecord], head: str | None) -> Iterator[CheckRecord]:
    seen = set()
    for record in records:
        if record.source not in seen and head in (None, record.commit):
            seen.add(record.source)
            yield record


def _find_state(record: CheckRecord) -> ProofState:
    """Return what a record says of its own delivery.

    Where the others passed without some suspects, those that are no suspects have passed; what
    passes only with a fixer's work has not.
    """
    if record.state is ProofState.FAILED and record.suspects:
        return ProofState.FAILED if record.name in record.suspects else ProofState.PASSED
    if record.state is ProofState.PASSED and record.fix:
        return ProofState.FAILED
    return record.state


def _describe(record: CheckRecord) -> str:
    commit = record.commit[:SHOWN_COMMIT]
    together = f", together with {_list_names(record.others)}" if record.others else ""
    match record.state, _find_state(record):
        case _, ProofState.RUNNING:
            return f"The project's checks run on {commit} now ({record.what})."
        case ProofState.PASSED, ProofState.FAILED:
            return (
                f"Commit {commit} passed only together with {record.fix}, which mends it "
                f"({record.what}). Merge that too."
            )
        case ProofState.FAILED, ProofState.PASSED:
            without = _list_names(record.suspects or ())
            return f"The checks passed with {commit} once {without} was left out ({record.what})."
        case _, ProofState.FAILED:
            reason = record.reason.rstrip(". ")[:REASON_CHARACTERS]
            why = f": {reason}" if reason else ""
            alone = " All else passed without it." if record.suspects else ""
            return f"The checks failed on {commit}{together} ({record.what}){why}.{alone}"
    return f"The checks passed on {commit}{together} ({record.what})."


def _missing(facts: ProofFacts) -> Proof:
    if facts.head is None:
        return Proof(ProofState.MISSING, "Which commit would be merged is not known.")
    text = f"The project's checks were not run on commit {facts.head[:SHOWN_COMMIT]}."
    if facts.records:
        last = facts.records[0]
        text = f"{text} Newer commits came after the last ones, on {last.commit[:SHOWN_COMMIT]}."
        return Proof(ProofState.MISSING, text, last.url)
    return Proof(ProofState.MISSING, text)


def _list_names(names: Sequence[str]) -> str:
    shown, more = ", ".join(names[:SHOWN_OTHERS]), len(names) - SHOWN_OTHERS
    return f"{shown} and {more} more" if more > 0 else shown


def explain_refusal(proof: Proof, accepted: str, *, only_passed: bool) -> str:
    """Explain why a merge is refused for its checks; empty when it is not.

    Args:
        proof: what the checks say now.
        accepted: the state of the checks that the person saw and merges in spite of; empty for none.
        only_passed: whether the project merges only what its checks passed.
    """
    if not proof.state.needs_consent:
        return ""
    if only_passed:
        return (
            f"{proof.text} This project merges only what its checks passed. Nothing was changed. "
            "Run the checks, or change that under Settings, Pull requests."
        )
    if accepted == proof.state:
        return ""
    return (
        f"{proof.text} Nothing was changed. Look at the pull request again; it can be merged there "
        "all the same."
    )
