"""Records of runs of another host, read piece by piece through its worker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from runs.core.ports import Output, SeamError
from runs.transcript.record_rules import Form, OwnRecord, Wanted

_RUN = "run:"


class FarRecords:
    """`Records` of another host. A record says of which run it is, and nobody here where it lies."""

    def __init__(self, elsewhere: Any) -> None:
        self._elsewhere = elsewhere

    def of_run(self, run_id: int) -> list[OwnRecord]:
        """The records of a run. Raises SeamError."""
        told = self._elsewhere.records(run_id)
        return [
            OwnRecord(
                form=Form(one["form"]),
                session=str(one["session"]),
                base=f"{_RUN}{run_id}",
                path=(),
                agent=str(one["agent"]),
                call=str(one["call"]),
                is_printed=bool(one["is_printed"]),
            )
            for one in told
            if one.get("form") in list(Form)
        ]

    def read(self, record: OwnRecord, start: int, limit: int) -> Output | None:
        """Raises SeamError too."""
        run_id = record.base.removeprefix(_RUN)
        if not run_id.isdecimal():
            return None
        found: Output | None = self._elsewhere.read(int(run_id), record.name, start, limit)
        return found

    def find(self, wanted: Wanted) -> Sequence[OwnRecord]:
        raise SeamError("records of another host are asked for by their run")

    def keep(self, folder: Path, name: str, pieces: Iterable[bytes]) -> None:
        raise SeamError("records are kept by the host's own worker only")
