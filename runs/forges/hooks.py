"""Webhooks in: a signed delivery wakes a look at its project. Nothing else in it is believed.

What is refused tells nothing of which projects there are: an unknown one costs the same work and
gets the same answer as a wrong signature.
"""

from __future__ import annotations

import functools
import secrets

from django.db import IntegrityError, transaction
from django.db.models import F

from runs.core.encrypted import decrypted, encrypted
from runs.core.ports import Lab
from runs.core.refusal import ActRefused
from runs.core.states import NoticeKind, ProjectState
from runs.forges import hook_rules
from runs.forges.hook_rules import HookDid, Sent
from runs.models import HookDelivery, Project
from runs.timeline import announce
from trackers.base import Ability, Refused, TrackerError

UNKNOWN = "There is no such project, or the signature is not the one of its secret."
NOT_CLONED = "The project has not been cloned yet."
NO_FORGE = "The project has no forge that webhooks could come from."
WRONG_TYPE = "Send JSON, or a form with the JSON in its field payload."
NO_NAME = "Send the name of the event and the id of the delivery in the headers of your forge."


class HookRefused(ActRefused):
    """The delivery did nothing; the text says why."""


class NotSigned(HookRefused):
    """Nobody who knows the secret of such a project sent this."""


class NotReady(HookRefused):
    """The project cannot be woken by a webhook."""


class NotRead(HookRefused):
    """It is signed, and still no delivery as forges send them."""


def receive(lab: Lab, key: str, sent: Sent, body: bytes) -> HookDid | None:
    """Take a delivery to the project `key`: what it did, None when it was seen before.

    Raises HookRefused. The content is never read; a look at the project asks the forge itself.
    """
    project = _signed_by(key, sent, body)
    _check(lab, project, sent)
    did = hook_rules.what_to_do(sent.event)
    now = lab.now()
    with transaction.atomic():
        HookDelivery.objects.filter(
            project=project, received_at__lt=now - hook_rules.REMEMBERED
        ).delete()
        try:
            with transaction.atomic():
                HookDelivery.objects.create(
                    project=project,
                    delivery=sent.delivery,
                    digest=hook_rules.digest(body),
                    event=sent.event,
                    did=did,
                    received_at=now,
                )
        except IntegrityError:
            _seen_again(lab, project, sent, body)
            return None
        told = {"issues_hooked_at": now} if hook_rules.tells_of_issues(sent.event) else {}
        told |= {"pulls_hooked_at": now} if hook_rules.tells_of_pulls(sent.event) else {}
        Project.objects.filter(pk=project.pk).update(hooked_at=now, **told)
        if did is HookDid.WOKE:
            for effect in lab.effects.project_changed:
                effect(lab, project.pk)
            transaction.on_commit(lambda: lab.bell.look(project.slug), robust=True)
    return did


def make_secret(lab: Lab, project: Project, *, by: str) -> str:
    """A new secret for a project's webhook, which nothing can show again. The old one ends.

    Until the forge has the new one nothing comes, so the webhook is not relied on till then.
    """
    secret = secrets.token_urlsafe(32)
    with transaction.atomic():
        before = Project.objects.only("hook_secret").get(pk=project.pk).hook_secret
        Project.objects.filter(pk=project.pk).update(
            hook_secret=secret,
            hook_since=lab.now(),
            hooked_at=None,
            issues_hooked_at=None,
            pulls_hooked_at=None,
        )
        text = "its webhook got a new secret" if before else "its webhook got a secret"
        announce.tell(lab, NoticeKind.SETTING_CHANGED, text, project=project, by=by)
    return secret


def set_up(lab: Lab, project: Project, address: str, *, by: str) -> None:
    """Have the forge deliver to this address, with a new secret that nobody sees.

    Raises TrackerError when the forge does not do it; then the project has the secret that it had,
    and the webhook is not relied on until something is delivered: the forge may have none any more.
    """
    tracker = lab.tracker_for(project.tracker)
    if tracker is None or Ability.HOOKS not in tracker.abilities:
        raise Refused(NO_FORGE)
    before = Project.objects.only("hook_secret").get(pk=project.pk)
    secret = make_secret(lab, project, by=by)
    try:
        tracker.set_hook(project.tracker_root, address, secret)
    except TrackerError:
        before.save(update_fields=["hook_secret"])
        raise
    with transaction.atomic():
        text = "its webhook was set up on the forge"
        announce.tell(lab, NoticeKind.SETTING_CHANGED, text, project=project, by=by)


def _signed_by(key: str, sent: Sent, body: bytes) -> Project:
    """The project whose secret signed this. Raises NotSigned, after the same work in every case."""
    rows = Project.objects.only("slug", "state", "tracker", "hook_secret")
    project = rows.filter(slug=key).first()
    secret = str(project.hook_secret) if project is not None else ""
    is_signed = hook_rules.is_signed(secret or _decoy(), body, sent.signatures)
    if project is None or not secret or not is_signed:
        raise NotSigned(UNKNOWN)
    return project


def _decoy() -> str:
    """A secret that nobody knows, decrypted as a real one is."""
    return decrypted(_hidden()) or ""


@functools.cache
def _hidden() -> str:
    return encrypted(secrets.token_urlsafe(32))


def _check(lab: Lab, project: Project, sent: Sent) -> None:
    tracker = lab.tracker_for(project.tracker)
    if tracker is None or Ability.HOOKS not in tracker.abilities:
        raise NotReady(NO_FORGE)
    if project.state != ProjectState.READY:
        raise NotReady(NOT_CLONED)
    if sent.content_type not in hook_rules.CONTENT_TYPES:
        raise NotRead(WRONG_TYPE)
    if not sent.event or not sent.delivery:
        raise NotRead(NO_NAME)


def _seen_again(lab: Lab, project: Project, sent: Sent, body: bytes) -> None:
    """Count a delivery that came again; the id is not signed, so the body tells it too."""
    rows = HookDelivery.objects.filter(project=project)
    known = rows.filter(digest=hook_rules.digest(body)) | rows.filter(delivery=sent.delivery)
    known.update(repeats=F("repeats") + 1, repeated_at=lab.now())
