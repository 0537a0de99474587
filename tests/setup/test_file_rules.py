"""Which files may be brought along, and which of their values are secret."""

from __future__ import annotations

import pytest

from runs.machine import listing
from runs.secrets import keys
from runs.setup import file_rules

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("path", "why"),
    [
        (".env", ""),
        ("config/local settings.json", ""),
        ("a" * 200 + "/.env", ""),
        ("", "Enter a path inside"),
        ("/etc/passwd", "begins with no /"),
        ("~/.ssh/id_ed25519", "begins with no /"),
        ("../.env", "leave out the dots"),
        ("a/../../.env", "leave out the dots"),
        ("a//b", "empty parts"),
        ("a/./b", "empty parts"),
        ("config/", "names a folder"),
        (".git/hooks/pre-commit", "into .git"),
        (".GIT/config", "into .git"),
        ("sub/.git", "into .git"),
        ("git~1/config", "into .git"),
        (".gitignore", "Commit it"),
        ("sub/.gitattributes", "Commit it"),
        ("a\nb", "can be seen"),
        ("a\\b", "can be seen"),
        ("a\u202eb", "can be seen"),
        ("a\0b", "can be seen"),
        ("a /b", "end with a space"),
        ("é" * 150, "255 bytes"),
        ("a/" * 150 + "b", "300 characters"),
    ],
)
def test_a_path_stays_inside_the_worktree(path: str, why: str) -> None:
    found = file_rules.why_unfit_path(path)
    assert (found == "") == (why == "")
    assert why in found


def test_a_path_is_stored_in_one_form() -> None:
    assert file_rules.normalise_path(" ./.env ") == ".env"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("A=1\n", ""),
        ("x" * file_rules.MOST_BYTES, ""),
        ("x" * file_rules.MOST_BYTES + "y", "this one has 257 KB"),
        ("", "Paste the content"),
        ("a\0b", "Only text"),
        ("\ud800", "Only text"),
    ],
)
def test_a_content_is_text_of_some_size(text: str, why: str) -> None:
    found = file_rules.why_unfit_content(text)
    assert (found == "") == (why == "")
    assert why in found


@pytest.mark.parametrize(
    ("path", "others", "why"),
    [
        (".env", [], ""),
        (".env", [".env"], ""),
        ("config/a", ["config/b"], ""),
        ("config/a", ["config"], "config is a file"),
        ("config", ["config/a"], "config is the folder of config/a"),
        ("50", [str(n) for n in range(50)], "at most 50 files"),
        ("49", [str(n) for n in range(50)], ""),
    ],
)
def test_a_file_stands_beside_the_others(path: str, others: list[str], why: str) -> None:
    found = file_rules.why_in_the_way(path, others)
    assert (found == "") == (why == "")
    assert why in found


def test_so_many_secrets_are_kept_out() -> None:
    assert file_rules.why_too_secret(file_rules.MOST_SECRETS) == ""
    assert "holds 201 values" in file_rules.why_too_secret(201)


KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\n-----END PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "secrets"),
    [
        ("API_KEY=hunter2hunter2\nDEBUG=true\nPORT=8000\n", {"hunter2hunter2"}),
        ("export DB_PASSWORD='with 3 spaces in' # a remark\n", {"with 3 spaces in"}),
        ("SECRET_KEY = abc#def12345 # a remark\n", {"abc#def12345"}),
        ("DATABASE_URL=postgres://me:p4ssw0rd!!@db:5432/x\n", {"p4ssw0rd!!"}),
        ("PLAIN_ID=abc123def456abc123def456\n", {"abc123def456abc123def456"}),
        ("image: postgres-15-alpine\nhost: db.example.com\n", set()),
        ("api_token: 'abcd1234efgh',\n", {"abcd1234efgh"}),
        (
            "//registry.example/:_authToken=npm_0123456789abcdefghijklmnopqrstuv\n",
            {"npm_0123456789abcdefghijklmnopqrstuv"},
        ),
        ("machine x login me password qwert1234\n", {"qwert1234"}),
        ("# The password according to nobody\n", set()),
        ("0123456789abcdef0123456789abcdef\n", {"0123456789abcdef0123456789abcdef"}),
        (f'KEY="{KEY}"\nFOO_TOKEN=abcd-1234\n', {KEY, "abcd-1234"}),
        ('{"a": [{"token": ["abcd-1234-e"]}], "port": 5432}', {"abcd-1234-e"}),
        ("{ not json\npassword=abcd-1234\n", {"abcd-1234"}),
    ],
)
def test_values_that_look_secret_are_found(text: str, secrets: set[str]) -> None:
    assert set(keys.of_file(text)) == secrets


@pytest.mark.parametrize(
    "text",
    [
        *("x" * 250_000, "a=b" + " " * 200_000 + "c", "a=b" + " " * 19_000 + "c\n"),
        *("password " * 25_000, "a=" * 100_000, "\\" * 250_000, "'" * 250_000, "[" * 250_000),
        *("-----BEGIN PRIVATE KEY-----" * 9_000, "A1" * 125_000),
    ],
    ids=lambda text: text[:12],
)
@pytest.mark.timeout(5)
def test_dull_contents_take_no_time(text: str) -> None:
    list(keys.of_file(text))


def test_our_part_of_the_list_of_ignored_files_is_its_end() -> None:
    once = listing.ignoring("*.log", [".env", "odd [name]*.txt"])
    assert once.startswith("*.log\n# Files of the project's set-up (labsite):\n/.env\n")
    assert "\n/odd\\ \\[name\\]\\*.txt\n" in once
    assert listing.ignoring(once, [".env", "odd [name]*.txt"]) == once
    later = listing.ignoring(f"{once}!.env\n", [".env"])
    assert later.index("!.env") < later.index("/.env")
    assert later.count("/.env") == 1


def test_a_page_names_the_first_patterns() -> None:
    text = "# files\n\n.env\n  config/*.json \n" + "x\n" * 50
    found = file_rules.read_patterns(text)
    assert (found[:3], len(found)) == ([".env", "config/*.json", "x"], 20)
