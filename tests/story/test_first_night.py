"""A real project's first night: from an empty state folder to a merged pull request, by a browser alone.

The project has what demos lack: tags that versions are made of, a submodule, a hook that its own script
installs, and an `.env` that is not in the repository. The user who runs labsite has no git name.
"""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests import databases, prepared
from tests.chromium import press_twice
from tests.house.product import until
from tests.patience import BROWSER_PATIENCE
from tests.real import a_checkout, git
from tests.story.conftest import PASSWORD, Story
from tests.story.shell_agent import body_of, write_agent

KEY = "s3cret-of-the-operator"
# Refuses commits in a worktree that is not ready, and makes the version part of each commit.
HOOK = """#!/bin/sh
set -e
grep -q API_KEY .env
test -f lib/hello.txt
git describe --tags >VERSION
git add VERSION
"""
INSTALL = """#!/bin/sh
set -e
install -m 755 pre-commit "$(git rev-parse --git-path hooks)/pre-commit"
"""
WORK = """
git describe --tags | grep -q '^v1[.]2[.]3-'
cp lib/hello.txt greeting.txt
git add greeting.txt
git commit -q -m 'feat: greet'
git push -q origin HEAD
labctl pr create --title 'Greet' --body "Closes #$LAB_ISSUE"
"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing of the test's output is about requests."""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of the submodule's repository, on a plain web server as git can read it."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    origin = tmp_path / "library.git"
    checkout = a_checkout(tmp_path / "library", origin)
    (checkout / "hello.txt").write_text("hello from the library\n")
    git(checkout, "commit", "-q", "-a", "-m", "feat: say hello")
    git(checkout, "push", "-q", "origin", "HEAD:main")
    git(origin, "update-server-info")
    handler = functools.partial(_Quiet, directory=str(tmp_path))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    yield f"http://127.0.0.1:{server.server_port}/library.git"
    server.shutdown()
    server.server_close()
    serving.join()


@pytest.fixture
def shop(tmp_path: Path, library: str) -> Path:
    """A checkout of the project, whose origin lies beside it."""
    checkout = a_checkout(tmp_path / "shop", tmp_path / "shop-origin.git")
    git(checkout, "tag", "-a", "-m", "first", "v1.2.3")
    git(checkout, "submodule", "--quiet", "add", library, "lib")
    (checkout / "pre-commit").write_text(HOOK)
    (checkout / "install-hooks.sh").write_text(INSTALL)
    (checkout / ".env.example").write_text("API_KEY=\n")
    (checkout / ".gitignore").write_text(".env\n")
    git(checkout, "add", "-A")
    git(checkout, "commit", "-q", "-m", "chore: library and hook")
    git(checkout, "push", "-q", "--follow-tags", "origin", "HEAD:main")
    return checkout


@pytest.fixture
def fresh(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Iterator[Story]:
    """A state folder without an account, and a user without any settings."""
    made = Story(databases.copy(prepared.collected(tmp_path_factory), tmp_path / "state"))
    home = tmp_path / "home"
    home.mkdir()
    # As where the machine's name has no domain, so that git itself knows nobody.
    (home / ".gitconfig").write_text("[user]\n\tuseConfigOnly = true\n")
    made.more = {"HOME": str(home), "no_proxy": "127.0.0.1"}
    yield made
    made.close()


@pytest.mark.long
def test_a_real_project_goes_from_add_project_to_a_merged_pull_request(fresh, tab_of, shop):
    product = fresh.up()
    page = tab_of(product.url + product.printed[1].split(product.url)[1].split()[0])
    _make_an_account(page)
    argv = write_agent(shop.parent / "agent")
    _add_the_agent(page, product.url, argv)
    _add_the_project(page, product.url, shop)
    _make_it_ready(page, product.url)
    _write_the_issue(page, product.url)

    page.goto(f"{product.url}/projects/1/")
    start = page.get_by_role("button", name="Start AFK run").first
    expect(start).to_be_enabled()
    start.click()
    log = shop.parent / "agent" / "1.log"
    until(
        lambda: log.exists() and "ended with" in log.read_text(),
        told=lambda: f"{page.inner_text('main')}\n{product.log}",
    )
    assert log.read_text().endswith("ended with 0\n"), log.read_text()
    page.goto(f"{product.url}/runs/1/")
    expect(page.locator("main")).to_contain_text("succeeded")

    page.goto(f"{product.url}/projects/1/pulls/2/")
    expect(page.locator("#pull-merge")).to_contain_text("Merge")
    press_twice(page.locator("#pull-merge").get_by_role("button", name="Merge", exact=True))
    expect(page.locator("main")).to_contain_text("merged")
    page.goto(f"{product.url}/projects/1/issues/1/")
    expect(page.locator("main")).to_contain_text("closed")

    origin = shop.parent / "shop-origin.git"
    assert git(origin, "show", "main:greeting.txt") == "hello from the library"
    assert git(origin, "show", "main:VERSION").startswith("v1.2.3-")
    assert ".env" not in git(origin, "ls-tree", "-r", "--name-only", "main").split()
    assert git(origin, "log", "-1", "--format=%an <%ae>", "main").startswith("labsite <")
    assert KEY not in fresh.state.with_suffix(".err").read_text()


@pytest.fixture
def tab_of(browser):  # type: ignore[no-untyped-def]
    """Open an address in a browser that has been nowhere."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})

    def go(address: str) -> Page:
        page = context.new_page()
        page.set_default_timeout(BROWSER_PATIENCE)
        page.goto(address)
        return page

    yield go
    context.close()


def _make_an_account(page: Page) -> None:
    page.fill("#id_name", "anna")
    page.fill("#id_password", PASSWORD)
    page.fill("#id_again", PASSWORD)
    page.get_by_role("button", name="Make account and log in").click()
    page.wait_for_url("**/")


def _add_the_agent(page: Page, url: str, argv: list[str]) -> None:
    page.goto(f"{url}/admin/runs/agentprofile/add/")
    if page.locator("input[type=password]").count():
        page.fill("input[type=password]", PASSWORD)
        page.locator("main button[type=submit]").first.click()
        page.goto(f"{url}/admin/runs/agentprofile/add/")
    page.fill("#id_name", "scripted")
    page.fill("#id_argv", json.dumps(argv))
    page.locator("input[name=_save]").click()
    expect(page.locator("body")).to_contain_text("was added successfully")


def _add_the_project(page: Page, url: str, shop: Path) -> None:
    page.goto(f"{url}/projects/new")
    page.fill("[name=source]", str(shop))
    page.get_by_role("button", name="Add project", exact=True).click()
    page.wait_for_url("**/projects/*/")
    expect(page.get_by_role("heading", name="shop")).to_be_visible()
    page.goto(f"{url}/projects/1/settings/agents/")
    page.select_option("[name=agent]", label="scripted")
    page.get_by_role("button", name="Save", exact=True).click()


def _make_it_ready(page: Page, url: str) -> None:
    """What labsite proposes is looked at, added to and stored; the file is pasted."""
    page.goto(f"{url}/projects/1/settings/setup/")
    page.get_by_role("link", name="See what it suggests").click()
    expect(page.locator("main")).to_contain_text("Submodules are checked out")
    expect(page.locator("main")).to_contain_text(".env.example is an example")
    expect(page.locator("[name=has_submodules]")).to_be_checked()
    page.fill("[name=setup]", "sh install-hooks.sh")
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url("**/settings/setup/")
    page.fill("#id_file-path", ".env")
    page.fill("#id_file-content", f"API_KEY={KEY}\n")
    page.get_by_role("button", name="Store file").click()
    expect(page.locator("body")).to_contain_text(".env stored.")


def _write_the_issue(page: Page, url: str) -> None:
    page.goto(f"{url}/projects/1/issues/new")
    page.fill("#title", "Greet")
    page.fill("#body", body_of(WORK))
    page.get_by_label("ready-for-agent").check()
    page.get_by_role("button", name="Write issue").click()
    page.wait_for_url("**/issues/1/")
