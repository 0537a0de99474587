"""The real programs, one scripted model a process, and a house around them for each test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents import installed
from tests.agents.house import AgentHouse
from tests.agents.model_server import ModelServer, running

# What an agent that runs these tests has in its own environment must not reach those it tries.
OF_AGENTS = ("ANTHROPIC_", "CLAUDE", "CODEX_", "OPENAI_", "IS_SANDBOX", "BASH_ENV")


@pytest.fixture(scope="session")
def agents() -> Path:
    """The folder of the programs; where they cannot be had, what needs them is skipped."""
    try:
        return installed.folder()
    except installed.Lacking as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def model() -> Iterator[ModelServer]:
    with running() as server:
        yield server


@pytest.fixture
def on_path(agents: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs as a person has them, and nothing of whoever runs the tests."""
    for name in [name for name in os.environ if name.startswith(OF_AGENTS)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", f"{agents}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def house(on_path: None, model: ModelServer, real: Any, live_server: Any) -> AgentHouse:
    return AgentHouse(real, model, live_server.url)
