"""The receipt of a run: whole, masked, bounded, checked by hand, and opened without a network."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

import pytest
from django.test import Client

from runs.core.states import NoticeKind
from runs.models import Run
from runs.run_pages import receipt
from runs.secrets import masked
from runs.secrets.known import Known
from tests import make
from tests.api.program import Program
from tests.conversation import long_talk
from tests.conversation.conftest import TREE
from tests.fakes import World
from tests.web import board_rows as rows

pytestmark = pytest.mark.django_db


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def read(client: Client, run: Run) -> Any:
    return json.loads(client.get(f"/runs/{run.pk}/receipt.json").content)


@pytest.mark.parametrize(
    ("whole", "limit", "shown", "is_cut"),
    [
        ("abc", 3, "abc", False),
        ("abcd", 3, "abc", True),
        ("aéé", 4, "aé", True),
        ("", 3, "", False),
    ],
)
def test_a_text_is_cut_after_whole_letters_and_hashed_as_it_stands(
    whole: str, limit: int, shown: str, is_cut: bool
) -> None:
    found = receipt.text(whole, limit)
    assert (found.text, found.is_cut) == (shown, is_cut)
    assert (found.bytes, found.sha256) == (len(shown.encode()), sha(shown))


@pytest.mark.row("LAB-130", level="contract")
def test_a_receipt_has_everything_and_its_hashes_can_be_checked(
    anna: Client, home: Any, world: World, claude_run: Run
) -> None:
    record = long_talk.write_claude(home, TREE)
    claude_run.prompt = "# Task <7>\nDo it.\n"
    claude_run.cost_usd = "1.25"
    claude_run.save()
    rows.tell(world, "agent <started>", NoticeKind.RUN_STARTED, run=claude_run)
    shown = read(anna, claude_run)
    assert (shown["kind"], shown["schema_version"]) == ("labsite run receipt", 1)
    assert shown["prompt"]["text"] == claude_run.prompt
    assert shown["prompt"]["sha256"] == sha(claude_run.prompt)
    assert shown["cost"]["cost_usd"] == 1.25
    assert shown["timeline"]["items"][-1]["text"] == "agent <started>"
    assert shown["commands"]["items"]
    (one,) = [row for row in shown["records"] if row["path"] == str(record)]
    assert one["sha256"] == hashlib.sha256(record.read_bytes()).hexdigest()
    page = anna.get(f"/runs/{claude_run.pk}/receipt.html").content.decode()
    assert "default-src 'none'" in page
    assert not re.search(r"<script|<link|<img|\ssrc=|url\(|http-equiv=\"refresh|\son\w+=", page)
    assert "agent &lt;started&gt;" in page
    assert sha(claude_run.prompt) in page
    assert (
        f"/runs/{claude_run.pk}/receipt.html"
        in anna.get(f"/runs/{claude_run.pk}/raw/").content.decode()
    )


@pytest.mark.row("LAB-130", level="contract")
def test_what_was_not_seen_is_null_and_said(anna: Client, world: World) -> None:
    project = rows.a_tracked_project()
    run = make.a_run(project, "7", outcome="died", worktree_fate="kept", fork_point="")
    shown = read(anna, run)
    for name in ("prompt", "commands", "checks"):
        assert shown[name] is None
    assert shown["cost"]["cost_usd"] is None
    assert shown["base"]["commit"] is None
    for said in (receipt.NO_PROMPT, receipt.NO_RECORD, receipt.NO_COST, receipt.NO_BASE):
        assert said in shown["not_seen"]


@pytest.mark.row("LAB-130", level="contract")
def test_it_holds_no_secret_and_no_more_than_fits(
    anna: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = rows.a_tracked_project()
    secret = "gLp-Kq3vX9tR7wZ2mN5b"
    make.an_agent("Mine", env={"API_KEY": secret})
    world.lab = masked.lab(world.lab, Known({}))
    run = make.a_run(project, "7", outcome="died", prompt=f"use {secret}\n" + "x" * 300_000)
    rows.tell(world, f"printed {secret}", NoticeKind.RUN_ENDED, run=run, outcome="died")
    monkeypatch.setattr(receipt, "MOST_ENTRIES", 4)
    for number in range(10):
        rows.tell(world, f"step {number}", run=run)
    answer = anna.get(f"/runs/{run.pk}/receipt.json").content.decode()
    assert secret not in answer
    shown = json.loads(answer)
    assert shown["prompt"]["is_cut"]
    assert shown["prompt"]["bytes"] == receipt.PROMPT_BYTES
    assert shown["prompt"]["sha256"] == sha(shown["prompt"]["text"])
    texts = [one["text"] for one in shown["timeline"]["items"]]
    assert (texts[0], texts[-1], len(texts)) == ("printed [hidden]", "step 9", 4)
    assert shown["timeline"]["left_out"] == 7


def test_a_program_reads_the_same_and_a_stranger_nothing(
    anna: Client, looking: Program, claude_run: Run
) -> None:
    told = looking.get(f"/runs/{claude_run.pk}/receipt")
    assert told.status_code == 200
    assert told.json()["run"] == read(anna, claude_run)["run"]
    assert looking.get("/runs/987654321/receipt").status_code == 404
    anna.logout()
    assert anna.get(f"/runs/{claude_run.pk}/receipt.html").status_code == 302
