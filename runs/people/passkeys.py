"""Verbs on passkeys: make one, recognise its owner, remove it. The library checks the signatures.

It is imported where it is needed, since most processes never see a passkey.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from runs.core.ports import Lab
from runs.core.refusal import ActRefused
from runs.core.states import NoticeKind
from runs.models import Passkey
from runs.people import acts, passkey_rules
from runs.people.passkey_rules import Site
from runs.timeline import announce

MOST = 20
UNKNOWN = "This passkey is not known here. Use another one, or your password."
NOT_PROVEN = "The passkey could not be checked. Nothing was changed; try again."
COPIED = (
    "This passkey was refused: it seems that there is a copy of it. Log in with your password, "
    "remove the passkey from your account and make a new one."
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a browser is asked, as JSON, and what has to be remembered until it answers."""

    options: str
    challenge: bytes
    handle: str = ""


class PasskeyRefused(ActRefused):
    """Nothing was changed and nobody was recognised; the text says what to do."""


def invitation(user: User, site: Site) -> Asked:
    """What a browser needs to make a passkey here."""
    import webauthn
    from webauthn.helpers import structs

    mine = list(Passkey.objects.filter(user=user))
    handle = mine[0].handle if mine else secrets.token_urlsafe(32)
    wanted = structs.AuthenticatorSelectionCriteria(
        resident_key=structs.ResidentKeyRequirement.REQUIRED,
        user_verification=structs.UserVerificationRequirement.REQUIRED,
    )
    options = webauthn.generate_registration_options(
        rp_id=site.name,
        rp_name="labsite",
        user_name=user.username,
        user_id=_bytes(handle),
        authenticator_selection=wanted,
        exclude_credentials=_descriptors(one for one in mine if one.site == site.name),
    )
    return Asked(webauthn.options_to_json(options), options.challenge, handle)


def add(lab: Lab, user: User, site: Site, asked: Asked, name: str, answer: str) -> Passkey:
    """Store the passkey that a browser has made when it was asked. Raises PasskeyRefused."""
    import webauthn

    name = name.strip()
    if not name or len(name) > 100:
        raise PasskeyRefused("Give it a name of at most 100 characters.")
    if Passkey.objects.filter(user=user).count() >= MOST:
        raise PasskeyRefused(f"You have {MOST} passkeys. Remove one first.")
    given = _read(answer)
    try:
        proven = webauthn.verify_registration_response(
            credential=given,
            expected_challenge=asked.challenge,
            expected_rp_id=site.name,
            expected_origin=site.origin,
            require_user_verification=True,
        )
    except Exception as wrong:  # what a stranger sends breaks parsers in many ways
        raise PasskeyRefused(NOT_PROVEN) from wrong
    try:
        with transaction.atomic():
            made = Passkey.objects.create(
                user=user,
                name=name,
                site=site.name,
                credential_id=_text(proven.credential_id),
                public_key=proven.credential_public_key,
                handle=asked.handle,
                sign_count=proven.sign_count,
                transports=_transports(given),
                created_at=lab.now(),
            )
            acts.tell(lab, f"passkey {name} added", by=user.username)
    except IntegrityError as taken:
        raise PasskeyRefused("This passkey is registered already. Nothing was changed.") from taken
    return made


def question(site: Site, user: User | None = None) -> Asked:
    """What a browser needs to show a passkey.

    Without a user the device offers whichever of its passkeys belong here.
    """
    import webauthn
    from webauthn.helpers import structs

    mine = Passkey.objects.filter(user=user, site=site.name) if user is not None else []
    options = webauthn.generate_authentication_options(
        rp_id=site.name,
        allow_credentials=_descriptors(mine),
        user_verification=structs.UserVerificationRequirement.REQUIRED,
    )
    return Asked(webauthn.options_to_json(options), options.challenge)


def owner(lab: Lab, site: Site, asked: Asked, answer: str, user: User | None = None) -> User:
    """The person whose passkey has signed the challenge; with `user` it has to be theirs.

    Raises PasskeyRefused, also for a passkey that seems to be copied; that is told besides.
    """
    given = _read(answer)
    rows = Passkey.objects.select_related("user").filter(site=site.name, user__is_active=True)
    passkey = rows.filter(credential_id=str(given.get("id"))).first()
    if passkey is None or (user is not None and passkey.user != user):
        raise PasskeyRefused(UNKNOWN)
    handle = _handle_in(given)
    if handle != passkey.handle and (handle or user is None):
        raise PasskeyRefused(UNKNOWN)
    shown = _sign_count(passkey, site, asked.challenge, given)
    if passkey_rules.is_copy(passkey.sign_count, shown):
        _tell_copy(lab, passkey)
        raise PasskeyRefused(COPIED)
    ours = Passkey.objects.filter(pk=passkey.pk, sign_count=passkey.sign_count)
    if not ours.update(sign_count=shown, used_at=lab.now()):
        raise PasskeyRefused(NOT_PROVEN)
    return passkey.user


def remove(lab: Lab, user: User, passkey: int) -> bool:
    """Forget a passkey of a person; False when it is gone already or is not theirs."""
    with transaction.atomic():
        found = Passkey.objects.filter(pk=passkey, user=user).first()
        if found is None or not found.delete()[0]:
            return False
        acts.tell(lab, f"passkey {found.name} removed", by=user.username)
    return True


def are_known(site: Site, user: User | None = None) -> bool:
    """Whether anybody, or this person, has a passkey that works at this site."""
    known = Passkey.objects.filter(site=site.name)
    if user is not None:
        known = known.filter(user=user)
    return not site.why_not and known.exists()


def _sign_count(passkey: Passkey, site: Site, challenge: bytes, given: dict[str, Any]) -> int:
    """How often the device says that the passkey was used, once the signature is right.

    The library is told that it was never used: it would refuse a copy before it has looked at
    the signature, and then anybody could have it told that there is one.
    """
    import webauthn

    try:
        proven = webauthn.verify_authentication_response(
            credential=given,
            expected_challenge=challenge,
            expected_rp_id=site.name,
            expected_origin=site.origin,
            credential_public_key=bytes(passkey.public_key),
            credential_current_sign_count=0,
            require_user_verification=True,
        )
    except Exception as wrong:  # what a stranger sends breaks parsers in many ways
        raise PasskeyRefused(NOT_PROVEN) from wrong
    return proven.new_sign_count


def _tell_copy(lab: Lab, passkey: Passkey) -> None:
    text = f"passkey {passkey.name} of {passkey.user.username} was refused: it seems to be a copy"
    with transaction.atomic():
        announce.tell(lab, NoticeKind.PASSKEY_REFUSED, text)


def _read(answer: str) -> dict[str, Any]:
    try:
        given = json.loads(answer)
    except (ValueError, RecursionError) as wrong:
        raise PasskeyRefused(NOT_PROVEN) from wrong
    if not isinstance(given, dict) or not isinstance(given.get("response"), dict):
        raise PasskeyRefused(NOT_PROVEN)
    return given


def _handle_in(given: dict[str, Any]) -> str:
    handle = given["response"].get("userHandle")
    return handle.rstrip("=") if isinstance(handle, str) else ""


def _descriptors(passkeys: Iterable[Passkey]) -> list[Any]:
    from webauthn.helpers import structs

    known = {one.value for one in structs.AuthenticatorTransport}
    return [
        structs.PublicKeyCredentialDescriptor(
            id=_bytes(one.credential_id),
            transports=[structs.AuthenticatorTransport(t) for t in one.transports if t in known],
        )
        for one in passkeys
    ]


def _transports(given: dict[str, Any]) -> list[str]:
    """Hints of the browser, kept as far as they look like some."""
    told = given["response"].get("transports")
    return (
        [one for one in told if isinstance(one, str) and len(one) < 20][:8]
        if isinstance(told, list)
        else []
    )


def _bytes(text: str) -> bytes:
    from webauthn.helpers import base64url_to_bytes

    return base64url_to_bytes(text)


def _text(data: bytes) -> str:
    from webauthn.helpers import bytes_to_base64url

    return bytes_to_base64url(data)
