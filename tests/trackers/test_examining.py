"""The connection test of each forge: what is missing is named in the forge's own words."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.trackers.forge import Double, Gitea, GitHub, faults
from tests.trackers.forge.visitor import a_client
from tests.trackers.stand import FORGES, READY, ROOT, Stand, a_stand, tracker_on
from tests.trackers.test_github import ALL, app_on
from trackers.account import Account
from trackers.base import Finding
from trackers.forges.github import GitHubTracker


@pytest.fixture(params=FORGES)
def stand(request: pytest.FixtureRequest) -> Stand:
    made = a_stand(FORGES[request.param]())
    made.repo.label(READY)
    return made


def found(stand: Stand) -> dict[str, Finding]:
    return {one.name: one for one in stand.tracker.examine(ROOT, READY)}


def verdicts(stand: Stand) -> dict[str, bool | None]:
    return {name: one.ok for name, one in found(stand).items()}


def test_all_is_well_and_nothing_was_written(stand: Stand) -> None:
    told = found(stand)

    assert [one.ok for one in told.values()].count(False) == 0
    assert told["account"].text.endswith("knows labsite as bot.")
    assert told["repository"].text.endswith("shows acme/shop.")
    assert told["issues"].ok is told["pull requests"].ok is told["ready label"].ok is True
    assert {line.status for line in stand.forge.log if line.method != "GET"} <= {422}
    assert list(stand.repo.items) == []
    assert all(stand.token not in one.text for one in told.values())
    stand.forge.check()


@pytest.mark.parametrize(
    ("change", "name", "ok", "says"),
    [
        pytest.param(
            lambda s: s.repo.labels.clear(),
            "ready label",
            False,
            f"no label “{READY}” yet",
            id="label",
        ),
        pytest.param(
            lambda s: setattr(s.repo, "has_issues", False),
            "issues",
            False,
            "Issues are switched off",
            id="issues off",
        ),
        pytest.param(
            lambda s: setattr(s.repo, "is_archived", True),
            "repository",
            False,
            "is archived",
            id="archived",
        ),
        pytest.param(
            lambda s: s.repo.roles.update(bot="read"),
            "writing",
            False,
            "may read acme/shop, but not write to it",
            id="role",
        ),
        pytest.param(
            lambda s: s.repo.roles.clear(), "repository", False, "Either there is no", id="hidden"
        ),
        pytest.param(
            lambda s: s.forge.rename(s.repo, "acme/store"),
            "repository",
            True,
            "is called acme/store by now",
            id="renamed",
        ),
        pytest.param(lambda s: s.forge.tokens.clear(), "account", False, "not accept", id="token"),
        pytest.param(
            lambda s: s.forge.faults.add(faults.status(503), times=99, path="/pulls"),
            "pull requests",
            None,
            "503",
            id="passing trouble",
        ),
    ],
)
def test_what_is_missing_is_found(
    stand: Stand, change: Callable[[Stand], object], name: str, ok: bool | None, says: str
) -> None:
    change(stand)

    told = found(stand)

    assert told[name].ok is ok
    assert says in told[name].text


@pytest.mark.parametrize(
    "fault",
    [faults.drop(), faults.html(), faults.truncated(), faults.limited("60"), faults.wrong_types()],
    ids=["dropped", "a web page", "truncated", "limit", "wrong types"],
)
def test_it_never_raises(stand: Stand, fault: faults.Fault) -> None:
    stand.forge.faults.add(fault, times=faults.FOREVER)

    assert not all(one.ok for one in found(stand).values())


def test_a_root_that_names_nothing(stand: Stand) -> None:
    for root in ("", "x", "9/acme/shop", "1/../shop"):
        assert [(one.name, one.ok) for one in stand.tracker.examine(root, READY)] == [
            ("account", False)
        ]


def test_without_a_token_only_what_everybody_sees(stand: Stand) -> None:
    stand.repo.is_private = False
    nobody = Stand(stand.forge, stand.repo, tracker_on(stand.forge, ""), "")

    told = verdicts(nobody)

    assert told["account"] is None
    assert told["repository"] is told["issues"] is True
    assert told["writing"] is False


# GitHub.


def a_token(forge: Double, permissions: dict[str, str]) -> Stand:
    """A stand with a fine-grained token or one with scopes."""
    stand = a_stand(forge)
    stand.repo.label(READY)
    token = forge.token("bot", kind="fine-grained", permissions=permissions)
    return Stand(forge, stand.repo, tracker_on(forge, token), token)


def test_a_fine_grained_token_that_lacks_one_is_told_its_name(github: GitHub) -> None:
    told = found(a_token(github, {"metadata": "read", "issues": "read"}))

    assert told["issues"].ok is True
    assert told["pull requests"].ok is False
    assert "“Pull requests: read”" in told["pull requests"].text
    assert told["writing issues"].ok is told["writing pull requests"].ok is False
    assert "“Issues: read and write”" in told["writing issues"].text
    assert "“Pull requests: read and write”" in told["writing pull requests"].text


def test_a_fine_grained_token_with_all_rights_is_told_so(github: GitHub) -> None:
    permissions = {"metadata": "read", "issues": "write", "pull_requests": "write"}
    told = found(a_token(github, permissions))
    assert told["writing issues"].ok is told["writing pull requests"].ok is True
    assert told["writing issues"].text == "labsite may write issues."


def test_an_installation_that_lacks_some_is_told_their_names(github: GitHub) -> None:
    stand = app_on(github, {**ALL, "contents": "read", "checks": ""})
    stand.repo.label(READY)

    told = found(stand)

    assert told["account"].text == "api.github.test knows GitHub App 12, installation 34."
    assert told["writing"].ok is False
    assert "“Contents: read and write”, “Checks: read”" in told["writing"].text


def test_an_installation_with_all_of_them(github: GitHub) -> None:
    stand = app_on(github)
    stand.repo.label(READY)

    assert verdicts(stand) == {
        "account": True,
        "repository": True,
        "issues": True,
        "pull requests": True,
        "writing": True,
        "ready label": True,
    }


def test_a_token_that_has_no_person_will_do(github: GitHub) -> None:
    stand = a_stand(github)
    token = github.token("labsite[bot]", kind="installation", permissions=ALL)

    told = found(Stand(github, stand.repo, tracker_on(github, token), token))

    assert told["account"].ok is True
    assert told["issues"].ok is told["pull requests"].ok is True


def test_a_classic_token_without_its_scope(github: GitHub) -> None:
    stand = a_stand(github)
    narrow = faults.Fault(
        change=lambda asked, told: told.with_headers(x_oauth_scopes="gist, read:user")
    )
    github.faults.add(narrow, times=faults.FOREVER, path="/user")

    told = found(stand)["writing"]

    assert (told.ok, told.text) == (False, "The token lacks the scope “repo”.")


@pytest.mark.parametrize(("version", "ok"), [("3.17.2", True), ("3.8.1", False)])
def test_how_old_an_enterprise_server_is(version: str, ok: bool) -> None:
    forge = GitHub(enterprise=True)
    stand = a_stand(forge)
    old = faults.Fault(
        change=lambda asked, told: told.with_headers(x_github_enterprise_version=version)
    )
    forge.faults.add(old, times=faults.FOREVER, path="/meta")

    told = found(stand)["version"]

    assert told.ok is ok
    assert f"GitHub Enterprise {version.rpartition('.')[0]}" in told.text


def test_a_key_in_place_of_a_token_stays_unsaid(github: GitHub) -> None:
    github.repo("acme/shop")
    account = Account(github.api, "ghp_bad\ntoken")
    tracker = GitHubTracker(a_client(github), lambda: {"1": account}, github.now)

    told = tracker.examine(ROOT, READY)

    assert [one.ok for one in told] == [False]
    assert "ghp_bad" not in told[0].text


# Gitea.


def test_a_scope_that_is_missing_is_named(gitea: Gitea) -> None:
    told = found(a_token(gitea, {"repository": "read", "user": "read"}))

    assert told["repository"].ok is True
    assert told["issues"].ok is False
    assert "“read:issue”" in told["issues"].text
    assert told["pull requests"].ok is True
    assert told["writing issues"].ok is told["writing pull requests"].ok is False
    assert "required=[write:issue], token scope=read:repository,read:user" in (
        told["writing issues"].text
    )
    assert "it takes “write:repository”" in told["writing pull requests"].text


def test_a_token_that_does_not_say_whose_it_is_will_do(gitea: Gitea) -> None:
    told = found(a_token(gitea, {"repository": "write", "issue": "write"}))

    assert told["account"].ok is True
    assert told["account"].text == "gitea.test accepts the token, but does not say whose it is."
    assert told["writing issues"].ok is told["writing pull requests"].ok is True


@pytest.mark.parametrize(
    ("forge", "ok", "says"),
    [
        (lambda: Gitea(), True, "This is Gitea 1.23.0."),
        (lambda: Gitea(forgejo=True), True, "This is Forgejo 11.0.1+gitea-1.23.0."),
        (lambda: Gitea(version="1.19.4"), False, "labsite is written for Gitea 1.20 and later"),
    ],
    ids=["Gitea", "Forgejo", "old"],
)
def test_which_server_it_is(forge: Callable[[], Gitea], ok: bool, says: str) -> None:
    told = found(a_stand(forge()))["version"]

    assert told.ok is ok
    assert says in told.text


def test_an_address_that_is_no_gitea(gitea: Gitea) -> None:
    stand = a_stand(gitea)
    gitea.faults.add(faults.status(404), times=faults.FOREVER)

    assert [(one.name, one.ok) for one in stand.tracker.examine(ROOT, READY)] == [("version", None)]
    assert "Is the address right?" in found(stand)["version"].text


def test_pull_requests_that_are_switched_off(gitea: Gitea) -> None:
    stand = a_stand(gitea)
    stand.repo.has_pulls = False

    assert found(stand)["pull requests"].ok is False
    assert stand.pulls("afk/7") is None


# Rules on branches, workflow files.


def branch(stand: Stand, prefix: str = "afk/") -> Finding:
    (told,) = stand.tracker.examine_branch(ROOT, prefix, "1")
    assert told.name == "branch names"
    return told


def test_no_rule_on_branches(stand: Stand) -> None:
    stand.repo.roles["bot"] = "admin"
    assert branch(stand).ok is True
    assert "branches named afk/…" in branch(stand).text
    stand.forge.check()


@pytest.mark.parametrize(
    "fault",
    [faults.drop(), faults.html(), faults.status(404), faults.wrong_types()],
    ids=["dropped", "a web page", "not there", "wrong types"],
)
def test_rules_that_could_not_be_read(stand: Stand, fault: faults.Fault) -> None:
    stand.forge.faults.add(fault, times=faults.FOREVER)
    assert branch(stand).ok is None
    assert "could not be told" in branch(stand).text


def test_a_ruleset_that_keeps_branches_from_being_made(github: GitHub) -> None:
    stand = a_stand(github)
    stand.repo.branch_rules = [{"type": "creation", "ruleset_id": 5}]
    told = branch(stand)
    assert (told.ok, told.text) == (
        False,
        "The forge lets nobody create branches named afk/…. Change the prefix under Settings, "
        "Set-up, or the rule on the forge.",
    )
    (asked,) = [one for one in github.log if "/rules/" in one.path]
    assert asked.path.endswith("/repos/acme/shop/rules/branches/afk/1")
    stand.repo.rulesets[5] = {"id": 5, "current_user_can_bypass": "always"}
    assert branch(stand).ok is True
    stand.repo.rulesets[5] = {"id": 5, "current_user_can_bypass": "never"}
    assert branch(stand).ok is False


def test_rules_of_gitea_are_told_to_admins_alone(gitea: Gitea) -> None:
    stand = a_stand(gitea)
    stand.repo.branch_rules = [{"rule_name": "afk/*", "enable_push": False}]
    stand.repo.roles["bot"] = "write"
    told = branch(stand)
    assert told.ok is None
    assert told.text.endswith("Only admins of a repository may read its rules.")
    stand.repo.roles["bot"] = "admin"
    assert branch(stand).ok is False
    assert branch(stand, "bot/").ok is True


@pytest.mark.parametrize(
    ("scopes", "has_files", "ok"),
    [("repo", True, False), ("repo, workflow", True, None), ("repo", False, None)],
)
def test_a_classic_token_without_the_scope_for_workflow_files(
    github: GitHub, scopes: str, has_files: bool, ok: bool | None
) -> None:
    stand = a_stand(github)
    stand.repo.has_workflows = has_files
    given = faults.Fault(change=lambda asked, told: told.with_headers(x_oauth_scopes=scopes))
    github.faults.add(given, times=faults.FOREVER, path="/user")
    told = verdicts(stand)
    assert told["writing"] is True
    assert told.get("workflow files") is ok


def test_an_installation_that_may_not_change_workflow_files(github: GitHub) -> None:
    stand = app_on(github)
    stand.repo.has_workflows = True
    assert found(stand)["workflow files"].ok is False
    assert "Workflows: read and write" in found(stand)["workflow files"].text


def test_a_fine_grained_token_does_not_say_what_it_may(github: GitHub) -> None:
    stand = a_token(github, {"metadata": "read", "issues": "write", "pull_requests": "write"})
    stand.repo.has_workflows = True
    assert "workflow files" not in found(stand)
