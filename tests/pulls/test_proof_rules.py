"""What a pull request's checks say, and when a merge is refused for them: a case per rule."""

from __future__ import annotations

import dataclasses

import pytest

from runs.pulls.proof_rules import (
    CheckRecord,
    Proof,
    ProofFacts,
    ProofState,
    explain_refusal,
    judge_proof,
)

pytestmark = pytest.mark.pure

HEAD, OLD = "a" * 40, "b" * 40
BASE = CheckRecord("validation", ProofState.PASSED, HEAD, "validation 3", "issue 7", url="/v/3")


def record(state: str = "passed", **fields: object) -> CheckRecord:
    return dataclasses.replace(BASE, state=ProofState(state), **fields)  # type: ignore[arg-type]


GATES = record("passed", source="gates", what="gates, attempt 1", url="/g/1")
FAILED = record("failed", reason="pytest failed with exit status 1", others=("issue 4",))


@pytest.mark.parametrize(
    ("head", "records", "state", "text"),
    [
        pytest.param(HEAD, (), "missing", "were not run on commit aaaaaaa.", id="never checked"),
        pytest.param(
            HEAD,
            (record(commit=OLD),),
            "missing",
            "not run on commit aaaaaaa. Newer commits came after the last ones, on bbbbbbb.",
            id="checked before newer commits",
        ),
        pytest.param(HEAD, (record(),), "passed", "passed on aaaaaaa (validation 3).", id="passed"),
        pytest.param(
            HEAD,
            (record(others=("issue 4", "issue 5")),),
            "passed",
            "passed on aaaaaaa, together with issue 4, issue 5 (validation 3).",
            id="passed with others",
        ),
        pytest.param(HEAD, (record("running"),), "running", "run on aaaaaaa now", id="running"),
        pytest.param(
            HEAD,
            (FAILED,),
            "failed",
            "failed on aaaaaaa, together with issue 4 (validation 3): pytest failed with exit "
            "status 1.",
            id="failed",
        ),
        pytest.param(HEAD, (GATES, FAILED), "failed", "validation 3", id="one failure outweighs"),
        pytest.param(
            HEAD, (GATES, record("running")), "running", "validation 3", id="running outweighs"
        ),
        pytest.param(
            HEAD,
            (record(), FAILED),
            "passed",
            "validation 3",
            id="newer replaces older of a source",
        ),
        pytest.param(
            HEAD, (FAILED, record()), "failed", "validation 3", id="newer failure replaces a pass"
        ),
        pytest.param(
            HEAD,
            (record(commit=OLD), FAILED),
            "failed",
            "aaaaaaa",
            id="a record of another commit replaces nothing",
        ),
        pytest.param(
            HEAD,
            (record(fix="the fix lab/fix-1"),),
            "failed",
            "passed only together with the fix lab/fix-1",
            id="passed only with a fix",
        ),
        pytest.param(
            HEAD,
            (dataclasses.replace(FAILED, suspects=("issue 7",)),),
            "failed",
            "All else passed without it.",
            id="the suspect itself",
        ),
        pytest.param(
            HEAD,
            (dataclasses.replace(FAILED, suspects=("issue 4",)),),
            "passed",
            "passed with aaaaaaa once issue 4 was left out",
            id="not the suspect",
        ),
        pytest.param(
            HEAD,
            (dataclasses.replace(FAILED, suspects=()),),
            "failed",
            "exit status 1.",
            id="no suspect was found",
        ),
        pytest.param(
            HEAD,
            (record("failed"),),
            "failed",
            "on aaaaaaa (validation 3).",
            id="failed, no reason",
        ),
        pytest.param(
            HEAD,
            (record("failed", reason="x" * 400),),
            "failed",
            f"(validation 3): {'x' * 300}.",
            id="a long reason is cut",
        ),
        pytest.param(
            HEAD,
            (record("running", suspects=("issue 4",)),),
            "running",
            "run on aaaaaaa now",
            id="suspects of one that runs again",
        ),
        pytest.param(
            HEAD,
            (record("running", fix="the fix lab/fix-1"),),
            "running",
            "run on aaaaaaa now",
            id="a fix of one that runs again",
        ),
        pytest.param(
            HEAD, (GATES, record()), "passed", "(gates, attempt 1)", id="the newest of two sources"
        ),
        pytest.param(
            HEAD,
            (record(commit="c" * 40), record(commit=OLD)),
            "missing",
            "on ccccccc.",
            id="the newest of older commits",
        ),
        pytest.param(None, (record(),), "missing", "is not known", id="unknown head never passes"),
        pytest.param(None, (FAILED,), "failed", "aaaaaaa", id="unknown head names the commit"),
        pytest.param(None, (), "missing", "is not known", id="unknown head, no record"),
    ],
)
def test_the_checks_of_a_pull_request(
    head: str | None, records: tuple[CheckRecord, ...], state: str, text: str
) -> None:
    proof = judge_proof(ProofFacts(head, records))
    assert proof.state == state
    assert text in proof.text
    assert ("All else" in proof.text) is ("All else" in text)


@pytest.mark.parametrize(
    ("state", "words", "tone", "needs_consent"),
    [
        ("none", "no checks", "", False),
        ("passed", "checks passed", "good", False),
        ("running", "checks running", "info", True),
        ("failed", "checks failed", "bad", True),
        ("missing", "not checked", "warn", True),
    ],
)
def test_how_a_pill_shows_it(state: str, words: str, tone: str, needs_consent: bool) -> None:
    found = ProofState(state)
    assert (found.words, found.tone, found.needs_consent) == (words, tone, needs_consent)


def test_the_record_that_decided_is_linked() -> None:
    assert judge_proof(ProofFacts(HEAD, (GATES, FAILED))).url == "/v/3"
    assert judge_proof(ProofFacts(HEAD, (GATES, record()))).url == "/g/1"
    assert judge_proof(ProofFacts(HEAD, (record(commit=OLD),))).url == "/v/3"


def test_many_others_are_cut_to_a_readable_number() -> None:
    names = tuple(f"issue {number}" for number in range(8))
    text = judge_proof(ProofFacts(HEAD, (record(others=names),))).text
    assert "issue 4 and 3 more (" in text
    six = judge_proof(ProofFacts(HEAD, (record(others=names[:6]),))).text
    assert "issue 4 and 1 more (" in six
    five = judge_proof(ProofFacts(HEAD, (record(others=names[:5]),))).text
    assert "issue 4 (" in five


@pytest.mark.parametrize(
    ("state", "accepted", "only_passed", "said"),
    [
        ("none", "", True, ""),
        ("passed", "", True, ""),
        ("passed", "failed", False, ""),
        ("failed", "", False, "can be merged there all the same"),
        ("failed", "missing", False, "can be merged there all the same"),
        ("failed", "failed", False, ""),
        ("missing", "missing", False, ""),
        ("running", "running", False, ""),
        ("missing", "", False, "can be merged there all the same"),
        ("running", "missing", False, "can be merged there all the same"),
        ("failed", "failed", True, "merges only what its checks passed"),
        ("missing", "", True, "merges only what its checks passed"),
    ],
)
def test_a_merge_in_spite_of_checks_has_to_be_asked_for(
    state: str, accepted: str, only_passed: bool, said: str
) -> None:
    proof = Proof(ProofState(state), "What they say.")
    text = explain_refusal(proof, accepted, only_passed=only_passed)
    assert said in text
    assert bool(said) is bool(text)
