"""A person's addresses for notices: added, changed, removed. The address is stored encrypted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import time
from typing import Any
from urllib.parse import urldefrag

from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from runs.core import tokens
from runs.core.ports import Lab, SeamError, UnfitAddress
from runs.core.refusal import ActRefused
from runs.core.states import NoticeKind
from runs.models import NoticeAddress, NoticeTimes, Outbox
from runs.notices import digest_rules, push_rules, pushes, rules
from runs.settings import edits
from runs.timeline import announce
from runs.timeline import queries as timeline

MOST = 20
CHOSEN = ("topics", "after_minutes", "tests_weekly")  # what a person chooses of an address


class AddressRefused(ActRefused):
    """Nothing was stored; `field` names what to correct."""


@dataclass(frozen=True, slots=True)
class Device:
    """What a browser says of itself when it takes pushes."""

    endpoint: str
    p256dh: str
    auth: str


def add(lab: Lab, user: User, name: str, url: str, topics: Iterable[str]) -> NoticeAddress:
    """Keep an address that Apprise can read. Raises AddressRefused.

    Only what happens from now on is told there.
    """
    mine = list(NoticeAddress.objects.filter(user=user))
    if len(mine) >= MOST:
        raise AddressRefused(f"You have {MOST} addresses already. Remove one first.", field="name")
    if any(one.url == url for one in mine):
        raise AddressRefused("You have this address already.", field="url")
    try:
        service = lab.notifier.check(url)
    except UnfitAddress as error:
        raise AddressRefused(f"This address cannot be used: {error}.", field="url") from error
    except SeamError as error:
        raise AddressRefused(
            f"The address could not be looked at: {error}.", field="url"
        ) from error
    with transaction.atomic():
        if not NoticeAddress.objects.exists():
            Outbox.objects.update_or_create(pk=1, defaults={"last_notice": timeline.newest()})
        made = _create(
            user=user,
            name=name,
            url=url,
            service=service[:100],
            topics=known(topics),
            created_at=lab.now(),
        )
        text = f"notices go to {name} ({made.service}) from now on"
        announce.tell(lab, NoticeKind.SETTING_CHANGED, text, by=user.get_username())
    return made


def turn_on(
    lab: Lab, user: User, name: str, device: Device, topics: Iterable[str]
) -> NoticeAddress:
    """Keep a browser that takes pushes as a device of a person. Raises AddressRefused.

    A browser belongs to one person: turned on by somebody else, it is no longer the other's.
    """
    _look_at(device)
    digest = _digest(device.endpoint)
    others = NoticeAddress.objects.filter(user=user).exclude(endpoint_digest=digest)
    if len(others) >= MOST:
        raise AddressRefused(f"You have {MOST} addresses already. Remove one first.", field="name")
    if any(one.name == name for one in others):
        raise AddressRefused(f"You have an address called {name} already.", field="name")
    with transaction.atomic():
        if not NoticeAddress.objects.exists():
            Outbox.objects.update_or_create(pk=1, defaults={"last_notice": timeline.newest()})
        NoticeAddress.objects.filter(endpoint_digest=digest).delete()
        made = _create(
            user=user,
            name=name,
            url=pushes.joined(device.endpoint, device.p256dh, device.auth),
            service=pushes.SERVICE,
            topics=known(topics),
            created_at=lab.now(),
            endpoint_digest=digest,
        )
        text = f"notices go to the device {name} from now on"
        announce.tell(lab, NoticeKind.SETTING_CHANGED, text, by=user.get_username())
    return made


def renew(lab: Lab, endpoint: str, auth: str, device: Device) -> bool:
    """Put a device's new subscription in the place of its old one, which it has to know whole.

    False when there is no such device, also where it was renewed already. Raises AddressRefused.
    """
    old = NoticeAddress.objects.filter(endpoint_digest=_digest(endpoint)).first()
    if not endpoint or old is None or not pushes.has_auth(old, auth):
        return False
    _look_at(device)
    digest = _digest(device.endpoint)
    with transaction.atomic():
        if NoticeAddress.objects.filter(endpoint_digest=digest).exclude(pk=old.pk).exists():
            return False
        url = pushes.joined(device.endpoint, device.p256dh, device.auth)
        rows = NoticeAddress.objects.filter(pk=old.pk, endpoint_digest=old.endpoint_digest)
        if not rows.update(url=url, endpoint_digest=digest):
            return False
        text = f"the device {old.name} renewed its subscription"
        announce.tell(lab, NoticeKind.SETTING_CHANGED, text, by=old.user.get_username())
    return True


def _look_at(device: Device) -> None:
    """Raises AddressRefused for what nobody may have pushed to."""
    if why := push_rules.refusal(device.endpoint, django_settings.PUSH_HOSTS):
        raise AddressRefused(
            f"This browser's push service cannot be used: {why}.", field="endpoint"
        )
    if not pushes.is_fit(device.p256dh, device.auth):
        raise AddressRefused("This browser's keys cannot be read.", field="endpoint")


def _digest(endpoint: str) -> str:
    """By what a browser is known again; a fragment is no part of where it is called."""
    return tokens.hash_token(urldefrag(endpoint)[0])


def _create(**facts: Any) -> NoticeAddress:
    """Store an address, unless another of its name came first. Raises AddressRefused."""
    try:
        with transaction.atomic():
            return NoticeAddress.objects.create(**facts)
    except IntegrityError as error:
        text = f"You have an address called {facts['name']} already."
        raise AddressRefused(text, field="name") from error


def choose(
    lab: Lab,
    address: NoticeAddress,
    topics: Iterable[str],
    by: str,
    *,
    after_minutes: int = 0,
    tests_weekly: bool = False,
    seen: str = "",
) -> None:
    """Change what is told at an address, and when. Raises ChangedMeanwhile, see `runs.settings.edits`."""
    with transaction.atomic():
        rows = NoticeAddress.objects.select_for_update().filter(pk=address.pk)
        edits.check(seen, rows.values(*CHOSEN).get())
        address.topics = known(topics)
        address.after_minutes, address.tests_weekly = after_minutes, tests_weekly
        address.save(update_fields=["topics", "after_minutes", "tests_weekly"])
        text = f"notices to {address.name}: {len(address.topics)} kinds are chosen"
        announce.tell(lab, NoticeKind.SETTING_CHANGED, text, by=by)


@dataclass(frozen=True, slots=True)
class Hours:
    """A person's quiet hours, and when they want the digest; None for none."""

    quiet_from: time | None
    quiet_to: time | None
    zone: str
    digest_at: time | None = None


def hours_of(user: User) -> Hours:
    """A person's hours as they are stored; none at first."""
    times = NoticeTimes.objects.filter(user=user).first()
    if times is None:
        return Hours(None, None, "UTC")
    return Hours(times.quiet_from, times.quiet_to, times.zone, times.digest_at)


def keep_hours(lab: Lab, user: User, hours: Hours, seen: str = "") -> None:
    """Keep the hours of a person's notices. The digest begins with the next time it is that hour.

    `seen` is the mark of the hours that a form showed. Raises ChangedMeanwhile when there are others.
    """
    told = asdict(hours)
    zone = push_rules.zone_of(hours.zone)
    if hours.digest_at is not None and zone is not None:
        before = NoticeTimes.objects.filter(user=user, digest_at=hours.digest_at, zone=hours.zone)
        if not before.exists():
            told["digested_on"] = digest_rules.passed(lab.now(), hours.digest_at, zone)
    with transaction.atomic():
        list(User.objects.select_for_update(no_key=True).filter(pk=user.pk).values_list("pk"))
        edits.check(seen, asdict(hours_of(user)))
        NoticeTimes.objects.update_or_create(user=user, defaults=told)
        begin, end = hours.quiet_from, hours.quiet_to
        quiet = f"{begin:%H:%M} to {end:%H:%M} ({hours.zone})" if begin and end else "none"
        at = hours.digest_at
        text = f"quiet hours of notices: {quiet}; digest: {f'{at:%H:%M}' if at else 'none'}"
        announce.tell(lab, NoticeKind.SETTING_CHANGED, text, by=user.get_username())


def remove(lab: Lab, address: NoticeAddress, by: str) -> None:
    """Forget an address; nothing is told there any more."""
    with transaction.atomic():
        if NoticeAddress.objects.filter(pk=address.pk).delete()[0]:
            text = f"notices no longer go to {address.name}"
            announce.tell(lab, NoticeKind.SETTING_CHANGED, text, by=by)


def known(topics: Iterable[str]) -> list[str]:
    """Those of the topics that exist, in the order of the page."""
    chosen = set(topics)
    return [topic.key for topic in rules.TOPICS if topic.key in chosen]
