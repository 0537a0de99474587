"""The agents' own files: written through links, with everything unknown kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runs.agents.on_machine import AgentFiles
from runs.core.ports import SeamError


def _approve(home: Path) -> None:
    AgentFiles({"HOME": str(home)}).approve("claude", Path("/tree"), {})


@pytest.mark.parametrize("target", ["dotfiles/claude.json", "../elsewhere/claude.json"])
def test_a_linked_config_is_written_where_the_link_points_and_stays_a_link(tmp_path, target):
    home = tmp_path / "home"
    home.mkdir()
    real = home / target
    real.parent.mkdir(parents=True)
    real.write_text('{"mine": 1}')
    real.chmod(0o640)
    (home / ".claude.json").symlink_to(target)
    _approve(home)
    assert (home / ".claude.json").is_symlink()
    content = json.loads(real.read_text())
    assert content["mine"] == 1
    assert content["projects"]["/tree"]["hasTrustDialogAccepted"] is True
    assert real.stat().st_mode & 0o777 == 0o640
    assert [p.name for p in real.parent.resolve().iterdir()] == ["claude.json"]


def test_a_link_to_a_file_that_is_not_there_yet_makes_that_file(tmp_path):
    (tmp_path / ".claude.json").symlink_to("dotfiles/claude.json")
    _approve(tmp_path)
    assert (tmp_path / ".claude.json").is_symlink()
    assert "projects" in json.loads((tmp_path / "dotfiles" / "claude.json").read_text())


def test_a_link_that_leads_in_a_circle_is_said_and_left_alone(tmp_path):
    (tmp_path / ".claude.json").symlink_to("other")
    (tmp_path / "other").symlink_to(".claude.json")
    with pytest.raises(SeamError, match=r"\.claude\.json"):
        _approve(tmp_path)
    assert (tmp_path / ".claude.json").is_symlink()


def test_an_empty_entry_of_the_worktree_is_filled(tmp_path):
    (tmp_path / ".claude.json").write_text('{"projects": {"/tree": null}}')
    _approve(tmp_path)
    content = json.loads((tmp_path / ".claude.json").read_text())
    assert content["projects"]["/tree"]["hasTrustDialogAccepted"] is True
