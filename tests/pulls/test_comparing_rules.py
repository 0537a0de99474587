"""Pure rules of a pull request's diff: which commits, which lines, what is remembered."""

from __future__ import annotations

import pytest

from runs.core.recent import Recent
from runs.pulls import patches
from runs.pulls.rules import BRANCH_GONE, NO_COMMITS, Ends, PullFacts, ends

A, B, C, D = (letter * 40 for letter in "abcd")


def facts(**more):
    return PullFacts(**{"is_open": True, "base": "main", "head": "afk/7", **more})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"base_tip": A, "head_tip": B}, Ends(A, B), id="open: its branches"),
        pytest.param(
            {"base_tip": A, "head_tip": B, "stored_base": C, "stored_head": D},
            Ends(A, B),
            id="open: branches before what was stored",
        ),
        pytest.param(
            {"base_tip": A, "stored_head": D}, Ends(A, D, BRANCH_GONE), id="open: head branch gone"
        ),
        pytest.param(
            {"head_tip": B, "stored_base": C}, Ends(C, B), id="open: base branch gone, stored"
        ),
        pytest.param({"head_tip": B}, Ends(note=NO_COMMITS), id="open: no base at all"),
        pytest.param({"base_tip": A}, Ends(note=NO_COMMITS), id="open: no head at all"),
        pytest.param(
            {"is_open": False, "base_tip": A, "head_tip": B, "stored_base": C, "stored_head": D},
            Ends(C, D),
            id="ended: what was stored, whatever the branches are now",
        ),
        pytest.param(
            {"is_open": False, "base_tip": A, "stored_head": D},
            Ends(A, D),
            id="ended: stored without base",
        ),
        pytest.param(
            {"is_open": False, "base_tip": A, "head_tip": B},
            Ends(note=NO_COMMITS),
            id="ended: a branch of that name is another one",
        ),
        pytest.param(
            {"base_tip": A, "head_tip": "--output=/etc/passwd"},
            Ends(note=NO_COMMITS),
            id="what is no commit id reaches no git",
        ),
    ],
)
def test_which_commits_a_pull_request_compares(given, expected):
    assert ends(facts(**given)) == expected


PATCH = """diff --git "a/a\\nb \\"q\\" \\303\\244.txt" "b/a\\nb \\"q\\" \\303\\244.txt"
index 1..2 100644
--- "a/a\\nb \\"q\\" \\303\\244.txt"
+++ "b/a\\nb \\"q\\" \\303\\244.txt"
@@ -1,2 +1,2 @@ def f():
 same
-old
+new
\\ No newline at end of file
diff --git a/run me.sh b/run me.sh
old mode 100644
new mode 100755
diff --git a/x y b/z
similarity index 100%
rename from x y
rename to z
diff --git a/kind b/kind
deleted file mode 100644
--- a/kind
+++ /dev/null
@@ -1 +0,0 @@
-diff --git a/fake b/fake
diff --git a/kind b/kind
new file mode 120000
--- /dev/null
+++ b/kind
@@ -0,0 +1 @@
+hello.txt
"""


def test_a_patch_is_cut_into_its_files_by_their_real_names():
    found = patches.sections(PATCH)
    assert list(found) == ['a\nb "q" ä.txt', "run me.sh", "z", "kind"]
    assert found["kind"].count("diff --git a/kind") == 2


def test_the_lines_of_a_file_carry_their_numbers_and_gits_own_words():
    section = next(iter(patches.sections(PATCH).values()))
    assert [(line.kind, line.old, line.new, line.text) for line in patches.lines(section)] == [
        ("hunk", None, None, "@@ 1 → 1 @@ def f():"),
        ("", 1, 1, "same"),
        ("minus", 2, None, "old"),
        ("plus", None, 2, "new"),
        ("note", None, None, "no newline at the end of the file"),
    ]


@pytest.mark.parametrize(
    ("number", "is_old", "text"),
    [(1, False, "same"), (1, True, "same"), (2, True, "old"), (2, False, "new"), (3, False, None)],
)
def test_a_line_is_found_on_its_side(number, is_old, text):
    section = next(iter(patches.sections(PATCH).values()))
    assert patches.line_at(section, number, is_old=is_old) == text
    assert patches.line_at("nonsense", number, is_old=is_old) is None


def test_what_was_used_last_is_kept_up_to_a_size():
    made = []
    recent = Recent[str](25, len)

    def ask(key):
        return recent.get(key, lambda: made.append(key) or "x" * 9)

    for key in ("a", "b", "a", "c", "a", "b"):
        ask(key)
    assert made == ["a", "b", "c", "b"]
    assert recent.weight <= 25
    recent.get("huge", lambda: "x" * 100)
    assert recent.weight == 0


def test_an_error_is_not_remembered():
    recent = Recent[str](10, len)
    with pytest.raises(ZeroDivisionError):
        recent.get("a", lambda: str(1 // 0))
    assert recent.get("a", lambda: "fine") == "fine"
