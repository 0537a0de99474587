"""The receipt of a run: what was asked, done, checked and paid, with hashes; bounded, and masked."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.template.loader import render_to_string

from runs.core.ports import Lab
from runs.evidence import records as evidence
from runs.gate_pages import check_pages
from runs.lifecycle import observe
from runs.models import Attempt, Notice, Run
from runs.run_pages import receipt_shapes as shapes
from runs.transcript import own_record
from runs.transcript.record_rules import OwnRecord

PROMPT_BYTES, PATCH_BYTES = 200_000, 400_000
MOST_FILES, MOST_COMMANDS, MOST_ENTRIES, MOST_ATTEMPTS, MOST_RECORDS = 1000, 1000, 1000, 20, 50
COMMAND_CHARACTERS = 4000
PIECE = 4 * 1024 * 1024
HASHED_BYTES = 512 * 1024 * 1024  # of all records together

NO_PROMPT = "The prompt: none was sent yet."
NO_BASE = "The base: no branch was made."
NO_DIFF = "The diff: {}"
CUT_DIFF = "The diff is cut: whole files are missing from the patch."
NO_RECORD = "The commands: the agent has left no record that labsite can read."
NO_COST = "The cost: the agent has reported none."
NO_HASH = "Hashes of records: not all of them could be read whole."
GOES_ON = "The end: the run goes on, so all of this is as of the time at which it was made."
NO_CHECKS = "Checks: the project has no gates, so labsite has judged nothing."


@dataclass(slots=True)
class _Notes:
    """What turned out to be missing."""

    said: list[str] = field(default_factory=list)

    def unless(self, is_there: bool, words: str) -> None:
        if not is_there:
            self.said.append(words)


def of(lab: Lab, run: Run) -> shapes.Receipt:
    """The receipt as of now. Six queries at most. Needs `run.project` and `run.profile`."""
    notes = _Notes()
    notes.unless(bool(run.outcome), GOES_ON)
    prompt = text(lab.mask(run.prompt), PROMPT_BYTES) if run.prompt else None
    notes.unless(prompt is not None, NO_PROMPT)
    changes = observe.changes(lab, run)
    files = own_record.find(lab, run)
    facts = {
        "run": _run(run),
        "issue": {
            "key": run.issue_key,
            "title": run.issue_title,
            "tracker": run.project.tracker,
        },
        "base": _base(run, changes, notes),
        "commands": _commands(lab, run, notes),
        "checks": _checks(run, notes),
        "cost": _cost(run, notes),
        "timeline": _timeline(run),
        "records": _records(lab, run, files, notes),
        "not_seen": notes.said,
    }
    diff = _diff(lab, changes, notes)
    return shapes.Receipt(
        schema_version=shapes.VERSION,
        made_at=lab.now(),
        prompt=prompt,
        diff=diff,
        **_masked(facts, lab.mask),
    )


def as_json(receipt: shapes.Receipt) -> str:
    return receipt.model_dump_json(indent=2) + "\n"


def as_html(receipt: shapes.Receipt) -> str:
    """One file without a script and without anything to be loaded."""
    return render_to_string("run_pages/receipt.html", {"receipt": receipt})


def text(whole: str, limit: int, *, is_cut: bool = False) -> shapes.Text:
    """A text, cut after whole characters to at most `limit` bytes, and the hash of what is left."""
    data = whole.encode("utf-8", "replace")
    kept = data[:limit].decode("utf-8", "ignore")
    data = kept.encode() if len(data) > limit else data
    return shapes.Text(
        text=data.decode(),
        bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        is_cut=is_cut or len(kept.encode()) < len(whole.encode("utf-8", "replace")),
    )


def _run(run: Run) -> Mapping[str, Any]:
    names = (
        *("host", "state", "reason", "started_by", "agent", "model", "effort", "session"),
        *("requested_at", "started_at", "ended_at", "took_seconds", "exit_status", "exit_signal"),
    )
    return {
        "id": run.pk,
        "project": run.project.name,
        "outcome": run.outcome or None,
        "continues": run.continues_id,
        **{name: getattr(run, name) for name in names},
    }


def _base(run: Run, changes: observe.Changes, notes: _Notes) -> Mapping[str, Any]:
    notes.unless(bool(run.fork_point), NO_BASE)
    commits = [{"id": c.id, "at": c.at, "subject": c.subject} for c in changes.commits]
    return {
        "branch": run.project.default_branch,
        "commit": run.fork_point or None,
        "own_branch": run.branch,
        "head": changes.commits[0].id if changes.commits else run.head or None,
        "commits": commits,
        "pull_number": run.pull_number,
        "pull_url": run.pull_url,
    }


def _diff(lab: Lab, changes: observe.Changes, notes: _Notes) -> shapes.ReceiptDiff:
    if changes.error:
        notes.said.append(lab.mask(NO_DIFF.format(changes.error)))
        return shapes.ReceiptDiff(files=None, more_files=0, patch=None)
    notes.unless(not changes.is_cut, CUT_DIFF)
    files = [
        shapes.ReceiptFile(
            path=lab.mask(one.path),
            kind=one.kind,
            added=one.added,
            removed=one.removed,
            is_committed=not one.is_open,
        )
        for one in changes.files[:MOST_FILES]
    ]
    patch = text(lab.mask(changes.patch), PATCH_BYTES, is_cut=changes.is_cut)
    return shapes.ReceiptDiff(files=files, more_files=len(changes.files) - len(files), patch=patch)


def _commands(lab: Lab, run: Run, notes: _Notes) -> Mapping[str, Any] | None:
    seen = evidence.read(lab, run, {}, None, lambda: None)
    notes.unless(seen.has_record, NO_RECORD)
    if not seen.has_record:
        return None
    items = [
        {"at": one.at or None, "command": one.line[:COMMAND_CHARACTERS], "exit_code": one.status}
        for one in seen.shown[-MOST_COMMANDS:]
    ]
    return {"items": items, "left_out": len(seen.shown) - len(items)}


def _checks(run: Run, notes: _Notes) -> Sequence[Mapping[str, Any]] | None:
    rows = list(Attempt.objects.filter(run=run).order_by("-number")[:MOST_ATTEMPTS])[::-1]
    notes.unless(bool(rows) or run.is_gated, NO_CHECKS)
    if not rows and not run.is_gated:
        return None
    return [
        {
            **{name: getattr(row, name) for name in ("number", "state", "commit", "reason")},
            "began_at": row.began_at,
            "ended_at": row.ended_at,
            "gates": [
                {"gate": step.gate.value, "state": step.state, "reasons": list(step.reasons)}
                for step in check_pages.steps(row)
            ],
        }
        for row in rows
    ]


def _cost(run: Run, notes: _Notes) -> Mapping[str, Any]:
    names = ("tokens_in", "tokens_cached", "tokens_out", "turns")
    notes.unless(run.cost_usd is not None, NO_COST)
    cost = float(run.cost_usd) if run.cost_usd is not None else None
    return {"cost_usd": cost, **{name: getattr(run, name) for name in names}}


def _timeline(run: Run) -> Mapping[str, Any]:
    """Of too many entries the first and the last ones."""
    rows = Notice.objects.filter(run=run).values("id", "at", "kind", "text", "by")
    half = MOST_ENTRIES // 2
    last = list(rows.order_by("-pk")[:MOST_ENTRIES])[::-1]
    if len(last) < MOST_ENTRIES:
        return {"items": last, "left_out": 0}
    first = list(rows.filter(pk__lt=last[half]["id"]).order_by("pk")[:half])
    items = first + last[half:]
    return {"items": items, "left_out": rows.count() - len(items)}


def _records(
    lab: Lab, run: Run, found: Sequence[OwnRecord], notes: _Notes
) -> Sequence[Mapping[str, Any]]:
    """Sizes and hashes; a record that a living agent adds to is hashed as far as it is there."""
    left, rows = HASHED_BYTES, []
    for one in found[:MOST_RECORDS]:
        size, digest = _hash(lab, one, left)
        left -= size or 0
        path = os.path.join(one.base, *one.path)  # noqa: PTH118
        rows.append({"path": path, "bytes": size, "sha256": digest})
    is_whole = len(found) <= MOST_RECORDS and all(row["sha256"] for row in rows)
    notes.unless(is_whole, NO_HASH)
    return rows


def _hash(lab: Lab, record: OwnRecord, limit: int) -> tuple[int | None, str | None]:
    """Bytes and SHA-256; without the hash where there is more than the limit."""
    found, at, size = hashlib.sha256(), 0, None
    while (piece := lab.records.read(record, at, PIECE)) is not None:
        size = piece.size if size is None else size
        if size > limit:
            return size, None
        data = piece.data[: size - at]
        if not data:
            break
        found.update(data)
        at += len(data)
    return size, found.hexdigest() if size is not None and at == size else None


def _masked(value: Any, mask: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Mapping):
        return {name: _masked(one, mask) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(one, mask) for one in value]
    return value
