"""What of labsite's own environment an agent's session is given."""

from __future__ import annotations

import pytest

from runs.machine import shell

pytestmark = pytest.mark.pure

OURS = {"LAB_SECRET_KEY": "s3cret", "DJANGO_SETTINGS_MODULE": "x", "TMUX": "/tmp/x,1,0"}
AROUND = {"CLAUDECODE": "1", "CLAUDE_CODE_ENTRYPOINT": "cli", "CODEX_SANDBOX": "seatbelt"}
THEIRS = {"CLAUDE_CODE_OAUTH_TOKEN": "t", "CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/h"}


def test_a_session_knows_nothing_of_labsite_nor_of_an_agent_that_started_it() -> None:
    found = shell.scrubbed({"PATH": "/usr/bin", **OURS, **AROUND, **THEIRS})
    assert found == {"PATH": "/usr/bin", **THEIRS}
