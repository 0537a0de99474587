"""Trackers and accounts on forges in the shapes of the API. No credential is among them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from runs.api import asked
from runs.core.states import ForgeKind, Mirror
from runs.forges import switching
from runs.forges.hook_rules import HookDid
from runs.forges.pages import Line
from runs.forges.tracker_card import Card
from runs.models import HookDelivery
from trackers.base import Ability, Finding

Secret = Annotated[str, Field(max_length=20_000, pattern=asked.NO_NUL)]
WholeId = Annotated[int, asked.WHOLE, Field(ge=1, le=asked.BIGGEST_ID)]
Label = Annotated[str, Field(max_length=60, pattern=asked.NO_NUL)]


class _Credential(asked.Given):
    """A token, or all three parts of a GitHub App. Goes in and never comes out."""

    token: Secret = ""
    app_id: Annotated[str, Field(max_length=100, pattern=asked.NO_NUL)] = ""
    app_installation: Annotated[str, Field(max_length=100, pattern=asked.NO_NUL)] = ""
    app_key: Secret = ""

    @property
    def credential(self) -> dict[str, str]:
        parts = ("token", "app_id", "app_installation", "app_key")
        return {part: getattr(self, part) for part in parts}


class ForgeGiven(_Credential):
    """An account as it shall be. Without an API address it is where such forges have theirs."""

    name: asked.Name
    web: asked.Address
    api: asked.Address = ""


class NewForge(ForgeGiven):
    """An account to be kept."""

    kind: Literal["gitea", "github"]


class Spent(BaseModel):
    """What one purpose asked within 24 hours; `unchanged` of it brought nothing new."""

    purpose: str
    calls: int
    unchanged: int


class Quota(BaseModel):
    """What the forge allows this account, as heard last; null where it told nothing."""

    limit: int | None
    remaining: int | None
    reset_at: datetime | None
    blocked_until: datetime | None
    spent: list[Spent]


class Forge(BaseModel):
    """An account on a forge. Its credential is never shown."""

    id: int
    name: str
    kind: ForgeKind
    web: str
    api: str
    trouble: str
    examined_at: datetime | None
    quota: Quota


class Forges(BaseModel):
    items: list[Forge]
    people_percent: Annotated[int, Field(description="Of each quota, so much is left to people.")]


class TrackerGiven(asked.Given):
    """Where a project's issues shall be. `repository` is owner/name; empty: by the clone address."""

    tracker: Literal["builtin", "gitea", "github", "beads"]
    forge: WholeId | None = None
    repository: Annotated[str, Field(max_length=300, pattern=asked.NO_NUL)] = ""
    ready_label: Label = "ready-for-agent"
    working_label: Label = ""
    mirror: Literal["off", "status", "comments"] = "off"


class Tracker(BaseModel):
    """A project's tracker. `abilities` are what may be asked of it; anything else is refused."""

    tracker: str
    forge: int | None
    repository: str
    url: str
    ready_label: str
    working_label: str
    mirror: Mirror
    abilities: list[Ability]
    read_at: Annotated[datetime | None, Field(description="When its ready queue was last read.")]
    asked_every_seconds: int | None
    asked_why: str
    waits_until: datetime | None
    warning: str
    hook_path: Annotated[str, Field(description="Where its webhook delivers; empty: none can.")]
    hooked_at: datetime | None


class Found(BaseModel):
    """One thing that was tried; `ok` is null where it could not be told."""

    name: str
    ok: bool | None
    text: str


class Findings(BaseModel):
    items: list[Found]


class Delivery(BaseModel):
    """One delivery of the webhook, and what it did. Of its content only the event is kept."""

    id: int
    event: str
    did: HookDid
    received_at: datetime
    repeats: Annotated[int, Field(description="How often it came again, and nothing was done.")]


class Deliveries(BaseModel):
    items: list[Delivery]
    next: int | None


class HookSecret(BaseModel):
    """A new secret. It is shown only here."""

    secret: str
    hook_path: str


def forge(line: Line) -> Forge:
    row, quota = line.forge, line.quota
    assert row is not None  # noqa: S101  (only kept accounts are listed)
    known = line.is_known and quota is not None
    return Forge(
        id=row.pk,
        name=row.name,
        kind=ForgeKind(row.kind),
        web=row.web,
        api=row.api,
        trouble=row.trouble,
        examined_at=row.examined_at,
        quota=Quota(
            limit=quota.limit if known and quota else None,
            remaining=quota.remaining if known and quota else None,
            reset_at=quota.reset_at if known and quota else None,
            blocked_until=quota.blocked_until if line.is_blocked and quota else None,
            spent=[
                Spent(purpose=one.purpose, calls=one.calls, unchanged=one.unchanged)
                for one in line.spent
            ],
        ),
    )


def tracker(card: Card) -> Tracker:
    row = card.project
    return Tracker(
        tracker=row.tracker,
        forge=row.forge_id,
        repository=switching.repository_of(row),
        url=card.url,
        ready_label=row.ready_label,
        working_label=row.working_label,
        mirror=Mirror(row.mirror),
        abilities=sorted(card.abilities),
        read_at=row.queue_seen_at,
        asked_every_seconds=row.asked_every,
        asked_why=row.asked_why,
        waits_until=card.waits_until,
        warning=row.warning,
        hook_path=card.hook_path,
        hooked_at=row.hooked_at,
    )


def findings(found: Sequence[Finding]) -> Findings:
    return Findings(items=[Found(name=one.name, ok=one.ok, text=one.text) for one in found])


def delivery(row: HookDelivery) -> Delivery:
    return Delivery(
        id=row.pk,
        event=row.event,
        did=HookDid(row.did),
        received_at=row.received_at,
        repeats=row.repeats,
    )
