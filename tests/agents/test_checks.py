"""Whether an agent can be started here: its program, version and login, and who is refused for it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runs import tick
from runs.accounts import logins
from runs.agents import check_rules, checks
from runs.agents.check_rules import ProgramFacts
from runs.agents.on_machine import AgentPrograms
from runs.core.ports import Said, SeamError
from runs.core.states import AnswerCode
from runs.dispatch import explain, start_requests
from runs.dispatch.eligibility import Act, Why
from runs.lifecycle import launch
from runs.manual import acts as manual
from runs.models import AgentProfile, ManualSession, Run
from tests import make
from tests.fakes import START, FakePrograms, World
from tests.world.stories import press_start, ready

BYPASS = ["claude", "--permission-mode", "bypassPermissions", "{prompt}"]


def facts(**changes: Any) -> ProgramFacts:
    return ProgramFacts(
        **{"name": "Claude Code", "argv": BYPASS, "found": "/usr/bin/claude"} | changes
    )


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        pytest.param(facts(), None, id="there"),
        pytest.param(facts(found=""), Why.NO_PROGRAM, id="not there"),
        pytest.param(facts(found=None), None, id="relative to the worktree: nobody can say"),
        pytest.param(facts(argv=[], found=""), Why.NO_PROGRAM, id="no argument list"),
        pytest.param(facts(is_root=True), Why.ROOT_REFUSED, id="root"),
        pytest.param(facts(is_root=True, is_sandbox=True), None, id="root in a sandbox"),
        pytest.param(facts(is_root=True, argv=["claude", "{prompt}"]), None, id="root is asked"),
        pytest.param(facts(is_root=True, argv=["codex", "bypassPermissions"]), None, id="another"),
        pytest.param(
            facts(is_root=True, argv=["/opt/claude", "--dangerously-skip-permissions", "{prompt}"]),
            Why.ROOT_REFUSED,
            id="by path and by its other name",
        ),
        pytest.param(facts(is_root=True, found=""), Why.NO_PROGRAM, id="the first thing first"),
    ],
)  # fmt: skip
def test_what_is_known_against_a_start(facts: ProgramFacts, why: Why | None) -> None:
    found = check_rules.obstacle(facts)
    assert (found.why if found else None) is why


@pytest.mark.parametrize(
    ("values", "is_one"),
    [
        ({"IS_SANDBOX": "1"}, True),
        ({"CLAUDE_CODE_BUBBLEWRAP": "1"}, True),
        ({"IS_SANDBOX": "true"}, False),
        ({"IS_SANDBOX": "0", "CLAUDE_CODE_BUBBLEWRAP": ""}, False),
        ({}, False),
    ],
)
def test_only_a_one_says_that_the_machine_is_a_sandbox(
    values: dict[str, str], is_one: bool
) -> None:
    assert check_rules.is_sandbox(values) is is_one


@pytest.mark.parametrize(
    ("out", "err", "version"),
    [
        pytest.param("2.1.197 (Claude Code)\n", "", "2.1.197 (Claude Code)", id="one line"),
        pytest.param("codex-cli 0.169.0\n", "WARNING: odd\n", "codex-cli 0.169.0", id="warned"),
        pytest.param("\n\x1b[1mv1\x1b[0m\nmore\n", "", "v1", id="the first, without colours"),
        pytest.param("", "tool 3\n", "tool 3", id="said elsewhere"),
        pytest.param("x" * 500, "", "x" * 100, id="endless"),
        pytest.param("", "", "", id="nothing"),
    ],
)
def test_the_version_is_the_first_line_that_says_something(
    out: str, err: str, version: str
) -> None:
    assert check_rules.version_of(out, err) == version


STATUS = ["codex", "login", "status"]
DOCTOR = ["codex", "doctor", "--json"]


@pytest.mark.parametrize(
    ("check", "argv", "question"),
    [
        pytest.param(STATUS, ["codex", "exec", "{prompt}"], DOCTOR, id="plain"),
        pytest.param(
            STATUS,
            ["codex", "exec", "-c", "model_provider=mine", "-c", "effort={effort}", "{prompt}"],
            [*DOCTOR, "-c", "model_provider=mine"],
            id="with the provider that the profile names",
        ),
        pytest.param(
            STATUS,
            ["codex", "-c", 'model_providers.a={name="a"}', "{prompt}"],
            [*DOCTOR, "-c", 'model_providers.a={name="a"}'],
            id="a table is no placeholder",
        ),
        pytest.param(["/opt/codex", "login", "status"], ["x"], ["/opt/codex", *DOCTOR[1:]], id="path"),
        pytest.param(["claude", "auth", "status"], BYPASS, [], id="another program tells the truth"),
        pytest.param([], ["codex"], [], id="no check"),
    ],
)  # fmt: skip
def test_what_is_asked_when_codex_says_no(check, argv, question) -> None:  # type: ignore[no-untyped-def]
    assert check_rules.second_question(check, argv) == question


def report(status: str = "ok", mode: str = "", **details: str) -> str:
    """Of `codex doctor --json` the two parts that are read."""
    checks = {
        "auth.credentials": {"status": status, "details": details},
        "network.provider_reachability": {"details": {"reachability mode": mode}},
    }
    return json.dumps({"checks": checks})


BY_KEY = {"auth env vars present": "a key"}


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        pytest.param(report("fail", "ChatGPT auth"), False, id="nothing at all"),
        pytest.param(report("ok", "API key auth", **BY_KEY), True, id="a key that is used"),
        pytest.param(report("ok", "ChatGPT auth", **BY_KEY), False, id="a key that is not used"),
        pytest.param(report("ok", "provider auth"), True, id="a provider of one's own"),
        pytest.param(report("fail", "provider auth"), False, id="whose variable is missing"),
        pytest.param(report("ok", "ChatGPT auth"), True, id="logged in"),
        pytest.param("{}", None, id="another form"),
        pytest.param("not json", None, id="no report"),
        pytest.param('{"checks": {"auth.credentials": null}}', None, id="an odd report"),
    ],
)
def test_what_codex_reports_of_its_credentials(text: str, answer: bool | None) -> None:
    assert check_rules.has_credentials(text) is answer


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.real)])
def programs(request: pytest.FixtureRequest, tmp_path: Path) -> FakePrograms | AgentPrograms:
    if request.param == "fake":
        fake = FakePrograms()
        fake.gone = {"nothing-of-the-kind", "/nothing/of/the/kind"}
        fake.answers = {"sh -c 'echo one; exit 3'": Said(3, "one\n")}
        fake.variables = {"OUTER": "yes"}
        return fake
    return AgentPrograms({**os.environ, "OUTER": "yes"}, tmp_path)


def test_a_program_is_found_or_not_or_nobody_can_say(programs) -> None:  # type: ignore[no-untyped-def]
    assert programs.find("sh", {}).endswith("/sh")
    assert programs.find("/bin/sh", {}) == "/bin/sh"
    assert programs.find("nothing-of-the-kind", {}) == ""
    assert programs.find("/nothing/of/the/kind", {}) == ""
    assert programs.find("./agent", {}) is None


def test_any_exit_status_is_an_answer_and_no_program_is_none(programs) -> None:  # type: ignore[no-untyped-def]
    assert programs.ask(["sh", "-c", "echo one; exit 3"], {}) == Said(3, "one\n")
    with pytest.raises(SeamError):
        programs.ask(["nothing-of-the-kind"], {})


def test_a_variable_is_that_of_the_profile_or_of_the_session(programs) -> None:  # type: ignore[no-untyped-def]
    assert programs.variable("OUTER", {}) == "yes"
    assert programs.variable("OUTER", {"OUTER": "no"}) == "no"
    assert programs.variable("NOT_SET", {}) == ""


def an_executable(folder: Path, name: str, text: str = "#!/bin/sh\n") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_a_program_is_looked_for_where_a_session_looks_and_not_where_labsite_does(
    tmp_path: Path,
) -> None:
    own, venv, mine = tmp_path / "bin", tmp_path / "venv" / "bin", tmp_path / "mine"
    for folder in (own, venv, mine):
        an_executable(folder, f"of-{folder.parent.name if folder is venv else folder.name}")
    environ = {"PATH": f"{venv}:/usr/bin", "VIRTUAL_ENV": str(venv.parent)}
    programs = AgentPrograms(environ, own)
    assert programs.find("of-bin", {}) == str(own / "of-bin")
    assert programs.find("of-venv", {}) == ""
    assert programs.find("of-mine", {}) == ""
    assert programs.find("of-mine", {"PATH": str(mine)}) == str(mine / "of-mine")


@pytest.mark.real
def test_a_program_is_asked_in_an_empty_folder_without_our_secrets(tmp_path: Path) -> None:
    environ = {**os.environ, "LAB_SECRET_KEY": "s3cret"}
    an_executable(tmp_path, "tell", "#!/bin/sh\npwd; ls -A; env\n")
    said = AgentPrograms(environ, tmp_path).ask(["tell"], {"MINE": "1"})
    where, rest = said.out.split("\n", 1)
    assert not Path(where).exists()
    assert "MINE=1" in rest and "s3cret" not in rest
    assert rest.split("\n", 1)[0].count("=") == 1  # `ls` listed nothing before the environment


class Codex(FakePrograms):
    """Answers the second question, whatever was asked."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def ask(self, argv: Sequence[str], env: Mapping[str, str]) -> Said:
        self.asked.append(list(argv))
        return Said(1, self._text)


@pytest.mark.row("LAB-68", level="contract")
@pytest.mark.parametrize(
    ("first", "text", "answer"),
    [
        pytest.param(True, "", True, id="a yes is not asked about"),
        pytest.param(None, report("fail"), None, id="nor is silence"),
        pytest.param(False, report("ok", "provider auth"), True, id="works without a login"),
        pytest.param(False, report("fail", "ChatGPT auth"), False, id="is really logged out"),
        pytest.param(False, "who knows", False, id="says no more: the no stands"),
    ],
)
def test_codex_with_a_key_or_a_provider_of_its_own_is_not_refused(
    world: World, db: None, first: bool | None, text: str, answer: bool | None
) -> None:
    profile = make.an_agent(argv=["codex", "exec", "{prompt}"], login_command=STATUS)
    world.login.answer = first
    codex = Codex(text)
    lab = replace(world.lab, programs=codex)
    assert logins.ask(lab, profile) is answer
    assert codex.asked == ([DOCTOR] if first is False else [])


@pytest.mark.parametrize(
    ("argv", "version", "tried", "said"),
    [
        pytest.param(BYPASS, "2.1.197 (Claude Code)", "", "", id="the tests ran it"),
        pytest.param(["/opt/codex"], "codex-cli 0.171.0", "", "", id="of Codex too"),
        pytest.param(BYPASS, "2.9.0 (Claude Code)", "2.9.0 (Claude Code)", "", id="tried here"),
        pytest.param(BYPASS, "", "", "", id="it tells none"),
        pytest.param(
            BYPASS,
            "2.9.0 (Claude Code)",
            "2.1.197 (Claude Code)",
            "This version was never tried. labsite was tested with 2.1.197 and 2.1.332.",
            id="it was updated",
        ),
        pytest.param(BYPASS, "0.171.0", "", "never tried. labsite", id="that of another program"),
        pytest.param(["aider"], "aider 1.0", "", "This version was never tried.", id="not known"),
        pytest.param([], "1", "", "This version was never tried.", id="no program"),
    ],
)
def test_a_version_that_nobody_has_tried_is_said(argv, version, tried, said) -> None:  # type: ignore[no-untyped-def]
    found = check_rules.untried(argv, version, {tried} if tried else ())
    assert said in found
    assert bool(found) is bool(said)


@pytest.fixture
def profile(db: None) -> AgentProfile:
    return make.an_agent(argv=BYPASS, login_command=["claude", "auth", "status"])


def test_a_check_stores_program_version_and_login(world: World, profile: AgentProfile) -> None:
    world.programs.answers["claude --version"] = Said(0, "2.1.197 (Claude Code)\n")
    checks.carry_out(world.lab, profile.pk)
    profile.refresh_from_db()
    assert (profile.is_found, profile.version) == (True, "2.1.197 (Claude Code)")
    assert (profile.is_logged_in, profile.checked_at) == (True, START)


def test_a_young_check_is_not_repeated_and_an_old_one_is(
    world: World, profile: AgentProfile
) -> None:
    checks.carry_out(world.lab, profile.pk)
    checks.carry_out(world.lab, profile.pk)
    assert world.programs.asked == [["claude", "--version"]]
    world.clock.forward(minutes=5)
    checks.carry_out(world.lab, profile.pk)
    assert len(world.programs.asked) == 2


def test_who_looks_has_the_worker_ask_and_starts_no_program(
    world: World, profile: AgentProfile
) -> None:
    checks.ask_when_old(world.lab, profile)
    assert world.queue.checks == [profile.pk]
    assert world.programs.asked == []
    checks.carry_out(world.lab, profile.pk)
    checks.ask_when_old(world.lab, AgentProfile.objects.get(pk=profile.pk))
    assert world.queue.checks == [profile.pk]
    checks.ask_again(world.lab, profile)
    assert world.queue.checks == [profile.pk] * 2


def test_a_missing_program_is_asked_nothing(world: World, profile: AgentProfile) -> None:
    world.programs.gone = {"claude"}
    checks.carry_out(world.lab, profile.pk)
    profile.refresh_from_db()
    assert (profile.is_found, profile.version, profile.is_logged_in) == (False, "", None)
    assert world.programs.asked == [] and world.login.asked == 0


def test_the_worker_sees_programs_come_and_go_without_starting_them(
    world: World, profile: AgentProfile
) -> None:
    for gone, found in (({"claude"}, False), (set[str](), True)):
        world.programs.gone = gone
        checks.sweep(world.lab)
        profile.refresh_from_db()
        assert profile.is_found is found
    assert world.programs.asked == []


@pytest.mark.parametrize(
    "change", [{"login_command": []}, {"env": {"KEY": "x"}}, {"argv": ["b", "{prompt}"]}]
)
def test_what_was_found_out_before_a_change_counts_no_more(
    world: World, profile: AgentProfile, change: dict[str, Any]
) -> None:
    world.login.answer = False
    checks.check(world.lab, profile)
    assert AgentProfile.objects.get(pk=profile.pk).is_logged_in is False
    for name, value in change.items():
        setattr(profile, name, value)
    profile.save(update_fields=list(change))
    stored = AgentProfile.objects.get(pk=profile.pk)
    assert (stored.is_logged_in, stored.login_checked_at) == (None, None)
    assert (stored.is_found, stored.version, stored.checked_at) == (None, "", None)


def test_another_change_keeps_what_was_found_out(world: World, profile: AgentProfile) -> None:
    checks.check(world.lab, profile)
    profile.name = "Other name"
    profile.save()
    assert AgentProfile.objects.get(pk=profile.pk).is_found is True


def test_an_answer_to_a_check_that_was_emptied_meanwhile_is_not_stored(
    world: World, profile: AgentProfile
) -> None:
    world.login.answer = False
    old = AgentProfile.objects.get(pk=profile.pk)
    profile.login_command = []
    profile.save()
    assert logins.ask(world.lab, old) is False
    assert AgentProfile.objects.get(pk=profile.pk).is_logged_in is None


@pytest.fixture
def missing(world: World, db: None) -> Any:
    """A project with a ready issue whose agent's program is not installed."""
    world.programs.gone = {"agent"}
    world.tracker.add_root("demo")
    project = make.a_project(agent=make.an_agent("Test agent"))
    ready(world, "7")
    return project


@pytest.mark.row("LAB-68", level="contract")
def test_a_start_without_a_program_is_refused_before_anything_is_claimed(
    world: World, missing: Any
) -> None:
    asked = press_start(world, missing)
    assert asked.answer == AnswerCode.NO_PROGRAM
    assert asked.text == "Test agent is not installed on this machine: agent was not found."
    assert not Run.objects.exists()
    assert world.repos.trees == {}


def test_why_not_running_names_the_missing_program(world: World, missing: Any) -> None:
    _, (waiting,) = explain.explain(world.lab, missing)
    found = waiting.failed[0]
    assert (found.why, found.change.act) == (Why.NO_PROGRAM, Act.CHOOSE_AGENT)
    assert Why.LOGIN_UNKNOWN not in [one.why for one in waiting.failed]


def test_automatic_work_takes_nothing_for_a_missing_program(world: World, missing: Any) -> None:
    type(missing).objects.update(is_auto=True)
    tick.tick(world.lab)
    assert not Run.objects.exists()
    world.programs.gone = set()
    world.clock.forward(minutes=2)
    tick.tick(world.lab)
    assert Run.objects.count() == 1


def test_a_person_s_session_is_refused_too(world: World, missing: Any) -> None:
    with pytest.raises(manual.SessionRefused, match="not installed on this machine"):
        manual.start(world.lab, missing, "", "anna")
    assert not ManualSession.objects.exists()


def test_a_program_that_went_between_check_and_start_fails_the_start_in_words(
    world: World, missing: Any
) -> None:
    world.programs.gone = set()
    asked = start_requests.request(world.lab, missing, "anna")
    tick.tick(world.lab, project=missing.slug)
    asked.refresh_from_db()
    assert asked.run_id is not None, asked.text
    world.programs.gone = {"agent"}
    launch.carry_out(world.lab, asked.run_id)
    asked.refresh_from_db()
    assert (asked.answer, world.repos.trees) == (AnswerCode.NO_PROGRAM, {})
    assert "not installed on this machine" in asked.text
    assert Run.objects.get().outcome == "failed"
