"""In which ways a pull request is merged: pure rules, and against the doubles of the forges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.trackers.forge import SHA, GitHub, faults
from tests.trackers.forge.state import Item
from tests.trackers.stand import ROOT, Stand, a_stand
from trackers.base import PullState, Refused
from trackers.errors import MergeQueueError
from trackers.forges import merge_rules
from trackers.forges.merge_rules import MergeRules

ALL = frozenset({"merge", "squash", "rebase"})
LINEAR = {"type": "required_linear_history"}
QUEUE = {"type": "merge_queue", "parameters": {}}


def methods(*names: Any) -> dict[str, Any]:
    return {"type": "pull_request", "parameters": {"allowed_merge_methods": list(names)}}


@pytest.mark.pure
@pytest.mark.parametrize(
    ("entries", "rules"),
    [
        pytest.param([], MergeRules(), id="none"),
        pytest.param([QUEUE], MergeRules(has_queue=True), id="a queue"),
        pytest.param([LINEAR], MergeRules(styles=ALL - {"merge"}), id="no merge commits"),
        pytest.param([methods("squash", 3)], MergeRules(styles=frozenset({"squash"})), id="named"),
        pytest.param([methods("merge"), LINEAR], MergeRules(styles=frozenset()), id="none left"),
        pytest.param([{"type": "future"}, 7, {}], MergeRules(), id="not understood"),
        pytest.param([{"type": "pull_request"}], MergeRules(), id="no word on ways"),
    ],
)
def test_what_rulesets_say_of_merges(entries: Sequence[Any], rules: MergeRules) -> None:
    assert merge_rules.read_merge_rules(entries) == rules


@pytest.mark.pure
@pytest.mark.parametrize(
    ("allowed", "rules", "styles"),
    [
        pytest.param({"merge", "rebase"}, MergeRules(), ["merge", "rebase"], id="its own"),
        pytest.param(None, None, ["merge", "squash", "rebase"], id="nothing is known"),
        pytest.param(None, MergeRules(styles=ALL - {"merge"}), ["squash", "rebase"], id="rules"),
        pytest.param({"merge"}, MergeRules(styles=ALL - {"merge"}), [], id="nothing is left"),
        pytest.param(set(), None, [], id="none"),
    ],
)
def test_the_ways_to_try_on_github(
    allowed: set[str] | None, rules: MergeRules | None, styles: list[str]
) -> None:
    fields = merge_rules.GITHUB_STYLES.items()
    about = {} if allowed is None else {field: style in allowed for style, field in fields}

    assert merge_rules.github_styles(about, rules) == styles


@pytest.mark.pure
@pytest.mark.parametrize(
    ("about", "style"),
    [
        pytest.param({"allow_squash_merge": True, "default_merge_style": "squash"}, "squash", id="usual"),
        pytest.param({"allow_rebase": True, "default_merge_style": "merge"}, "rebase", id="first"),
        pytest.param(
            {"allow_fast_forward_only_merge": True, "allow_merge_commits": True,
             "default_merge_style": "fast-forward-only"}, "fast-forward-only", id="a newer one",
        ),
        pytest.param({"default_merge_style": "manually"}, "manually", id="one of the future"),
        pytest.param({}, "merge", id="nothing is known"),
    ],
)  # fmt: skip
def test_the_way_on_gitea(about: dict[str, Any], style: str) -> None:
    assert merge_rules.gitea_style(about) == style


def tried(stand: Stand) -> int:
    """How often a merge was tried."""
    return len(stand.forge.calls("/merge", method="PUT"))


def merged_ways(stand: Stand) -> list[str]:
    """The ways in which pull requests are merged from now on."""
    ways: list[str] = []

    def merge(item: Item, style: str) -> str:
        ways.append(style)
        return SHA[::-1]

    stand.repo.on_merge = merge
    return ways


def test_rules_of_a_branch_choose_the_way(github: GitHub) -> None:
    stand = a_stand(github)
    stand.repo.rules = {"release/1": [methods("rebase")]}
    stand.repo.pull("afk/7", number=9, base="release/1")

    ways = merged_ways(stand)
    stand.tracker.merge(ROOT, 9, SHA)
    assert (ways, tried(stand)) == (["rebase"], 1)


def test_rules_and_repository_that_agree_on_no_way_are_told(github: GitHub) -> None:
    stand = a_stand(github)
    stand.repo.merge_styles = ("merge",)
    stand.repo.rules = {"main": [LINEAR]}
    stand.repo.pull("afk/7", number=9)

    with pytest.raises(Refused, match=r"The rules of main .* allow none of the ways"):
        stand.tracker.merge(ROOT, 9, SHA)
    assert not tried(stand)


def test_a_way_that_is_refused_is_followed_by_the_next(github: GitHub) -> None:
    stand = a_stand(github)
    stand.repo.rules = None
    stand.repo.pull("afk/7", number=9)
    refusal = faults.status(405, '{"message": "Merge commits are not allowed on this repository."}')
    stand.forge.faults.add(refusal, path="/merge")

    ways = merged_ways(stand)
    assert stand.tracker.merge(ROOT, 9, SHA)
    assert (ways, tried(stand)) == (["squash"], 2)


def test_rules_that_are_not_met_are_told_in_the_words_of_the_forge(github: GitHub) -> None:
    stand = a_stand(github)
    pull = stand.repo.pull("afk/7", number=9).pull
    assert pull is not None
    pull.not_mergeable = (
        "Repository rule violations found\n\n2 of 2 required status checks are expected."
    )

    with pytest.raises(Refused, match="violations found 2 of 2 required status checks are"):
        stand.tracker.merge(ROOT, 9, SHA)
    assert tried(stand) == 1


@pytest.mark.parametrize("is_told_before", [True, False])
def test_a_branch_with_a_merge_queue_is_no_failure(github: GitHub, is_told_before: bool) -> None:
    stand = a_stand(github)
    stand.repo.rules = {"main": [QUEUE]}
    stand.repo.pull("afk/7", number=9)
    if not is_told_before:
        stand.forge.faults.add(faults.status(404, "{}"), times=2, path="/rules/")

    with pytest.raises(MergeQueueError, match=r"Nothing went wrong.*“Merge when ready”"):
        stand.tracker.merge(ROOT, 9, SHA)
    assert tried(stand) == (0 if is_told_before else 1)
    assert stand.tracker.pull(ROOT, 9).state is PullState.OPEN


def test_what_was_merged_by_the_queue_is_merged(github: GitHub) -> None:
    stand = a_stand(github)
    stand.repo.rules = {"main": [QUEUE]}
    stand.repo.pull("afk/7", "merged", number=9)

    assert stand.tracker.merge(ROOT, 9, SHA) == stand.tracker.pull(ROOT, 9).merge_commit
