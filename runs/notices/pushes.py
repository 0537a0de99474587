"""Web Push: the keys of this labsite, the devices of people, and what one push says."""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Sequence
from datetime import timedelta
from urllib.parse import parse_qs, urldefrag, urlencode, urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Coalesce
from django.urls import reverse

from runs.core import tokens
from runs.core.ports import Lab, SeamError, UnfitAddress
from runs.core.states import OF_HOSTS, RUN_PAGES, NoticeKind
from runs.models import Delivery, Looking, NoticeAddress, PushAct, PushKeys, Settings
from runs.notices import push_rules
from runs.notices.rules import Push
from runs.timeline import announce

SERVICE = "Web Push"
LIVES = timedelta(days=1)
LOOKS_FOR = timedelta(seconds=75)
NOBODY = "mailto:nobody@localhost.localdomain"
# Which pages show a thing; a push about it is not for who looks at one of them.
PAGES = {
    "run_id": RUN_PAGES,
    "watch_id": ("watch",),
    "group_id": ("group",),
}


def public_key(lab: Lab) -> str:
    """The key that a browser subscribes with. Made at first use, by one of several who ask."""
    return _keys(lab).public


def _keys(lab: Lab) -> PushKeys:
    row = PushKeys.objects.filter(pk=1).first()
    if row is not None and row.private:
        return row
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    made = ec.generate_private_key(ec.SECP256R1())
    point = made.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    told = {
        "private": _text(made.private_numbers().private_value.to_bytes(32, "big")),
        "public": _text(point),
        "made_at": lab.now(),
    }
    if row is None:
        return PushKeys.objects.get_or_create(pk=1, defaults=told)[0]
    # SECRET_KEY was replaced, so the old key is lost, and devices that know it take nothing any more.
    with transaction.atomic():
        if PushKeys.objects.filter(pk=1, public=row.public).update(**told):
            NoticeAddress.objects.exclude(endpoint_digest="").delete()
    return PushKeys.objects.get(pk=1)


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def is_fit(p256dh: str, auth: str) -> bool:
    """Whether these are the keys of a device: a point on the curve, and 16 bytes."""
    from cryptography.hazmat.primitives.asymmetric import ec

    try:
        raw = [base64.urlsafe_b64decode(one + "=" * (-len(one) % 4)) for one in (p256dh, auth)]
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), raw[0])
    except ValueError:
        return False
    return len(raw[1]) == 16


def joined(endpoint: str, p256dh: str, auth: str) -> str:
    """Endpoint and keys of a device as one address, which is stored encrypted."""
    return f"{urldefrag(endpoint)[0]}#{urlencode({'p256dh': p256dh, 'auth': auth})}"


def has_auth(address: NoticeAddress, auth: str) -> bool:
    """Whether a secret is the one of a device's subscription, told in constant time."""
    known = parse_qs(str(address.url).partition("#")[2]).get("auth", [""])[0]
    return bool(auth) and secrets.compare_digest(known.encode(), auth.encode())


def send(lab: Lab, row: Delivery, titles: Sequence[str] = ()) -> None:
    """Push a delivery to its device, or several in one. Raises as `Notifier.push`.

    The single-use tokens that it carries are stored as hashes first; those of an earlier try end.
    """
    address = row.address
    endpoint, _, known = str(address.url).partition("#")
    keys = {name: found[0] for name, found in parse_qs(known).items()}
    if push_rules.refusal(endpoint, settings.PUSH_HOSTS) or not {"p256dh", "auth"} <= keys.keys():
        raise UnfitAddress("this device cannot be called any more: turn it on again")
    private = str(_keys(lab).private)
    if not NoticeAddress.objects.filter(pk=address.pk).exists():
        raise UnfitAddress("the key of pushes was lost: turn this device on again")
    push = Push(
        endpoint=endpoint,
        p256dh=keys["p256dh"],
        auth=keys["auth"],
        private=private,
        subject=_subject(),
        text=push_rules.payload(_told(lab, row, bool(titles)), titles),
        topic="" if titles else _topic(private, _tag(row)),
        inside=push_rules.is_named(endpoint, settings.PUSH_HOSTS),
    )
    try:
        lab.notifier.push(push)
    except SeamError:
        PushAct.objects.filter(delivery=row, used_at=None).delete()
        raise


def _subject() -> str:
    """Whom a push service may tell of trouble: the address of this labsite, where it is known."""
    parts = urlsplit(Settings.current().public_address)
    is_public = parts.scheme == "https" and "." in (parts.hostname or "")
    return f"https://{parts.hostname}" if is_public else NOBODY


def _told(lab: Lab, row: Delivery, is_bundle: bool) -> dict[str, object]:
    receipt = tokens.new_token()
    Delivery.objects.filter(pk=row.pk).update(receipt=tokens.hash_token(receipt))
    PushAct.objects.filter(delivery=row, used_at=None).delete()
    acts = [] if is_bundle else _acts(lab, row)
    return {
        "title": lab.mask(row.title),
        "body": lab.mask(row.text.rpartition("\n")[0] or row.text),
        "tag": f"many-{row.pk}" if is_bundle else _tag(row),
        "url": reverse("runs:needs") if is_bundle else page_of(row),
        "receipt": receipt,
        "acts": acts,
        "at": int(row.created_at.timestamp() * 1000),
    }


def _acts(lab: Lab, row: Delivery) -> list[dict[str, str]]:
    if row.notice_id is None:
        return []
    made = []
    for offer in lab.effects.push_offers(lab, row.notice_id, row.address.user_id):
        token = tokens.new_token()
        PushAct.objects.create(
            digest=tokens.hash_token(token),
            user_id=row.address.user_id,
            delivery=row,
            act=offer.verb,
            words=lab.mask(offer.words)[:300],
            about=dict(offer.about),
            created_at=lab.now(),
            expires_at=lab.now() + LIVES,
        )
        place = reverse("runs:push-act", args=[token])
        made.append({"act": offer.verb, "label": offer.label, "url": place})
    return made[: push_rules.ACTS]


def _tag(row: Delivery) -> str:
    """The same for what replaces each other on a screen: all of one run, of one project."""
    notice = row.notice
    if notice is None:
        return "digest" if row.page else "test"
    for name in PAGES:
        if getattr(notice, name):
            return f"{name.removesuffix('_id')}-{getattr(notice, name)}"
    return f"{notice.kind}-{notice.project_id or 0}"


def _topic(private: str, tag: str) -> str:
    """By which a push service lets a later push replace one that was not fetched yet.

    It does not learn of what it is; and several notices in one are replaced by none of them.
    """
    return hmac.new(private.encode(), tag.encode(), "sha256").hexdigest()[:32]


def page_of(row: Delivery) -> str:
    notice = row.notice
    if notice is None:
        return row.page or reverse("runs:notices")
    if notice.run_id:
        return reverse("runs:run", args=[notice.run_id])
    if notice.watch_id:
        return reverse("runs:watch-session", args=[notice.project_id, notice.watch_id])
    if notice.group_id:
        return reverse("runs:group", args=[notice.project_id, notice.group_id])
    if notice.kind in OF_HOSTS:
        return reverse("runs:hosts")
    return reverse("runs:project", args=[notice.project_id]) if notice.project_id else "/"


def is_looking(lab: Lab, row: Delivery) -> bool:
    """Whether the person has a page of what it is about before them."""
    notice = row.notice
    if notice is None:
        return False
    topics = [
        f"{page}:{getattr(notice, name)}"
        for name, pages in PAGES.items()
        if getattr(notice, name)
        for page in pages
    ]
    rows = Looking.objects.filter(user=row.address.user_id, topic__in=topics, until__gt=lab.now())
    return bool(topics) and rows.exists()


def look(lab: Lab, user_id: int, topic: str) -> None:
    """Note that a person has this page before them; what was told of it counts as seen.

    One query for who has no address; nothing for pages that are about no one thing.
    """
    kind, _, ident = topic.partition(":")
    name = next((one for one, pages in PAGES.items() if kind in pages), "")
    if not name or not ident.isdecimal():
        return
    if not NoticeAddress.objects.filter(user=user_id).exists():
        return
    now = lab.now()
    told = {"until": now + LOOKS_FOR}
    Looking.objects.update_or_create(user_id=user_id, topic=topic, defaults=told)
    Looking.objects.filter(until__lt=now).delete()
    about = {f"notice__{name}": int(ident)}
    Delivery.objects.filter(address__user=user_id, seen_at=None, **about).update(seen_at=now)


def look_away(user_id: int, topic: str) -> None:
    """The page was closed, or is hidden now: a browser closes its socket then."""
    if topic.partition(":")[0] not in {page for pages in PAGES.values() for page in pages}:
        return
    Looking.objects.filter(user=user_id, topic=topic).delete()


def answered(lab: Lab, receipt: str, *, is_seen: bool) -> bool:
    """What a device says of a push, by its single-use id; False for one that nobody knows.

    Each of both is kept once: the first time counts.
    """
    row = Delivery.objects.filter(receipt=tokens.hash_token(receipt)).first() if receipt else None
    if row is None:
        return False
    now = lab.now()
    told = {"delivered_at": Coalesce(F("delivered_at"), now)}
    if is_seen:
        told["seen_at"] = Coalesce(F("seen_at"), now)
    _with_bundle(row).update(**told)
    return True


def acted(lab: Lab, delivery: Delivery) -> None:
    """A person did from a push what it offered."""
    now = lab.now()
    seen = {name: Coalesce(F(name), now) for name in ("delivered_at", "seen_at", "acted_at")}
    Delivery.objects.filter(pk=delivery.pk).update(**seen)


def _with_bundle(row: Delivery) -> QuerySet[Delivery]:
    return Delivery.objects.filter(pk=row.pk) | Delivery.objects.filter(bundle=row.pk)


def forget(lab: Lab, address: NoticeAddress) -> None:
    """Remove a device that takes no pushes any more, and say so."""
    with transaction.atomic():
        if NoticeAddress.objects.filter(pk=address.pk).delete()[0]:
            text = (
                f"{address.name} takes no notices any more and was removed from the devices of "
                f"{User.objects.get(pk=address.user_id).get_username()}"
            )
            announce.tell(lab, NoticeKind.DELIVERY_FAILED, text)
