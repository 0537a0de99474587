"""Gate 1: what proves an agent's claim, and the sentence for each thing that is missing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from runs.core.states import Claim, Gate
from runs.evidence import shown_commands
from runs.evidence.shown_commands import Marker, Shown
from runs.gates import evidence_rules
from runs.gates.evidence_rules import Branch, Check, Facts, Made
from runs.gates.rules import Resolution
from runs.validation import specs
from runs.validation.specs import Command, Coverage, Kind, Scope, Spec, Switch, Terms
from tests.fakes import START

TIP, TREE, OTHER = "a" * 40, "b" * 40, "c" * 40
W = "/srv/trees/demo-7"
TESTS = Command("tests", ("uv", "run", "pytest"), Kind.TEST)
LINT = Command("lint", ("ruff", "check", "."), Kind.LINT)
LOOSE = replace(LINT, name="loose", allow_fail=True)
DEPS = Command("deps", ("uv", "sync"), Kind.DEPS, lock_files=("pyproject.toml", "uv.lock"))


def spec(*commands: Command) -> Spec:
    return specs.effective(Terms(commands, coverage=Coverage(enabled=False)), Scope.PER_ISSUE)


def made(message: str = "feat: greet (bd-7)", after: float = 60, ident: str = TIP) -> Made:
    return Made(ident, message, START + timedelta(seconds=after))


BRANCH = Branch("afk/7", tip=TIP, commits=(made(),), since=START)
FACTS = Facts(Claim.DONE, "", BRANCH, ("bd-7",), None, tree=TREE, places=(W,))


def ran(line: str, status: int | None = 0, folder: str = W, hidden: str = "") -> Shown:
    return Shown(line, status, folder, "2026-11-21T12:01:00+00:00", hidden)


def check(status: int | None = 0, tree: str = TREE, command: Command = TESTS, **more: Any) -> Check:
    told = {"at": "2026-11-21T12:02:00+00:00", "seconds": 2.5, "argv": command.argv, **more}
    return Check(command.name, status=status, tree=tree, **told)


def judge(spec_: Spec, **facts: Any) -> evidence_rules.Judgement:
    return evidence_rules.judge(spec_, replace(FACTS, **facts))


def reasons(spec_: Spec, **facts: Any) -> str:
    return "\n".join(judge(spec_, **facts).decision.reasons)


@pytest.mark.row("MALA-V-25", level="pure")
@pytest.mark.row("MALA-V-37", level="pure")
def test_a_commit_that_names_the_issue_and_each_command_that_passed_are_the_proof():
    found = judge(spec(LINT, TESTS), shown=(ran("ruff check . && uv run pytest -q"),))
    assert found.decision.passed
    assert (found.decision.gate, found.resolution) == (Gate.EVIDENCE, Resolution.SUCCESS)
    assert found.commit == TIP
    assert [one.word for one in found.entries] == ["passed at its last run"] * 2
    assert [one.source for one in found.entries] == ["transcript"] * 2


@pytest.mark.row("MALA-V-25", level="pure")
def test_what_is_missing_is_listed_with_what_to_do():
    found = judge(spec(LINT, TESTS), branch=replace(BRANCH, commits=()))
    assert not found.decision.passed
    assert found.decision.is_retryable
    commit, lint, tests = found.decision.reasons
    assert "no commit on afk/7" in commit
    assert "bd-7" in commit
    assert "lint: it was not run in this attempt" in lint
    assert "`labctl check lint`" in lint
    assert "`labctl check tests`" in tests
    assert (found.resolution, found.commit) == (None, "")


@pytest.mark.row("C-09", level="pure")
@pytest.mark.parametrize(
    ("words", "message", "is_of_issue", "passes"),
    [
        (("bd-7",), "fix: it (bd-7)", False, True),
        (("bd-7",), "fix: it (#7)", False, False),
        (("bd-7",), "fix: it, see bd-77", False, False),
        (("bd-7",), "fix: it", False, False),
        (("bd-a1.2", "bd-bd-a1.2"), "fix: it\n\nbd-a1.2", False, True),
        (("#7",), "fix: it, closes #7", False, True),
        (("#7",), "fix: it", True, True),
        (("#7",), "fix: it", False, False),
    ],
)
def test_how_a_commit_names_its_issue_is_a_matter_of_the_tracker(
    words, message, is_of_issue, passes
):
    branch = replace(BRANCH, commits=(made(message),), is_of_issue=is_of_issue)
    found = judge(spec(), branch=branch, words=words)
    assert found.decision.passed is passes
    assert passes or words[0] in found.decision.reasons[0]


def test_what_was_added_after_the_commit_that_names_the_issue_is_delivered_with_it():
    later = made("chore: tidy", after=90, ident="d" * 40)
    branch = replace(BRANCH, tip="d" * 40, commits=(later, made()))
    assert judge(spec(), branch=branch).commit == "d" * 40


@pytest.mark.row("MALA-V-28", level="pure")
@pytest.mark.parametrize(
    ("branch", "said"),
    [
        (replace(BRANCH, commits=(), named_before=OTHER), "commit ccccccc is stale"),
        (replace(BRANCH, commits=(made(after=-60),)), "commit aaaaaaa is stale"),
        (
            replace(BRANCH, commits=(made("fix: x"), made(after=-60, ident=OTHER))),
            "commit ccccccc is stale",
        ),
        (replace(BRANCH, tip=""), "the branch afk/7 is gone"),
        (replace(BRANCH, is_read=False), "git could not read afk/7"),
        (
            replace(BRANCH, commits=(), head=OTHER, head_branch=""),
            "its worktree is on no branch at ccccccc",
        ),
        (replace(BRANCH, commits=(), head=OTHER, head_branch="mine"), "git merge ccccccc"),
        (replace(BRANCH, commits=(), head=OTHER, head_branch="mine"), "is on mine at ccccccc"),
        (replace(BRANCH, commits=(), head=OTHER, head_branch="afk/7"), "began: commit your work"),
        (
            replace(BRANCH, commits=(made(after=-1, ident=OTHER), made(after=-60))),
            "commit ccccccc is stale",
        ),
        (replace(BRANCH, commits=(made("fix: x"),)), "names the issue: put bd-7 into"),
    ],
)
def test_a_commit_from_before_the_run_and_one_elsewhere_do_not_count(branch, said):
    found = judge(spec(), branch=branch)
    assert not found.decision.passed
    assert said in found.decision.reasons[0]


def test_a_commit_of_the_moment_in_which_the_run_began_is_its_own():
    assert judge(spec(), branch=replace(BRANCH, commits=(made(after=0),))).decision.passed


def test_an_adopted_run_may_have_older_commits():
    branch = replace(BRANCH, commits=(made(after=-60),), since=None)
    assert judge(spec(), branch=branch).decision.passed


@pytest.mark.row("MALA-V-30", level="pure")
@pytest.mark.parametrize(
    ("shown", "passes", "said"),
    [
        ([ran("uv run pytest", 1)], False, "failed at its last run (exit status 1)"),
        ([ran("pytest", 1), ran("pytest", 0)], True, ""),
        ([ran("pytest", 0), ran("pytest", 1)], False, "exit status 1"),
        ([ran("pytest", 0), ran("pytest | tail", 0)], False, "a pipe hides"),
        ([ran("pytest | tail", 0)], False, "a pipe hides"),
        ([ran("set -o pipefail; pytest | tail", 0)], True, ""),
        ([ran("pytest", None, hidden="it was left running in the background")], False, "backgr"),
        ([ran("pytest", None, hidden="no end of it is told")], False, "no end"),
        ([ran("ruff check . && pytest", 1)], False, "in a chain that failed"),
        ([ran("pytest tests/test_one.py", 0)], False, "for `tests/test_one.py` alone"),
        ([ran("pytest", 0), ran("pytest tests/test_one.py", 0)], True, ""),
        ([ran("pytest", 0), ran("pytest tests/test_one.py | tail", 0)], True, ""),
        ([ran("pytest", 0), ran("pytest tests/test_one.py", 1)], False, "alone"),
        ([ran("pytest tests/test_one.py", 0), ran("pytest", 0)], True, ""),
        ([ran("pytest", 1), ran("pytest tests/test_one.py", 0)], False, "exit status 1"),
        ([ran("pytest", 0, folder="/elsewhere")], False, "it ran in /elsewhere"),
        ([ran("pytest", 0, folder="")], True, ""),
        ([ran(f"cd {W} && pytest", 0, folder="/elsewhere")], True, ""),
        ([ran("cd sub && pytest", 0)], False, "not at the top of the worktree"),
        ([ran("cd $DIR && pytest", 0)], False, "not told in which folder"),
        ([ran("bash -lc 'uv run pytest -q'", 0)], True, ""),
        ([ran("pytest", 0), ran("for x in 1; do uv run pytest; done", 1)], False, "not for sure"),
        ([ran("pytest", 0), ran("for x in 1; do grep pytest x; done", 1)], True, ""),
        ([ran("pytest", 0), ran("for x in 1; do uv run pytest; done", 0)], True, ""),
        ([ran("pytest", 0), ran("cd sub && pytest", 0)], True, ""),
        ([ran("pytest", 0), ran("cd $DIR && pytest", 0)], True, ""),
        ([ran("pytest tests/a.py", 0), ran("pytest tests/b.py", 0)], False, "`tests/b.py` alone"),
        ([ran("pytest", None)], False, "is no proof: not told"),
        ([ran("echo uv run pytest", 0)], False, "not run in this attempt"),
        ([], False, "not run in this attempt"),
    ],
)
def test_the_last_run_of_a_command_has_to_have_passed_for_sure(shown, passes, said):
    found = judge(spec(TESTS), shown=tuple(shown))
    assert found.decision.passed is passes
    assert said in "\n".join(found.decision.reasons)
    assert [one.proven for one in found.entries] == [passes]


@pytest.mark.parametrize(
    ("line", "quoted"),
    [
        (f"pytest {'x' * 153}", f"`pytest {'x' * 153}`"),
        (f"pytest {'x' * 154}", f"`pytest {'x' * 152}…`"),
        ("pytest \x1b[31mred\x07", "`pytest  [31mred `"),
    ],
    ids=["160 letters", "one more", "letters of a terminal"],
)
def test_a_line_is_quoted_as_far_as_it_can_be_read(line: str, quoted: str) -> None:
    (entry,) = judge(spec(TESTS), shown=(ran(line),)).entries
    assert f"its last run, {quoted}, is no proof" in entry.word


@pytest.mark.parametrize(
    ("places", "shown", "said"),
    [
        ((), ran("pytest"), f"it ran in {W}, and"),
        ((), ran("pytest", folder=""), "it ran in another folder, and"),
        ((W, "/other"), ran("cd sub && pytest", folder=""), f"it ran in {W}/sub, and"),
    ],
    ids=["it has no worktree", "nor is its folder told", "in the first of its names"],
)
def test_where_a_command_ran_is_said(places: tuple[str, ...], shown: Shown, said: str) -> None:
    (entry,) = judge(spec(TESTS), places=places, shown=(shown,)).entries
    assert not entry.proven
    assert said in entry.word


def test_a_shell_line_of_the_project_is_known_however_it_is_written():
    script = Command("web", ("bash", "-c", "cd web && npm test"), Kind.TEST)
    for line in (
        "cd web  &&  npm test",
        "bash -c 'cd web && npm test'",
        "sh -c 'cd web && npm test'",
    ):
        assert judge(spec(script), shown=(ran(line),)).decision.passed, line
    assert not judge(spec(script), shown=(ran("echo 'cd web && npm test'"),)).decision.passed
    assert not judge(spec(script), shown=(ran("npm test"),)).decision.passed


@pytest.mark.parametrize(
    ("shown", "passes"),
    [
        ([ran("ruff check .", 1)], True),
        ([ran("ruff check .", 0)], True),
        ([ran("ruff check . | tail", 0)], False),
        ([], False),
    ],
)
def test_a_command_that_may_fail_has_to_have_run(shown, passes):
    found = judge(spec(LOOSE), shown=tuple(shown))
    assert found.decision.passed is passes
    assert not shown or shown[0].status == 0 or "which it may" in found.entries[0].word


@pytest.mark.parametrize(
    ("changed", "needed"), [(["src/a.py"], False), (["uv.lock"], True), (["sub/uv.lock"], False)]
)
def test_dependencies_are_not_asked_for_while_their_lock_files_are_the_same(changed, needed):
    found = judge(spec(DEPS), changed=frozenset(changed))
    assert found.decision.passed is not needed
    assert (found.entries[0].needed, found.entries[0].proven) == (needed, not needed)
    assert needed or "uv.lock did not change" in found.entries[0].word


@pytest.mark.parametrize(
    ("checks", "shown", "passes", "said"),
    [
        ([check(0)], [], True, ""),
        ([check(0)], [ran("pytest", 1)], True, ""),
        ([check(1)], [ran("pytest", 0)], False, "failed in `labctl check` for the committed files"),
        ([check(1), check(0)], [], True, ""),
        ([check(0), check(1)], [], False, "exit status 1"),
        ([check(0), check(1, tree=OTHER)], [], True, ""),
        ([check(0, tree=OTHER)], [], False, "for other files than were committed"),
        ([check(0, tree="")], [], False, "files changed while"),
        ([check(1, tree=OTHER)], [ran("pytest", 0)], True, ""),
        ([check(0, tree=OTHER)], [ran("pytest | tail", 0)], False, "its last run, `pytest | tail`"),
        (
            [check(0, tree=OTHER)],
            [ran("pytest", 1)],
            False,
            "for other files than were committed, and its last run, `pytest`, is no proof: exit "
            "status 1",
        ),
        ([check(0, tree=""), check(0, tree=OTHER)], [], False, "for other files than were"),
        ([check(None)], [], False, "(its exit status is not known)"),
        ([check(0, argv=("pytest", "-q"))], [], False, "another command of that name"),
        ([check(0, command=LINT)], [], False, "not run in this attempt"),
        ([check(None, trouble="it took too long")], [], False, "it took too long"),
        ([check(0, trouble="it left processes")], [], False, "it left processes"),
    ],
)
def test_what_labsite_ran_for_the_committed_files_outranks_what_the_agent_recorded(
    checks, shown, passes, said
):
    found = judge(spec(TESTS), checks=tuple(checks), shown=tuple(shown))
    assert found.decision.passed is passes
    assert said in "\n".join(found.decision.reasons)
    if passes and checks[0].tree == TREE:
        [entry] = found.entries
        assert (entry.source, entry.tree, entry.status, entry.seconds) == ("check", TREE, 0, 2.5)


def test_a_check_of_unknown_files_proves_none_where_the_commits_are_unknown_too():
    found = judge(spec(TESTS), tree="", checks=(check(0, tree=""),))
    assert not found.decision.passed


@pytest.mark.parametrize(
    ("line", "status", "proven"),
    [("ruff check .", 1, True), ("ruff check .", 0, True), ("ruff check . | tail", 0, False)],
)
def test_a_command_that_may_fail_is_proven_by_the_record_beside_a_check_of_other_files(
    line: str, status: int, proven: bool
) -> None:
    other = check(0, tree=OTHER, command=LOOSE)
    (entry,) = judge(spec(LOOSE), checks=(other,), shown=(ran(line, status),)).entries
    assert (entry.proven, entry.source) == (proven, "transcript" if proven else "check")


def test_an_allowed_failure_of_a_check_is_one():
    found = judge(spec(LOOSE), checks=(check(1, command=LOOSE),))
    assert found.decision.passed
    assert "which it may" in found.entries[0].word


def test_without_a_record_only_checks_count_and_the_reason_says_so():
    said = reasons(spec(TESTS), has_record=False)
    assert "keeps no record" in said
    assert "labctl check tests" in said
    assert judge(spec(TESTS), has_record=False, checks=(check(0),)).decision.passed


E2E_RUN = Command("e2e", ("./e2e.sh",), Kind.E2E)
UNIT = Command(
    "tests",
    ("pytest",),
    Kind.TEST,
    coverage_args=("--cov=src",),
    unit_args=("-m", "not integration"),
)
WHOLE = Command("integration", ("pytest", "integration"), Kind.TEST, is_integration=True)


@pytest.mark.row("MALA-V-26", level="pure")
@pytest.mark.row("MALA-V-27", level="pure")
@pytest.mark.parametrize(
    ("off", "scope", "lines", "passes"),
    [
        ([], Scope.PER_ISSUE, ["pytest --cov=src", "pytest integration"], True),
        ([], Scope.PER_ISSUE, ["pytest", "pytest integration"], False),
        ([], Scope.PER_ISSUE, ["pytest --cov=src"], False),
        ([], Scope.RUN_LEVEL, ["pytest --cov=src", "pytest integration"], False),
        ([], Scope.RUN_LEVEL, ["pytest --cov=src", "pytest integration", "./e2e.sh"], True),
        pytest.param(
            [Switch.POST_VALIDATE],
            Scope.PER_ISSUE,
            [],
            True,
            marks=pytest.mark.row("MALA-V-75", level="pure"),
        ),
        pytest.param(
            [Switch.INTEGRATION_TESTS],
            Scope.PER_ISSUE,
            ["pytest --cov=src -m 'not integration'"],
            True,
            marks=pytest.mark.row("MALA-V-76", level="pure"),
        ),
        ([Switch.INTEGRATION_TESTS], Scope.PER_ISSUE, ["pytest --cov=src"], True),
        ([Switch.INTEGRATION_TESTS], Scope.PER_ISSUE, [], False),
        pytest.param(
            [Switch.COVERAGE],
            Scope.PER_ISSUE,
            ["pytest", "pytest integration"],
            True,
            marks=pytest.mark.row("MALA-V-77", level="pure"),
        ),
        pytest.param(
            [Switch.E2E],
            Scope.RUN_LEVEL,
            ["pytest --cov=src", "pytest integration"],
            True,
            marks=pytest.mark.row("MALA-V-78", level="pure"),
        ),
    ],
)
def test_what_is_expected_comes_from_the_spec_of_the_scope(off, scope, lines, passes):
    terms = Terms((UNIT, WHOLE, E2E_RUN), disabled=frozenset(off))
    found = judge(specs.effective(terms, scope), shown=tuple(ran(one) for one in lines))
    assert found.decision.passed is passes, found.decision.reasons


NONE = replace(BRANCH, commits=())


@pytest.mark.row("MALA-V-12", level="pure")
@pytest.mark.row("MALA-V-31", level="pure")
@pytest.mark.parametrize("claim", [Claim.NO_CHANGE, Claim.OBSOLETE])
@pytest.mark.parametrize("by", ["command", "marker"])
def test_no_commit_is_needed_with_a_reason_and_a_clean_tree(claim, by):
    said = (
        {"claim": claim, "rationale": "fixed by abc"}
        if by == "command"
        else {"marker": Marker(claim, "fixed by abc")}
    )
    found = judge(spec(TESTS), branch=NONE, is_clean=True, **said)
    assert found.decision.passed
    assert (found.resolution, found.rationale) == (Resolution(claim), "fixed by abc")
    assert (found.commit, found.entries) == ("", ())


@pytest.mark.row("C-36", level="pure")
@pytest.mark.parametrize(
    ("facts", "said"),
    [
        pytest.param(
            {"is_clean": False}, "not committed", marks=pytest.mark.row("MALA-V-32", level="pure")
        ),
        pytest.param(
            {"is_clean": None}, "as not clean", marks=pytest.mark.row("MALA-V-36", level="pure")
        ),
        ({"branch": replace(NONE, is_read=False)}, "git could not read"),
        pytest.param(
            {"rationale": " "}, "without a reason", marks=pytest.mark.row("MALA-V-33", level="pure")
        ),
        ({"branch": BRANCH}, "afk/7 holds 1 commit:"),
        ({"branch": replace(BRANCH, commits=(made(), made()))}, "afk/7 holds 2 commits:"),
    ],
)
def test_without_a_commit_nothing_may_be_open(facts, said):
    base = {"claim": Claim.OBSOLETE, "rationale": "gone", "is_clean": True, "branch": NONE}
    found = judge(spec(TESTS), **{**base, **facts})
    assert not found.decision.passed
    assert (found.resolution, found.decision.is_retryable) == (None, True)
    assert said in "\n".join(found.decision.reasons)


def test_what_an_agent_says_by_a_command_outranks_its_marker():
    said = {"claim": Claim.NO_CHANGE, "rationale": "fixed by abc"}
    marker = Marker(Claim.OBSOLETE, "gone")
    found = judge(spec(), branch=NONE, is_clean=True, marker=marker, **said)
    assert (found.resolution, found.rationale) == (Resolution.NO_CHANGE, "fixed by abc")


def test_a_marker_does_not_throw_away_what_was_committed():
    found = judge(spec(), marker=Marker(Claim.NO_CHANGE, "nothing to do"), is_clean=True)
    assert (found.decision.passed, found.resolution) == (True, Resolution.SUCCESS)


@pytest.mark.row("MALA-V-31", level="pure")
@pytest.mark.row("MALA-V-33", level="pure")
@pytest.mark.row("MALA-V-35", level="pure")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ISSUE_NO_CHANGE: fixed by abc", Marker(Claim.NO_CHANGE, "fixed by abc")),
        ("Looked.\n\nISSUE_OBSOLETE: page is gone \nBye.", Marker(Claim.OBSOLETE, "page is gone")),
        ("ISSUE_OBSOLETE:", Marker(Claim.OBSOLETE, "")),
        ("ISSUE_OBSOLETE", Marker(Claim.OBSOLETE, "")),
        ("ISSUE_NO_CHANGE: a\nISSUE_OBSOLETE: b", Marker(Claim.OBSOLETE, "b")),
        ("> ISSUE_NO_CHANGE: quoted", None),
        ("    ISSUE_NO_CHANGE: code", None),
        ("```\nISSUE_NO_CHANGE: code\n```", None),
        ("```text\nx\n```\nISSUE_NO_CHANGE: after", Marker(Claim.NO_CHANGE, "after")),
        ("I will not print ISSUE_NO_CHANGE: here", None),
        ("`ISSUE_NO_CHANGE: x`", None),
        ("- ISSUE_NO_CHANGE: listed", None),
        ("ISSUE_NO_CHANGES: x", None),
        ("issue_no_change: x", None),
        ("", None),
    ],
)
def test_a_marker_stands_on_a_line_of_its_own_and_in_no_quotation(text, found):
    assert shown_commands.marker(text) == found


@dataclass
class Kept:
    commit: str = TIP
    tree: str = TREE
    evidence: list[dict[str, Any]] | None = field(default_factory=list)
    evidence_from: dict[str, Any] | None = field(default_factory=lambda: {"files": TREE})


def shown_entry(status: int | None = 1, at: str = "2026-11-21T12:00:00", **more: Any) -> Any:
    return {"command": "tests", "source": "transcript", "status": status, "at": at, **more}


@pytest.mark.row("MALA-V-91", level="pure")
@pytest.mark.parametrize(
    ("before", "now", "progress"),
    [
        (Kept(), Kept(), False),
        (Kept(), Kept(commit=OTHER), True),
        (Kept(), Kept(evidence_from={"files": OTHER}), True),
        (Kept(), Kept(evidence_from={"files": ""}), True),
        (Kept(), Kept(evidence_from={}), True),
        (Kept(evidence_from={}), Kept(evidence_from={}), True),
        (Kept(evidence_from=None), Kept(evidence_from=None), True),
        (Kept(evidence=None), Kept(evidence=None), False),
        (Kept(), Kept(evidence=[shown_entry(None, at="")]), False),
        (Kept(), Kept(evidence=[shown_entry(0)]), True),
        (Kept(evidence=[shown_entry(1)]), Kept(), False),
        (Kept(evidence=[shown_entry(1)]), Kept(evidence=[shown_entry(1, "later")]), False),
        (Kept(evidence=[shown_entry(1)]), Kept(evidence=[shown_entry(0)]), True),
    ],
)
def test_progress_is_another_commit_other_files_or_new_evidence(before, now, progress):
    assert evidence_rules.has_progress(before, now) is progress


@pytest.mark.row("MALA-V-19", level="pure")
def test_a_decision_says_gate_passed_reasons_and_whether_it_can_be_mended():
    told = judge(spec(TESTS)).decision.to_json()
    assert {"gate", "passed", "reasons", "is_retryable"} <= told.keys()
    assert told["gate"] == "evidence"
    entry = judge(spec(TESTS)).entries[0].to_json()
    assert {"command", "argv", "source", "status", "seconds", "tree", "at", "needed", "word"} <= (
        entry.keys()
    )
