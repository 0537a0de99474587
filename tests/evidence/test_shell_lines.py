"""What a line's exit status tells of each command in it, and where it tells nothing."""

from __future__ import annotations

import pytest

from runs.evidence import shell_lines

W = "/w"


def told(line: str, status: int | None = 0) -> list[tuple[str, str | None, int | None]] | None:
    found = shell_lines.read(line, status, W)
    if found is None:
        return None
    return [(" ".join(one.argv), one.folder, one.status) for one in found]


def status_of(line: str, status: int | None, program: str = "pytest") -> list[int | None]:
    found = shell_lines.read(line, status, W) or []
    return [one.status for one in found if one.argv[0] == program]


@pytest.mark.parametrize(
    ("line", "status", "told_of_pytest"),
    [
        ("pytest", 0, [0]),
        ("pytest", 3, [3]),
        ("pytest", None, [None]),
        ("pytest -q 2>&1 | tail -5", 0, [None]),
        ("pytest |& head", 0, [None]),
        ("cat x | pytest", 0, [0]),
        ("set -o pipefail; pytest | tail -5", 0, [0]),
        ("set -o pipefail; pytest | tail -5", 1, [None]),
        ("set -euo pipefail\npytest | tee log\nruff check .", 0, [0]),
        ("set -o pipefail; set +o pipefail; pytest | tail", 0, [None]),
        ("ruff check . && pytest && mypy", 0, [0]),
        ("ruff check . && pytest && mypy", 1, [None]),
        ("pytest; ruff check .", 0, [None]),
        ("ruff check .; pytest", 0, [0]),
        ("ruff check .\npytest", 2, [2]),
        ("set -e; pytest; ruff check .", 0, [0]),
        ("set -e; pytest && true; ruff check .", 0, [None]),
        ("set -e; ruff check .; pytest", 1, [None]),
        ("pytest || true", 0, [None]),
        ("pytest || exit 1", 0, [None]),
        ("pytest & wait", 0, [None]),
        ("pytest &", 0, [None]),
        ("exit 0; pytest", 0, []),
        ("exec true; pytest", 0, []),
        ("cd sub || exit 1; pytest", 0, [0]),
        ("! pytest", 0, []),
        ("if pytest; then echo yes; fi", 0, []),
        ("for n in 1 2; do pytest; done", 0, []),
        ("(pytest)", 0, []),
        ("pytest() { true; }; pytest", 0, []),
        ("alias pytest=true; pytest", 0, []),
        ("eval pytest", 0, []),
        ("source ./env.sh && pytest", 0, []),
        ("source .venv/bin/activate && pytest", 0, [0]),
        ("set -n; pytest", 0, []),
        ("bash -nc pytest", 0, []),
        ("pytest 'open", 0, []),
        ("echo pytest", 0, []),
        ("# pytest\ntrue", 0, []),
        ("true # && pytest", 0, []),
        ("cat > x <<'EOF'\npytest\nEOF", 0, []),
        ("cat > x <<EOF\npytest\nEOF\npytest", 0, [0]),
        ("cat > x <<EOF\npytest", 0, []),
        ("git commit -m \"$(cat <<'EOF'\nIt's done; pytest passes\nEOF\n)\" && pytest", 0, [0]),
        ('echo "$(date +"%s") (now)" && pytest', 0, [0]),
        ("echo `pytest`", 0, []),
        ("pytest > log 2>&1", 1, [1]),
        ("pytest 2>/dev/null >log; tail log", 0, [None]),
        ("CI=1 FOO='a b' timeout -k 5 10m pytest", 0, [0]),
        ("time nice -n 5 env A=1 pytest", 0, [0]),
        ("timeout pytest", 0, []),
        ("pytest \\\n  -q \\\n  tests", 0, [0]),
        ("ruff check . &&\n  pytest", 0, [0]),
        ("bash -lc 'ruff check . && pytest'", 0, [0]),
        ("bash -lc 'pytest | tail'", 0, [None]),
        ("bash -euo pipefail -c 'pytest | tail'", 0, [0]),
        ("/bin/sh -c \"bash -c 'pytest'\"", 4, [4]),
        ("bash -c 'pytest' || true", 0, [None]),
        ('bash -c "$X" pytest', 0, []),
        ("bash check.sh pytest", 0, []),
        ("", 0, []),
        ("x" * 30_000, 0, []),
    ],
)
def test_a_status_is_told_only_where_the_shell_leaves_no_other(line, status, told_of_pytest):
    assert status_of(line, status) == told_of_pytest


@pytest.mark.parametrize(
    ("line", "folder"),
    [
        ("pytest", W),
        ("cd /x && pytest", "/x"),
        ("cd sub && pytest", "/w/sub"),
        ("cd sub; cd ..; pytest", W),
        ("cd . && pytest", W),
        ('cd "$HOME" && pytest', None),
        ("cd && pytest", None),
        ("cd - && pytest", None),
        ("cd ~/x && pytest", None),
        ("pushd sub && pytest", None),
        ("cd sub | cat; pytest", W),
        ("bash -c 'cd sub && pytest'", "/w/sub"),
        ("bash -c 'cd sub'; pytest", W),
    ],
)
def test_the_folder_of_a_command_follows_cd(line, folder):
    found = shell_lines.read(line, 0, W) or []
    assert [one.folder for one in found if one.argv[0] == "pytest"] == [folder]


def test_quotes_make_one_word_and_redirections_none():
    assert told('pytest -k \'a b\' "c \\"d\\"" e\\ f 2>&1 >out <in') == [
        ('pytest -k a b c "d" e f', W, 0)
    ]
    [one] = shell_lines.read("pytest -k 'a b' \"c d\" e\\ f", 0, W) or []
    assert one.argv == ("pytest", "-k", "a b", "c d", "e f")


def test_nothing_makes_the_reading_fail_or_last():
    for line in (
        "'",
        '"',
        "`",
        "$(",
        "${",
        "((",
        "a |",
        "&&",
        "|| ;",
        "<<",
        "$((1+",
        "\\",
        "a" * 9,
    ):
        shell_lines.read(line * 50, 0, W)
    assert shell_lines.read("$(" * 9000, 0, W) is None
    assert shell_lines.read('"$(' * 6000, 0, W) is None


@pytest.mark.parametrize(
    "line",
    [
        "PATH=/tmp/fake:$PATH pytest",
        "env PYTHONPATH=/tmp/fake pytest",
        "PYTEST_ADDOPTS=--collect-only pytest",
        "LD_PRELOAD=/tmp/lie.so pytest",
        "PATH=/tmp/fake; pytest",
        "export PATH=/tmp/fake:$PATH && pytest",
        "export PATH=/tmp/fake && bash -c 'pytest'",
        "PATH=/tmp/fake bash -c 'pytest'",
        "BASH_ENV=/tmp/lie bash -c 'pytest'",
        "printf -v PATH /tmp/fake && pytest",
        "hash -p /bin/true pytest && pytest",
        "enable -n pytest && pytest",
        "builtin hash -p /bin/true pytest && pytest",
        "shopt -s expand_aliases\npytest",
    ],
)
def test_a_name_that_may_stand_for_another_program_proves_nothing(line):
    assert status_of(line, 0) == [None]


@pytest.mark.parametrize("line", ["CI=1 pytest", "export CI=1 && pytest", "unset X && pytest"])
def test_other_variables_change_no_program(line):
    assert status_of(line, 0) == [0]
