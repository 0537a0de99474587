"""A person's addresses for notices: added, changed, removed. The address is stored encrypted."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from runs.core.ports import Lab, SeamError, UnfitAddress
from runs.core.refusal import ActRefused
from runs.core.states import NoticeKind
from runs.models import NoticeAddress, Outbox
from runs.notices import rules
from runs.timeline import announce
from runs.timeline import queries as timeline

MOST = 20


class AddressRefused(ActRefused):
    """Nothing was stored; `field` names what to correct."""


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
        try:
            with transaction.atomic():
                made = NoticeAddress.objects.create(
                    user=user,
                    name=name,
                    url=url,
                    service=service[:100],
                    topics=known(topics),
                    created_at=lab.now(),
                )
        except IntegrityError as error:
            raise AddressRefused(
                f"You have an address called {name} already.", field="name"
            ) from error
        text = f"notices go to {name} ({made.service}) from now on"
        announce.tell(lab, NoticeKind.SETTING_CHANGED, text, by=user.get_username())
    return made


def choose(lab: Lab, address: NoticeAddress, topics: Iterable[str], by: str) -> None:
    """Change what is told at an address."""
    with transaction.atomic():
        address.topics = known(topics)
        address.save(update_fields=["topics"])
        text = f"notices to {address.name}: {len(address.topics)} kinds are chosen"
        announce.tell(lab, NoticeKind.SETTING_CHANGED, text, by=by)


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
