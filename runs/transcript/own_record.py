"""Where the agent's own record of a run is: one file a session, and one for each agent it started.

What is read from them was written by an agent: it explains and proves nothing, and it is not masked.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from runs.core import lenient_json
from runs.core.ports import Lab
from runs.core.states import AgentMode, OutputKind
from runs.models import Run
from runs.transcript import hook_events
from runs.transcript.record_rules import AtOnce, Form, OwnRecord, Wanted

PRINTED = "output.jsonl"
_OF_OUTPUT = {OutputKind.CLAUDE: Form.CLAUDE, OutputKind.CODEX: Form.CODEX}
_OF_PROGRAM = {"claude": Form.CLAUDE, "codex": Form.CODEX}


def find(lab: Lab, run: Run) -> Sequence[OwnRecord]:
    """The records of a run, sessions oldest first, each followed by those of its agents.

    A one-shot agent whose own files are not there has what it printed. Empty: there is none, which
    is so of every program but Claude Code and Codex. Needs `run.profile`. Where another host has
    them, its worker finds them; raises SeamError when that does not answer.
    """
    if isinstance(lab.records, AtOnce):
        return lab.records.of_run(run.pk)
    form = _form(run)
    if (
        run.is_adopted
        or not run.worktree
        or (form is None and run.output == OutputKind.PLAIN and _is_plain(run))
    ):
        return []
    kept = _kept(lab, run) if run.settled_at is not None else []
    own = kept or lab.records.find(_wanted(lab, run, form))
    return own or _printed(lab, run)


def _form(run: Run) -> Form | None:
    """How the run's program keeps its records; None when its profile does not tell."""
    if run.output in _OF_OUTPUT:
        return _OF_OUTPUT[OutputKind(run.output)]
    argvs = [run.resume_argv, run.profile.argv if run.profile else []]
    names = [os.path.basename(str(argv[0])) for argv in argvs if argv]  # noqa: PTH119
    return next((_OF_PROGRAM[name] for name in names if name in _OF_PROGRAM), None)


def _is_plain(run: Run) -> bool:
    """Whether nothing was heard by which a session could be found."""
    return not run.agent_session


def _wanted(lab: Lab, run: Run, form: Form | None) -> Wanted:
    sessions, told = _told(lab, run) if run.mode == AgentMode.INTERACTIVE else ([], [])
    if run.agent_session and run.agent_session not in sessions:
        sessions = [run.agent_session, *sessions]
    env = run.profile.env if run.profile else {}
    return Wanted(
        worktree=run.worktree,
        forms=(form,) if form else (Form.CLAUDE, Form.CODEX),
        sessions=tuple(sessions),
        told=tuple(told),
        env={str(name): str(value) for name, value in env.items()},
        since=run.requested_at,
        until=run.ended_at or lab.now(),
    )


def _told(lab: Lab, run: Run) -> tuple[list[str], list[str]]:
    """The sessions and the paths of their records that the program's hooks named, in their order."""
    folder, most = lab.paths.run_folder(run.pk), hook_events.MOST_BYTES
    piece = lab.sessions.output(folder, 0, most, hook_events.FILE)
    sessions: dict[str, None] = {}
    paths: dict[str, None] = {}
    for line in piece.data.split(b"\n") if piece else ():
        entry = lenient_json.entry(line)
        session, path = lenient_json.word(entry, "session"), lenient_json.text(entry, "transcript")
        if session:
            sessions[session] = None
        if path:
            paths[path] = None
    return list(sessions), list(paths)


def _printed(lab: Lab, run: Run) -> list[OwnRecord]:
    """What a one-shot agent printed, as its launcher keeps it."""
    if run.output not in _OF_OUTPUT:
        return []
    form = Form.CODEX_PRINTED if run.output == OutputKind.CODEX else Form.CLAUDE
    base = str(lab.paths.run_folder(run.pk))
    record = OwnRecord(form, run.agent_session or "printed", base, (PRINTED,), is_printed=True)
    return [record] if lab.records.read(record, 0, 1) is not None else []


KEPT, LIST = "conversation", "records.json"
_LIST_BYTES = 1_000_000


def _kept(lab: Lab, run: Run) -> list[OwnRecord]:
    """The copies that were made when the run was settled, as their list names them."""
    base = str(lab.paths.run_folder(run.pk))
    listed = OwnRecord(Form.CLAUDE, "", base, (KEPT, LIST))
    found = lab.records.read(listed, 0, _LIST_BYTES)
    rows = lenient_json.items(lenient_json.entry(found.data), "records") if found else []
    return [
        OwnRecord(
            form=Form(row["form"]),
            session=lenient_json.word(row, "session"),
            base=base,
            path=(KEPT, lenient_json.word(row, "file")),
            agent=lenient_json.word(row, "agent"),
            call=lenient_json.word(row, "call"),
        )
        for row in rows
        if row.get("form") in list(Form) and lenient_json.word(row, "file")
    ]
