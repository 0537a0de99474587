"""A whole running product, with a real browser in front of it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from runs.core.paths import Paths
from tests import databases, prepared
from tests.house.product import Product, environment
from tests.patience import BROWSER_PATIENCE
from tests.story.shell import Shell

# As a form's answer leaves it, which costs a whole password hash and two pages more.
LOG_IN = """
from django.contrib.auth.models import User
from django.test import Client
from runs.people import stepup
from runs.wiring import lab
client = Client()
client.force_login(User.objects.get(username='anna'))
session = client.session
session[stepup.CONFIRMED] = lab().now().isoformat()
session.save()
print(client.cookies['lab_session'].value)
"""
PASSWORD = prepared.OPERATOR["DJANGO_SUPERUSER_PASSWORD"]


class Story:
    """One state folder: its product, its tmux, and Django's shell on it."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.paths = Paths(state)
        self.product: Product | None = None
        self.more: dict[str, str] = {}
        self._shell: Shell | None = None

    def up(self) -> Product:
        self.product = Product(self.state, **self.more).wait_until_ready()
        return self.product

    @property
    def url(self) -> str:
        assert self.product is not None
        return self.product.url

    def shell(self, code: str) -> str:
        """What a few lines of Django print, run in another process on this state folder."""
        if self._shell is None:
            self._shell = Shell(environment(self.state, **self.more))
        return self._shell.run(code)

    def sessions(self) -> list[str]:
        done = subprocess.run(
            ["tmux", "-S", str(self.paths.tmux_socket), "list-sessions", "-F", "#{session_name}"],
            capture_output=True,
            text=True,
            check=False,
        )
        return sorted(done.stdout.split())

    def close(self) -> None:
        if self._shell is not None:
            self._shell.close()
        if self.product is not None:
            self.product.close()
        socket = str(self.paths.tmux_socket)
        subprocess.run(["tmux", "-S", socket, "kill-server"], capture_output=True, check=False)
        ours = str(self.state).encode()
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                works_here = (entry / "cwd").readlink().is_relative_to(self.state)
                if works_here or ours in (entry / "cmdline").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)


@pytest.fixture(scope="session")
def with_anna(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state folder with Anna's account."""
    return prepared.used(tmp_path_factory)


@pytest.fixture
def story(with_anna: Path, tmp_path: Path) -> Iterator[Story]:
    made = Story(databases.copy(with_anna, tmp_path / "state"))
    yield made
    made.close()


@pytest.fixture
def tab(browser: Browser, story: Story) -> Iterator[Callable[..., Page]]:
    """Open a page as Anna, each time in a browser of its own; `by_hand` she types name and password."""
    contexts: list[BrowserContext] = []

    def go(path: str = "/", *, signed_in: bool = True, by_hand: bool = False) -> Page:
        contexts.append(browser.new_context(viewport={"width": 1280, "height": 900}))
        if signed_in and not by_hand:
            cookie = {"name": "lab_session", "value": story.shell(LOG_IN), "url": story.url}
            contexts[-1].add_cookies([cookie])
        page = contexts[-1].new_page()
        page.set_default_timeout(BROWSER_PATIENCE)
        if by_hand:
            page.goto(f"{story.url}/login/")
            page.fill("input[name=username]", "anna")
            page.fill("input[name=password]", PASSWORD)
            page.click("main button[type=submit]")
            page.wait_for_url(f"{story.url}/")
        page.goto(f"{story.url}{path}")
        return page

    yield go
    for context in contexts:
        with contextlib.suppress(Exception):
            context.close()
