"""Reads on in what one-shot agents print, keeps what it tells, and tells when their state changes.

Everything comes from the record in the run's folder and from what the row says was read of it;
nothing is remembered in a process.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from django.db import transaction

from runs.core import lenient_json
from runs.core.ports import Lab
from runs.core.states import NoticeKind
from runs.models import Run
from runs.timeline import announce
from runs.transcript import models, record, rendering, reports
from runs.transcript.record import Reading

logger = logging.getLogger(__name__)

PIECE = 4 * lenient_json.LINE_LIMIT
AT_A_LOOK = 4 * PIECE
AT_THE_END = 32 * PIECE
SHOWN_BYTES = PIECE // 2
NOTE = 300
WORDS_CHARACTERS = 60_000


def hear(lab: Lab, run: Run, limit: int = AT_A_LOOK) -> Reading:
    """What a run's agent has told by now, from at most `limit` new bytes.

    A record that is shorter than what was read of it is another one, and is read from its start.
    What a program used that worked on the run before is added to what this one tells.
    """
    reading = run.reading
    if not reading.output_read:
        reading = replace(reading, report=reports.again(reading.report))
    end = reading.output_read + limit
    while reading.output_read < end:
        piece = lab.sessions.output(lab.paths.run_folder(run.pk), reading.output_read, PIECE)
        if piece is None:
            return reading
        if piece.size < reading.output_read:
            reading, end = Reading(reports.another(reading.report)), limit
            continue
        written_at = min(lab.now(), piece.written_at)
        after = record.read(run.output, reading, piece.data, written_at)
        if after.output_read == reading.output_read:
            return reading
        reading = _masked(lab, after)
    return reading


def _masked(lab: Lab, reading: Reading) -> Reading:
    """Once more than its launcher did: it knows no secret that was stored since it was started, and
    an agent can write to the file too."""
    report = reading.report
    note, line = lab.mask(report.agent_note), lab.mask(report.last_line)
    return replace(reading, report=replace(report, agent_note=note[:NOTE], last_line=line[:NOTE]))


def finish(lab: Lab, run: Run) -> Reading:
    """The same for a program that has ended: to the end of its record, an unended line included."""
    reading = hear(lab, run, AT_THE_END)
    rest = lab.sessions.output(lab.paths.run_folder(run.pk), reading.output_read, PIECE)
    if rest is not None:
        written_at = min(lab.now(), rest.written_at)
        reading = record.read(run.output, reading, rest.data, written_at, is_over=True)
        reading = _masked(lab, reading)
    return Reading(reports.closed(reading.report), reading.output_read, reading.output_skips)


def last_words(lab: Lab, run: Run) -> dict[str, object]:
    """The columns that an ended run keeps of its record: what it told, and its end as words."""
    if not run.output:
        return {}
    found = models.columns(finish(lab, run), run, run.ended_at or lab.now())
    if not found["last_line"]:
        del found["last_line"]  # then the screen's own is better than nothing
    shown = lab.sessions.output(lab.paths.run_folder(run.pk), -SHOWN_BYTES, SHOWN_BYTES)
    if shown is None or not shown.data:
        return found
    raw = shown.data if shown.size <= SHOWN_BYTES else shown.data.partition(b"\n")[2]
    words = lab.mask(rendering.render_all(raw))
    if len(words) > WORDS_CHARACTERS:
        words = words[-WORDS_CHARACTERS:].partition("\n")[2]
    return {**found, "last_words": words.rstrip()} if words.strip() else found


def listen(lab: Lab, runs: Sequence[Run]) -> int:
    """Keep what is new of working runs; how many have something new.

    One look reads a bounded number of bytes of all of them; the rest is there at the next.
    """
    heard, left = {}, AT_A_LOOK
    for run in runs:
        try:
            after = hear(lab, run, left)
        except Exception:  # an agent prints these lines: none may keep others from being read
            logger.exception("output was not read", extra={"run_id": run.pk})
            continue
        if after != run.reading:
            heard[run] = after
            left -= max(0, after.output_read - run.output_read)
    if not heard:
        return 0
    loud = [run for run in heard if _is_telling(run, heard[run])]
    with transaction.atomic():
        changed = sum([_keep_and_tell(lab, run, heard[run]) for run in loud])
        return changed + _keep(lab, {run: heard[run] for run in heard if run not in loud})


def _is_telling(run: Run, after: Reading) -> bool:
    return run.last_output_at is None or reports.news(run.reading.report, after.report) is not None


def _keep_and_tell(lab: Lab, run: Run, after: Reading) -> bool:
    """One run whose change is told; nothing is told of a run that has ended meanwhile."""
    news = reports.news(run.reading.report, after.report)
    now = lab.now()
    facts = {**models.columns(after, run, now), "last_output_at": now}
    if not Run.objects.working().filter(pk=run.pk).update(**facts):
        return False
    if run.last_output_at is None:
        announce.tell(lab, NoticeKind.RUN_OUTPUT, "first output", run=run)
    if news is not None:
        announce.tell(lab, *news, run=run)
    return True


def _keep(lab: Lab, heard: Mapping[Run, Reading]) -> int:
    now = lab.now()
    facts = {"last_output_at": now}
    return models.keep(
        Run, {run.pk: {**models.columns(one, run, now), **facts} for run, one in heard.items()}
    )
