"""A running product with one project on a repository of many files, a browser in front, and clocks."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.chromium import ARGUMENTS
from tests.house.product import ROOT, lab
from tests.prepared import OPERATOR
from tests.repositories import git
from tests.story.conftest import PASSWORD, Story

AGENT = ROOT / "bench" / "agent.py"
SETUP = f"""
import sys
from django.utils import timezone
from runs.models import AgentProfile, Project, Settings
from runs.wiring import lab
from runs.issues import acts as issues; from runs.projects import acts as projects
profile = AgentProfile.objects.create(name='bench', argv=[sys.executable, {str(AGENT)!r}, 'OPTION'])
project = projects.add(lab(), name='bench', source='SOURCE', token='', by='anna')
Project.objects.update(agent=profile)
Settings.objects.update_or_create(pk=1, defaults={{"session_cap": CAP}})
for number in range(ISSUES):
    issues.create(lab(), project, title=f'Issue {{number}}', body='', labels=['ready-for-agent'], by='anna')
"""
READY = "from runs.models import Project; print(Project.objects.get().state)"
CLICKED = """
window.clicked = 0;
document.addEventListener('click', () => { window.clicked = Date.now() / 1000; }, true);
"""
SEEN = """
(key) => { window.seen = 0;
  const has = () => [...document.querySelectorAll('article.run')].some(e => e.innerText.includes('#' + key + ' ') || e.innerText.includes('#' + key + '\\n'));
  new MutationObserver(() => { if (!window.seen && !has()) window.seen = Date.now() / 1000; })
    .observe(document.body, {childList: true, subtree: true, characterData: true}); }
"""


def a_repository(folder: Path, files: int) -> Path:
    """A checkout with a bare origin and that many files of 4 KB."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    for number in range(files):
        path = folder / f"d{number % 100:02}" / f"f{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{number}\n" * 700)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "chore: begin")
    origin = folder.with_name("origin.git")
    subprocess.run(["git", "clone", "-q", "--bare", str(folder), str(origin)], check=True)
    git(folder, "remote", "add", "origin", str(origin))
    return folder


@contextlib.contextmanager
def scene(
    folder: Path, files: int, issues: int, cap: int = 6, option: str = "{prompt}"
) -> Iterator[tuple[Story, Page]]:
    """The product, ready, and Anna's page of the project.

    `cap`: sessions at once; `option`: the bench agent's first argument.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # `labctl` would be compiled at each call
    source = a_repository(folder / "checkout", files)
    story = Story(folder / "state")
    made = lab("manage", "createsuperuser", "--noinput", state=story.state, **OPERATOR)
    assert made.returncode == 0, made.stderr
    story.up()
    try:
        code = SETUP.replace("SOURCE", str(source)).replace("ISSUES", str(issues))
        story.shell(code.replace("CAP", str(cap)).replace("OPTION", option))
        while story.shell(READY) != "ready":
            time.sleep(0.2)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=ARGUMENTS
            )
            page = browser.new_page()
            page.goto(f"{story.url}/login/")
            page.fill("input[name=username]", "anna")
            page.fill("input[name=password]", PASSWORD)
            page.click("main button[type=submit]")
            page.goto(f"{story.url}/projects/1/")
            yield story, page
            browser.close()
    finally:
        story.close()


def wait_for(path: Path, seconds: float = 30.0) -> float:
    """The time that a file of the agent holds, once it is there."""
    deadline = time.monotonic() + seconds
    while not path.exists() or not path.read_text():
        assert time.monotonic() < deadline, f"{path} never came"
        time.sleep(0.002)
    return float(path.read_text())


def pss_and_cpu(pids: Sequence[int]) -> tuple[float, float]:
    """Memory in MB (PSS) and processor seconds used so far."""
    memory, ticks = 0, 0
    for pid in pids:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        memory += next(int(row.split()[1]) for row in rollup.splitlines() if row.startswith("Pss:"))
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return memory / 1024, ticks / os.sysconf("SC_CLK_TCK")
