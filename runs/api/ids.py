"""Ids in addresses, bounded so that no database is asked for a number that it cannot hold."""

from __future__ import annotations

from typing import Annotated

from ninja import Path

from runs.api.asked import BIGGEST_ID, BIGGEST_NUMBER

ProjectId = Annotated[int, Path(ge=1, le=BIGGEST_ID)]
AgentId = Annotated[int, Path(ge=1, le=BIGGEST_ID)]
RunId = Annotated[int, Path(ge=1, le=BIGGEST_ID)]
Number = Annotated[int, Path(ge=1, le=BIGGEST_NUMBER)]
