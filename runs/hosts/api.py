"""Hosts over the API: how each is doing, and what people do with them."""

from __future__ import annotations

from typing import Annotated, Any

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from ninja import Path, Query
from pydantic import BaseModel

from runs.api import etags, replies
from runs.api.asked import BIGGEST_ID
from runs.api.gate import check_administering, token_of
from runs.api.router import Router
from runs.hosts import acts, queries, schemas
from runs.hosts.queries import HostRow
from runs.models import Host
from runs.web.access import username
from runs.wiring import lab
from trackers.base import NotFound

router = Router(tags=["Hosts"])

HostId = Annotated[int, Path(ge=1, le=BIGGEST_ID)]
TERMS = ("labels", "session_cap", "ssh_address")


@router.get("", response=replies.look(schemas.Hosts), summary="List hosts")
def host_list(request: HttpRequest) -> schemas.Hosts:
    """Every machine that runs sessions and was not removed, by name."""
    return schemas.Hosts(items=[_shown(row) for row in queries.all_of(lab())])


@router.get("/{int:host_id}", response=replies.look(schemas.Host), summary="Show a host")
def host_show(request: HttpRequest, response: HttpResponse, host_id: HostId) -> Any:
    """How a host stands. `ETag` is the mark of what people set: labels, cap, address for ssh."""
    return _marked(response, _row(host_id))


@router.patch("/{int:host_id}", response=replies.edited(schemas.Host), summary="Change a host")
def host_set(
    request: HttpRequest, response: HttpResponse, host_id: HostId, given: schemas.HostTerms
) -> Any:
    """Set labels, its own cap and its address for ssh; what is not named stays. For admins only.

    A cap of null is the general one. With the `ETag` that was read as `If-Match` it is 412, and
    nothing is stored, once somebody else has changed them.
    """
    check_administering(token_of(request))
    with transaction.atomic():
        list(Host.objects.select_for_update().filter(pk=host_id).values_list("pk"))
        row = _row(host_id)
        etags.check(request, _terms(row))
        named = given.model_fields_set
        wanted = acts.terms(
            given.labels if given.labels is not None else row.labels,
            given.session_cap if "session_cap" in named else row.own_cap,
            given.ssh_address if given.ssh_address is not None else row.ssh_address,
        )
        acts.change(lab(), _host(host_id), wanted, username(request))
    return _marked(response, _row(host_id))


@router.post("/{int:host_id}/drain", response=replies.act(schemas.Host), summary="Drain a host")
def host_drain(request: HttpRequest, host_id: HostId) -> schemas.Host:
    """Have it take nothing new; what runs there finishes. One that drains already stays so."""
    acts.drain(lab(), _host(host_id), username(request))
    return _shown(_row(host_id))


@router.post("/{int:host_id}/resume", response=replies.act(schemas.Host), summary="Resume a host")
def host_resume(request: HttpRequest, host_id: HostId) -> schemas.Host:
    """Have a drained host take work again. One that does stays so."""
    acts.resume(lab(), _host(host_id), username(request))
    return _shown(_row(host_id))


@router.post(
    "/{int:host_id}/give-up", response=replies.act(schemas.HostRuns), summary="Give up its runs"
)
def host_give_up(request: HttpRequest, host_id: HostId) -> schemas.HostRuns:
    """End what runs on a host that is silent; 409 while it answers. Its work is kept there."""
    return schemas.HostRuns(ended=acts.give_up(lab(), _host(host_id), username(request)))


@router.delete("/{int:host_id}", response=replies.act(schemas.HostRuns), summary="Remove a host")
def host_remove(
    request: HttpRequest, host_id: HostId, given: Query[schemas.Removal]
) -> schemas.HostRuns:
    """Take a host out; 409 while runs are there, unless `and_runs` ends them. For admins only."""
    check_administering(token_of(request))
    host = _host(host_id)
    ended = acts.remove(lab(), host, username(request), and_runs=given.and_runs)
    return schemas.HostRuns(ended=ended)


def _host(host_id: int) -> Host:
    found = Host.objects.with_silence().filter(pk=host_id, removed_at=None).first()
    if found is None:
        raise NotFound(f"There is no host {host_id}.")
    return found


def _row(host_id: int) -> HostRow:
    row = next((one for one in queries.all_of(lab()) if one.id == host_id), None)
    if row is None:
        raise NotFound(f"There is no host {host_id}.")
    return row


def _shown(row: HostRow) -> schemas.Host:
    mask = lab().mask
    return schemas.Host(
        id=row.id,
        name=row.name,
        state=row.state,
        closed=row.closed,
        runs=row.runs,
        cap=row.cap,
        session_cap=row.own_cap,
        labels=list(row.labels),
        ssh_address=row.ssh_address,
        load=row.load,
        cores=row.cores,
        disk_free_mb=row.disk_free_mb,
        version=row.version,
        is_behind=row.is_behind,
        seen_at=row.seen_at,
        last_error=mask(row.last_error),
    )


def _terms(row: HostRow) -> BaseModel:
    return schemas.HostTerms(
        labels=list(row.labels), session_cap=row.own_cap, ssh_address=row.ssh_address
    )


def _marked(response: HttpResponse, row: HostRow) -> schemas.Host:
    return etags.mark(response, _shown(row), _terms(row).model_dump(mode="json"))
