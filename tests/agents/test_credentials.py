"""What the real programs say of their login, with each way of being allowed to ask a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from runs.accounts import logins
from runs.agents import checks
from runs.core.states import AnswerCode
from runs.models import AgentProfile, Run
from tests.agents import installed
from tests.agents.house import CLAUDE, CODEX, AgentHouse
from tests.world.stories import press_start

PROVIDER = (
    'model_provider = "mine"\n[model_providers.mine]\nname = "mine"\n'
    'base_url = "http://127.0.0.1:9/v1"\nwire_api = "responses"\n'
)


def shipped(house: AgentHouse, name: str, **env: str) -> AgentProfile:
    """A shipped profile in an empty home, with its own login check."""
    profile = AgentProfile.objects.get(name=name)
    profile.env = {**profile.env, "IS_SANDBOX": "1", **env}
    profile.save()
    return profile


@pytest.mark.parametrize(
    ("env", "answer"),
    [
        pytest.param({}, False, id="nothing"),
        pytest.param({"ANTHROPIC_API_KEY": "sk-x"}, True, id="a key"),
        pytest.param({"ANTHROPIC_AUTH_TOKEN": "x"}, True, id="a token for a gateway"),
        pytest.param({"CLAUDE_CODE_OAUTH_TOKEN": "x"}, True, id="a token of an account"),
        pytest.param({"CLAUDE_CODE_USE_BEDROCK": "1"}, True, id="Bedrock"),
        pytest.param({"CLAUDE_CODE_USE_VERTEX": "1"}, True, id="Vertex"),
        pytest.param({"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}, False, id="an address alone"),
    ],
)
def test_claude_code_knows_every_way_itself(
    house: AgentHouse, env: dict[str, str], answer: bool
) -> None:
    assert logins.ask(house.real.lab, shipped(house, CLAUDE, **env)) is answer


def test_claude_code_knows_a_helper_for_its_key(house: AgentHouse) -> None:
    (house.home / ".claude").mkdir()
    (house.home / ".claude" / "settings.json").write_text('{"apiKeyHelper": "echo sk-y"}')
    assert logins.ask(house.real.lab, shipped(house, CLAUDE)) is True


@pytest.mark.parametrize(
    ("config", "env", "answer"),
    [
        pytest.param("", {}, False, id="nothing"),
        pytest.param("", {"CODEX_API_KEY": "sk-x"}, True, id="the key that it uses"),
        pytest.param("", {"OPENAI_API_KEY": "sk-x"}, False, id="a key that it sends nowhere"),
        pytest.param(PROVIDER, {}, True, id="a provider that wants no key"),
        pytest.param(f'{PROVIDER}env_key = "MY_KEY"\n', {"MY_KEY": "x"}, True, id="its key"),
        pytest.param(f'{PROVIDER}env_key = "MY_KEY"\n', {}, False, id="its key is missing"),
        pytest.param(f"{PROVIDER}requires_openai_auth = true\n", {}, False, id="wants a login"),
    ],
)
def test_codex_counts_as_logged_in_when_it_can_ask_its_provider(
    house: AgentHouse, config: str, env: dict[str, str], answer: bool
) -> None:
    home = house.real.folder / "codex"
    home.mkdir()
    (home / "config.toml").write_text(config)
    profile = shipped(house, CODEX, CODEX_HOME=str(home), **env)
    assert logins.ask(house.real.lab, profile) is answer


def test_a_provider_named_in_the_profile_s_arguments_counts_too(house: AgentHouse) -> None:
    profile = shipped(house, CODEX)
    values = (
        'model_provider="mine"',
        'model_providers.mine={name="m",base_url="http://127.0.0.1:9"}',
    )
    profile.argv = [
        *profile.argv[:-1],
        *(word for one in values for word in ("-c", one)),
        "{prompt}",
    ]
    profile.save()
    assert logins.ask(house.real.lab, profile) is True


@pytest.mark.parametrize(("name", "program"), [(CLAUDE, "claude"), (CODEX, "codex")])
def test_a_check_tells_where_a_program_is_and_its_version(
    house: AgentHouse, agents: Path, name: str, program: str
) -> None:
    profile = shipped(house, name)
    checks.check(house.real.lab, profile)
    profile.refresh_from_db()
    assert (profile.is_found, profile.is_logged_in) == (True, False)
    assert installed.version(program) in profile.version
    found, unfit = checks.inspect(house.real.lab, profile)
    assert (found, unfit) == (str(agents / profile.argv[0]), None)


@pytest.mark.row("LAB-68", level="real")
@pytest.mark.parametrize("name", [CLAUDE, CODEX])
def test_a_start_of_a_program_that_is_really_logged_out_is_refused(
    house: AgentHouse, name: str
) -> None:
    project = house.project(shipped(house, name))
    asked = press_start(house.real, project)
    assert asked.answer == AnswerCode.LOGGED_OUT
    assert house.real.session_names() == []


@pytest.mark.parametrize("name", [CLAUDE, CODEX])
def test_a_start_of_a_program_that_is_not_installed_is_refused_before_a_claim(
    house: AgentHouse, name: str
) -> None:
    project = house.project(shipped(house, name, PATH=str(house.real.folder)))
    asked = press_start(house.real, project)
    assert asked.answer == AnswerCode.NO_PROGRAM
    assert f"{name} is not installed on this machine" in asked.text
    assert not Run.objects.exists()
    assert house.real.repos.claims(project.repo(house.real.paths)) == frozenset()
