"""The one Chromium of tests and benches; nothing of Django."""

from __future__ import annotations

import os
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

# No test rests on this bound.
expect.set_options(timeout=BROWSER_PATIENCE)


def press_twice(button: Locator) -> None:
    """Press a button that wants to be pressed again, when nothing is to be read between.

    In one command: the first press lapses after five seconds, and a busy machine may take longer
    between two. Not by the mouse: the button moves when its words become more.
    """
    button.click(trial=True)
    button.evaluate("button => { button.focus(); button.click(); button.click(); }")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium for the tests of a module; ended with it, so that other modules may run a loop."""
    before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    # Playwright's own loop runs in this thread; Django would take the test for async code.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with sync_playwright() as playwright:
        path = shutil.which("chromium") or shutil.which("chromium-browser")
        started = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield started
        started.close()
    if before is None:
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]
