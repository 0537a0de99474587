"""`python -m bench.terminal [--seconds N] [--sessions N]`: a live screen in a browser, and recording.

How long a line of the agent takes to the DOM, what the page of a busy run costs a minute, and how
much processor the sessions need beside their agents, with and without a recording.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from bench import figures
from runs.core.paths import Paths
from runs.core.ports import Order
from runs.machine.tmux import TmuxSessions
from tests.chromium import ARGUMENTS
from tests.web.daphne_fixture import PROJECT, Served

NAME = "demo-1~1~afk-7"
TICKS = """
import time
for n in range(100000):
    print('tick', n, time.time(), flush=True); time.sleep(0.7)
"""
BUSY = """
import random, sys, time
words = [''.join(random.choice('abcdefghijklmnopqrstuvwxyz') for _ in range(6)) for _ in range(500)]
for n in range(10 ** 9):
    if n % 4 == 0: sys.stdout.write('\\r\\x1b[K\\x1b[32m+\\x1b[0m ' + ' '.join(random.choices(words, k=11)) + '\\n')
    sys.stdout.write('\\r* Working (%d s)' % (n // 10)); sys.stdout.flush(); time.sleep(0.1)
"""
SPINNER = """
import sys, time
for n in range(10 ** 9):
    if n % 20 == 0: sys.stdout.write('\\r\\x1b[Kline %d of the work\\n' % n)
    sys.stdout.write('\\r* Working (%d)' % n); sys.stdout.flush(); time.sleep(0.1)
"""
IDLE = "import time; print('ready', flush=True); time.sleep(100000)"
WATCH = """
() => { window.seen = {};
  const look = () => { for (const found of (document.getElementById('screen')?.innerText ?? '').matchAll(/tick (\\d+) ([\\d.]+)/g))
      if (!window.seen[found[1]]) window.seen[found[1]] = Date.now() / 1000 - Number(found[2]); };
  look(); window.seen = Object.fromEntries(Object.keys(window.seen).map((n) => [n, -1]));
  new MutationObserver(look).observe(document.body, {childList: true, subtree: true, characterData: true}); }
"""


def sessions_of(state: Path) -> TmuxSessions:
    return TmuxSessions(Paths(state), os.environ)


def order(state: Path, name: str, code: str, recording: int | None, number: int = 1) -> Order:
    found = Order(
        name, state / "runs" / str(number), state, [sys.executable, "-c", code], marker="bench"
    )
    has_it = any(field.name == "recording" for field in dataclasses.fields(Order))
    return dataclasses.replace(found, recording=recording, columns=120) if has_it else found


def in_browser(seconds: int) -> None:
    for name, code in (("ticks", TICKS), ("busy", BUSY)):
        with tempfile.TemporaryDirectory(prefix="lab-term-") as folder:
            served = Served(Path(folder))
            argv = [sys.executable, "manage.py", "prepare"]
            subprocess.run(argv, env=served.environment, check=True, capture_output=True)
            served.start()
            tmux = sessions_of(served.state)
            try:
                served.do(PROJECT)
                tmux.start(order(served.state, NAME, code, 20_000_000))
                measure(served, name, seconds)
            finally:
                tmux.kill(NAME, "bench")
                served.close()


def measure(served: Served, name: str, seconds: int) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=ARGUMENTS
        )
        context = browser.new_context()
        context.add_cookies(served.browser_cookies(served.cookie()))
        page = context.new_page()
        page.goto(f"{served.base_url}/runs/1/terminal/")
        page.wait_for_timeout(3000)
        spent: dict[str, float] = {"answers": 0, "frames": 0}
        asked = context.new_cdp_session(page)
        asked.send("Network.enable")
        asked.on(
            "Network.loadingFinished",
            lambda event: spent.update(answers=spent["answers"] + event["encodedDataLength"]),
        )
        asked.on(
            "Network.webSocketFrameReceived",
            lambda event: spent.update(
                frames=spent["frames"] + len(event["response"]["payloadData"])
            ),
        )
        page.evaluate(WATCH)
        page.wait_for_timeout(1000 * seconds)
        if name == "ticks":
            seen = [late for late in page.evaluate("Object.values(window.seen)") if late >= 0]
            print(figures.line("a line of the agent -> DOM", seen), flush=True)
        kilobytes = {kind: size / 1000 * 60 / seconds for kind, size in spent.items()}
        told = ", ".join(f"{kind} {size:.1f}" for kind, size in kilobytes.items())
        print(
            f"page of a run, {name}: {sum(kilobytes.values()):.1f} kB a minute ({told})", flush=True
        )
        browser.close()


def processor(count: int, seconds: int) -> None:
    for name, code in (("idle", IDLE), ("a spinner and a line every 2 s", SPINNER)):
        for recording in (None, 20_000_000):
            with tempfile.TemporaryDirectory(prefix="lab-term-") as folder:
                tmux = sessions_of(Path(folder))
                names = [f"demo~{n}~afk-{n}" for n in range(1, count + 1)]
                try:
                    for number, one in enumerate(names, start=1):
                        tmux.start(order(Path(folder), one, code, recording, number))
                    time.sleep(5)
                    before, _ = spent_by(folder)
                    time.sleep(seconds)
                    after, memory = spent_by(folder)
                finally:
                    for one in names:
                        tmux.kill(one, "bench")
            share = 100 * (after - before) / os.sysconf("SC_CLK_TCK") / seconds
            what = "recorded" if recording else "not recorded"
            print(
                f"{count} sessions, {name}, {what}: {share:.1f} % of a core, {memory / 1e6:.0f} MB PSS",
                flush=True,
            )


def spent_by(folder: str) -> tuple[int, int]:
    """Clock ticks and memory of tmux and everything of ours in its sessions, without the agents."""
    ticks = memory = 0
    parents: dict[int, int] = {}
    facts: dict[int, tuple[int, str]] = {}
    for entry in Path("/proc").iterdir():
        try:
            stat = (entry / "stat").read_text().rpartition(")")[2].split()
            words = (entry / "cmdline").read_text().replace("\0", " ")
            parents[int(entry.name)] = int(stat[1])
            # What children that have ended needed counts too.
            facts[int(entry.name)] = (sum(int(one) for one in stat[11:15]), words)
        except (OSError, ValueError):
            continue
    roots = {
        pid for pid, (_, words) in facts.items() if words.startswith("tmux") and folder in words
    }
    for pid, (used, words) in facts.items():
        at, is_ours = pid, False
        while at in parents and not is_ours:
            is_ours, at = at in roots, parents[at]
        if is_ours and " -c " not in words.replace("sh -c", ""):
            ticks += used
            try:
                text = Path(f"/proc/{pid}/smaps_rollup").read_text()
                memory += 1024 * int(text.partition("\nPss:")[2].split()[0])
            except (OSError, IndexError):
                continue
    return ticks, memory


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--seconds", type=int, default=60)
    options.add_argument("--sessions", type=int, default=20)
    given = options.parse_args()
    print(figures.head())
    in_browser(given.seconds)
    if given.sessions:
        processor(given.sessions, given.seconds // 2)


if __name__ == "__main__":
    main()
