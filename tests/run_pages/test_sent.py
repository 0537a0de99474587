"""What stands on the tabs Prompt and Raw of a run."""

from __future__ import annotations

import json
import os
import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from runs.core.states import NoticeKind
from tests import make
from tests.fakes import World
from tests.web import board_rows as rows
from tests.web.people import text_of

pytestmark = pytest.mark.django_db


@pytest.mark.row("LAB-130", level="contract")
def test_the_prompt_is_compared_with_that_of_the_run_before(anna: Client, world: World) -> None:
    project = rows.a_tracked_project()
    ended = {"outcome": "died", "worktree_fate": "kept"}
    make.a_run(project, "7", prompt="# Task\nDo it.\nQuickly.\n", **ended)
    other = make.a_run(project, "8", slot=2, prompt="# Other\n")
    run = make.a_run(project, "7", slot=3, prompt="# Task\nDo <it>.\nQuickly.\n")
    page = text_of(anna.get(f"/runs/{run.pk}/prompt/"))
    diff = page[page.index('id="prompt-before"') :]
    assert "+1" in diff
    assert "−1" in diff
    assert "&lt;" in diff
    assert "# Other" not in diff
    assert "Compared with" not in text_of(anna.get(f"/runs/{other.pk}/prompt/"))
    run.prompt = "# Task\nDo it.\nQuickly.\n"
    run.save()
    assert "The same prompt." in text_of(anna.get(f"/runs/{run.pk}/prompt/"))
    run.prompt = "x\n" * 5000
    run.save()
    assert "too long to compare" in text_of(anna.get(f"/runs/{run.pk}/prompt/"))


@pytest.mark.row("LAB-130", level="contract")
def test_raw_has_all_for_a_bug_report_and_names_of_variables_alone(
    anna: Client, world: World
) -> None:
    project = rows.a_tracked_project()
    profile = make.an_agent("Mine", env={"API_KEY": "the-secret-value"})
    told: dict[str, Any] = {"exit_status": None, "exit_signal": 9, "last_words": "no more <credit>"}
    run = make.a_run(project, "7", profile=profile, outcome="died", reason="killed", **told)
    rows.tell(world, "exit by signal 9", NoticeKind.RUN_ENDED, run=run, outcome="died")
    folder = world.lab.paths.run_folder(run.pk)
    folder.mkdir(parents=True)
    (folder / "exit").write_text("x" * 2048)
    (folder / "token").write_text("the-token")
    os.close(os.open(os.fsencode(folder) + b"/\xff.log", os.O_CREAT | os.O_WRONLY))
    page = text_of(anna.get(f"/runs/{run.pk}/raw/"))
    report = unescape(re.search(r"<textarea[^>]*>(.*?)</textarea>", page, re.DOTALL)[1])  # type: ignore[index]
    for part in (
        "API_KEY",
        "exit by signal 9",
        "no more <credit>",
        "2048  exit",
        "0  \ufffd.log",
        "SIGKILL",
        "killed",
    ):
        assert part in report
    assert "the-secret-value" not in page
    assert "the-token" not in page
    assert json.loads(report.partition("## JSON\n")[2])["outcome"] == "died"
    order = {"argv": ["x"], "env": {"LAB_RUN": "1", "OTHER": "the-secret-value"}}
    world.sessions.files[folder / "order.json"] = json.dumps(order).encode()
    page = text_of(anna.get(f"/runs/{run.pk}/raw/"))
    assert "LAB_RUN, OTHER" in page
    assert "the-secret-value" not in page
