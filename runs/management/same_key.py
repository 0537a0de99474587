"""Whether a machine has the key of the others: with another one it would take all secrets for lost."""

from __future__ import annotations

from runs.core.ports import Lab
from runs.hosts import facts
from runs.hosts.rules import HostState
from runs.models import Host, PushKeys, Settings
from runs.notices import pushes


class OtherKey(Exception):
    """This machine's LAB_SECRET_KEY is not that of machines that work."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"LAB_SECRET_KEY is not that of host {name}, whose database this is, so stored tokens would "
            "be taken for lost: set the same on all machines. To replace it, stop all of them first."
        )


def check(lab: Lab) -> None:
    """Raise OtherKey where another host works and what it stored cannot be opened here.

    The private key of pushes tells, which is made here for that where there is none. With one
    machine alone nothing is asked: its key was replaced on purpose.
    """
    if lab.others is None:
        return
    row = PushKeys.objects.filter(pk=1).first()
    if row is not None and not row.private and (name := _heard(lab)):
        raise OtherKey(name)
    pushes.public_key(lab)


def _heard(lab: Lab) -> str:
    """The first other host that works; empty when there is none."""
    settings = Settings.current()
    rows = Host.objects.with_silence().filter(removed_at=None).exclude(name=lab.host)
    found = (row.name for row in rows if facts.state_of(row, settings) is not HostState.UNKNOWN)
    return next(found, "")
