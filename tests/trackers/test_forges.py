"""What the adapters of GitHub, Gitea and Forgejo share, each on the strict double of its forge."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.trackers.forge import SHA, Asked, Told, faults
from tests.trackers.stand import FORGES, READY, ROOT, Stand, a_stand, tracker_on
from trackers.base import (
    Ability,
    CheckState,
    NewIssue,
    NewPull,
    NotFound,
    NotUnderstood,
    Pull,
    PullState,
    RateLimited,
    Refused,
    TrackerError,
    Unreachable,
    best_pull,
)

NEW = NewPull("afk/7", "main", "Add retries", "Closes #7", "run 3")


@pytest.fixture(params=FORGES)
def stand(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stand]:
    made = a_stand(FORGES[request.param](), tmp_path)
    yield made
    made.forge.check()


def heads(pulls: list[Pull] | None) -> list[tuple[str, str]]:
    assert pulls is not None
    return [(pull.head, pull.state.value) for pull in pulls]


# Reading issues.


@pytest.mark.row("X-02", level="contract")
def test_pull_requests_are_never_issues(stand: Stand) -> None:
    stand.repo.issue("ready", number=7, labels=[READY])
    pull = stand.repo.pull("afk/9", number=9)
    stand.repo.put_label(pull, stand.repo.label(READY))

    assert [issue.key for issue in stand.ready() or ()] == ["7"]
    assert [issue.key for issue in stand.tracker.open_issues(ROOT)] == ["7"]
    assert stand.tracker.open_count(ROOT) == 1
    assert stand.open("9") == []
    with pytest.raises(NotFound):
        stand.tracker.issue(ROOT, "9")
    with pytest.raises(NotFound):
        stand.tracker.close(ROOT, "9")
    assert pull.is_open


@pytest.mark.row("X-03", level="contract")
def test_a_queue_longer_than_a_page_is_read_to_its_end(stand: Stand) -> None:
    for number in range(1, 231):
        stand.repo.issue("ready", number=number, labels=[READY])

    assert [issue.key for issue in stand.ready() or ()] == [str(n) for n in range(1, 231)]
    assert stand.tracker.open_count(ROOT) == 230


def test_an_empty_page_in_the_middle_is_no_end(stand: Stand) -> None:
    for number in range(1, 231):
        stand.repo.issue("ready", number=number, labels=[READY])
    stand.forge.faults.planned.append(faults.empty_page(2))

    assert "1" in [issue.key for issue in stand.ready() or ()]
    assert "230" in [issue.key for issue in stand.ready() or ()]


def test_a_label_that_is_not_there_makes_an_empty_queue(stand: Stand) -> None:
    stand.repo.issue("not ready", labels=["bug"])

    assert stand.ready() == []


def test_a_label_with_a_comma_is_looked_for_here(stand: Stand) -> None:
    stand.repo.issue("both", number=3, labels=["ready, set"])
    stand.repo.issue("one", number=4, labels=["ready"])

    found = stand.tracker.queues({ROOT: "ready, set"})[ROOT]

    assert [issue.key for issue in found or ()] == ["3"]


@pytest.mark.row("LAB-13", level="contract")
def test_a_repository_that_hides_is_refused_with_both_reasons(stand: Stand) -> None:
    with pytest.raises(Refused, match="Either there is no repository of that name, or the account"):
        stand.tracker.open_issues("1/acme/hidden")
    with pytest.raises(Refused, match="no repository of that name"):
        stand.tracker.issue("1/acme/hidden", "7")
    with pytest.raises(Refused, match="no account for the forge"):
        stand.tracker.open_issues("2/acme/shop")
    assert stand.open("7", root="1/acme/hidden") is None


def test_issues_that_are_switched_off_are_said_to_be(stand: Stand) -> None:
    stand.repo.has_issues = False

    with pytest.raises(Refused, match="Issues are switched off in acme/shop"):
        stand.tracker.create_issue(ROOT, NewIssue("Add retries"))


def test_many_roots_are_asked_and_only_the_bad_ones_are_none(stand: Stand) -> None:
    roots = [ROOT]
    for number in range(2, 12):
        repo = stand.forge.repo(f"acme/shop{number}", roles={"bot": "read"})
        repo.issue("ready", number=number, labels=[READY])
        roots.append(f"1/acme/shop{number}")

    found = stand.tracker.queues(
        dict.fromkeys([*roots, "1/acme/no", "9/a/b", "x", "1/../x"], READY)
    )

    assert {root: None if q is None else [i.key for i in q] for root, q in found.items()} == {
        ROOT: [],
        **{f"1/acme/shop{number}": [str(number)] for number in range(2, 12)},
        "1/acme/no": None,
        "9/a/b": None,
        "x": None,
        "1/../x": None,
    }


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(lambda: faults.status(500), id="500"),
        pytest.param(lambda: faults.status(401), id="401"),
        pytest.param(lambda: faults.status(403), id="403"),
        pytest.param(lambda: faults.status(404), id="404"),
        pytest.param(lambda: faults.limited("60"), id="429"),
        pytest.param(lambda: faults.secondary(), id="secondary limit"),
        pytest.param(faults.drop, id="dropped"),
        pytest.param(faults.truncated, id="truncated"),
        pytest.param(faults.html, id="a web page"),
        pytest.param(lambda: faults.another_shape(None), id="null"),
        pytest.param(lambda: faults.another_shape({"a": 1}), id="an object"),
    ],
)
@pytest.mark.row("LAB-13", level="contract")
def test_trouble_makes_a_root_unknown_and_never_empty(
    stand: Stand, fault: Callable[[], faults.Fault]
) -> None:
    stand.repo.issue("ready", number=7, labels=[READY])
    stand.repo.pull("afk/7")
    stand.forge.faults.add(fault(), times=faults.FOREVER)

    assert stand.ready() is None
    assert stand.pulls("afk/7") is None
    assert stand.open("7") is None
    with pytest.raises(TrackerError):
        stand.tracker.open_issues(ROOT)
    with pytest.raises(TrackerError):
        stand.tracker.open_count(ROOT)


def test_why_a_root_was_not_read_is_kept_until_it_is(stand: Stand) -> None:
    stand.repo.issue("ready", number=7, labels=[READY])
    asks: tuple[Callable[[], object], ...] = (
        stand.ready,
        lambda: stand.pulls("afk/7"),
        lambda: stand.open("7"),
        lambda: stand.waits("8"),
    )
    for ask in asks:
        stand.forge.faults.add(faults.status(503), times=faults.FOREVER)
        assert ask() is None
        assert "503" in str(stand.tracker.trouble(ROOT))
        stand.forge.faults.clear()
        assert ask() is not None
        assert stand.tracker.trouble(ROOT) is None
    stand.tracker.queues({"9/acme/shop": READY})
    assert "no account for the forge" in str(stand.tracker.trouble("9/acme/shop"))


@pytest.mark.row("LAB-34", level="contract")
def test_wrong_types_and_unknown_fields_cost_no_more_than_the_entries(stand: Stand) -> None:
    stand.repo.issue("ready", number=7, labels=[READY])
    stand.repo.pull("afk/7")

    stand.forge.faults.add(faults.unknown_fields(), times=2)
    assert [issue.key for issue in stand.ready() or ()] == ["7"]
    assert heads(stand.pulls("afk/7")) == [("afk/7", "open")]
    stand.repo.issue("another", labels=[READY])
    stand.repo.pull("afk/8")
    stand.forge.faults.add(faults.wrong_types(), times=2)
    assert stand.ready() == []
    assert stand.pulls("afk/8") == []


def test_each_kind_of_trouble_is_an_error_of_its_own(stand: Stand) -> None:
    for fault, error in (
        (faults.status(502), Unreachable),
        (faults.status(401, "Bad credentials"), Refused),
        (faults.status(403, "Forbidden"), Refused),
        (faults.truncated(), NotUnderstood),
        (faults.limited("60"), RateLimited),
    ):
        stand.forge.faults.clear()
        stand.forge.faults.add(fault, times=faults.FOREVER)
        with pytest.raises(error) as raised:
            stand.tracker.open_issues(ROOT)
        assert stand.token not in str(raised.value)
        assert stand.forge.web.removeprefix("https://") in str(raised.value)


def test_a_refusal_names_what_it_takes(stand: Stand) -> None:
    stand.forge.faults.add(faults.status(403, "Forbidden"), times=faults.FOREVER)
    needs = stand.tracker.dialect.needs

    with pytest.raises(Refused) as raised:
        stand.tracker.open_issues(ROOT)
    assert "Forbidden" in str(raised.value)
    assert list(needs.values())[1] in str(raised.value)


def test_an_issue_that_was_moved_elsewhere_is_not_read_as_ours(stand: Stand) -> None:
    stand.repo.issue("ours", number=7)
    elsewhere = faults.Fault(change=_renumbered)
    stand.forge.faults.add(elsewhere, times=faults.FOREVER, path="/issues/7")

    with pytest.raises(NotFound, match="no issue 7 any more"):
        stand.tracker.issue(ROOT, "7")
    assert stand.open("7") == []


def _renumbered(asked: Asked, told: Told) -> Told:
    """The answer for the issue that a redirect of the forge leads to."""
    return told if told.status == 304 else replace(told, data={**told.data, "number": 31})


def test_still_open_asks_for_each_named_issue_once(stand: Stand) -> None:
    stand.repo.issue("open", number=3)
    stand.repo.issue("closed", number=4, is_open=False)

    found = stand.tracker.still_open({ROOT: ["3", "4", "99", "x", "3"], "1/acme/no": ["1"]})

    assert [issue.key for issue in found[ROOT] or ()] == ["3"]
    assert found["1/acme/no"] is None
    assert len(stand.forge.calls("/issues/3")) == 1


# Pull requests.


@pytest.mark.row("LAB-12", level="contract")
def test_three_live_runs_cost_one_list_a_tick(stand: Stand) -> None:
    for number in (1, 2, 3):
        stand.repo.pull(f"afk/{number}")

    for _ in range(4):
        before = stand.count()
        assert len(stand.pulls("afk/1", "afk/2", "afk/3") or ()) == 3
        assert stand.count() - before == 1


@pytest.mark.row("X-03", "LAB-12", level="contract")
def test_an_old_merged_pull_request_is_found_and_then_costs_nothing_more(stand: Stand) -> None:
    stand.repo.pull("afk/7", "merged", is_branch_gone=True)
    for number in range(250):
        stand.repo.pull(f"feature/{number}", "closed")

    assert heads(stand.pulls("afk/7", "afk/8")) == [("afk/7", "merged")]
    for _ in range(3):
        before = stand.count()
        assert heads(stand.pulls("afk/7", "afk/8")) == [("afk/7", "merged")]
        assert stand.count() - before == 1


@pytest.mark.row("X-03", level="contract")
def test_what_changes_behind_the_first_page_is_noticed(stand: Stand) -> None:
    ours = stand.repo.pull("afk/7")
    for number in range(250):
        stand.repo.pull(f"feature/{number}", "closed")
    assert heads(stand.pulls("afk/7")) == [("afk/7", "open")]

    stand.repo.merge(ours, "c" * 40)
    for number in range(120):
        stand.repo.pull(f"later/{number}", "closed")

    assert heads(stand.pulls("afk/7")) == [("afk/7", "merged")]


@pytest.mark.long
def test_more_change_than_is_read_back_is_still_exact(stand: Stand) -> None:
    ours = stand.repo.pull("afk/7")
    for number in range(120):
        stand.repo.pull(f"feature/{number}", "closed")
    assert heads(stand.pulls("afk/7")) == [("afk/7", "open")]

    stand.repo.merge(ours, "c" * 40)
    for number in range(560):
        stand.repo.pull(f"later/{number}", "closed")

    found = None
    for _ in range(4):
        found = found or stand.pulls("afk/7")
    assert heads(found) == [("afk/7", "merged")]


def test_a_new_head_in_a_long_list_is_looked_up(stand: Stand) -> None:
    stand.repo.pull("afk/8", "merged")
    for number in range(250):
        stand.repo.pull(f"feature/{number}", "closed")
    assert heads(stand.pulls("afk/7")) == []

    assert heads(stand.pulls("afk/7", "afk/8")) == [("afk/8", "merged")]
    before = stand.count()
    assert heads(stand.pulls("afk/7", "afk/8")) == [("afk/8", "merged")]
    assert stand.count() - before == 1


@pytest.mark.row("LAB-29", level="contract")
def test_the_same_head_in_a_fork_does_not_count(stand: Stand) -> None:
    fork = stand.forge.repo("eve/shop")
    stand.repo.pull("afk/7", fork=fork, author="eve")
    gone = stand.forge.repo("mal/shop")
    stand.repo.pull("afk/7", "merged", fork=gone, author="mal")
    stand.forge.remove(gone)

    found = stand.pulls("afk/7") or []

    assert [pull.is_fork for pull in found] == [True, True]
    assert best_pull(found, "afk/7") is None


@pytest.mark.row("LAB-31", "LAB-32", "LAB-33", level="contract")
def test_a_merged_pull_request_whose_branch_is_gone_is_found(stand: Stand) -> None:
    stand.repo.pull("afk/7", "closed", is_branch_gone=True)
    stand.repo.pull("afk/7", "merged", is_branch_gone=True)

    found = stand.pulls("afk/7") or []

    assert heads(found) == [("afk/7", "closed"), ("afk/7", "merged")]
    assert found[1].merge_commit == SHA[::-1]


def test_a_renamed_repository_goes_on_working(stand: Stand) -> None:
    stand.repo.issue("ready", number=7, labels=[READY])
    stand.repo.pull("afk/7", "merged")
    for number in range(120):
        stand.repo.pull(f"feature/{number}", "closed")
    stand.forge.rename(stand.repo, "newco/store")
    stand.repo.roles["bot"] = "write"

    assert [issue.key for issue in stand.ready() or ()] == ["7"]
    for pull in stand.repo.items.values():
        if pull.pull:
            pull.pull.head_owner = "newco"
    assert heads(stand.pulls("afk/7")) == [("afk/7", "merged")]
    stand.tracker.comment(ROOT, "7", "ada", "still here")
    assert [remark.body for remark in stand.repo.items[7].remarks] == ["still here"]


def test_a_repository_that_moves_in_circles_is_asked_no_more_than_twice(stand: Stand) -> None:
    stand.repo.issue("i", number=7)
    stand.forge.rename(stand.repo, "newco/store")
    away = faults.redirect(f"{stand.forge.api}/repos/acme/shop/issues/7/comments", 307)
    stand.forge.faults.add(away, times=faults.FOREVER, method="POST")

    with pytest.raises(Refused, match="was moved"):
        stand.tracker.comment(ROOT, "7", "ada", "hello")
    assert len(stand.forge.calls(method="POST")) == 2


def test_checks_of_a_commit_that_is_not_there(stand: Stand) -> None:
    stand.repo.has_issues = False
    stand.forge.faults.add(faults.status(404), times=faults.FOREVER, path="/commits")

    with pytest.raises(NotFound):
        stand.tracker.checks(ROOT, SHA)


def test_one_pull_request(stand: Stand) -> None:
    stand.repo.issue("an issue", number=3)
    stand.repo.pull("afk/7", number=9, title="Add retries")

    assert stand.tracker.pull(ROOT, 9).title == "Add retries"
    for number in (3, 8, 0, -1):
        with pytest.raises(NotFound, match=f"no pull request {number}"):
            stand.tracker.pull(ROOT, number)


def test_opening_a_pull_request_and_what_is_in_its_way(stand: Stand) -> None:
    made = stand.tracker.create_pull(ROOT, NEW)

    assert (made.head, made.base, made.state, made.body) == (
        "afk/7",
        "main",
        PullState.OPEN,
        "Closes #7",
    )
    assert stand.pulls("afk/7") == [made]
    with pytest.raises(Refused, match="already an open pull request for afk/7"):
        stand.tracker.create_pull(ROOT, NEW)
    stand.repo.tip = lambda branch: None if branch == "afk/8" else SHA
    with pytest.raises(Refused, match="afk/8"):
        stand.tracker.create_pull(ROOT, NewPull("afk/8", "main", "t", "", "ada"))
    with pytest.raises(Refused, match="does not open a pull request for main"):
        stand.tracker.create_pull(ROOT, NewPull("main", "main", "t", "", "ada"))


def test_an_account_that_may_not_write_is_told_what_it_takes(stand: Stand) -> None:
    stand.repo.issue("an issue", number=7)
    stand.repo.roles["bot"] = "read"
    stand.repo.label(READY)

    with pytest.raises(Refused, match="write"):
        stand.tracker.add_label(ROOT, "7", READY)


# Writing.


def test_a_comment_is_written_once(stand: Stand) -> None:
    stand.repo.issue("an issue", number=7)

    stand.tracker.comment(ROOT, "7", "ada", "first")

    assert [comment.body for comment in stand.tracker.issue(ROOT, "7").comments] == ["first"]
    stand.forge.faults.add(faults.lost(), method="POST")
    with pytest.raises(Unreachable):
        stand.tracker.comment(ROOT, "7", "ada", "second")
    assert len(stand.repo.items[7].remarks) == 2


def test_labels_go_on_and_off_and_twice_does_no_harm(stand: Stand) -> None:
    stand.repo.issue("an issue", number=7)
    stand.repo.label("in-progress")

    for _ in range(2):
        stand.tracker.add_label(ROOT, "7", "in-progress")
    assert stand.tracker.issue(ROOT, "7").labels == ("in-progress",)
    for _ in range(2):
        stand.tracker.remove_label(ROOT, "7", "in-progress")
    assert stand.tracker.issue(ROOT, "7").labels == ()
    stand.tracker.remove_label(ROOT, "7", "never heard of")
    with pytest.raises(Refused, match="no label “urgent”"):
        stand.tracker.add_label(ROOT, "7", "urgent")
    for act in (stand.tracker.add_label, stand.tracker.remove_label):
        with pytest.raises(NotFound, match="no issue 99"):
            act(ROOT, "99", "in-progress")
    assert stand.tracker.labels(ROOT) == {"in-progress"}


def test_a_label_with_odd_letters_makes_no_other_path(stand: Stand) -> None:
    stand.repo.issue("an issue", number=7)
    odd = "kind/../bug? #1"
    stand.tracker.create_label(ROOT, odd)
    stand.tracker.create_label(ROOT, odd)

    stand.tracker.add_label(ROOT, "7", odd)
    assert stand.tracker.issue(ROOT, "7").labels == (odd,)
    assert [i.key for i in stand.tracker.queues({ROOT: odd})[ROOT] or ()] == ["7"]
    stand.tracker.remove_label(ROOT, "7", odd)

    assert stand.tracker.issue(ROOT, "7").labels == ()
    assert stand.tracker.labels(ROOT) == {odd}


def test_closing_twice_is_fine(stand: Stand) -> None:
    stand.repo.issue("an issue", number=7)

    stand.tracker.close(ROOT, "7")
    before = len(stand.forge.calls(method="PATCH"))
    stand.tracker.close(ROOT, "7")

    assert not stand.repo.items[7].is_open
    assert len(stand.forge.calls(method="PATCH")) == before == 1


def test_a_new_issue_carries_labels_that_are_there(stand: Stand) -> None:
    stand.repo.label("bug")

    made = stand.tracker.create_issue(ROOT, NewIssue("Add retries", "why", ("bug",), "ada"))

    assert stand.tracker.issue(ROOT, made.key) == made
    assert (made.title, made.body, made.labels) == ("Add retries", "why", ("bug",))
    with pytest.raises(Refused, match="no label “urgent”"):
        stand.tracker.create_issue(ROOT, NewIssue("Another", "", ("bug", "urgent")))
    assert stand.tracker.open_count(ROOT) == 1
    assert stand.tracker.labels(ROOT) == {"bug"}


# What an issue waits for.


def test_blockers_are_asked_for_only_where_there_may_be_some(stand: Stand) -> None:
    free, blocked = (stand.repo.issue("i", number=n, labels=[READY]) for n in (1, 2))
    waits = stand.repo.issue("first this", number=3)
    blocked.blocked_by += [
        (stand.repo, waits),
        (stand.repo, stand.repo.issue("done", is_open=False)),
    ]
    stand.ready()

    assert stand.waits("1", "2") == {"2": ["3"]}
    before = len(stand.forge.calls("shop/issues/1/dependencies"))
    stand.ready()
    assert stand.tracker.blockers({ROOT: ["1", "2"], "1/acme/no": ["1"]}) == {
        ROOT: {"2": ["3"]},
        "1/acme/no": None,
    }
    assert len(stand.forge.calls("shop/issues/1/dependencies")) == before
    stand.repo.close(waits)
    stand.ready()
    assert stand.waits("1", "2") == {}
    assert free.is_open


def test_trouble_with_blockers_is_unknown_and_never_none(stand: Stand) -> None:
    one, waits = stand.repo.issue("i", number=1, labels=[READY]), stand.repo.issue("w", number=2)
    one.blocked_by.append((stand.repo, waits))
    stand.ready()
    stand.forge.faults.add(faults.status(500), times=faults.FOREVER, path="/dependencies")

    assert stand.waits("1") is None


# Checks and merging.


def test_the_newest_check_of_each_name(stand: Stand) -> None:
    stand.repo.check(SHA, "unit", "failure")
    stand.repo.check(SHA, "unit", "success", url="https://ci/2")
    stand.repo.check(SHA, "lint", "pending")

    found = stand.tracker.checks(ROOT, SHA)

    assert [(check.name, check.state) for check in found] == [
        ("lint", CheckState.RUNNING),
        ("unit", CheckState.PASSED),
    ]
    assert stand.tracker.checks(ROOT, "b" * 40) == []
    for bad in ("main", "../x", "A" * 40, ""):
        with pytest.raises(NotFound):
            stand.tracker.checks(ROOT, bad)


def test_a_merge_happens_once_and_can_be_asked_for_again(stand: Stand) -> None:
    stand.repo.pull("afk/7", number=9)

    commit = stand.tracker.merge(ROOT, 9, SHA)

    assert commit == stand.repo.items[9].pull.merge_commit  # type: ignore[union-attr]
    assert stand.tracker.merge(ROOT, 9, SHA) == commit
    assert stand.tracker.pull(ROOT, 9).state is PullState.MERGED


def test_what_was_merged_from_another_head_is_not_taken_for_ours(stand: Stand) -> None:
    stand.repo.pull("afk/7", "merged", number=9, sha="d" * 40)

    with pytest.raises(Refused, match="Pull request 9 is merged"):
        stand.tracker.merge(ROOT, 9, SHA)


def test_a_merge_whose_answer_was_lost_is_found_done(stand: Stand) -> None:
    stand.repo.pull("afk/7", number=9)
    stand.forge.faults.add(faults.lost(), path="/merge")
    with contextlib.suppress(Unreachable):
        stand.tracker.merge(ROOT, 9, SHA)

    assert stand.tracker.merge(ROOT, 9, SHA) == stand.tracker.pull(ROOT, 9).merge_commit


def test_a_branch_that_moved_is_not_merged(stand: Stand) -> None:
    stand.repo.pull("afk/7", number=9, sha="d" * 40)

    with pytest.raises(Refused, match="The branch has moved"):
        stand.tracker.merge(ROOT, 9, SHA)
    assert stand.repo.items[9].is_open


def test_a_merge_that_is_not_let_through_says_why(stand: Stand) -> None:
    pull = stand.repo.pull("afk/7", number=9)
    assert pull.pull is not None
    pull.pull.not_mergeable = "Required status check “unit” is failing"

    with pytest.raises(Refused, match="Required status check “unit” is failing"):
        stand.tracker.merge(ROOT, 9, SHA)
    stand.repo.close(pull)
    with pytest.raises(Refused, match="Pull request 9 is closed"):
        stand.tracker.merge(ROOT, 9, SHA)
    with pytest.raises(NotFound):
        stand.tracker.merge(ROOT, 99, SHA)


def test_a_repository_that_only_squashes_is_squashed(stand: Stand) -> None:
    stand.repo.pull("afk/7", number=9)
    stand.repo.merge_styles = ("squash",)

    assert stand.tracker.merge(ROOT, 9, SHA)


def test_forges_can_do_all_that_the_seam_knows_but_be_local_and_have_a_status(
    stand: Stand,
) -> None:
    assert set(Ability) - stand.tracker.abilities == {Ability.LOCAL, Ability.STATUS}
    with pytest.raises(Refused, match="cannot do that"):
        stand.tracker.set_status(ROOT, "7", True)


def test_a_tracker_of_another_token_keeps_nothing_of_the_first(stand: Stand) -> None:
    stand.repo.issue("ready", number=7, labels=[READY])
    other = tracker_on(stand.forge, stand.forge.token("stranger"))

    assert Stand(stand.forge, stand.repo, other, "").ready() is None
