"""`python -m bench.push [--sockets N] [--events N] [--history N]`: commit of a timeline row to every page."""

from __future__ import annotations

import argparse
import re
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from bench import figures
from tests.chromium import ARGUMENTS
from tests.ports import free_port
from tests.web.daphne_fixture import PROJECT, Served

GAP_SECONDS = 0.15
FRAME_BYTES = 2000
WATCH = """
() => { window.seen = {};
  new MutationObserver(() => { for (const found of document.body.innerText.matchAll(/event (\\d+)/g))
      if (!window.seen[found[1]]) window.seen[found[1]] = Date.now() / 1000; })
    .observe(document.body, {childList: true, subtree: true, characterData: true}); }
"""
HISTORY = """
from datetime import UTC, datetime
from bench.crowd import write_history
write_history({rows}, Run.objects.get().project_id, Run.objects.get().pk)
"""
TELL = """
import time
tell("event {number}", run=Run.objects.get())
result = time.time()
"""
BARE = """
import asyncio, socket, sys
async def main():
    writers = []
    async def take(reader, writer):
        writers.append(writer)
    await asyncio.start_server(take, "127.0.0.1", int(sys.argv[1]))
    box = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    box.bind(sys.argv[2]); box.setblocking(False)
    while True:
        data = await asyncio.get_running_loop().sock_recv(box, 100)
        for writer in writers:
            writer.write(data.ljust(int(sys.argv[3])))
asyncio.run(main())
"""


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--sockets", type=int, default=50)
    options.add_argument("--events", type=int, default=100)
    options.add_argument("--history", type=int, default=1_000_000)
    given = options.parse_args()
    print(figures.head())
    with tempfile.TemporaryDirectory(prefix="lab-push-") as folder:
        print(
            figures.line(
                f"floor: a datagram, fanned out to {given.sockets} bare sockets",
                floor(Path(folder), given.sockets, given.events),
            )
        )
    with tempfile.TemporaryDirectory(prefix="lab-push-") as folder:
        served = Served(Path(folder))
        subprocess.run(
            [sys.executable, "manage.py", "prepare"],
            env=served.environment,
            check=True,
            capture_output=True,
        )
        served.start()
        try:
            everything(served, given.sockets, given.events, given.history)
        finally:
            served.close()


def floor(folder: Path, sockets: int, events: int) -> list[float]:
    """Nothing but the kernel and one loop between the ring and the readers."""
    port, box = free_port(), folder / "box"
    process = subprocess.Popen([sys.executable, "-c", BARE, str(port), str(box), str(FRAME_BYTES)])
    try:
        while not box.exists():
            time.sleep(0.05)
        readers = [socket.create_connection(("127.0.0.1", port)) for _ in range(sockets)]
        time.sleep(0.2)
        spent = []
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bell:
            for _ in range(events):
                began = time.perf_counter()
                bell.sendto(b"x", str(box))
                for reader in readers:
                    _exactly(reader, FRAME_BYTES)
                    spent.append(time.perf_counter() - began)
                time.sleep(0.01)
        return spent
    finally:
        process.kill()
        process.wait()


def _exactly(reader: socket.socket, size: int) -> None:
    while size:
        size -= len(reader.recv(size))


def everything(served: Served, sockets: int, events: int, history: int) -> None:
    served.do(PROJECT)
    cookie = served.cookie()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=ARGUMENTS
        )
        context = browser.new_context()
        context.add_cookies(served.browser_cookies(cookie))
        measure(served, context.new_page(), cookie, sockets, range(events), "")
        if history:
            context.pages[0].close()
            time.sleep(1)
            served.do(HISTORY.format(rows=history))
            behind = f", {history} timeline rows behind"
            measure(served, context.new_page(), cookie, sockets, range(events, 2 * events), behind)
        browser.close()


def measure(
    served: Served, page: Page, cookie: str, sockets: int, numbers: range, name: str
) -> None:
    """One socket is the browser's; the others are read by one loop of this process."""
    page.goto(f"{served.base_url}/runs/1/")
    page.wait_for_function("() => document.querySelector('#link-state').innerText.includes('live')")
    page.evaluate(WATCH)
    clients = [served.page("run:1", cookie, None) for _ in range(sockets - 1)]
    for client in clients:
        client.frame()
    told: dict[int, float] = {}
    arrived: dict[tuple[int, int], float] = {}
    with selectors.DefaultSelector() as ready:
        for index, client in enumerate(clients):
            ready.register(client.handle, selectors.EVENT_READ, (index, client))
        for number in numbers:
            told[number] = served.do(TELL.format(number=number))
            limit = time.monotonic() + GAP_SECONDS
            while (left := limit - time.monotonic()) > 0:
                for key, _ in ready.select(left):
                    index, client = key.data
                    at, text = time.time(), client.frame()["content"]
                    for shown in re.findall(r"event (\d+)", text):
                        if int(shown) in told:
                            arrived.setdefault((int(shown), index), at)
    for client in clients:
        client.drop()
    seen = page.evaluate("window.seen")
    frames = [at - told[number] for (number, _), at in arrived.items()]
    shown = [seen[str(number)] - told[number] for number in numbers if str(number) in seen]
    missed = len(numbers) * len(clients) - len(frames)
    print(
        figures.line(
            f"commit -> frame, {sockets} sockets{name}", frames, f"  {missed} late or lost"
        )
    )
    print(figures.line(f"commit -> DOM of one real browser among them{name}", shown), flush=True)


if __name__ == "__main__":
    main()
