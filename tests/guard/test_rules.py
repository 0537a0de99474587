"""What is put right in the repository that runs share, as a table."""

from __future__ import annotations

import pytest

from runs.core.kept_ports import SharedState
from runs.guard import rules

pytestmark = pytest.mark.pure

CONFIG = """\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
[remote "origin"]
\turl = /srv/origin.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
[gc]
\tauto = 0
"""
HEAD = "ref: refs/heads/none\n"
# What may stand for `core.bare`, and whether git takes it for true.
VALUES = {
    '"true"': True,
    "true # x": True,
    "yes ; x": True,
    'o"n" ': True,
    "tr\\\nue": True,
    "TRUE": True,
    "2": True,
    "0x1k": True,
    "false # true": False,
    '"no"': False,
    "": False,
    '""': False,
    "0": False,
    "00": False,
}
USUAL = SharedState({"config": CONFIG, "HEAD": HEAD})


def changed(config: str | None = None, **files: str) -> SharedState:
    texts = {**USUAL.files, **{name.replace("__", "/"): text for name, text in files.items()}}
    return SharedState({**texts, "config": config} if config is not None else texts)


def test_nothing_is_done_where_nothing_changed():
    repair = rules.plan_repair(USUAL, USUAL)
    assert (repair.names, repair.files, repair.hooks) == ((), {}, ())
    assert repair.state == USUAL


@pytest.mark.parametrize(
    ("config", "names"),
    [
        pytest.param(CONFIG + "\thooksPath = x\n", ("gc.hookspath",), id="a key of any section"),
        pytest.param(CONFIG + "[core]\n\thooksPath = /x\n", ("core.hookspath",), id="hooks"),
        pytest.param(CONFIG.replace("bare = true", "bare = false"), ("core.bare",), id="not bare"),
        pytest.param(CONFIG.replace("bare = true", "bare"), (), id="the same in other words"),
        pytest.param(CONFIG + "[extensions] worktreeConfig = true\n", ("extensions.worktreeconfig",), id="one line"),
        pytest.param(CONFIG + "[user]\n\tname = x\n\temail = y\n", ("user.email", "user.name"), id="a name"),
        pytest.param(CONFIG + "what is this\n", ("gc.what is this", ), id="not understood"),
        pytest.param(CONFIG + '[branch "afk/7"]\n\tremote = origin\n', (), id="a branch"),
        pytest.param(CONFIG + "# a remark\n\n", (), id="a remark"),
        pytest.param("", ("core.bare", "core.filemode", "core.repositoryformatversion", "gc.auto",
                          "remote.origin.fetch", "remote.origin.url"), id="emptied"),
    ],
)  # fmt: skip
def test_settings_that_changed_while_runs_worked_are_put_back(config, names):
    repair = rules.plan_repair(changed(config), USUAL)
    assert repair.names == tuple(name.replace("gc.what is this", "what is this") for name in names)
    assert repair.files == ({"config": CONFIG} if names else {})


@pytest.mark.parametrize(
    ("bad", "names"),
    [
        pytest.param("[core]\n\tbare = false\n", ("core.bare",), id="not bare"),
        pytest.param("[core]\n\tworktree = /x\n", ("core.worktree",), id="elsewhere"),
        pytest.param("[core]\n\thooksPath = /x\n", ("core.hookspath",), id="hooks"),
        pytest.param("[extensions]\n\tworktreeConfig\n", ("extensions.worktreeconfig",), id="row 1"),
        pytest.param("[core]\n\trepositoryFormatVersion = 9\n", ("core.repositoryformatversion",), id="version"),
    ],
)  # fmt: skip
def test_what_git_cannot_work_with_goes_although_nobody_knows_who_set_it(bad, names):
    repair = rules.plan_repair(changed(CONFIG + bad), None)
    assert repair.names == names
    text = repair.files["config"]
    assert text is not None
    assert rules.plan_repair(changed(text), None).names == ()
    assert "url = /srv/origin.git" in text
    assert "bare = true" in text


def test_what_a_person_set_while_no_run_worked_is_accepted():
    found = changed(CONFIG + "[http]\n\tproxy = http://proxy\n", info__attributes="* text\n")
    repair = rules.plan_repair(found, None)
    assert (repair.names, repair.state) == ((), found)


def test_other_files_are_written_back_or_removed():
    found = changed(HEAD="ref: refs/heads/main\n", objects__info__alternates="/x\n", commondir="/x")
    repair = rules.plan_repair(found, USUAL)
    assert repair.names == ("HEAD", "commondir", "objects/info/alternates")
    assert repair.files == {"HEAD": HEAD, "commondir": None, "objects/info/alternates": None}
    assert repair.state == USUAL


def test_a_file_that_is_gone_comes_back():
    repair = rules.plan_repair(SharedState({"HEAD": HEAD}), USUAL)
    assert (repair.names, repair.files) == (("config",), {"config": CONFIG})


def test_hooks_that_are_new_or_others_are_taken_away():
    before = SharedState(USUAL.files, {"post-fetch": "a", "update": "b", "gone": "d"})
    found = SharedState(USUAL.files, {"post-fetch": "a", "update": "c", "pre-commit": "e"})
    repair = rules.plan_repair(found, before)
    assert repair.hooks == ("pre-commit", "update")
    assert repair.names == ("hook pre-commit", "hook update")
    assert repair.state.hooks == {"post-fetch": "a"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param("[core]\n\tbare = false\n", (), id="usual"),
        pytest.param("[core]\n\tbare = true\n", ("core.bare",), id="bare"),
        pytest.param("[core]\n\tworktree = ../b\n", ("core.worktree",), id="elsewhere"),
        pytest.param("[extensions]\n\tmade = up\n", ("extensions.made",), id="unknown extension"),
        pytest.param("[extensions]\n\tworktreeConfig = true\n", (), id="as sparse checkouts have"),
        pytest.param("[core]\n\trepositoryformatversion = 7\n", ("core.repositoryformatversion",), id="version"),
    ],
)  # fmt: skip
def test_what_keeps_git_from_working_in_a_run_s_own_repository(text, names):
    assert rules.find_own_trouble(text) == names


def test_the_sentences_name_what_changed_and_what_was_not_harmed():
    assert "core.bare, hook update" in rules.describe_repair(["core.bare", "hook update"], 0)
    assert "2 other runs worked" in rules.describe_repair(["core.bare"], 2)
    assert "and 4 more" in rules.describe_found([f"a.{n}" for n in range(12)])
    assert (
        "git --work-tree=. config --file .git/config --unset-all core.bare"
        in rules.describe_own_trouble(["core.bare"])
    )
    assert "While checks or a fixer worked" in rules.describe_repair_beside_checks(["HEAD"])


def test_no_text_of_an_agent_stands_in_a_command_to_copy():
    names = rules.find_own_trouble('[extensions "x; rm -rf ~ #"]\n\tmade = up\n')
    assert names == ("extensions.x; rm -rf ~ #.made",)
    said = rules.describe_own_trouble(names)
    assert "rm -rf" not in said
    assert said.endswith("To undo it: look into .git/config of its worktree")


@pytest.mark.parametrize(("value", "is_bare"), VALUES.items())
def test_whether_a_repository_is_bare_is_told_by_git_s_rules(value, is_bare):
    text = f"[core]\n\tbare = {value}\n"
    assert rules.find_own_trouble(text) == (("core.bare",) if is_bare else ())
    repair = rules.plan_repair(changed(text), None)
    assert repair.names == (() if is_bare else ("core.bare",))


@pytest.mark.parametrize(
    "hidden",
    [
        pytest.param(
            "# a remark \\\n[core]\n\thooksPath = /x\n", id="a remark that seems to go on"
        ),
        pytest.param("\tx = 1 # \\\n[core] hooksPath = /x\n", id="one after a value"),
        pytest.param('[core] # \x0c[branch "x"]\n\thooksPath = /x\n', id="no end of a line"),
    ],
)
def test_nothing_hides_from_the_guard_what_git_reads(hidden):
    assert "core.hookspath" in rules.plan_repair(changed(CONFIG + hidden), USUAL).names


def test_a_repair_begins_on_a_line_of_its_own():
    text = rules.plan_repair(changed("[core]\n\tbare = no\n[gc]\n\tauto = 0"), None).files["config"]
    assert text == "[core]\n[gc]\n\tauto = 0\n[core]\n\tbare = true\n"


@pytest.mark.parametrize(
    ("name", "text"), [("config", CONFIG), ("HEAD", HEAD), ("commondir", None)]
)
def test_what_cannot_be_read_counts_as_changed_while_runs_work(name, text):
    files = {one: kept for one, kept in USUAL.files.items() if one != name}
    repair = rules.plan_repair(SharedState(files, unread=frozenset({name})), USUAL)
    assert (repair.names, repair.files) == ((name,), {name: text})
    assert repair.state == USUAL


def test_a_folder_of_hooks_that_cannot_be_read_is_put_aside():
    repair = rules.plan_repair(SharedState(USUAL.files, unread=frozenset({"hooks"})), USUAL)
    assert (repair.names, repair.hooks) == (("hooks",), (".",))


@pytest.mark.parametrize(
    ("name", "shown"),
    [("a\udcff", "a\\xff"), ("a\n\x00b\x1b", "a\\n\\x00b\\x1b"), ("Größe ü", "Größe ü")],
)
def test_names_are_cleaned_to_be_stored_and_shown(name, shown):
    assert rules.clean_name(name) == shown
    assert shown in rules.describe_repair([name], 0)
