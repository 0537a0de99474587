"""Pages of issues: they work, turn strangers away, keep what was typed, and cost the same for many rows."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest
from django.test import Client

from runs.core.states import ProjectState
from runs.models import Notice, Project
from tests import make
from tests.fakes import World
from tests.web.people import text_of
from trackers import registry
from trackers.base import NewPull
from trackers.builtin import store
from trackers.builtin.models import Issue, IssueComment, Label

pytestmark = pytest.mark.django_db

EVIL = "<script>alert('x')</script> \"quoted\" $(reboot) {{ settings.SECRET_KEY }}"


@pytest.fixture
def project(world: World) -> Project:
    world.lab = dataclasses.replace(world.lab, tracker_for=registry.tracker)
    return make.a_project(tracker="builtin", tracker_root=store.create_root("demo"))


@pytest.fixture
def at(project: Project) -> str:
    return f"/projects/{project.pk}/issues/"


@pytest.fixture
def anna(client: Client, operator: Any) -> Client:
    client.force_login(operator)
    return client


@pytest.fixture
def vera(viewer: Any) -> Client:
    made = Client()
    made.force_login(viewer)
    return made


def an_issue(project: Project, title: str = "Add retries", body: str = "", *labels: str) -> int:
    from tests.fakes import START

    return store.create_issue(
        project.tracker_root, title=title, body=body, author="anna", labels=labels, at=START
    )


def page(answer: Any, status: int = 200) -> str:
    assert answer.status_code == status, text_of(answer)[:2000]
    return text_of(answer)


def main(answer: Any, status: int = 200) -> str:
    """The page without its frame."""
    return page(answer, status).partition("<main")[2]


# The list.


def test_the_list_shows_open_issues_newest_first(anna: Client, project: Project, at: str) -> None:
    for title in ("first", "second", "third"):
        an_issue(project, title, "", "bug")
    store.set_open(project.tracker_root, 2, is_open=False, at=project.created_at)
    store.add_comment(project.tracker_root, 3, author="anna", body="hi", at=project.created_at)

    html = main(anna.get(at))

    assert re.findall(r'id="issue-(\d+)"', html) == ["3", "1"]
    assert "1 comment" in html
    assert html.count('<span class="pill">bug</span>') == 2
    assert "second" in main(anna.get(at + "?state=closed"))


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("label=bug", ["2"]),
        ("text=Gamma", ["3"]),
        ("text=gamma", ["3"]),
        ("text=inside", ["1"]),
        ("text=%232", ["2"]),
        ("text=%25", []),
        ("label=bug&text=Gamma", []),
        ("label=nope", []),
        ("state=closed", []),
        ("state=nonsense&page=x", ["3", "2", "1"]),
        ("page=0", ["3", "2", "1"]),
        ("page=99999999999999999999", []),
        ("text=%00", ["3", "2", "1"]),
        ("text=" + "9" * 60, []),
    ],
)
def test_the_list_is_narrowed_by_label_text_and_number(
    anna: Client, project: Project, at: str, query: str, found: list[str]
) -> None:
    an_issue(project, "Alpha", "a word inside the text")
    an_issue(project, "Beta", "", "bug")
    an_issue(project, "Gamma")

    html = main(anna.get(f"{at}?{query}"))

    assert re.findall(r'id="issue-(\d+)"', html) == found


def test_long_lists_have_pages_that_keep_the_filter(
    anna: Client, project: Project, at: str
) -> None:
    for number in range(1, 56):
        an_issue(project, f"Issue {number}", "", "bug")

    first = main(anna.get(at + "?label=bug"))
    second = main(anna.get(at + "?label=bug&page=2"))

    assert first.count('id="issue-') == 50 + 1
    assert 'href="?label=bug&amp;page=2"' in first
    assert re.findall(r'id="issue-(\d+)"', second) == ["5", "4", "3", "2", "1"]
    assert 'href="?label=bug"' in second


@pytest.mark.long
def test_an_empty_list_says_what_to_do(anna: Client, vera: Client, at: str) -> None:
    assert "Write an issue" in main(anna.get(at))
    assert "ready-for-agent" in main(anna.get(at))
    assert "Write an issue" not in main(vera.get(at))
    assert "Nothing matches" in main(anna.get(at + "?text=zebra"))
    assert "No issue is closed yet" in main(anna.get(at + "?state=closed"))


def test_a_running_issue_leads_to_its_run(anna: Client, project: Project, at: str) -> None:
    number = an_issue(project)
    run = make.a_run(project, str(number))
    assert f'href="/runs/{run.pk}/"' in main(anna.get(at))


@pytest.mark.long
@pytest.mark.parametrize("rows", [1, 50])
def test_lists_cost_the_same_for_one_row_and_for_fifty(
    anna: Client, project: Project, at: str, rows: int, django_assert_num_queries: Any
) -> None:
    for number in range(1, rows + 1):
        an_issue(project, "t", "b", "bug", "question")
        store.add_comment(project.tracker_root, number, author="a", body="b", at=project.created_at)
        make.a_run(project, str(number), slot=number)
    anna.get(at)
    with django_assert_num_queries(14):
        assert main(anna.get(at)).count('class="pill live"') == rows


@pytest.mark.long
@pytest.mark.parametrize("rows", [1, 50])
def test_one_issue_costs_the_same_for_one_comment_and_for_fifty(
    anna: Client, project: Project, at: str, rows: int, django_assert_num_queries: Any
) -> None:
    number = an_issue(project, "t", "b", "bug")
    for n in range(rows):
        store.add_comment(
            project.tracker_root, number, author="a", body=f"c {n}", at=project.created_at
        )
        make.a_run(project, str(number), slot=n + 1, outcome="died")
    anna.get(f"{at}1/")
    with django_assert_num_queries(14):
        assert len(re.findall(r'id="comment-\d', main(anna.get(f"{at}1/")))) == rows


# Writing.


def test_an_issue_is_written_and_shown(anna: Client, project: Project, at: str) -> None:
    sent = {
        "title": "Add retries",
        "body": "# Why\n\n**Because**",
        "labels": ["bug", "ready-for-agent"],
    }
    answer = anna.post(at + "new", sent, follow=True)

    html = main(answer)
    assert answer.redirect_chain == [(f"{at}1/", 303)]
    assert "<strong>Because</strong>" in html
    assert "written by anna" in html
    assert '<span class="pill info">ready-for-agent</span>' in html
    assert Notice.objects.get().by == "anna"


@pytest.mark.parametrize(
    ("change", "field", "says"),
    [
        ({"title": "  "}, "title", "Write a title."),
        ({"title": "x" * 10_001}, "title", "at most 10,000 characters"),
        ({"body": "y" * 200_001}, "body", "at most 200,000 characters"),
    ],
)
def test_what_is_wrong_is_said_at_its_field_and_what_was_typed_is_kept(
    anna: Client, at: str, change: dict[str, str], field: str, says: str
) -> None:
    sent = {"title": "kept title", "body": "kept\nbody <b>", "labels": ["question"], **change}

    html = main(anna.post(at + "new", sent), 422)

    assert f'id="{field}-error"' in html
    assert says in html
    assert f'aria-describedby="{field}-error"' in html or f"{field}-error" in html
    if field != "title":
        assert 'value="kept title"' in html
    if field != "body":
        assert "\nkept\nbody &lt;b&gt;</textarea>" in html
    assert re.search(r'value="question"[^>]* checked', html)
    assert not Issue.objects.exists()


def test_an_unknown_label_is_refused_at_its_field(anna: Client, at: str) -> None:
    html = main(anna.post(at + "new", {"title": "t", "labels": ["nope"]}), 422)
    assert "There is no label “nope” in this project." in html


@pytest.mark.long
@pytest.mark.row("X-14", level="contract")
def test_hostile_text_is_shown_as_text_everywhere(anna: Client, project: Project, at: str) -> None:
    Label.objects.create(root_id=int(project.tracker_root), name=EVIL[:60])
    anna.post(at + "new", {"title": EVIL, "body": EVIL, "labels": [EVIL[:60]]})
    anna.post(
        f"{at}1/comment", {"comment": f"{EVIL}\n\n[x](javascript:alert(1)) <img src=x onerror=y>"}
    )

    for address in (
        at,
        f"{at}1/",
        f"{at}1/edit",
        f"{at}?text=%22%3E%3Cscript%3E",
        f"{at}new?label=<script>",
    ):
        html = page(anna.get(address))
        assert "<script>alert" not in html, address
        assert "onerror=y>" not in html.replace("onerror=y&gt;", "")
        assert 'href="javascript:' not in html
    assert "&lt;script&gt;alert" in page(anna.get(f"{at}1/"))
    assert Issue.objects.get().title == EVIL


@pytest.mark.long
@pytest.mark.row("X-14", level="contract")
def test_a_title_of_ten_thousand_letters_does_not_break_a_page(anna: Client, at: str) -> None:
    title = ("<b>" + "word " * 2000)[:10_000].strip()
    assert anna.post(at + "new", {"title": title}).status_code == 303

    assert Issue.objects.get().title == title
    assert len(main(anna.get(at))) < 12_000
    detail = main(anna.get(f"{at}1/"))
    assert "&lt;b&gt;word word" in detail
    assert f'value="{title.replace("<b>", "&lt;b&gt;")}"' in main(anna.get(f"{at}1/edit"))


def test_an_edit_keeps_what_it_does_not_change(anna: Client, project: Project, at: str) -> None:
    an_issue(project, "old", "old body", "bug")

    form = main(anna.get(f"{at}1/edit"))
    assert 'value="old"' in form
    assert "\nold body</textarea>" in form
    anna.post(f"{at}1/edit", {"title": "new", "body": "new body"})

    issue = Issue.objects.get()
    assert (issue.title, issue.body, issue.labels.get().name) == ("new", "new body", "bug")
    html = main(anna.post(f"{at}1/edit", {"title": "", "body": "typed"}), 422)
    assert "Write a title." in html
    assert "typed</textarea>" in html


def test_of_two_who_edit_at_once_the_second_is_told_keeps_the_text_and_sees_the_others(
    anna: Client, project: Project, at: str
) -> None:
    an_issue(project, "old", "old body", "bug")
    field = re.compile(r'name="seen" value="([^"]+)"')
    read = field.search(main(anna.get(f"{at}1/edit")))
    assert read is not None
    theirs = {"title": "theirs", "body": "their body", "seen": read[1]}
    mine = {"title": "mine", "body": "my body", "seen": read[1]}
    assert anna.post(f"{at}1/edit", theirs).status_code == 303

    html = main(anna.post(f"{at}1/edit", mine), 409)

    assert Issue.objects.get().body == "their body"
    assert "You changed this" in re.sub(r"\s+", " ", html)
    assert "\nmy body</textarea>" in html
    said = re.findall(r'class="said">([^<]*)', html)
    assert said == ["mine", "theirs", "my body", "their body"]
    again = field.search(html)
    assert again is not None
    chosen = {**mine, "seen": again[1], "take-title": "theirs", "take-body": "mine"}
    assert anna.post(f"{at}1/edit", chosen).status_code == 303
    issue = Issue.objects.get()
    assert (issue.title, issue.body) == ("theirs", "my body")


def test_a_text_that_begins_with_a_line_break_keeps_it(
    anna: Client, project: Project, at: str
) -> None:
    anna.post(at + "new", {"title": "t", "body": "\r\n\r\ncode"})
    assert Issue.objects.get().body == "\n\ncode"
    assert ">\n\n\ncode</textarea>" in main(anna.get(f"{at}1/edit"))


def test_a_comment_is_shown_with_its_author(anna: Client, project: Project, at: str) -> None:
    an_issue(project)
    answer = anna.post(f"{at}1/comment", {"comment": "*done*"})
    assert (answer.status_code, answer["Location"]) == (303, f"{at}1/")
    html = main(anna.get(f"{at}1/"))
    assert "<em>done</em>" in html
    assert "<h2>anna</h2>" in html


def test_an_empty_comment_comes_back_in_its_field(anna: Client, project: Project, at: str) -> None:
    an_issue(project)
    html = main(anna.post(f"{at}1/comment", {"comment": " "}), 422)
    assert 'id="comment-error"' in html
    assert "Write a comment first." in html
    long = main(anna.post(f"{at}1/comment", {"comment": "z" * 200_001}), 422)
    assert "zzzz</textarea>" in long
    assert not IssueComment.objects.exists()


def test_labels_are_ticked_and_unticked(anna: Client, project: Project, at: str) -> None:
    an_issue(project, "t", "", "bug")
    anna.post(f"{at}1/labels", {"labels": ["question", "ready-for-agent"]})
    assert sorted(label.name for label in Issue.objects.get().labels.all()) == [
        "question",
        "ready-for-agent",
    ]
    anna.post(f"{at}1/labels")
    assert not Issue.objects.get().labels.exists()
    html = page(anna.post(f"{at}1/labels", {"labels": ["nope"]}, follow=True))
    assert "There is no label “nope” in this project. The labels were not changed." in html


def test_an_issue_is_closed_and_opened_again(anna: Client, project: Project, at: str) -> None:
    an_issue(project)
    html = main(anna.post(f"{at}1/state", {"state": "closed"}, follow=True))
    assert not Issue.objects.get().is_open
    assert "Open again" in html
    anna.post(f"{at}1/state", {"state": "open"})
    assert Issue.objects.get().is_open


@pytest.mark.row("LAB-53", level="contract")
def test_a_ready_issue_can_be_started_from_its_page(
    anna: Client, project: Project, at: str
) -> None:
    an_issue(project, "t", "", "ready-for-agent")
    html = main(anna.get(f"{at}1/"))
    button = re.search(r"<button[^>]*>Start this issue", html)
    assert button
    assert f'formaction="/projects/{project.pk}/start"' in button[0]
    assert 'name="issue" value="1"' in button[0]
    assert "disabled" not in button[0]


@pytest.mark.parametrize(
    ("case", "says"),
    [
        ("closed", "A closed issue is not started. Open it again first."),
        ("unlabelled", "Give it the label ready-for-agent first."),
        ("running", "A run works on it."),
        ("cloning", "The project has not been cloned yet."),
        ("delivered", "Pull request #2 of it is open."),
    ],
)
def test_an_issue_that_cannot_start_says_why(
    anna: Client, project: Project, at: str, case: str, says: str
) -> None:
    an_issue(project, "t", "", *(() if case == "unlabelled" else ("ready-for-agent",)))
    if case == "closed":
        store.set_open(project.tracker_root, 1, is_open=False, at=project.created_at)
    if case == "running":
        make.a_run(project, "1")
    if case == "cloning":
        Project.objects.update(state=ProjectState.CLONING)
    if case == "delivered":
        new = NewPull("afk/1", "main", "Retries", "", author="lab")
        store.create_pull(project.tracker_root, new, at=project.created_at)

    html = main(anna.get(f"{at}1/"))

    assert re.search(r"<button[^>]* disabled[^>]*>Start this issue", html)
    assert says in html


# Refreshing.


@pytest.mark.row("LAB-130", level="contract")
def test_a_refresh_is_304_until_something_is_told(anna: Client, project: Project, at: str) -> None:
    an_issue(project)
    for address, live, region in (
        (at + "?text=retries", at + "live?text=retries", "issue-rows"),
        (f"{at}1/", f"{at}1/live", "issue-thread"),
    ):
        html = page(anna.get(address))
        assert f'hx-get="{live}"' in html
        tag = re.search(r'hx-ptag="([^"]+)"', html)
        assert tag
        assert anna.get(live, headers={"HX-Request": "true", "HX-PTag": tag[1]}).status_code == 304

        anna.post(f"{at}1/comment", {"comment": f"news for {address}"})
        answer = anna.get(live, headers={"HX-Request": "true", "HX-PTag": tag[1]})

        assert f'<hx-partial hx-target="#{region}"' in page(answer)
        assert answer["HX-PTag"] != tag[1]
        assert answer["Cache-Control"] == "no-store"
    assert "news for" in text_of(answer)
    assert "textarea" not in text_of(answer)


def test_every_live_part_is_on_its_page(anna: Client, project: Project, at: str) -> None:
    an_issue(project)
    for address, live in ((at, at + "live"), (f"{at}1/", f"{at}1/live")):
        html = page(anna.get(address))
        for region in re.findall(r'hx-target="#([^"]+)"', page(anna.get(live))):
            assert f'id="{region}"' in html, (address, region)


# Who may.

PAGES = ["", "?state=closed", "1/", "live", "1/live"]
FORMS = ["new", "1/edit"]
ACTS = ["new", "1/edit", "1/comment", "1/state", "1/labels"]


@pytest.mark.row("X-10", level="contract")
@pytest.mark.parametrize("address", [*PAGES, *FORMS])
def test_a_stranger_is_sent_to_the_login(
    client: Client, project: Project, at: str, address: str
) -> None:
    an_issue(project)
    answer = client.get(at + address)
    assert answer.status_code == 302
    assert answer["Location"].startswith("/login/")


@pytest.mark.row("X-10", level="contract")
@pytest.mark.parametrize("address", ACTS)
def test_only_who_may_act_changes_anything(
    client: Client, vera: Client, project: Project, at: str, address: str
) -> None:
    an_issue(project)
    sent = {"title": "mine now", "comment": "hi", "state": "closed", "labels": ["bug"]}

    assert client.post(at + address, sent).status_code == 302
    assert vera.post(at + address, sent).status_code == 403

    issue = Issue.objects.get()
    assert (issue.title, issue.is_open, issue.comments.count(), issue.labels.count()) == (
        "Add retries",
        True,
        0,
        0,
    )
    assert not Notice.objects.exists()


def test_who_may_only_look_sees_no_control(vera: Client, project: Project, at: str) -> None:
    an_issue(project, "t", "", "ready-for-agent")
    for address in PAGES:
        html = page(vera.get(at + address))
        for word in (
            "New issue",
            "Edit",
            "Close issue",
            "Save labels",
            "Start this issue",
            "<textarea",
        ):
            assert word not in html, (address, word)
    for address in FORMS:
        assert vera.get(at + address).status_code == 403


@pytest.mark.parametrize("address", ACTS)
def test_acts_need_the_csrf_token(operator: Any, project: Project, at: str, address: str) -> None:
    an_issue(project)
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(operator)
    assert strict.post(at + address, {"title": "t", "comment": "c"}).status_code == 403


def test_wrong_methods_and_unknown_things(anna: Client, project: Project, at: str) -> None:
    an_issue(project)
    for address in PAGES:
        assert anna.post(at + address).status_code == 405
    for address in ("1/comment", "1/state", "1/labels"):
        assert anna.get(at + address).status_code == 405
    for address in ("9/", "9/live", "9/edit", f"{'9' * 40}/", "x/", "-1/"):
        assert anna.get(at + address).status_code == 404, address
    for address in ("9/edit", "9/comment", "9/state", "9/labels", f"{'9' * 40}/state"):
        sent = {"title": "t", "comment": "c", "state": "open"}
        assert anna.post(at + address, sent).status_code == 404, address
    for number in (99, 10**30):
        assert anna.get(f"/projects/{number}/issues/").status_code == 404


def test_a_project_whose_tracker_is_gone_has_no_such_pages(anna: Client, world: World) -> None:
    gone = make.a_project("gone", tracker="builtin", tracker_root="4711")
    assert anna.get(f"/projects/{gone.pk}/issues/1/").status_code == 404


# Both request styles (LAB-132).

HX = {"HX-Request": "true"}


@pytest.mark.row("LAB-132", level="contract")
@pytest.mark.parametrize(
    ("address", "sent"),
    [
        ("1/comment", {"comment": "hello"}),
        ("1/state", {"state": "closed"}),
        ("1/labels", {"labels": ["bug"]}),
    ],
)
def test_an_act_on_an_issue_answers_with_parts_or_a_way_back(
    anna: Client, project: Project, at: str, address: str, sent: dict[str, Any]
) -> None:
    for headers in (HX, {}):
        an_issue(project)
        number = Issue.objects.latest("number").number
        answer = anna.post(at + address.replace("1", str(number), 1), sent, headers=headers)
        if headers:
            html = page(answer)
            for region in (
                "issue-state",
                "issue-act",
                "issue-thread",
                "issue-runs",
                "nav-projects",
            ):
                assert f'hx-target="#{region}"' in html
            assert "csrfmiddlewaretoken" not in html
        else:
            assert (answer.status_code, answer["Location"]) == (303, f"{at}{number}/")


@pytest.mark.row("LAB-132", level="contract")
@pytest.mark.parametrize(
    ("address", "sent", "says"),
    [
        ("new", {"title": "", "body": "typed <b>"}, "Write a title."),
        ("1/edit", {"title": "", "body": "typed <b>"}, "Write a title."),
        ("1/comment", {"comment": " "}, "Write a comment first."),
        ("1/labels", {"labels": ["nope"]}, "The labels were not changed."),
    ],
)
def test_a_refused_act_says_so_in_the_banner_and_keeps_what_was_typed(
    anna: Client, project: Project, at: str, address: str, sent: dict[str, Any], says: str
) -> None:
    an_issue(project)
    html = page(anna.post(at + address, sent, headers=HX), 422)
    assert 'hx-target="#banner"' in html
    assert says in html
    assert 'role="alert"' in html
    if "body" in sent:
        assert "\ntyped &lt;b&gt;</textarea>" in html
    plain = anna.post(at + address, sent, follow=True)
    assert says in text_of(plain)


@pytest.mark.row("LAB-132", level="contract")
def test_a_written_issue_is_shown_next_in_both_styles(anna: Client, at: str) -> None:
    scripted = anna.post(at + "new", {"title": "one"}, headers=HX)
    plain = anna.post(at + "new", {"title": "two"})
    assert (scripted.status_code, scripted["HX-Redirect"]) == (200, f"{at}1/")
    assert (plain.status_code, plain["Location"]) == (303, f"{at}2/")
