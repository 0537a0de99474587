"""What this host's worker does as a whole for pages of other machines: conversations, kept work.

A question names rows and never a path: what is read is what those rows stand for on this machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from runs.core.ports import Lab, Output
from runs.kept import discard, parked, restore
from runs.kept.discard import DiscardRefused
from runs.models import Discarding, Project, Rescue, Run
from runs.transcript import own_record
from runs.transcript.record_rules import OwnRecord

MOST_BYTES = 8_000_000


class OnBehalf:
    """`Elsewhere` as the worker of the host `lab.host` answers it."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    def records(self, run_id: int) -> list[Mapping[str, object]]:
        """The records of a run of this host, without where they lie."""
        return [
            {
                "form": one.form,
                "session": one.session,
                "agent": one.agent,
                "call": one.call,
                "is_printed": one.is_printed,
            }
            for one in self._records(run_id)
        ]

    def read(self, run_id: int, name: str, start: int, limit: int) -> Output | None:
        """A piece of one of them; None when it is not there."""
        own = next((one for one in self._records(run_id) if one.name == name), None)
        limit = min(limit, MOST_BYTES)
        return None if own is None else self._lab.records.read(own, start, limit)

    def parked(self, project_id: int, page: int) -> Mapping[str, object]:
        """A page of what is parked here, without pull requests, for which nobody has to ask here."""
        project = Project.objects.get(pk=project_id)
        found = parked.listing(self._lab, project, page, is_alone=False)
        entries = [_plain(one, ("pull",)) for one in found.entries]
        return {**_plain(found, ("entries", "pulls_error")), "entries": entries}

    def discard(
        self, project_id: int, branch: str, by: str, even_accepted: bool
    ) -> Mapping[str, str]:
        """What came of it in words, or why it was refused. Raises SeamError."""
        project = Project.objects.get(pk=project_id)
        try:
            done = discard.begin(self._lab, project, branch, by, even_accepted=even_accepted)
        except DiscardRefused as refused:
            return {"refused": refused.text, "code": refused.code}
        if isinstance(done, Discarding):
            return {"begun": "yes"}
        return {"on_origin": done.on_origin}

    def restore(self, rescue_id: int, by: str) -> Mapping[str, str]:
        """The name under which it is there again, or why it was refused. Raises SeamError."""
        found = Rescue.objects.select_related("project").get(pk=rescue_id)
        try:
            return {"name": restore.restore(self._lab, found, by)}
        except restore.RestoreRefused as refused:
            return {"refused": refused.text, "code": refused.code}

    def _records(self, run_id: int) -> Sequence[OwnRecord]:
        rows = Run.objects.select_related("project", "profile")
        run = rows.filter(pk=run_id, host=self._lab.host).first()
        return [] if run is None else own_record.find(self._lab, run)


def _plain(value: Any, without: Sequence[str]) -> dict[str, object]:
    return {one.name: getattr(value, one.name) for one in fields(value) if one.name not in without}
