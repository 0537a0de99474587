"""Merging from the pull request's pages and over the API: what the card says, and what it does."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from runs.models import Notice
from tests.api.program import Program, denied
from tests.fakes import START, World
from tests.pulls.review_desk import BEFORE, ORIGIN, Review
from tests.web.people import hx, text_of
from trackers.builtin import store
from trackers.builtin.models import Issue

pytestmark = pytest.mark.django_db


@pytest.fixture
def review(world: World) -> Review:
    return Review(world)


def card(client: Client, review: Review, tab: str = "") -> str:
    html = text_of(client.get(review.at + tab))
    return html.partition('id="pull-merge"')[2].partition("</section>")[0]


def address(client: Client, review: Review) -> str:
    found = re.search(r'formaction="([^"]+/merge\?[^"]+)"', card(client, review))
    assert found
    return found[1].replace("&amp;", "&")


def conflict(review: Review) -> None:
    """Somebody else changed the same file on main."""
    other = review.git.commit({**BEFORE, "src/app.py": "other\n"}, review.base, subject="fix: x")
    review.git.refs[f"{ORIGIN}main"] = other


def test_the_card_is_on_every_tab_and_says_what_merging_does(anna: Client, review: Review) -> None:
    for tab in ("", "commits", "files"):
        assert "Ready to merge into main (fast-forward)" in card(anna, review, tab)
        assert "Close without merging" in card(anna, review, tab)
        assert 'href="#pull-merge"' in text_of(anna.get(review.at + tab))
    commit = text_of(anna.get(f"{review.at}commits/{review.head}"))
    assert f'href="{review.at}#pull-merge"' in commit


@pytest.mark.row("LAB-132", level="contract")
def test_merging_answers_both_request_styles(anna: Client, review: Review) -> None:
    plain = anna.post(address(anna, review))
    assert (plain.status_code, plain["Location"]) == (303, review.at)
    html = text_of(anna.get(review.at))
    assert "Pull request 1 was merged into main." in html
    assert "merged into main by anna" in html
    assert "merged by anna" in html
    assert "/merge?" not in html
    assert "Close without merging" not in html

    again = hx(anna, f"{review.at}merge", at=review.at)
    assert again.status_code == 409
    assert "was merged by anna already" in text_of(again)
    assert 'hx-target="#pull-merge"' in text_of(again)


def test_htmx_gets_the_parts_of_the_tab_it_is_on(anna: Client, review: Review) -> None:
    answer = hx(anna, address(anna, review), at=f"{review.at}files")
    html = text_of(answer)
    assert answer.status_code == 200
    for part in ("banner", "pull-state", "pull-act", "pull-tabs", "pull-merge"):
        assert f'hx-target="#{part}"' in html
    assert f'href="{review.at}files" aria-current="page"' in html


def test_a_conflict_names_the_files_and_offers_no_merge(anna: Client, review: Review) -> None:
    conflict(review)
    said = card(anna, review)
    assert "change the same lines" in said
    assert "<code>src/app.py</code>" in said
    assert "/merge?" not in said
    answer = hx(anna, f"{review.at}merge", at=review.at)
    assert answer.status_code == 409
    assert "src/app.py" in text_of(answer)
    assert review.pull.state == "open"


def test_what_was_seen_is_what_is_merged(anna: Client, review: Review) -> None:
    seen = address(anna, review)
    review.more()
    answer = hx(anna, seen, at=review.at)
    assert answer.status_code == 409
    assert "New commits have come" in text_of(answer)
    assert review.pull.state == "open"
    assert anna.post(address(anna, review)).status_code == 303
    assert review.pull.state == "merged"


def test_a_git_that_does_not_answer_merges_nothing(anna: Client, review: Review) -> None:
    seen = address(anna, review)
    review.git.broken_fetch = "could not resolve host"
    answer = hx(anna, seen, at=review.at)
    assert answer.status_code == 502
    assert "It was not merged: could not resolve host" in text_of(answer)
    review.git.broken_history = "git is broken"
    assert "could not be told: git is broken" in card(anna, review)


def test_who_may_and_how(anna: Client, vera: Client, review: Review) -> None:
    assert "/merge?" not in card(vera, review)
    assert "fast-forward" in card(vera, review)
    assert vera.post(f"{review.at}merge").status_code == 403
    assert anna.get(f"{review.at}merge").status_code == 405
    assert anna.post(f"/projects/{review.project.pk}/pulls/987654321/merge").status_code == 404
    assert review.pull.state == "open"


def test_programs_ask_and_merge(review: Review, operator: User) -> None:
    root = review.project.tracker_root
    issue = store.create_issue(root, title="x", body="", author="a", labels=(), at=START)
    review.pull.__class__.objects.update(body=f"Closes #{issue}")
    program, at = Program.of(operator), f"/projects/{review.project.pk}/pulls/1"
    said = program.get(f"{at}/merge").json()
    assert (said["can_merge"], said["code"], said["into"]) == (True, "forward", "main")
    assert said["head"] == review.head

    denied(program.post(f"{at}/merge", {"head": review.first}), 409, "head_moved")
    done = program.post(f"{at}/merge", {"head": said["head"], "into": "main"}).json()
    assert done["closed_issues"] == [issue]
    pull = done["pull"]
    assert (pull["state"], pull["merged_by"]) == ("merged", "anna")
    assert pull["merge_commit"] == review.head
    assert not Issue.objects.get(number=issue).is_open
    denied(program.post(f"{at}/merge", {}), 409, "merged")
    assert program.get(f"{at}/merge").json()["code"] == "merged"
    denied(Program.of(operator, "look").post(f"{at}/merge", {}), 403, "look_only")


def test_a_conflict_has_a_code_of_its_own(review: Review, operator: User) -> None:
    conflict(review)
    program, at = Program.of(operator), f"/projects/{review.project.pk}/pulls/1/merge"
    assert program.get(at).json()["files"] == ["src/app.py"]
    said: dict[str, Any] = denied(program.post(at, {}), 409, "conflict")
    assert "src/app.py" in said["text"]
    assert not Notice.objects.filter(kind="pull.merged").exists()
