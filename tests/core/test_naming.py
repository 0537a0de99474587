"""Names of sessions, branches and worktrees."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.core import naming
from runs.core.states import RunKind
from trackers.keys import KeyRule


@pytest.mark.row("LAB-01", "LAB-02", "C-04", level="pure")
@pytest.mark.parametrize(
    ("name", "project", "slot", "key", "kind"),
    [
        pytest.param("demo~2~afk-7", "demo", 2, "7", RunKind.MANUAL, id="form of the seed"),
        pytest.param("demo~2~afk-auto-7", "demo", 2, "7", RunKind.AUTO, id="automatic"),
        pytest.param("demo~afk-7", "demo", None, "7", RunKind.MANUAL, id="short form"),
        pytest.param("foo_bar~12~afk-123", "foo_bar", 12, "123", RunKind.MANUAL, id="two digits"),
    ],
)
def test_a_session_name_alone_tells_the_run(name, project, slot, key, kind):
    assert naming.parse_session(name) == naming.RunName(project, slot, key, kind)


@pytest.mark.row("LAB-03", level="pure")
@pytest.mark.parametrize(
    "label",
    [
        *("afk", "afk-", "afk-x", "afk-0", "afk--1", "afk-1.5", "afk-1x", "notafk-1", "AFK-1"),
        *(
            "afk-auto",
            "afk-auto-",
            "afk-auto-0",
            "afk-autox",
            "afk-auto-auto-1",
            "afk-feature-20260608-1530",
        ),
        *("", "login", "afk-١", "afk-7 ", "afk-7\n"),
    ],
)
@pytest.mark.parametrize("form", ["demo~2~{}", "demo~{}"])
def test_a_label_counts_only_when_its_whole_suffix_is_a_positive_integer(label, form):
    assert naming.parse_session(form.format(label)) is None


@pytest.mark.row("LAB-03", level="pure")
@pytest.mark.parametrize(
    "name", ["demo", "~2~afk-7", "demo~0~afk-7", "demo~x~afk-7", "demo~2~3~afk-7", "de.mo~2~afk-7"]
)
def test_other_names_are_no_runs(name):
    assert naming.parse_session(name) is None


@pytest.mark.row("LAB-03", level="pure")
@pytest.mark.parametrize(
    "name",
    [
        "demo~99999999999999999999~afk-7",
        "demo~1000000~afk-7",
        "demo~afk-" + "9" * 19,
        "demo~2~afk-auto-" + "9" * 19,
        pytest.param("demo~afk-" + "1" * 4400, id="4400 digits of key"),
        pytest.param(f"demo~{'1' * 4400}~afk-7", id="4400 digits of slot"),
    ],
)
def test_a_number_that_nothing_can_hold_is_no_run_and_no_error(name):
    assert naming.parse_session(name) is None


@pytest.mark.row("LAB-02", level="pure")
def test_the_largest_numbers_that_fit_are_read():
    found = naming.parse_session(f"demo~999999~afk-{'9' * 18}")
    assert found == naming.RunName("demo", 999999, "9" * 18, RunKind.MANUAL)


@pytest.mark.row("LAB-04", level="pure")
@given(st.text(max_size=30), st.integers(1, 99), st.integers(1, 10**6), st.sampled_from(RunKind))
def test_any_project_name_gives_a_session_name_that_reads_back(text, slot, key, kind):
    project = naming.sanitise("p" + text)
    assert naming.SEPARATOR not in project
    name = naming.session_name("p" + text, slot, str(key), kind)
    assert naming.parse_session(name) == naming.RunName(project, slot, str(key), kind)


@pytest.mark.row("LAB-04", level="pure")
def test_slashes_become_dashes_and_all_else_underscores():
    assert naming.sanitise("a/b.c d~e:f") == "a-b_c_d_e_f"


@pytest.mark.row("LAB-05", level="pure")
@pytest.mark.parametrize(
    ("session", "project"),
    [
        ("foo~x", "foo"),
        ("foobar~x", "foobar"),
        ("foo-bar~x", "foo-bar"),
        ("foo", None),
        ("~x", None),
    ],
)
def test_the_project_of_a_session_is_all_before_the_first_boundary(session, project):
    assert naming.session_project(session) == project


@pytest.mark.row("LAB-74", level="pure")
@pytest.mark.parametrize(
    ("branch", "key"),
    [
        ("afk/7", "7"),
        ("afk/", None),
        ("afk/x", None),
        ("afk/7/x", None),
        ("feature/7", None),
        ("afk/07", None),
        ("afk/0", None),
        ("afk/" + "9" * 18, "9" * 18),
        ("afk/" + "9" * 19, None),
    ],
)
def test_only_the_exact_branch_is_a_claim(branch, key):
    assert naming.claimed_key(branch) == key


WORDS = ("bd-a1b2", "bd-a1b2.3", "my_project-x1.2.10", "gt--abc", "auto2-1")


@pytest.mark.row("C-53", level="pure")
@pytest.mark.parametrize("kind", RunKind)
@pytest.mark.parametrize("key", WORDS)
def test_a_word_is_read_back_from_session_and_branch(key, kind):
    session = naming.session_name("de.mo", 2, key, kind)

    assert naming.is_word(session), "tmux would change it"
    assert naming.parse_session(session, KeyRule.WORD) == naming.RunName("de_mo", 2, key, kind)
    assert naming.claimed_key(naming.branch_for(key), KeyRule.WORD) == key
    assert naming.is_managed(naming.branch_for(key))
    assert naming.parse_session(session) is None
    assert naming.claimed_key(naming.branch_for(key)) is None


@pytest.mark.row("C-53", "LAB-03", level="pure")
@pytest.mark.parametrize(
    "label",
    [
        *("afk", "afk-", "afk-x", "afk-0", "afk-7", "afk--1", "afk-1x", "AFK-bd-1", "notafk-bd-1"),
        *("afk-auto", "afk-auto-0", "afk-autox", "afk-auto-auto-1", "afk-bd-a_", "afk-bd-a___b"),
        *("afk-feature-20260608-1530", "afk-bd-a1.2", "afk-bd-ä", "afk-bd-1\n"),
    ],
)
def test_what_is_no_key_of_words_is_no_run_there(label):
    assert naming.parse_session(f"demo~2~{label}", KeyRule.WORD) is None


@pytest.mark.row("C-53", "LAB-74", level="pure")
@pytest.mark.parametrize(
    "branch",
    ["afk/", "afk/7", "afk/x", "afk/bd-1/x", "afk/bd-1..2", "afk/auto-1", "lab/bd-1", "bd-1"],
)
def test_what_is_no_branch_of_a_word_claims_nothing(branch):
    assert naming.claimed_key(branch, KeyRule.WORD) is None


@pytest.mark.parametrize(
    ("prefix", "default_branch", "reason"),
    [
        ("afk/", "main", ""),
        ("agent/issue-", "main", ""),
        ("feature/x_", "", ""),
        ("main-", "main", ""),
        ("", "main", "Write a prefix"),
        ("x" * 60 + "/", "", "At most 60 characters"),
        ("a b/", "", "Use letters, digits"),
        ("a~b/", "", "Use letters, digits"),
        ("a$(b)/", "", "Use letters, digits"),
        ("ä/", "", "Use letters, digits"),
        ("a\n/", "", "Use letters, digits"),
        ("/a/", "", "It cannot begin with / or -."),
        ("-a/", "", "It cannot begin with / or -."),
        ("afk", "", "End it with /, - or _"),
        ("a//", "", "Git allows no //"),
        ("a../", "", "Git allows no // and no .."),
        ("a/.b/", "", "begins with a dot"),
        ("a.lock/", "", "ends in .lock"),
        ("refs/heads/a/", "", "Leave out refs/heads/"),
        ("lab/", "", "lab/ is for sessions"),
        ("lab/x-", "", "lab/ is for sessions"),
        ("release-", "release-7", "would be taken for a claim"),
        ("main/", "main", "beside the branch main"),
    ],
)
def test_a_prefix_is_fit_for_branches(prefix: str, default_branch: str, reason: str) -> None:
    fits = contextlib.nullcontext()
    with pytest.raises(ValueError, match=re.escape(reason)) if reason else fits:
        naming.check_prefix(prefix, default_branch)


@pytest.mark.row("LAB-74", "LAB-114", level="pure")
@pytest.mark.parametrize(
    ("branch", "key", "is_managed"),
    [
        ("bot/issue-7", "7", True),
        ("afk/7", "7", True),
        ("bot/issue-x", None, True),
        ("bot/issue-", None, False),
        ("bot/7", None, False),
        ("other/7", None, False),
    ],
)
def test_each_prefix_that_a_project_has_or_had_is_a_claim(
    branch: str, key: str | None, is_managed: bool
) -> None:
    prefixes = ("bot/issue-", "afk/")
    assert naming.claimed_key(branch, prefixes=prefixes) == key
    assert naming.is_managed(branch, prefixes) is is_managed


@pytest.mark.row("C-53", level="pure")
def test_no_two_projects_share_the_folder_of_a_word():
    assert naming.worktree_name("demo", "bd-a1.2") == "demo.bd-a1.2"
    assert naming.worktree_name("demo-bd", "7") == "demo-bd-7"
    assert naming.worktree_name("demo", "bd-7") == "demo.bd-7"


@pytest.mark.row("LAB-71", level="pure")
@given(st.text(max_size=20))
def test_no_worktree_folder_holds_a_tilde(text):
    assert "~" not in naming.worktree_name(text, "7")


@pytest.mark.parametrize(
    ("text", "project"),
    [("demo", "demo"), ("demo~2~afk-7", "demo"), ("", ""), ("../etc; rm", ""), ("\x00", "")],
)
def test_a_wake_up_names_a_project_or_one_of_its_sessions(text, project):
    assert naming.woken_project(text) == project


def test_a_hundred_ports_a_slot_below_those_that_systems_give_away():
    bases = [int(naming.ports_env(slot)["LAB_PORT_BASE"]) for slot in range(1, 121)]
    assert bases[:2] == [20_000, 20_100]
    assert len(set(bases)) == 120
    assert max(bases) + naming.PORTS <= 32_768
    assert naming.ports_env(121) == naming.ports_env(1)
    assert naming.ports_env(None) == {}
