"""What an agent may ask of the gates over HTTP: to run the project's commands, and to take its word."""

from __future__ import annotations

import codecs
from typing import Any

from django.http import HttpRequest, JsonResponse
from pydantic import BaseModel, Field

from runs.agents.agent_api import answer, name_of
from runs.agents.api_door import door, shaped, texts
from runs.core.states import Claim
from runs.models import CheckRun, Run
from runs.on_request import checks, claims
from runs.validation.command_rules import shown
from runs.wiring import lab
from trackers.base import NotFound

PIECE = 200_000
_CLAIMS = {"no-change": Claim.NO_CHANGE, "obsolete": Claim.OBSOLETE}


class _Wanted(BaseModel):
    """The commands to run; none: all."""

    names: list[str] = Field(default_factory=list, max_length=100)


def _claim(request: HttpRequest, run: Run, word: str) -> JsonResponse:
    said = _CLAIMS.get(word)
    if said is None:
        raise NotFound(f"There is no {word[:60]} here.")
    message = texts(request, "message")["message"]
    found = claims.claim(lab(), run, said, message, name_of(run))
    return answer(text=found.text, expects=found.expects, is_checking=found.is_checking)


def _begin(request: HttpRequest, run: Run) -> JsonResponse:
    wanted = shaped(request, _Wanted)
    return answer(status=201, **_row(checks.begin(lab(), run, wanted.names, name_of(run))))


def _stop(request: HttpRequest, run: Run) -> JsonResponse:
    return answer(was_running=checks.stop(lab(), run, name_of(run)))


def _show(request: HttpRequest, run: Run, check_id: int) -> JsonResponse:
    return answer(**_row(_of_run(run, check_id)))


def _printed(
    request: HttpRequest, run: Run, check_id: int, number: int, start: int
) -> JsonResponse:
    """What a command printed from a byte on, in whole letters; `next` is where to go on."""
    row = _of_run(run, check_id)
    found = checks.printed(lab(), row, number, start, PIECE)
    data = found.data if found is not None else b""
    is_over = number < len(row.results) and not row.results[number]["is_running"]
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data, final=is_over and len(data) < PIECE)
    kept_back = len(decoder.getstate()[0])
    return answer(text=text.replace("\0", ""), next=start + len(data) - kept_back)


def _of_run(run: Run, check_id: int) -> CheckRun:
    found = CheckRun.objects.filter(run=run, pk=check_id).first()
    if found is None:
        raise NotFound(f"There is no check {check_id} of this run.")
    return found


def _row(row: CheckRun) -> dict[str, Any]:
    """A check as labctl follows it: what is asked for, and how far each command is."""
    return {
        "id": row.pk,
        "commands": [str(one["name"]) for one in row.commands],
        "is_running": row.is_running,
        "has_begun": checks.has_begun(row),
        "trouble": row.trouble,
        "tree": row.tree,
        "results": [_result(one) for one in row.results],
    }


def _result(one: dict[str, Any]) -> dict[str, Any]:
    same = ("command", "is_running", "status", "signal", "seconds", "is_over_time", "trouble")
    return {
        **{name: one[name] for name in (*same, "allow_fail", "skipped")},
        "argv": lab().mask(shown(one["argv"])),
        "no_tests": one.get("no_tests") or "",
        "is_failure": not one["is_running"] and checks.is_failure(one),
    }


claim = door(POST=_claim)
check_list = door(POST=_begin)
check_stop = door(POST=_stop)
check = door(GET=_show)
check_output = door(GET=_printed)
