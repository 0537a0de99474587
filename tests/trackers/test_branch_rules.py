"""What rules on branch names mean for the branches of runs: tables."""

from __future__ import annotations

from typing import Any

import pytest

from trackers.forges import branch_rules

pytestmark = pytest.mark.pure


def pattern(operator: str, text: str, negate: bool = False) -> dict[str, Any]:
    told = {"operator": operator, "pattern": text, "negate": negate}
    return {"type": "branch_name_pattern", "ruleset_id": 1, "parameters": told}


@pytest.mark.parametrize(
    ("rules", "ok", "says"),
    [
        pytest.param([], True, "No ruleset keeps agents from pushing", id="none"),
        pytest.param([{"type": "deletion"}], True, "No ruleset", id="deletion"),
        pytest.param([{"type": "non_fast_forward"}], True, "none lets them force", id="force"),
        pytest.param([{"type": "creation"}], False, "lets nobody create", id="creation"),
        pytest.param([{"type": "update"}], False, "lets nobody push to", id="update"),
        pytest.param([{"type": "required_signatures"}], False, "only signed", id="signed"),
        pytest.param([{"type": "pull_request"}], False, "by pull request only", id="pull"),
        pytest.param([{"type": "creation", "ruleset_id": 9}], True, "No ruleset", id="bypass"),
        pytest.param([pattern("starts_with", "afk/")], True, "No ruleset", id="starts"),
        pytest.param([pattern("starts_with", "feat/")], False, "pattern feat/", id="starts not"),
        pytest.param([pattern("contains", "fk/", True)], False, "pattern fk/", id="negated"),
        pytest.param([pattern("ends_with", "1")], True, "No ruleset", id="ends"),
        pytest.param([pattern("regex", "^(afk|bot)/[0-9]+$")], True, "No ruleset", id="regex"),
        pytest.param([pattern("regex", "^feat/.+")], False, "lets nobody create", id="regex not"),
        pytest.param([pattern("regex", "^(a+)+$")], None, "could not be told", id="dear"),
        pytest.param([pattern("regex", "a*a*a*a*b")], None, "could not be told", id="dear too"),
        pytest.param([pattern("regex", "(")], None, "could not be told", id="no regex"),
        pytest.param([pattern("sounds_like", "x")], None, "could not be told", id="unknown"),
        pytest.param([7, {"type": 3}, {}], True, "No ruleset", id="wrong types"),
    ],
)
def test_rulesets_of_github(rules: list[Any], ok: bool | None, says: str) -> None:
    told = branch_rules.from_github(rules, [9], "afk/", "1")
    assert told[0] is ok
    assert says in told[1]
    assert "afk/…" in told[1]


def protection(name: str, **more: Any) -> dict[str, Any]:
    return {"rule_name": name, "enable_push": True, **more}


LISTED = {"enable_push_whitelist": True}


@pytest.mark.parametrize(
    ("rules", "ok", "says"),
    [
        pytest.param([], True, "No rule keeps", id="none"),
        pytest.param([protection("main", enable_push=False)], True, "No rule", id="another"),
        pytest.param([protection("afk/*", enable_push=False)], False, "the rule afk/*", id="glob"),
        pytest.param([protection("*", enable_push=False)], True, "No rule", id="not past a slash"),
        pytest.param([protection("**", enable_push=False)], False, "lets nobody", id="past it"),
        pytest.param([protection("{afk,x}/?", enable_push=False)], False, "lets", id="choice"),
        pytest.param([protection("afk/[0-9]", enable_push=False)], False, "lets", id="range"),
        pytest.param([protection("afk/[!0-9]", enable_push=False)], True, "No rule", id="not"),
        pytest.param(
            [protection("**", enable_push=False, priority=2), protection("afk/*", priority=1)],
            True,
            "The rule afk/* lets agents push",
            id="priority",
        ),
        pytest.param(
            [protection("**", enable_push=False), protection("afk/1")], True, "afk/1", id="exact"
        ),
        pytest.param([protection("**", require_signed_commits=True)], False, "signed", id="signed"),
        pytest.param(
            [protection("**", **LISTED, push_whitelist_usernames=["bot"])], True, "bot", id="listed"
        ),
        pytest.param(
            [protection("**", **LISTED, push_whitelist_usernames=["ada"])],
            False,
            "lets bot not push",
            id="others are",
        ),
        pytest.param(
            [protection("**", **LISTED, push_whitelist_teams=["dev"])], None, "only some", id="team"
        ),
        pytest.param([protection("}*{", enable_push=False)], True, "No rule", id="no glob"),
        pytest.param([protection("**a" * 5)], None, "could not be told", id="dear"),
        pytest.param([7, {}, {"rule_name": 5}], True, "No rule", id="wrong types"),
    ],
)
def test_protections_of_gitea(rules: list[Any], ok: bool | None, says: str) -> None:
    told = branch_rules.from_gitea(rules, "bot", "afk/", "1")
    assert told[0] is ok
    assert says in told[1]


def test_an_account_that_does_not_say_its_name_may_be_listed() -> None:
    rules = [protection("**", **LISTED, push_whitelist_usernames=["ada"])]
    assert branch_rules.from_gitea(rules, "", "afk/", "1")[0] is None
