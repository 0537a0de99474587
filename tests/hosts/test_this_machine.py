"""Whose a state folder is, kept in a file of it."""

from __future__ import annotations

from pathlib import Path

from runs.hosts.this_machine import ThisMachine


def _machine(state: Path, *, is_shared: bool = True) -> ThisMachine:
    return ThisMachine(state, state / "repos", "1", is_shared=is_shared)


def test_to_ask_whose_an_identity_is_makes_none(tmp_path: Path) -> None:
    assert _machine(tmp_path).is_other("one")  # since the one that it will get is new
    assert not _machine(tmp_path).is_other("")
    assert list(tmp_path.iterdir()) == []


def test_an_identity_is_made_once_and_is_nobody_elses(tmp_path: Path) -> None:
    made = _machine(tmp_path).identity
    again = _machine(tmp_path)
    assert again.identity == made
    assert not again.is_other(made)
    assert again.is_other("one")
    assert [path.name for path in tmp_path.iterdir()] == ["machine.id"]


def test_a_database_of_its_own_has_no_other_machines(tmp_path: Path) -> None:
    alone = _machine(tmp_path, is_shared=False)
    assert alone.identity == ""
    assert not alone.is_other("one")
    assert list(tmp_path.iterdir()) == []
