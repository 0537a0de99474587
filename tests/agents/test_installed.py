"""Where real agents cannot be had, their tests say why, and ask for them once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.agents import installed

NPM = '#!/bin/sh\necho asked >>"$ASKED"\necho "npm error code ECONNREFUSED" >&2\nexit 1\n'


@pytest.fixture(autouse=True)
def a_cache_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LAB_TEST_AGENTS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_a_machine_without_npm_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(installed.Lacking, match="npm is not installed"):
        installed.folder()


@pytest.mark.real
def test_a_registry_that_cannot_be_reached_is_said_and_not_asked_again_at_once(
    monkeypatch, tmp_path
):
    npm, asked = tmp_path / "npm", tmp_path / "asked"
    npm.write_text(NPM)
    npm.chmod(0o755)
    monkeypatch.setenv("ASKED", str(asked))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    for _ in range(2):
        with pytest.raises(installed.Lacking, match="ECONNREFUSED"):
            installed.folder()
    assert asked.read_text() == "asked\n"
    assert not list((tmp_path / "cache" / "labsite-tests").glob("*.part"))


def test_a_named_folder_has_to_hold_the_programs(monkeypatch, tmp_path):
    monkeypatch.setenv("LAB_TEST_AGENTS", str(tmp_path))
    with pytest.raises(installed.Lacking, match="not installed"):
        installed.folder()
    programs = tmp_path / "node_modules" / ".bin"
    programs.mkdir(parents=True)
    for name in installed.PROGRAMS:
        (programs / name).touch()
    assert installed.folder() == programs
