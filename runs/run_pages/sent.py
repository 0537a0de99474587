"""What was given to an agent and what is left of its run: prompt, files, exit, names of variables."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from runs.core import lenient_json
from runs.core.history_ports import Change
from runs.core.ports import Lab
from runs.models import Notice, Run
from runs.overview.queries import RunPage
from runs.pulls import diff
from runs.transcript import screens
from runs.web import words

MOST_LINES = 3000  # of a prompt that is compared
MOST_FILES = 200
MOST_STEPS = 60
FINAL_LINES = 60
ORDER, ORDER_BYTES = "order.json", 400_000  # it is there while the session is


@dataclass(frozen=True, slots=True)
class File:
    """A file in the private folder of a run; what is in it is not shown."""

    name: str
    size: int


def prompt(run: Run) -> Mapping[str, Any]:
    """How the prompt differs from that of the run of the same issue before. One query."""
    rows = Run.objects.filter(project=run.project_id, issue_key=run.issue_key, pk__lt=run.pk)
    before = rows.exclude(prompt="").only("pk", "prompt").order_by("-pk").first()
    if before is None or not run.prompt:
        return {"before": None}
    old, new = before.prompt.splitlines(), run.prompt.splitlines()
    if max(len(old), len(new)) > MOST_LINES:
        return {"before": before, "is_long": True}
    changed = list(difflib.unified_diff(old, new, lineterm="", n=2))[2:]
    added = sum(line.startswith("+") for line in changed)
    removed = sum(line.startswith("-") for line in changed)
    if not changed:
        return {"before": before, "file": None}
    about = Change("prompt.md", "M", added, removed)
    shown = diff.file(about, "\n".join([*changed, ""]), 1)
    return {
        "before": before,
        "file": diff.FileDiff(about, shown.lines, shown.is_cut, 1, is_open=True),
    }


def raw(lab: Lab, page: RunPage) -> Mapping[str, Any]:
    """Everything of a run for a bug report, without a secret. One query."""
    from runs.api import showing  # loads all of the HTTP API with it

    run = page.run
    row = showing.run(run, lab.now(), page.board.facts.settings, None)
    told = json.dumps(row.model_dump(mode="json"), indent=2, ensure_ascii=False)
    found = {
        "json": lab.mask(told),
        "folder_files": _files(lab, run),
        "env_names": _env_names(lab, run),
        "signal_name": page.signal_name,
    }
    return {**found, "report": lab.mask(_report(run, found))}


def _files(lab: Lab, run: Run) -> Sequence[File]:
    """Names and sizes; none where the folder is gone or on another machine."""
    folder = lab.paths.run_folder(run.pk)
    try:
        paths = islice(folder.iterdir(), MOST_FILES)
        found = [File(_shown(one.name), one.lstat().st_size) for one in paths]
    except OSError:
        return ()
    return sorted(found, key=lambda one: one.name)


def _shown(name: str) -> str:
    """A name as a page can hold it: an agent may write there, and a name may be of any bytes."""
    return os.fsencode(name).decode("utf-8", "replace")


def _env_names(lab: Lab, run: Run) -> Sequence[str]:
    """What variables its session began with; once that is over, those of its agent's profile."""
    sessions = lab.at(run.host).sessions
    piece = sessions.output(lab.paths.run_folder(run.pk), 0, ORDER_BYTES, ORDER)
    order = lenient_json.entry(piece.data) if piece else None
    env = lenient_json.at(order, "env") if order else None
    if not isinstance(env, dict):
        env = run.profile.env if run.profile else {}
    return sorted(str(name) for name in env)


def _report(run: Run, found: Mapping[str, Any]) -> str:
    """One text with everything, ready to be pasted."""
    rows = Notice.objects.filter(run=run).order_by("-pk").values_list("at", "kind", "text")
    steps = [f"{words.iso(at)} {kind}: {text}" for at, kind, text in reversed(rows[:MOST_STEPS])]
    files = [f"{one.size:>10}  {one.name}" for one in found["folder_files"]]
    last = screens.plain(run.last_words).rstrip().splitlines()[-FINAL_LINES:]
    status = "not seen" if run.exit_status is None else run.exit_status
    signal = f", signal {run.exit_signal} {found['signal_name']}" if run.exit_signal else ""
    parts = {
        f"Run {run.pk} of {run.project.name}, issue {run.issue_key}": [
            f"state {run.state}, outcome {run.outcome or 'none'}: {run.reason}",
            f"exit status {status}{signal}",
            f"agent {run.agent or 'unknown'} {run.model} {run.effort}".rstrip(),
        ],
        "Timeline": steps,
        "Final output": last,
        "Files": files,
        "Environment (names only)": [", ".join(found["env_names"])],
        "JSON": [found["json"]],
    }
    return "\n\n".join("\n".join([f"## {name}", *lines]) for name, lines in parts.items())
