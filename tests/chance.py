"""Chance on purpose: lets tests, servers and browsers pause (`TEST_DELAYS=<seed>`, `-p tests.chance`).

A test that holds only as long as everything comes at once fails with one seed or another. The same
seed gives a test the same pauses; they are listed in the report of one that fails. What pauses
differs from test to test: the test before each of its lines, the server, the browser, or all.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from django.core.handlers.wsgi import WSGIHandler
from playwright.sync_api import BrowserContext, Page

from labsite import programs
from tests import patience

SEED = os.environ.get("TEST_DELAYS", "0")
# How often the test pauses before a line, how often a server before and after its work, and how
# many times slower the browser counts.
KINDS = ((0.25, 0.0, 1), (1.0, 0.0, 1), (0.0, 0.4, 1), (0.2, 0.4, 1), (0.3, 0.1, 4), (0.0, 0.1, 6))
SERVED = 0.3  # of the requests, answers and frames of a served product
SLOW = 1.5  # seconds at most
# Who fails does so sooner than on a busy machine; set before anybody has taken it.
patience.PATIENCE, patience.BROWSER_PATIENCE = 90.0, 60_000.0
TESTS = Path(__file__).parent


class Chance:
    """Whether to pause, and how long; drawn anew for each test."""

    def __init__(self, name: str) -> None:
        self._random = random.Random(f"{SEED} {name}")  # noqa: S311
        self.lines, self.answers, self.slower = self._random.choice(KINDS)
        self.told: list[str] = []

    def pause(self, often: float, what: str) -> float:
        """Seconds to wait; mostly none."""
        if self._random.random() >= often:
            return 0.0
        seconds = self._random.uniform(0.1, SLOW)
        self.told.append(f"{seconds:.2f} s at {what}")
        return seconds


now = Chance("")


def _traced(frame: FrameType, event: str, _argument: object) -> Any:
    """Pause before the lines of the test's own file, as a busy machine would."""
    if event == "call":
        path = Path(frame.f_code.co_filename)
        is_own = path.name.startswith("test_") and path.is_relative_to(TESTS)
        return _traced if is_own and frame.f_code.co_name[0] != "<" else None
    if event == "line":
        time.sleep(now.pause(now.lines, f"{frame.f_code.co_name}:{frame.f_lineno}"))
    return _traced


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    global now
    now = Chance(item.nodeid)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    sys.settrace(_traced)
    try:
        return (yield)
    finally:
        sys.settrace(None)
        item.add_report_section("call", "pauses", "\n".join(now.told))


def pytest_configure() -> None:
    """Slow the servers and the browser down."""
    answer, new_page, web_argv = WSGIHandler.__call__, BrowserContext.new_page, programs.web_argv

    def slow_answer(handler: WSGIHandler, environ: dict[str, Any], start: Any) -> Any:
        if threading.current_thread() is threading.main_thread():
            return answer(handler, environ, start)
        time.sleep(now.pause(now.answers, f"before {environ['PATH_INFO']}"))
        answered = answer(handler, environ, start)
        time.sleep(now.pause(now.answers, f"after {environ['PATH_INFO']}"))
        return answered

    def slow_page(context: BrowserContext) -> Page:
        page = new_page(context)
        if now.slower > 1:
            context.new_cdp_session(page).send(
                "Emulation.setCPUThrottlingRate", {"rate": now.slower}
            )
        return page

    def slow_argv(host: str = "", port: int = 0) -> list[str]:
        return [*web_argv(host, port)[:-1], "tests.chance:application"]

    WSGIHandler.__call__ = slow_answer
    BrowserContext.new_page = slow_page
    programs.web_argv = slow_argv


async def _application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """The product's own, whose requests, answers and frames come late."""
    from labsite.asgi import application as product

    path = scope.get("path", "")
    often = 0.0 if path == "/healthz" else SERVED

    async def late(message: dict[str, Any]) -> None:
        await asyncio.sleep(now.pause(often, f"sending of {path}"))
        await send(message)

    await asyncio.sleep(now.pause(often, path))
    await product(scope, receive, late)


def __getattr__(name: str) -> Any:
    """What daphne serves; Django has to be there for it."""
    if name == "application":
        return _application
    raise AttributeError(name)
