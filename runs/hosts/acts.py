"""What people do with hosts: invite a machine, let it join, drain, resume, give up, remove."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import F, QuerySet

from runs.core import tokens
from runs.core.ports import Lab
from runs.core.refusal import ActRefused
from runs.core.states import NoticeKind, Outcome, ProjectState
from runs.hosts import facts, rules
from runs.hosts.rules import HostState
from runs.lifecycle import outcomes
from runs.models import Host, HostInvite, ManualSession, Monitor, Project, Run, Settings, Workflow
from runs.timeline import announce

_SETTLED_THERE = (Run.objects, ManualSession.objects)
INVITED_FOR = timedelta(hours=1)
MOST_CAP = 500
USED_UP = (
    "This join token is not valid: it was used already, has expired, or is mistyped. Nothing was "
    "changed. Make a new one with ./lab host add."
)
ONE_DATABASE = (
    "Several machines need a PostgreSQL database that all of them reach; this labsite keeps its facts "
    "in a file. Nothing was changed. docs/operating.md says how to move, under More machines."
)


class HostRefused(ActRefused):
    """Nothing was changed; the text says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a host is to be: labels, its own cap (None: the general one), and its address for ssh."""

    labels: tuple[str, ...] = ()
    session_cap: int | None = None
    ssh_address: str = ""


def terms(labels: Sequence[str], session_cap: int | None, ssh_address: str) -> Terms:
    """Terms as somebody wrote them. Raises HostRefused, which names the field."""
    try:
        read = rules.read_labels(labels)
    except ValueError as error:
        raise HostRefused(str(error), field="labels") from error
    if session_cap is not None and not 0 <= session_cap <= MOST_CAP:
        raise HostRefused(f"The cap is a number from 0 to {MOST_CAP}.", field="session_cap")
    ssh = ssh_address.strip()
    if ssh.startswith("-") or any(not sign.isprintable() or sign.isspace() for sign in ssh):
        raise HostRefused(
            "Write an address for ssh, such as anna@gpu1.example.org.", field="ssh_address"
        )
    return Terms(read, session_cap, ssh[:200])


def named(name: str, *, even_removed: bool = False) -> Host:
    """The host that somebody named. Raises HostRefused, which says which there are."""
    rows = Host.objects.with_silence().filter(name=name)
    found = (rows if even_removed else rows.filter(removed_at=None)).first()
    if found is None:
        names = ", ".join(Host.objects.filter(removed_at=None).values_list("name", flat=True)[:20])
        raise HostRefused(f"There is no host {name}. There is: {names or 'none yet'}.")
    return found


def invite(lab: Lab, name: str, wanted: Terms, by: str) -> str:
    """Invite a machine; its token, which nothing shows again. Raises HostRefused.

    An earlier invitation of the same name that nobody used ends.
    """
    if not lab.machine.identity:
        raise HostRefused(ONE_DATABASE)
    if why := rules.unfit_name(name):
        raise HostRefused(f"{name!r} cannot name a host. {why}", field="name")
    token = tokens.new_token()
    now = lab.now()
    with transaction.atomic():
        if Host.objects.filter(name=name, removed_at=None).exists():
            raise HostRefused(f"There is a host {name} already. Remove it first.", field="name")
        if any(rows.filter(host=name, settled_at=None).exists() for rows in _SETTLED_THERE):
            raise HostRefused(
                f"The machine that was host {name} has not cleaned up what it had. Choose another name, "
                f"or have the new machine take its place by ./lab host claim {name}.",
                field="name",
            )
        HostInvite.objects.filter(name=name, used_at=None).delete()
        HostInvite.objects.create(
            name=name,
            token_hash=tokens.hash_token(token),
            labels=list(wanted.labels),
            session_cap=wanted.session_cap,
            ssh_address=wanted.ssh_address,
            by=by,
            made_at=now,
            expires_at=now + INVITED_FOR,
        )
        _tell(lab, f"host {name} was invited; its join token works once, for an hour", by)
    return token


def join(lab: Lab, token: str, machine: str) -> str:
    """Let a machine in by its token; the name that it has from now on. Raises HostRefused.

    The token is used up by the first that shows it, also where two do at once.
    """
    if not machine.isalnum() or len(machine) > 64:
        raise HostRefused("This machine did not say who it is. Nothing was changed.")
    rows = HostInvite.objects.filter(
        token_hash=tokens.hash_token(token), used_at=None, expires_at__gt=lab.now()
    )
    with transaction.atomic():
        invited = rows.first()
        if invited is None or not rows.update(used_at=lab.now()):
            raise HostRefused(USED_UP)
        Host.objects.get_or_create(name=invited.name, defaults={"removed_at": lab.now()})
        gone = Host.objects.filter(name=invited.name, removed_at__isnull=False)
        if not gone.update(
            removed_at=None,
            machine=machine,
            labels=invited.labels,
            session_cap=invited.session_cap,
            ssh_address=invited.ssh_address,
            is_draining=False,
            seen_at=None,
            silent_since=None,
        ):
            raise HostRefused(f"There is a host {invited.name} already. Nothing was changed.")
        _tell(lab, f"host {invited.name} joined, invited by {invited.by}", "")
    return invited.name


def drain(lab: Lab, host: Host, by: str) -> bool:
    """Have a host take nothing new; what runs there finishes. False when it drained already."""
    return _switch(lab, host, True, f"host {host.name} is drained: it takes nothing new", by)


def resume(lab: Lab, host: Host, by: str) -> bool:
    """Have a drained host take work again; False when it did not drain."""
    return _switch(lab, host, False, f"host {host.name} takes work again", by)


def change(lab: Lab, host: Host, wanted: Terms, by: str) -> bool:
    """Give a host other labels, another cap, another address; False when nothing differs."""
    columns = {
        "labels": list(wanted.labels),
        "session_cap": wanted.session_cap,
        "ssh_address": wanted.ssh_address,
    }
    if all(getattr(host, name) == value for name, value in columns.items()):
        return False
    with transaction.atomic():
        Host.objects.filter(pk=host.pk).update(**columns)
        cap = "the general cap" if wanted.session_cap is None else f"cap {wanted.session_cap}"
        labels = ", ".join(wanted.labels) or "none"
        _tell(lab, f"host {host.name} has {cap} and labels {labels}", by)
    return True


def give_up(lab: Lab, host: Host, by: str) -> int:
    """End what runs on a host that is silent; how many runs. Raises HostRefused while it answers.

    They count as stopped. Nothing on that machine is touched: when it comes back it ends their
    sessions and keeps worktrees and branches, and none of them goes on.
    """
    if facts.state_of(host, Settings.current()) is not HostState.UNKNOWN:
        raise HostRefused(
            f"Host {host.name} answers, so nothing was given up. Stop its runs on their pages."
        )
    return _end_runs(lab, host, "has been silent", by)


def remove(lab: Lab, host: Host, by: str, *, and_runs: bool = False) -> int:
    """Take a host out; how many runs were given up with it. Raises HostRefused while any are there.

    With `and_runs` they are ended first, as by Stop. Its name is free for another machine then.
    """
    if not Host.objects.filter(removed_at=None).exclude(pk=host.pk).exists():
        raise HostRefused(
            f"{host.name} is the only host, and without it nothing could start. Nothing was changed."
        )
    there = active_on(host.name)
    count = there.count()
    if count and not and_runs:
        runs = "a run is" if count == 1 else f"{count} runs are"
        raise HostRefused(
            f"On {host.name} {runs} at work ({_some(there)}), so it was not removed. Drain it and "
            "wait for their end, or remove it with what runs there."
        )
    ended = _end_runs(lab, host, "was removed", by)
    with transaction.atomic():
        gone = Host.objects.filter(pk=host.pk, removed_at=None)
        if gone.update(removed_at=lab.now(), machine="", is_draining=False, silent_since=None):
            ManualSession.objects.filter(host=host.name, ended_at=None).update(ended_at=lab.now())
            _hand_over(host)
            _tell(lab, f"host {host.name} was removed", by)
    return ended


def _hand_over(gone: Host) -> None:
    """Have another host step what asks nothing of its own machine; one that works, if there is one."""
    settings = Settings.current()
    rows = Host.objects.with_silence().filter(removed_at=None).exclude(pk=gone.pk)
    states = {row.name: facts.state_of(row, settings) for row in rows}
    heard = [name for name, state in states.items() if state is not HostState.UNKNOWN]
    to = next(iter(heard or states))
    steps = (Monitor.objects.running(), Workflow.objects.filter(ended_at=None))
    for one in steps:
        one.filter(host=gone.name).update(host=to, version=F("version") + 1)
    # What it had begun to clone or to remove. Of all others it stays known whose repository it was.
    begun = (ProjectState.CLONING, ProjectState.REMOVING, ProjectState.FAILED)
    Project.objects.filter(home=gone.name, state__in=begun).update(home=to)


def claim(lab: Lab, host: Host, by: str) -> None:
    """Have this machine work under a name: of one that is silent, or that was removed.

    The runs of the other one are judged here from then on: sessions that are not here have died.
    Raises HostRefused.
    """
    state = facts.state_of(host, Settings.current())
    if state not in (HostState.UNKNOWN, HostState.REMOVED):
        raise HostRefused(f"Host {host.name} answers, so no other machine can take its place.")
    # As it was seen, so that of two machines one has it, and none one that is back meanwhile.
    same = Host.objects.filter(
        pk=host.pk,
        machine=host.machine,
        lease_number=host.lease_number,
        removed_at=host.removed_at,
    )
    with transaction.atomic():
        # A tick of the other one that stands still holds a number that is too old then.
        free = {"lease_owner": "", "lease_expires_at": None, "lease_number": F("lease_number") + 1}
        if not same.update(machine=lab.machine.identity, removed_at=None, **free):
            raise HostRefused(
                f"Host {host.name} was heard, or taken by another machine, just now. Nothing was changed."
            )
        if state is HostState.REMOVED:
            _tell(lab, f"host {host.name}, which was removed, works again", by)
        else:
            _tell(lab, f"another machine took the place of host {host.name}", by)
    if host.name == lab.host:
        lab.paths.removed.unlink(missing_ok=True)


def active_on(name: str) -> QuerySet[Run]:
    """The runs that a host has."""
    return Run.objects.active().filter(host=name).select_related("project").order_by("pk")


def _end_runs(lab: Lab, host: Host, why: str, by: str) -> int:
    ended = 0
    for run in active_on(host.name):
        kept = "; worktree and branch are kept there" if run.worktree else ""
        reason = f"given up by {by}: host {host.name} {why}{kept}"
        # A run that ended meanwhile keeps its own outcome.
        ended += outcomes.record(lab, run, Outcome.STOPPED, reason, by=by)
    if ended:
        _tell(lab, f"gave up what ran on host {host.name}: {ended}", by)
    return ended


def _some(runs: QuerySet[Run]) -> str:
    names = [f"{run.project.name} #{run.issue_key}" for run in runs[:4]]
    return ", ".join(names[:3]) + (" and more" if len(names) > 3 else "")


def _switch(lab: Lab, host: Host, is_draining: bool, text: str, by: str) -> bool:
    with transaction.atomic():
        rows = Host.objects.filter(pk=host.pk, is_draining=not is_draining)
        won = bool(rows.update(is_draining=is_draining))
        if won:
            _tell(lab, text, by)
    return won


def _tell(lab: Lab, text: str, by: str) -> None:
    announce.tell(lab, NoticeKind.HOST_CHANGED, text, by=by)
