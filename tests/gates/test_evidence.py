"""Gate 1 on real git and on records as the real programs leave them, on good days and on bad ones."""

from __future__ import annotations

import os
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from runs.core.ports import SeamError
from runs.core.states import AgentMode, Claim, NoticeKind, OutputKind
from runs.gates import evidence
from runs.jobs.runner import LostError
from runs.models import Attempt, Job, Notice, Run
from runs.validation.specs import Command, Kind
from tests.conversation import long_talk
from tests.gates.claimed_run import CHECK, ClaimedRun
from tests.linked import cut
from tests.real import RealWorld, git
from tests.world import agent_homes as homes

CODEX = {"argv": ["codex", "{prompt}"], "trust": ""}


@pytest.fixture
def done(real: RealWorld) -> ClaimedRun:
    return ClaimedRun(real)


@pytest.mark.row("MALA-V-25", level="real")
@pytest.mark.row("MALA-V-37", level="real")
def test_a_commit_and_a_command_that_passed_are_kept_with_the_attempt(done):
    commit = done.commit("feat: greet (#7)", **{"hello.txt": "more\n", "notes.md": "x"})
    done.record(done.ran())
    decision = done.judge()
    assert decision.passed, decision.reasons
    kept = done.attempt
    assert (kept.commit, kept.base, kept.resolution) == (commit, done.fork, "success")
    assert kept.tree == git(done.tree, "rev-parse", "HEAD^{tree}")
    assert (done.entry["source"], done.entry["status"], done.entry["needed"]) == (
        "transcript",
        0,
        True,
    )
    assert kept.context == {
        "issue_id": "7",
        "repo_path": str(done.repo),
        "commit_hash": commit,
        "log_path": str(done.path),
        "changed_files": [
            {"path": "hello.txt", "label": "docs"},
            {"path": "notes.md", "label": "docs"},
        ],
        "scope": "per_issue",
        "check_files": [],
    }


def test_what_it_changes_of_the_checks_is_kept_with_the_attempt_and_told_once(done):
    texts = {"check.sh": "exit 0\n", "pyproject.toml": "[tool.ruff]\n", "setup.cfg": "[metadata]\n"}
    done.commit("feat: greet (#7)", **texts)
    hold = done.hold()
    for _ in range(2):  # a worker that died goes on from the beginning of the gate
        evidence.judge(done.lab, hold)
        hold.attempt.refresh_from_db()
    found = {one["path"]: (one["part"], one["why"]) for one in done.attempt.context["check_files"]}
    settings = "ruff reads it, and [tool.ruff] changed, and `./check.sh` may run ruff. It is new."
    assert found == {
        "check.sh": ("command", "Named in the command `./check.sh`. It is new."),
        "pyproject.toml": ("configuration", settings),
    }
    [told] = Notice.objects.filter(kind=NoticeKind.CHECKS_CHANGED)
    expected = "attempt 1: it changes 2 files of the checks themselves: check.sh, pyproject.toml"
    assert told.text.endswith(expected)


@pytest.mark.row("MALA-V-25", level="real")
def test_without_commit_and_commands_each_is_named(done):
    done.record([done.talk.says("All is done.")])
    first, second = done.judge().reasons
    assert "no commit on afk/7 since this run began" in first
    assert "#7" in first
    assert "check: it was not run in this attempt" in second
    assert "labctl check check" in second


CLAUDE_PRINT = {"mode": AgentMode.ONE_SHOT, "output": OutputKind.CLAUDE}
CODEX_EXEC = {**CODEX, "mode": AgentMode.ONE_SHOT, "output": OutputKind.CODEX}


def put(done: ClaimedRun, name: str, line: bytes = b"") -> None:
    """A real record where its program keeps it, or where what it printed is kept."""
    raw = done.recorded(name) + line
    if name.startswith("codex") and not name.endswith("printed"):
        thread = "01a20744-cdc2-7161-b72b-d288b37c0f6b"
        path = homes.codex_path(done.home, thread, "2026/11/23")
        done.run.agent_session = thread
    elif name.endswith("printed"):
        path = done.lab.paths.run_folder(done.run.pk) / "output.jsonl"
        done.run.agent_session = "none-of-those-that-are-kept"
    else:
        session = "2d1b7ab6-81f8-4767-b5e9-2902231e4dce"
        path = homes.claude_path(done.home, str(done.tree), session)
        done.run.agent_session = session
    done.run.save()
    done.record([raw], path)


@pytest.mark.row("MALA-V-25", level="real")
@pytest.mark.row("MALA-V-31", level="real")
@pytest.mark.parametrize(
    ("name", "profile", "run"),
    [
        ("claude", {}, {}),
        ("claude_printed", {}, CLAUDE_PRINT),
        ("codex", CODEX, {}),
        ("codex", CODEX, CODEX_EXEC),
        ("codex_printed", CODEX, CODEX_EXEC),
    ],
    ids=["claude", "claude print", "codex", "codex exec", "codex printed"],
)
def test_the_records_of_both_programs_are_read_in_each_way_of_starting_them(
    real, name, profile, run
):
    done = ClaimedRun(real, **profile)
    for column, value in run.items():
        if column in ("mode", "output"):
            setattr(done.run, column, value)
    put(done, name)
    marked = done.judge()
    assert marked.passed, marked.reasons
    assert (done.attempt.resolution, done.attempt.claim) == ("no_change", "no_change")
    assert done.attempt.rationale == "it is fixed already"
    Attempt.objects.all().delete()
    done.commit()
    decision = done.judge()
    # The last run in Claude Code's interactive session timed out; the others ended well.
    assert decision.passed is (name != "claude"), decision.reasons
    assert done.entry["status"] == (0 if decision.passed else 143)


@pytest.mark.row("MALA-V-23", level="real")
def test_nothing_of_the_project_is_run(done):
    proof = done.tree / "ran"
    done.terms = done.terms.__class__((Command("x", ("touch", str(proof)), Kind.TEST),))
    done.commit()
    done.record(done.ran(f"touch {proof}"))
    assert done.judge().passed
    assert not proof.exists()


@pytest.mark.row("C-09", level="real")
@pytest.mark.row("MALA-V-25", level="real")
def test_on_beads_the_commit_has_to_name_the_issue_as_bd_does(real):
    done = ClaimedRun(real, tracker="beads", key="bd-a1")
    done.record(done.ran())
    done.commit("feat: greet")
    [reason] = done.judge().reasons
    assert "bd-a1" in reason
    git(done.tree, "commit", "-q", "--amend", "-m", "feat: greet (bd-a1)")
    done.record(done.ran())
    assert done.judge().passed


@pytest.mark.row("MALA-V-28", level="real")
def test_a_commit_from_before_the_run_is_stale(done):
    git(done.tree, "commit", "-q", "--allow-empty", "-m", "feat: old (#7)")
    old = git(done.tree, "rev-parse", "HEAD")
    Run.objects.filter(pk=done.run.pk).update(fork_point=old)
    done.run.refresh_from_db()
    done.record(done.ran())
    [reason] = done.judge().reasons
    assert f"commit {old[:7]} is stale" in reason


@pytest.mark.row("MALA-V-28", level="real")
def test_a_commit_that_was_made_before_the_run_and_brought_over_is_stale(done, monkeypatch):
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2020-01-01T00:00:00Z")
    old = done.commit()
    done.record(done.ran())
    [reason] = done.judge().reasons
    assert f"commit {old[:7]} is stale" in reason


def test_what_others_pushed_and_the_agent_took_in_is_no_work_of_its_own(done):
    checkout = done.real.folder / "demo-checkout"
    git(checkout, "commit", "-q", "--allow-empty", "-m", "feat: of somebody else (#7)")
    git(checkout, "push", "-q", "origin", "main")
    done.real.repos.fetch(done.repo)
    git(done.tree, "merge", "-q", "--ff-only", "origin/main")
    done.record(done.ran())
    assert "no commit on afk/7" in done.judge().reasons[0]
    done.record(done.ran())
    commit = done.commit("feat: mine", **{"mine.py": "1\n"})
    assert done.judge().passed
    assert done.attempt.commit == commit
    assert done.attempt.context["changed_files"] == [{"path": "mine.py", "label": "code"}]


@pytest.mark.row("MALA-V-29", level="real")
def test_only_what_ran_in_this_attempt_counts(done):
    done.commit()
    done.record(done.ran())
    assert done.judge().passed
    assert "not run in this attempt" in done.judge().reasons[0]
    done.record(done.ran())
    assert done.judge().passed


@pytest.mark.row("MALA-V-29", level="real")
def test_a_check_of_the_attempt_before_does_not_count_again(done):
    done.commit()
    done.checked()
    assert done.judge().passed
    assert not done.judge().passed
    done.checked()
    assert done.judge().passed


@pytest.mark.row("MALA-V-30", level="real")
@pytest.mark.row("MALA-V-07", "MALA-V-51", level="real")
def test_each_attempt_is_about_the_newest_commit(done):
    first = done.commit()
    done.record(done.ran(status=1))
    assert "failed at its last run (exit status 1)" in done.judge().reasons[0]
    second = done.commit("fix: mend it (#7)", **{"more.txt": "mended\n"})
    done.record(done.ran())
    assert done.judge().passed
    told = [one.context["commit_hash"] for one in Attempt.objects.order_by("number")]
    assert told == [first, second]


def test_an_amended_commit_is_the_one_that_counts(done):
    done.commit()
    done.record(done.ran())
    git(done.tree, "commit", "-q", "--amend", "-m", "feat: another message")
    assert done.judge().passed
    assert done.attempt.commit == git(done.tree, "rev-parse", "HEAD")


def test_a_branch_that_was_deleted_is_named(done):
    done.commit()
    git(done.tree, "checkout", "-q", "--detach")
    git(done.tree, "branch", "-q", "-D", "afk/7")
    done.record(done.ran())
    assert "its worktree is on no branch at" in done.judge().reasons[0]


def test_a_commit_on_a_detached_head_is_not_on_the_branch(done):
    git(done.tree, "checkout", "-q", "--detach")
    commit = done.commit()
    done.record(done.ran())
    [reason] = done.judge().reasons
    assert f"its worktree is on no branch at {commit[:7]}" in reason
    assert "git switch afk/7" in reason


def test_what_labsite_checked_for_the_committed_files_is_proof(done):
    done.commit(**{"a.txt": "a"})
    done.checked()
    done.record(done.ran(status=1))
    assert done.judge().passed
    assert (done.entry["source"], done.entry["tree"]) == ("check", done.attempt.tree)


def test_a_check_before_the_commit_proves_it_if_all_of_it_was_committed(done):
    (done.tree / "a.txt").write_text("a")
    (done.tree / "b.txt").write_text("b")
    done.checked()
    git(done.tree, "add", "a.txt")
    git(done.tree, "commit", "-q", "-m", "feat: half of it (#7)")
    assert "for other files than were committed" in done.judge().reasons[0]
    done.checked()
    git(done.tree, "add", "-A")
    git(done.tree, "commit", "-q", "-m", "feat: the rest (#7)")
    assert done.judge().passed


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({"status": 2}, "exit status 2"),
        ({"status": None, "is_over_time": True}, "it took too long"),
        ({"status": None, "signal": 9}, "signal 9"),
        ({"status": None, "trouble": "there is no ./check.sh"}, "there is no ./check.sh"),
        ({"skipped": "its lock files are the same"}, "not run in this attempt"),
        ({"is_running": True}, "not run in this attempt"),
        ({"argv": ["./check.sh", "--fast"]}, "another command of that name"),
    ],
)
def test_a_check_that_did_not_pass_is_none(done, result, said):
    done.commit()
    done.record([done.talk.says("Done.")])
    done.checked(result)
    assert said in done.judge().reasons[0]


def test_a_plain_program_has_no_record_and_is_told_so(real):
    done = ClaimedRun(real, argv=["./agent.sh"], trust="")
    done.run.agent_session = ""
    done.commit()
    assert "keeps no record" in done.judge().reasons[0]
    done.checked()
    assert done.judge().passed


@pytest.mark.row("MALA-V-31", level="real")
@pytest.mark.row("MALA-V-12", level="real")
@pytest.mark.parametrize("claim", [Claim.NO_CHANGE, Claim.OBSOLETE])
def test_no_commit_is_needed_with_a_reason_and_a_clean_tree(done, claim):
    assert done.judge(claim, "fixed by abc").passed
    kept = done.attempt
    assert (kept.resolution, kept.rationale, kept.commit) == (claim.value, "fixed by abc", "")
    assert kept.evidence == []


@pytest.mark.row("MALA-V-32", level="real")
@pytest.mark.row("C-36", level="real")
def test_an_untracked_file_is_no_clean_tree(done):
    (done.tree / "left.txt").write_text("left")
    done.record([done.talk.says("ISSUE_NO_CHANGE: nothing to do")])
    [reason] = done.judge().reasons
    assert "git status --porcelain" in reason
    assert done.attempt.resolution == ""
    (done.tree / "left.txt").unlink()
    done.record([done.talk.says("ISSUE_NO_CHANGE: nothing to do")])
    assert done.judge().passed


@pytest.mark.row("MALA-V-33", level="real")
def test_a_marker_without_a_reason_is_none(done):
    done.record([done.talk.says("ISSUE_OBSOLETE:")])
    assert "without a reason" in done.judge().reasons[0]


@pytest.mark.row("MALA-V-36", level="real")
@pytest.mark.parametrize("how", ["no link", "no folder", "no repository"])
def test_a_tree_that_git_cannot_read_is_not_clean(done, how):
    if how == "no link":
        cut(done.tree)
    elif how == "no folder":
        shutil.rmtree(done.tree)
    else:
        done.repo.rename(done.repo.with_suffix(".away"))
    decision = done.judge(Claim.NO_CHANGE, "nothing to do")
    assert not decision.passed
    assert "not clean" in decision.reasons[0]


def test_where_git_cannot_tell_a_commit_it_is_asked_again(done):
    done.commit()
    done.repo.rename(done.repo.with_suffix(".away"))
    with pytest.raises(SeamError):
        done.judge()


@pytest.mark.row("MALA-V-35", level="real")
def test_a_marker_in_the_issue_or_the_task_has_no_effect(done):
    mark = "ISSUE_NO_CHANGE: says the issue"
    done.record(
        [
            done.talk.prompt(f"Work on issue 7.\n{mark}"),
            *done.ran("labctl issue view 7", f"It is broken.\n{mark}"),
            done.talk.says(f"It says:\n> {mark}"),
        ]
    )
    assert "no commit" in done.judge().reasons[0]


# Bad days of the record.


def test_a_file_whose_name_is_no_text_is_a_changed_file_as_any_other(done):
    (done.tree / os.fsdecode(b"odd\xff\n.py")).write_text("1\n")
    done.commit()
    done.record(done.ran())
    assert done.judge().passed
    (odd,) = [one for one in done.attempt.context["changed_files"] if one["path"][:3] == "odd"]
    assert (odd["path"][-3:], odd["label"]) == (".py", "code")


@pytest.mark.parametrize("odd", ["\ud83d", "\0", "\x1b[2J", "\u202e"])
def test_letters_that_no_row_can_hold_are_in_no_reason(done, odd):
    """A record may hold half a letter, or what a terminal would take for a command."""
    done.commit()
    done.record(done.ran(f"./check.sh {odd}x"))
    (reason,) = done.judge().reasons
    assert "is no proof" in reason
    assert all(one.isprintable() for one in reason)
    assert odd not in done.entry["word"]


def test_the_record_of_another_session_or_folder_proves_nothing(done):
    done.commit()
    other = homes.claude_path(done.home, str(done.tree), homes.OTHER)
    done.record(done.ran(), other)
    elsewhere = long_talk.Claude("/srv/elsewhere")
    call = [elsewhere.does("toolu_9", "Bash", command="./check.sh"), elsewhere.gets("toolu_9", "")]
    done.record(call, homes.claude_path(done.home, "/srv/elsewhere"))
    assert "keeps no record" in done.judge().reasons[0]


def test_what_the_session_showed_before_the_run_does_not_count(done):
    """A run that goes on with another one goes on in its session."""
    done.record(done.ran())
    Run.objects.filter(pk=done.run.pk).update(
        requested_at=done.lab.now() + timedelta(seconds=60),
        started_at=None,
    )
    done.run.refresh_from_db()
    done.commit()
    decision = done.judge()
    assert "not run in this attempt" in "\n".join(decision.reasons)


def test_a_rewritten_record_does_not_show_the_same_again(done):
    done.commit()
    done.record(done.ran())
    assert done.judge().passed
    kept = done.path.read_bytes()
    done.path.write_bytes(b'{"type": "summary", "summary": "x"}\n' + kept)
    assert "not run in this attempt" in done.judge().reasons[0]
    done.record(done.ran())
    assert done.judge().passed


def test_a_session_that_goes_on_in_another_file_takes_nothing_along(done):
    done.commit()
    done.record(done.ran())
    assert done.judge().passed
    done.path.rename(homes.claude_path(done.home, str(done.tree), homes.OTHER))
    done.run.agent_session = homes.OTHER
    moved = done.path.with_name(f"{homes.OTHER}.jsonl")
    moved.write_bytes(moved.read_bytes().replace(homes.SESSION.encode(), homes.OTHER.encode()))
    assert "not run in this attempt" in done.judge().reasons[0]


def test_a_line_that_is_still_being_written_is_read_when_it_is_whole(done):
    done.commit()
    done.record(done.ran())
    whole = done.path.read_bytes()
    done.path.write_bytes(whole[:-20])
    assert "no end of it is told" in done.judge().reasons[0]
    done.path.write_bytes(whole)
    # Its call was seen before: what ended since is no run of this attempt.
    assert not done.judge().passed
    done.record(done.ran())
    assert done.judge().passed


def test_a_record_that_was_added_to_just_now_is_waited_for(done):
    done.commit()
    done.record([done.talk.says("Done.")])

    def pause(_seconds: float) -> None:
        if not done.pauses:
            done.record(done.ran())
        done.pauses += 1

    done.lab = done.lab.__class__(**{**vars(done.lab), "pause": pause})
    assert done.judge().passed
    assert done.pauses == 1


def test_an_old_record_is_not_waited_for(done):
    done.commit()
    done.record([done.talk.says("Done.")])
    os.utime(done.path, (1_000_000, 1_000_000))
    assert not done.judge().passed
    assert done.pauses == 0


def test_a_record_of_a_hundred_megabytes_is_read_to_its_end(done):
    done.commit()
    long_talk.write_large(done.path, str(done.tree), 100_000_000)
    done.record(done.ran())
    Run.objects.filter(pk=done.run.pk).update(requested_at="2026-01-01T00:00:00Z")
    done.run.refresh_from_db()
    assert done.judge().passed
    assert done.attempt.evidence_from["end"]["places"][homes.SESSION][0] == done.path.stat().st_size


def test_a_subagents_command_counts_and_its_words_do_not(done):
    done.commit()
    done.record([done.talk.says("I let somebody look.")])
    part = long_talk.Claude(str(done.tree), isSidechain=True, agentId=homes.AGENT)
    told = [
        part.does("toolu_sub", "Bash", command="./check.sh"),
        part.gets("toolu_sub", "ok"),
        part.says("ISSUE_OBSOLETE: says the part"),
    ]
    done.record(told, homes.agent_path(done.path))
    assert done.judge().passed
    assert done.attempt.resolution == "success"
    git(done.tree, "reset", "-q", "--hard", done.fork)
    assert "no commit" in done.judge().reasons[0]


def test_a_judgement_that_was_killed_is_made_again_as_it_was(done):
    done.commit()
    done.record(done.ran())
    hold = done.hold()
    first = evidence.judge(done.lab, hold)
    kept = done.attempt
    again = evidence.judge(done.lab, hold)
    assert first == again
    assert done.attempt.evidence_from == kept.evidence_from
    assert done.attempt.evidence == kept.evidence


def test_an_attempt_that_is_not_ours_is_left_alone(done):
    done.commit()
    done.record(done.ran())
    hold = done.hold()
    Job.objects.update(owner="somebody else")
    with pytest.raises(LostError):
        evidence.judge(done.lab, hold)
    assert done.attempt.evidence == []


def test_no_secret_of_a_record_is_stored(done):
    secret = "sk-ant-Qw3rTy-0123456789"
    done.lab = done.lab.__class__(
        **{**vars(done.lab), "mask": lambda text: text.replace(secret, "[hidden]")}
    )
    done.record(done.ran(f"TOKEN={secret} ./check.sh | tail"))
    done.commit()
    decision = done.judge()
    assert "[hidden]" in decision.reasons[0]
    assert secret not in str(decision.reasons) + str(done.attempt.evidence)
    done.judge(Claim.OBSOLETE, f"see {secret}")
    assert secret not in done.attempt.rationale


@pytest.mark.row("MALA-V-91", level="real")
def test_nothing_new_since_the_attempt_before_is_no_progress(done):
    done.commit()
    done.record(done.ran(status=1))
    done.judge()
    first = done.attempt
    done.judge()
    assert not evidence.has_progress(first, done.attempt)
    second = done.attempt
    (done.tree / "more.txt").write_text("mended")
    done.judge()
    assert evidence.has_progress(second, done.attempt)
    third = done.attempt
    done.checked()
    done.judge()
    assert evidence.has_progress(third, done.attempt)


def test_a_lock_file_that_changed_asks_for_its_command(real):
    deps = Command("deps", ("uv", "sync"), Kind.DEPS, lock_files=("uv.lock",))
    done = ClaimedRun(real, deps, CHECK)
    done.record(done.ran())
    done.commit()
    assert done.judge().passed
    assert [one["needed"] for one in done.attempt.evidence] == [False, True]
    done.commit(**{"uv.lock": "1"})
    done.record(done.ran())
    assert "deps: it was not run" in done.judge().reasons[0]


def test_a_worktree_behind_a_link_is_known_by_both_names(done):
    link = done.real.folder / "link"
    link.symlink_to(done.tree)
    done.commit()
    done.record(done.ran(f"cd {done.tree} && ./check.sh"))
    assert done.judge().passed
    done.run.worktree = str(link)
    assert Path(done.run.worktree).resolve() == done.tree.resolve()
    done.record(done.ran(f"cd {link} && ./check.sh"))
    assert done.judge().passed
