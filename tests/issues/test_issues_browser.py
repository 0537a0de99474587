"""Issue pages in a real browser: writing, labels, comments, live parts; with and without scripts."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.patience import BROWSER_PATIENCE
from tests.web.daphne_fixture import Served

EVIL = "<script>document.title='pwned'</script> & \"quotes\""


@pytest.fixture(scope="module")
def served(once_served: Served) -> Served:
    return once_served


@pytest.fixture
def at(served: Served) -> str:
    """The address of a project's issues; the project is on the built-in tracker."""
    number = served.do("""
from trackers.builtin import store
name = f"demo-{Project.objects.count() + 1}"
project = Project.objects.create(
    name=name, slug=name, source="/x", url="/x", state="ready", tracker="builtin",
    tracker_root=store.create_root(name), default_branch="main", created_at=lab.now())
Settings.objects.filter(pk=1).update(refresh_seconds=1)
project = result = project.pk
""")
    return f"{served.base_url}/projects/{number}/issues/"


def a_page(browser: Browser, served: Served, *, scripts: bool = True) -> Page:
    context = browser.new_context(java_script_enabled=scripts)
    context.add_cookies(served.browser_cookies(served.cookie()))  # type: ignore[arg-type]
    page = context.new_page()
    page.set_default_timeout(BROWSER_PATIENCE)
    return page


def write(page: Page, at: str, title: str = "Add retries", *labels: str) -> None:
    page.goto(at + "new")
    page.get_by_label("Title").fill(title)
    page.get_by_label("What should be done").fill("# Why\n\nBecause **it** breaks.")
    for label in labels:
        page.get_by_label(label, exact=True).check()
    page.get_by_role("button", name="Write issue").click()
    expect(page.locator(".head h1")).to_contain_text(title[:100])


@pytest.mark.row("LAB-132", level="browser")
@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_the_life_of_an_issue(browser: Browser, served: Served, at: str, scripts: bool) -> None:
    page = a_page(browser, served, scripts=scripts)
    page.goto(at + "new")
    page.get_by_label("What should be done").fill("kept text")
    page.get_by_role("button", name="Write issue").click()
    expect(page.get_by_text("Write a title.").first).to_be_visible()
    expect(page.get_by_label("What should be done")).to_have_value("kept text")

    write(page, at, EVIL, "bug")
    expect(page.locator("#issue-thread strong")).to_have_text("it")
    expect(page.locator("#issue-state .pill")).to_have_text(["open", "bug"])

    page.get_by_label("ready-for-agent", exact=True).check()
    page.get_by_role("button", name="Save labels").click()
    expect(page.locator("#issue-state .pill")).to_have_text(["open", "bug", "ready-for-agent"])
    expect(page.get_by_role("button", name="Start this issue")).to_be_enabled()

    for text in ("first", "second"):
        page.get_by_label("Comment").fill(text)
        page.get_by_role("button", name="Comment", exact=True).click()
        expect(page.locator("#issue-thread article .prose").last).to_have_text(text)
        expect(page.get_by_label("Comment")).to_have_value("")

    page.get_by_role("button", name="Close issue").click()
    expect(page.get_by_role("button", name="Open again")).to_be_visible()
    expect(page.locator("#issue-state .pill").first).to_have_text("closed")
    expect(page.get_by_role("button", name="Start this issue")).to_be_disabled()

    page.goto(at + "?state=closed")
    expect(page.locator("#issue-rows tbody tr")).to_have_count(1)
    assert "pwned" not in page.title()
    page.context.close()


@pytest.mark.row("LAB-131", level="browser")
def test_news_arrive_while_somebody_types(browser: Browser, served: Served, at: str) -> None:
    page = a_page(browser, served)
    write(page, at)
    box = page.get_by_label("Comment")
    box.fill("half a tho")
    box.press("End")

    served.do("""
from runs.issues import acts as issues
issues.comment(lab, Project.objects.get(pk=project), "1", body="from the agent", by="Claude, run 1")
""")
    expect(page.locator("#issue-thread")).to_contain_text("from the agent")

    expect(box).to_be_focused()
    page.keyboard.type("ught")
    expect(box).to_have_value("half a thought")
    page.context.close()


@pytest.mark.row("LAB-131", level="browser")
def test_a_narrowed_list_stays_narrowed_while_it_refreshes(
    browser: Browser, served: Served, at: str
) -> None:
    page = a_page(browser, served)
    write(page, at, "a bug", "bug")
    page.goto(at)
    page.get_by_label("Label").select_option("bug")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#issue-rows tbody tr")).to_have_count(1)
    page.get_by_label("Text").fill("not sent yet")

    served.do("""
from runs.issues import acts as issues
project = Project.objects.get(pk=project)
issues.create(lab, project, title="no bug", by="bert")
issues.create(lab, project, title="another bug", labels=["bug"], by="bert")
""")

    expect(page.locator("#issue-rows tbody tr")).to_have_count(2)
    expect(page.locator("#issue-rows")).not_to_contain_text("no bug")
    expect(page.get_by_label("Text")).to_have_value("not sent yet")
    page.context.close()


def test_no_page_is_wider_than_a_phone(browser: Browser, served: Served, at: str) -> None:
    page = a_page(browser, served)
    page.set_viewport_size({"width": 390, "height": 844})
    write(page, at, "x" * 300, "ready-for-agent", "bug", "question", "documentation")
    served.do("""
from runs.issues import acts as issues
from trackers.builtin.models import Issue
project = Project.objects.get(pk=project)
issue = Issue.objects.get(root_id=project.tracker_root)
issue.labels.create(root=issue.root, name="l" * 60)
issues.comment(lab, project, "1", by="anna",
               body="    " + "code " * 60 + "\\n\\n" + "y" * 400 + "\\n\\n|a|b|\\n|-|-|\\n|" + "z" * 90 + "|2|")
""")
    for address in ("", "1/", "1/edit", "new", "../pulls/"):
        page.goto(at + address)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address
    page.context.close()
