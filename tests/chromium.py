"""The one Chromium of tests and benches; nothing of Django."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, expect, sync_playwright

from tests.patience import BROWSER_PATIENCE

ARGUMENTS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

# The first takes half of the others' processor time: it draws no window that nobody sees. Its engine
# is the same, and it is what Playwright itself starts where nobody names a browser.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser")

# No test rests on this bound.
expect.set_options(timeout=BROWSER_PATIENCE)


def executable() -> str | None:
    """Where the machine's browser is; None stands for Playwright's own."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def press_twice(button: Locator) -> None:
    """Press a button that wants to be pressed again, when nothing is to be read between.

    In one command: the first press lapses after five seconds, and a busy machine may take longer
    between two. Not by the mouse: the button moves when its words become more.
    """
    button.click(trial=True)
    button.evaluate("button => { button.focus(); button.click(); button.click(); }")


@pytest.fixture(scope="session")
def chromium() -> Iterator[tuple[Browser, asyncio.AbstractEventLoop]]:
    """One Chromium for all tests of this process, with Playwright's loop, which is hidden.

    The loop stays in the middle of its run in this thread, and everybody else would take the thread
    for one of async code.
    """
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=executable(), args=ARGUMENTS)
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield started, loop
        asyncio._set_running_loop(loop)
        started.close()


@pytest.fixture(scope="module")
def browser(chromium: tuple[Browser, asyncio.AbstractEventLoop]) -> Iterator[Browser]:
    """That Chromium for the tests of a module; other modules may run a loop of their own."""
    started, loop = chromium
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        asyncio._set_running_loop(loop)
        yield started
        asyncio._set_running_loop(None)
