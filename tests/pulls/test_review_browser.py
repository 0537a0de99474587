"""Reviewing a pull request in a real browser: looks, both views, comments that arrive, keyboard."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from tests.fakes import World
from tests.house.product import until
from tests.pulls.review_desk import Review
from tests.web.browsing import OpenPage
from tests.web.daphne_fixture import Served
from tests.web.looking import looks

pytestmark = pytest.mark.django_db(transaction=True)

CODE = '''import os
from pathlib import Path


class Greeter:
    """Says hello."""

    limit: int = 10

    def greet(self, name: str) -> str:
        # a comment
        if name is None or len(name) > self.limit:
            raise ValueError("too long")
        return "hello " + name
'''
BEFORE = {
    "src/greet.py": CODE,
    "web/page.html": '<p class="a">one</p>\n<!-- note -->\n',
    "old.txt": "gone\n",
    "config.toml": 'name = "x"\nport = 80\n',
}
AFTER = {
    "src/greet.py": CODE.replace('"hello " + name', 'f"hello {name}, " + "x" * 300').replace(
        "limit: int = 10", "limit: int = 20"
    ),
    "web/page.html": '<p class="b">one</p>\n<!-- note -->\n<script>alert(1)</script>\n',
    "config.toml": 'name = "y"\nport = 8080\n',
    "src/deep/inside/" + "very_long_name_" * 6 + ".js": "const x = () => { return `a`; };\n",
    "odd\u202egpj.py": "a = '\u202e'\n",
    "logo.png": "\0",
    "large.txt": "".join(f"line {n}\n" for n in range(700)),
}


@pytest.fixture
def review(world: World) -> Review:
    made = Review(world, BEFORE, AFTER)
    made.say("A general word, `code` included.")
    made.say("Why **twenty**?", path="src/greet.py", line=8)
    made.say("Gone for good?", path="old.txt", line=1, side="old")
    return made


def pages(review: Review) -> dict[str, str]:
    return {
        "conversation": review.at,
        "commits": review.at + "commits",
        "commit": f"{review.at}commits/{review.head}",
        "files": review.at + "files?view=unified",
        "split": review.at + "files?view=split",
        "one file": review.at + "files?file=2",
    }


def test_every_page_is_accessible_and_fits(
    open_page: OpenPage,
    operator: User,
    review: Review,
) -> None:
    page = open_page("/", operator)
    wrong: list[object] = []
    for name, address in pages(review).items():
        answer = page.goto(address)
        assert answer is not None
        assert answer.status == 200, name
        page.evaluate(
            "document.querySelectorAll('.commits details').forEach(d => { d.open = true })"
        )
        wrong += looks(page, f"review {name}")
    assert wrong == []


def test_the_view_is_switched_and_remembered(
    open_page: OpenPage, operator: User, review: Review
) -> None:
    page = open_page(review.at + "files", operator)
    expect(page.locator("table.sides")).to_have_count(0)
    page.get_by_role("link", name="Split").click()
    expect(page.locator("#file-7 table.sides")).to_be_visible()
    page.goto(review.at + "files")
    expect(page.locator("#file-7 table.sides")).to_be_visible()


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_a_big_file_is_shown_when_it_is_asked_for(
    open_page: OpenPage, operator: User, review: Review, scripts: bool
) -> None:
    page = open_page(review.at + "files", operator, java_script_enabled=scripts)
    large = page.locator("#file-2")
    expect(large).to_have_attribute("data-path", "large.txt")
    assert "line 699" not in page.content()
    if not scripts:
        large.locator("summary").click()
    else:
        large.evaluate("d => { d.open = true }")
    large.get_by_role("link", name="Show this diff").click()
    expect(page.locator("#file-2 #f2-L700")).to_be_visible()


def test_the_tree_is_filtered_and_leads_to_its_files(
    open_page: OpenPage, operator: User, review: Review
) -> None:
    page = open_page(review.at + "files", operator)
    tree = page.get_by_role("navigation", name="Files")
    page.get_by_label("Filter files by name").fill("GREET")
    expect(tree.locator("li[data-path]:visible")).to_have_count(1)
    tree.get_by_role("link", name="greet.py").click()
    # `wait_for_function` looks but once: looking again needs `eval`, which the pages' policy forbids.
    top = "document.querySelector('#file-7 > summary').getBoundingClientRect().top"
    until(lambda: page.evaluate(top) < 9)
    page.keyboard.press("n")
    focused = "document.activeElement.closest('.file')?.id"
    assert page.evaluate(focused) == "file-8"
    page.keyboard.press("p")
    assert page.evaluate(focused) == "file-7"


def test_on_a_phone_a_comment_at_the_top_of_a_diff_is_sent_above_the_bottom_bar(
    open_page: OpenPage, operator: User, review: Review
) -> None:
    page = open_page(review.at + "files?view=unified", operator, width=390)
    page.locator("details.file").first.evaluate("file => { file.open = true }")
    page.locator(".diff td.n:not(:empty)").first.click()
    page.evaluate("scrollTo(0, 0)")
    button = page.locator("#line-form").get_by_role("button").first.bounding_box()
    bar = page.get_by_role("navigation", name="Main").bounding_box()
    assert button is not None and bar is not None
    assert button["y"] + button["height"] <= bar["y"]


def test_copied_code_holds_neither_numbers_nor_signs(
    open_page: OpenPage, operator: User, review: Review
) -> None:
    page = open_page(review.at + "files", operator)
    copied = page.evaluate(
        """() => { getSelection().selectAllChildren(document.querySelector('#file-1 table'));
                   return getSelection().toString(); }"""
    )
    assert [line.strip() for line in copied.splitlines() if line.strip()][1:] == [
        'name = "x"',
        "port = 80",
        'name = "y"',
        "port = 8080",
    ]


@pytest.fixture(scope="module")
def served(once_served: Served) -> Served:
    return once_served


SETTING = """
import pathlib, subprocess, tempfile
from tests.repositories import a_checkout, git
from trackers.base import NewPull
from trackers.builtin import store
folder = pathlib.Path(tempfile.mkdtemp())
work = a_checkout(folder / "work")
(work / "hello.txt").write_text("hello\\nworld\\n")
git(work, "commit", "-qam", "feat: world")
head, base = git(work, "rev-parse", "HEAD"), git(work, "rev-parse", "HEAD~1")
name = f"demo-{Project.objects.count() + 1}"
project = Project.objects.create(
    name=name, slug=name, source="/x", url="/x", state="ready", tracker="builtin",
    tracker_root=store.create_root(name), default_branch="main", created_at=lab.now())
repo = project.repo(lab.paths)
repo.parent.mkdir(parents=True, exist_ok=True)
git(folder, "clone", "-q", "--bare", str(work), str(repo))
git(repo, "update-ref", "refs/remotes/origin/main", base)
git(repo, "update-ref", "refs/remotes/origin/afk/1", head)
Settings.current()
Settings.objects.filter(pk=1).update(refresh_seconds=1)
number = store.create_pull(
    project.tracker_root, NewPull("afk/1", "main", "World", "Text", "Claude", head, base), at=lab.now())
result = f"/projects/{project.pk}/pulls/{number}/"
"""


@pytest.mark.row("LAB-131", level="browser")
def test_a_comment_appears_in_another_tab_while_somebody_types_there(
    served: Served, tab: Any
) -> None:
    at = served.do(SETTING)
    cookie = served.cookie()
    writer, reader = tab(at + "files", cookie), tab(at + "files", cookie)
    talk = tab(at, cookie)
    expect(reader.locator("#f1-L2")).to_be_visible()
    reader.locator("#f1-L2").click()
    box = reader.get_by_label("Comment on this line")
    box.fill("half a tho")

    writer.locator("#f1-L2").click()
    expect(writer.get_by_label("Line", exact=True)).to_have_value("2")
    writer.get_by_label("Comment on this line").fill("Why **world**?")
    writer.get_by_role("button", name="Comment on line").click()

    for page in (writer, reader):
        expect(page.locator("#file-1 .talk .prose strong")).to_have_text("world")
    expect(talk.locator("#pull-thread .on")).to_contain_text("hello.txt, new line 2")
    expect(writer.get_by_label("Comment on this line")).to_have_value("")
    expect(box).to_have_value("half a tho")

    talk.get_by_label("Comment", exact=True).fill("In general: fine.")
    talk.get_by_role("button", name="Comment", exact=True).click()
    expect(talk.locator("#pull-thread .prose").last).to_have_text("In general: fine.")
    expect(talk.get_by_label("Comment", exact=True)).to_have_value("")
    expect(reader.locator("#pull-tabs")).to_contain_text("Conversation 2")
    assert no_errors(writer) and no_errors(reader) and no_errors(talk)


def test_without_scripts_a_line_is_commented_by_its_number(served: Served, tab: Any) -> None:
    at = served.do(SETTING)
    page = tab(at + "files", served.cookie(), java_script_enabled=False)
    page.get_by_label("Line", exact=True).fill("9")
    page.get_by_label("Comment on this line").fill("What is it?")
    page.get_by_role("button", name="Comment on line").click()
    expect(page.get_by_text("does not show the new line 9")).to_be_visible()
    expect(page.get_by_label("Comment on this line")).to_have_value("What is it?")
    page.get_by_label("Line", exact=True).fill("2")
    page.get_by_role("button", name="Comment on line").click()
    expect(page.locator("#file-1 .talk .prose")).to_have_text("What is it?")


def no_errors(page: Page) -> bool:
    return [said for said in page.complaints if "status of 4" not in said] == []  # type: ignore[attr-defined]
