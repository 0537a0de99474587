"""The pages that review a pull request: conversation, commits, files, comments."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from runs.models import Notice
from runs.pulls import review_pages
from tests.fakes import World
from tests.pulls.review_desk import Review
from tests.web.people import hx, text_of
from trackers.base import PullState
from trackers.builtin.models import PullComment, PullRequest

pytestmark = pytest.mark.django_db

EVIL = "<script>alert('x')</script>"
LOOKS = ("", "commits", "files", "files?view=split", "files?file=2")
LIVE = ("live", "commits/live", "files/live", "frame")


@pytest.fixture
def review(world: World) -> Review:
    return Review(world)


def main(answer: Any, status: int = 200) -> str:
    assert answer.status_code == status, answer.content[:500]
    return str(text_of(answer).partition("<main")[2])


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


# What is shown.


def test_the_files_with_their_lines_a_tree_and_what_has_none(anna: Client, review: Review) -> None:
    html = main(anna.get(review.at + "files"))
    assert re.findall(r'<(?:details|div) class="file[^"]*" id="(file-\d)"', html) == [
        f"file-{n}" for n in (1, 2, 3, 4)
    ]
    said = words(html)
    assert "It is binary, so there is nothing to read here." in said
    assert "src/ deep/down/ new.py +2 −0 app.py +1 −1" in said
    assert 'id="f3-O5"' in html
    assert 'id="f3-L5"' in html
    assert '<span class="k">def</span>' in html
    assert '<mark><span class="sa">f</span></mark>' in html
    assert "added</span>" in html
    assert "4 files +3 −2" in said.replace("  ", " ")


def test_side_by_side_is_kept_for_the_next_page(anna: Client, review: Review) -> None:
    assert 'class="diff code sides"' not in main(anna.get(review.at + "files"))
    split = anna.get(review.at + "files?view=split")
    assert 'class="diff code sides"' in main(split)
    assert split.cookies["diff_view"]["httponly"]
    assert 'class="diff code sides"' in main(anna.get(review.at + "files"))
    assert 'class="diff code sides"' in main(anna.get(f"{review.at}commits/{review.head}"))
    assert 'class="diff code sides"' not in main(anna.get(review.at + "files?view=unified"))
    assert 'class="diff code sides"' not in main(anna.get(review.at + "files?view=%22%3E"))


def test_the_list_is_narrowed_by_name_and_to_one_file(anna: Client, review: Review) -> None:
    html = main(anna.get(review.at + "files?q=DOWN"))
    assert re.findall(r'id="file-(\d)"', html) == ["4"]
    assert "1 of 4 files" in words(html)
    assert "No file has “nothing” in its name" in words(
        main(anna.get(review.at + "files?q=nothing"))
    )
    assert re.findall(r'id="file-(\d)"', main(anna.get(review.at + "files?file=3"))) == ["3"]
    assert anna.get(review.at + "files?file=9").status_code == 404


def test_the_commits_lead_to_their_own_pages(anna: Client, review: Review) -> None:
    html = main(anna.get(review.at + "commits"))
    assert re.findall(r'id="commit-(\w+)"', html) == [review.head, review.first]
    assert "feat: &lt;b&gt;greet&lt;/b&gt;" in html
    one = main(anna.get(f"{review.at}commits/{review.first}"))
    assert re.findall(r'id="file-(\d)"', one) == ["1"]
    assert "Why" in words(one)
    for other in (review.base, "0" * 40, "--output=x", "x"):
        assert anna.get(f"{review.at}commits/{other}").status_code == 404


def test_a_pull_request_that_ended_still_shows_its_diff(anna: Client, review: Review) -> None:
    PullRequest.objects.update(state=PullState.MERGED)
    review.git.refs = {"refs/remotes/origin/main": review.head}
    assert 'id="f3-L5"' in main(anna.get(review.at + "files"))


def test_a_branch_that_is_gone_is_said_and_what_was_seen_is_shown(
    anna: Client, review: Review
) -> None:
    del review.git.refs["refs/remotes/origin/afk/1"]
    assert "not on origin any more" in words(main(anna.get(review.at + "files")))
    PullRequest.objects.update(head_commit="9" * 40)
    for page in ("", "commits", "files"):
        assert "is not in labsite's repository any more" in words(
            main(anna.get(review.at + page)).replace("&#x27;", "'")
        )


def test_a_git_that_does_not_answer_leaves_text_and_comments(anna: Client, review: Review) -> None:
    review.say("still here")
    review.git.broken_history = "git for-each-ref gave no answer within 15 seconds"
    assert "still here" in main(anna.get(review.at))
    for page in ("", "commits", "files"):
        assert "gave no answer within 15 seconds" in main(anna.get(review.at + page))


def test_a_branch_without_changes_teaches(anna: Client, review: Review) -> None:
    review.move(review.base)
    assert "No file is changed" in main(anna.get(review.at + "files"))
    assert "The branch has no commit" in main(anna.get(review.at + "commits"))


@pytest.mark.row("X-14", level="contract")
def test_hostile_content_is_shown_as_text_and_hides_nothing(anna: Client, world: World) -> None:
    text = f"x = 1  # {EVIL}\na = '\u202e}}'\n\u200bb = 2\x1b[2J\n" + "y" * 5000 + "\n"
    name = f"src/{EVIL}\u202egpj.py".replace("/s", "-s")
    review = Review(world, {}, {name: text, "a\"b'c&d.html": EVIL + "\n"})
    review.say(EVIL + " [x](javascript:alert(1))", path=name, line=1)
    for page in (*LOOKS, f"commits/{review.head}"):
        html = text_of(anna.get(review.at + page))
        assert "<script>alert" not in html
        assert 'href="javascript:' not in html
        assert "\x1b" not in html
        assert "\u200b" not in html
        # The raw name stands in attributes that are never shown; nothing that is shown reorders.
        assert "\u202e" not in re.sub(r'data-path="[^"]*"', "", html)
    html = main(anna.get(review.at + "files"))
    assert '<span class="odd">U+202E</span>' in html
    assert "4,000 more characters" in html


# Bounds.


def test_big_files_wait_until_they_are_asked_for(anna: Client, world: World) -> None:
    big = "".join(f"line {n}\n" for n in range(900))
    review = Review(world, {}, {"a.txt": big, "b.txt": "small\n"})
    html = main(anna.get(review.at + "files"))
    load = re.search(r'href="([^"]*/files/1\?[^"]*)"', html)
    assert load
    assert "line 899" not in html
    assert "small" in html
    address = load[1].replace("&amp;", "&")
    part = anna.get(address, headers={"HX-Request": "true"})
    assert part.status_code == 200
    assert text_of(part).lstrip().startswith('<details class="file" id="file-1"')
    assert "line 899" in text_of(part)
    plain = anna.get(address)
    assert plain.status_code == 302
    assert "line 899" in main(anna.get(plain["Location"]))

    review.move(review.first)
    late = anna.get(address, headers={"HX-Request": "true"})
    assert late.status_code == 409
    assert "Load it again" in text_of(late)
    missing = address.replace("/files/1", "/files/77")
    assert anna.get(missing, headers={"HX-Request": "true"}).status_code in (404, 409)


def test_thousands_of_files_come_in_pages_and_all_can_be_reached(
    anna: Client, world: World, django_assert_num_queries: Any
) -> None:
    names = {f"dir{n % 7}/file{n:04}.txt": f"{n}\n" for n in range(1000)}
    review = Review(world, {}, names)
    anna.get(review.at + "files")
    with django_assert_num_queries(10):
        html = main(anna.get(review.at + "files"))
    assert html.count('class="file"') == review_pages.PAGE
    assert "1000 files" in words(html)
    last = main(anna.get(review.at + "files?page=7"))
    assert 'id="file-1000"' in last
    assert len(html) < 600_000


def test_git_is_asked_five_times_and_then_once_a_page(anna: Client, review: Review) -> None:
    for page in ("files", "files", "", "commits", "files?view=split", "live"):
        review.git.asked.clear()
        assert anna.get(review.at + page).status_code == 200
        assert len(review.git.asked) <= (5 if page == "files" else 1), page
    review.git.asked.clear()
    anna.get(review.at + "files")
    assert review.git.asked == ["tips"]


@pytest.mark.row("LAB-130", level="contract")
@pytest.mark.parametrize("page", ["", "commits", "files"])
def test_an_unchanged_refresh_is_304_and_asks_no_git(
    anna: Client, review: Review, page: str
) -> None:
    html = text_of(anna.get(review.at + page))
    tag = re.search(r'hx-ptag="([^"]+)"', html)
    live = re.search(r'id="live" hidden hx-get="([^"]+)"', html)
    assert tag
    assert live
    address = live[1].replace("&amp;", "&")
    review.git.asked.clear()
    assert anna.get(address, headers={"HX-PTag": tag[1]}).status_code == 304
    assert review.git.asked == []
    review.say(path="src/app.py", line=5)
    answer = anna.get(address, headers={"HX-PTag": tag[1]})
    assert answer.status_code == 200
    regions = re.findall(r'hx-target="#([^"]+)"', text_of(answer))
    assert ("file-3" in regions) == (page == "files")
    for region in regions:
        assert f'id="{region}"' in html, region


def test_a_page_whose_branch_moved_says_so_and_changes_no_line(
    anna: Client, review: Review
) -> None:
    html = text_of(anna.get(review.at + "files"))
    live = re.search(r'id="live" hidden hx-get="([^"]+)"', html)
    assert live
    review.more()
    review.say("on the new head", path="late.txt", line=1)
    said = text_of(anna.get(live[1].replace("&amp;", "&")))
    assert "New commits have come" in said
    assert "file-" not in "".join(re.findall(r'hx-target="#([^"]+)"', said))


# Comments.


def test_a_comment_is_written_shown_and_told(anna: Client, review: Review) -> None:
    back = anna.post(review.at + "comment", {"comment": "It **works**."})
    assert (back.status_code, back["Location"]) == (303, review.at)
    html = main(anna.get(review.at))
    assert "<strong>works</strong>" in html
    assert Notice.objects.get().by == "anna"
    part = hx(anna, review.at + "comment", {"comment": "again"}, review.at)
    assert 'hx-target="#pull-thread"' in text_of(part)
    assert PullComment.objects.count() == 2


def test_a_comment_on_a_line_stands_below_it_until_the_branch_moves(
    anna: Client, review: Review
) -> None:
    fields = {"comment": "Why f?", "file": "3", "side": "new", "line": "5", "commit": review.head}
    part = text_of(hx(anna, review.at + "comment", fields, review.at + "files"))
    assert 'hx-target="#file-3"' in part
    html = main(anna.get(review.at + "files"))
    assert html.index('id="f3-L5"') < html.index("Why f?") < html.index('id="f3-L6"')
    said = main(anna.get(review.at))
    assert f'href="{review.at}files?file=3#f3-L5"' in said
    assert "outdated" not in said
    review.more()
    assert "Why f?" not in main(anna.get(review.at + "files"))
    said = words(main(anna.get(review.at)))
    assert "outdated" in said
    assert "print(f&#x27;hello {name}&#x27;)" in said


def test_after_the_branch_moved_the_form_comes_back_for_the_new_head(
    anna: Client, review: Review
) -> None:
    fields = {"comment": "kept", "file": "1", "side": "new", "line": "1", "commit": review.head}
    head = review.more()
    html = main(anna.post(review.at + "comment", fields), 422)
    assert f'name="commit" value="{head}"' in html
    assert "kept</textarea>" in html


@pytest.mark.parametrize("scripts", [True, False])
@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"comment": " "}, "Write a comment first."),
        ({"comment": "kept", "file": "3", "side": "new", "line": "", "commit": "HEAD"}, "Write the number of a line"),
        ({"comment": "kept", "file": "3", "side": "new", "line": "9999", "commit": "HEAD"}, "does not show the new line 9999"),
        ({"comment": "kept", "file": "3", "side": "up", "line": "5", "commit": "HEAD"}, "old or on the new side"),
        ({"comment": "kept", "file": "0", "side": "new", "line": "5", "commit": "HEAD"}, "Choose a file"),
        ({"comment": "kept", "file": "x", "side": "new", "line": "5", "commit": "HEAD"}, "Choose a file"),
        ({"comment": "kept", "file": "3", "side": "new", "line": "5", "commit": "f" * 40}, "New commits have come"),
        ({"comment": "kept", "file": "3", "side": "new", "line": "5"}, "New commits have come"),
        ({"comment": "", "file": "3", "side": "new", "line": "5", "commit": "HEAD"}, "Write a comment first."),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_comes_back_in_its_field(
    anna: Client, review: Review, fields: dict[str, str], says: str, scripts: bool
) -> None:
    sent = {name: review.head if value == "HEAD" else value for name, value in fields.items()}
    post = hx if scripts else Client.post
    answer = post(anna, review.at + "comment", sent)
    assert answer.status_code == 422
    assert says in text_of(answer)
    if sent["comment"] == "kept":
        assert "kept</textarea>" in text_of(answer)
    assert not PullComment.objects.exists()


@pytest.mark.row("X-10", level="contract")
def test_strangers_and_viewers(client: Client, vera: Client, review: Review) -> None:
    review.say()
    for page in (*LOOKS, *LIVE, f"commits/{review.head}", f"files/1?head={review.head}"):
        assert Client().get(review.at + page)["Location"].startswith("/login/")
        answer = vera.get(review.at + page, follow=True)
        assert answer.status_code == 200
        assert "<textarea" not in text_of(answer)
    assert Client().post(review.at + "comment", {"comment": "x"}).status_code == 302
    assert vera.post(review.at + "comment", {"comment": "x"}).status_code == 403
    assert Client(enforce_csrf_checks=True).post(review.at + "comment").status_code in (302, 403)
    assert PullComment.objects.count() == 1


@pytest.mark.long
def test_wrong_methods_and_unknown_things(anna: Client, review: Review) -> None:
    assert anna.get(review.at + "comment").status_code == 405
    for page in ("commits", "files", "files/1"):
        assert anna.post(review.at + page).status_code == 405
        assert anna.get(review.at.replace("/1/", "/99/", 2) + page).status_code in (302, 404)
    other = f"/projects/{review.project.pk}/pulls/987654321/"
    for page in (*LOOKS, *LIVE, "commits/x"):
        assert anna.get(other + page).status_code == 404
    assert anna.post(other + "comment", {"comment": "x"}).status_code == 404
    assert anna.get(f"{review.at}files/1?commit=a/b&head=x").status_code == 302
    for odd in ("file=-1", "file=%00", "page=0", "page=" + "9" * 30, "q=%00", "view=%ff"):
        assert anna.get(f"{review.at}files?{odd}").status_code in (200, 404)


@pytest.mark.parametrize(("page", "queries"), [("", 13), ("commits", 10), ("files", 10)])
def test_a_page_costs_the_same_for_one_comment_and_for_fifty(
    anna: Client, review: Review, page: str, queries: int, django_assert_num_queries: Any
) -> None:
    review.say("first", path="src/app.py", line=5)
    anna.get(review.at + page)
    with django_assert_num_queries(queries):
        anna.get(review.at + page)
    for n in range(50):
        review.say(f"comment {n}", path="src/app.py", line=5)
    with django_assert_num_queries(queries):
        anna.get(review.at + page)
