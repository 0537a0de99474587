"""Keeps the agents' own records of a settled run: the programs delete theirs after some weeks.

A copy in the run's folder goes when that folder does. It holds no secret that labsite knows, and no
line that no page would show. Killed in the middle, it is begun anew: a list of the copies is
written last, and without it there are none.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.db.models import OuterRef, Q, QuerySet, Subquery

from runs.conversation import rules
from runs.conversation.models import RecordToKeep
from runs.core.ports import Lab, SeamError
from runs.models import Run
from runs.telemetry import log_context
from runs.transcript import own_record
from runs.transcript.record_rules import OwnRecord

logger = logging.getLogger(__name__)

MOST_BYTES = 256 * 1024 * 1024  # of one record; of a longer one the end is kept
AGAIN = timedelta(minutes=10)
AT_LAST = timedelta(days=1)  # so long it is tried again
PIECE = 1024 * 1024


def ask(lab: Lab, run: Run) -> None:
    """Have the records of a settled run kept; part of the transaction that settles it."""
    if run.did_start and not run.is_adopted:
        RecordToKeep.objects.get_or_create(run=run, defaults={"asked_at": lab.now()})


def tend(lab: Lab) -> int:
    """Keep what was asked for of this host's runs, one after the other; how many. The rest is tried again."""
    done = 0
    here = waiting(lab.host, lab.now())
    while (row := here.first()) is not None:
        taken = here.filter(pk=row.pk).update(begun_at=lab.now())
        if not taken:
            continue
        is_kept = _carry_out(lab, row.run_id)
        if is_kept or row.asked_at < lab.now() - AT_LAST:
            RecordToKeep.objects.filter(pk=row.pk).delete()
        done += is_kept
    return done


def waiting(host: str, now: datetime) -> QuerySet[RecordToKeep]:
    """What was asked for of a host's runs and nobody is at."""
    is_free = Q(begun_at=None) | Q(begun_at__lt=now - AGAIN)
    # Asked of each row, not joined: a join may begin with all runs there ever were.
    of_run = Subquery(Run.objects.filter(pk=OuterRef("run")).values("host"))
    return RecordToKeep.objects.alias(of_run=of_run).filter(is_free, of_run=host)


def _carry_out(lab: Lab, run_id: int) -> bool:
    """Whether it is done with, also where there was nothing to keep."""
    run = Run.objects.select_related("project", "profile").get(pk=run_id)
    try:
        with log_context.about(**log_context.of(run)):
            keep(lab, run)
        return True
    except SeamError as error:
        logger.warning("records were not kept", extra={"run_id": run_id, "error": str(error)})
    except Exception:  # an agent wrote them: none may keep others from being kept
        logger.exception("records were not kept", extra={"run_id": run_id})
    return False


def keep(lab: Lab, run: Run, most: int = MOST_BYTES) -> int:
    """Copy the records of a run, of each about `most` bytes, then write down which there are; how many.

    Raises SeamError.
    """
    folder = lab.paths.run_folder(run.pk) / own_record.KEPT
    found = [one for one in own_record.find(lab, run) if not one.is_printed]
    if not found or any(one.path[0] == own_record.KEPT for one in found):
        return 0
    rows: list[dict[str, Any]] = []
    for one in found:
        name = f"{one.name}.jsonl"
        lab.records.keep(folder, name, _copied(lab, one, most))
        told = {"form": one.form.value, "session": one.session, "agent": one.agent}
        rows.append({**told, "call": one.call, "file": name})
    lab.records.keep(folder, own_record.LIST, [json.dumps({"records": rows}).encode()])
    return len(rows)


def _copied(lab: Lab, record: OwnRecord, most: int) -> Iterator[bytes]:
    """Its lines without secrets as long as it is now, from where the end that is kept begins."""
    known = lab.records.read(record, 0, 0)
    size = known.size if known else 0
    place, rest, skipped = max(0, size - most), b"", 0
    is_inside = place > 0
    if is_inside:
        yield _instead(place)
    for piece in _pieces(lab, record, place, size):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if skipped or is_inside:
                yield _instead(skipped + len(line)) if skipped else b""
            else:
                yield _masked(lab, line) + b"\n"
            skipped, is_inside = 0, False
        if skipped or len(rest) > rules.LINE_BYTES:
            skipped, rest = skipped + len(rest), b""
    if skipped:
        yield _instead(skipped)
    elif rest and not is_inside:
        yield _masked(lab, rest) + b"\n"


def _pieces(lab: Lab, record: OwnRecord, place: int, end: int) -> Iterator[bytes]:
    """The bytes between two places, as far as they are there."""
    while place < end:
        found = lab.records.read(record, place, min(PIECE, end - place))
        if found is None or not found.data:
            return
        yield found.data
        place += len(found.data)


def _instead(size: int) -> bytes:
    return json.dumps({"type": rules.LEFT_OUT, "bytes": size}).encode() + b"\n"


def _masked(lab: Lab, line: bytes) -> bytes:
    """The line as it is, or without the secrets in it."""
    text = line.decode("utf-8", "replace")
    if lab.mask(text) is text:
        return line if len(line) <= rules.LINE_BYTES else _instead(len(line)).rstrip()
    entry = rules.parsed(line, lab.mask)
    return json.dumps(entry).encode() if entry is not None else lab.mask(text).encode()
