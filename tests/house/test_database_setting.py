"""LAB_DATABASE_URL: what it may say, and what is said when it cannot be meant or nobody answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from labsite import database, env
from labsite.mend import mend
from runs.core.paths import Paths
from tests.house.product import lab

FILE = Path("/state/lab.sqlite3")
NAMES = ("USER", "PASSWORD", "HOST", "PORT", "NAME")


@pytest.mark.parametrize(
    ("url", "read"),
    [
        pytest.param("postgres://u:p@h:5433/n", ("u", "p", "h", "5433", "n"), id="all of it"),
        pytest.param("postgresql://h/n", ("", "", "h", "", "n"), id="the long name, no user"),
        pytest.param("postgres:///n?host=/run/pg", ("", "", "/run/pg", "", "n"), id="a socket"),
        pytest.param("postgres://u@%2Frun%2Fpg/n", ("u", "", "/run/pg", "", "n"), id="encoded"),
        pytest.param("postgres://u:p%40s%2Fs%3A@h/n", ("u", "p@s/s:", "h", "", "n"), id="password"),
        pytest.param("postgres://[::1]:5432/n", ("", "", "::1", "5432", "n"), id="IPv6"),
        pytest.param("postgres://a,b/n?port=1,2", ("", "", "a,b", "1,2", "n"), id="two servers"),
    ],
)
def test_an_address_is_read_as_psql_reads_it(url: str, read: tuple[str, ...]) -> None:
    found = database.settings(url, FILE)
    assert tuple(found[name] for name in NAMES) == read
    assert found["ENGINE"] == "labsite.engines.postgresql"


def test_options_of_the_address_win_over_ours() -> None:
    options = database.settings("postgres://h/n?sslmode=require&connect_timeout=20", FILE)[
        "OPTIONS"
    ]
    assert (options["sslmode"], options["connect_timeout"]) == ("require", "20")
    assert "lock_timeout" in options["options"]


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("mysql://u:verysecret@h/n", id="another server"),
        pytest.param("u:verysecret@h/n", id="no scheme"),
        pytest.param("postgres://u:verysecret@h", id="no database"),
        pytest.param("postgres://u:very@secret@h/n", id="a plain @ in the password"),
        pytest.param("postgres://u:very/secret@h/n", id="a plain / in the password"),
        pytest.param("postgres://u:very%zzsecret@h/n", id="a broken escape"),
        pytest.param("postgres://u:very%00secret@h/n", id="a letter of number 0"),
        pytest.param("postgres://u:verysecret@h:many/n", id="a port that is none"),
        pytest.param("postgres://u:verysecret@h/n?no=such", id="an unknown option"),
        pytest.param("postgres://u:very\udcffsecret@h/n", id="bytes that are no text"),
    ],
)
def test_an_address_that_cannot_be_meant_is_one_sentence_without_the_password(url: str) -> None:
    with pytest.raises(env.WrongSetting) as refused:
        database.settings(url, FILE)
    said = str(refused.value)
    assert said.startswith("LAB_DATABASE_URL ")
    assert "very" not in said
    assert "secret" not in said
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


def test_without_an_address_it_is_sqlite_with_immediate_transactions() -> None:
    found = database.settings("", FILE)
    assert found["NAME"] == FILE
    assert found["OPTIONS"]["transaction_mode"] == "IMMEDIATE"


@pytest.mark.real
def test_every_command_refuses_a_wrong_address_in_one_sentence(tmp_path: Path) -> None:
    more: dict[str, Any] = {"LAB_DATABASE_URL": "postgres://u:very@secret@h/n"}
    for command in (("up", "--port", "0"), ("manage", "tick")):
        done = lab(*command, state=tmp_path / "state", **more)
        assert done.returncode == 1
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert "secret" not in done.stderr


def test_a_damaged_file_of_another_time_is_left_alone_when_the_facts_are_on_a_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = Paths(tmp_path)
    for file in (paths.database, paths.queue):
        file.write_bytes(b"garbage" * 1000)
    mend(paths, on_server=True)
    assert paths.database.exists()
    assert not paths.queue.exists()
    assert str(paths.queue) in capsys.readouterr().err
