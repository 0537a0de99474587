"""Verbs on the accounts with which labsite asks forges; a credential goes in and never comes out."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.db.models import ProtectedError

from runs.core.encrypted import SecretValues
from runs.core.ports import Lab, SeamError
from runs.core.refusal import ActRefused
from runs.core.states import ForgeKind, NoticeKind
from runs.forges import rules
from runs.forges.rules import NoRepository, Place
from runs.models import Forge, Project
from runs.projects import git_credentials
from runs.projects.sources import split_login
from runs.settings import edits
from runs.timeline import announce
from trackers.account import Account
from trackers.base import Ability, Finding, Refused

logger = logging.getLogger(__name__)

APP = ("app_id", "app_installation", "app_key")
KNOWN = ("token", *APP)
LONGEST = 20_000
ISSUE = "1"  # what the name of a branch is tried with
_PUSHING: Mapping[str, str] = {
    ForgeKind.GITEA: " To push, a token takes “write:repository”.",
    ForgeKind.GITHUB: " To push, a token takes “Contents: read and write”.",
}


class ForgeRefused(ActRefused):
    """Nothing was stored; `field` names what to correct."""


@dataclass(frozen=True, slots=True)
class Recognised:
    """The forge behind a clone address; `forges` are the accounts there that are set up."""

    kind: ForgeKind
    place: Place
    api: str
    forges: Sequence[Forge] = ()


def recognise(lab: Lab, url: str, *, may_ask: bool = True) -> Recognised:
    """What forge a clone address belongs to, by its host or by asking it.

    Accounts that are set up are believed first; with them and without `may_ask` nobody is asked.
    Raises ForgeRefused.
    """
    url = split_login(url)[0]
    ours = [forge for forge in Forge.objects.all() if rules.place_at(url, forge.web) is not None]
    if ours:
        place = rules.place_of(url, ours[0].web)
        return Recognised(ForgeKind(ours[0].kind), place, ours[0].api, ours)
    try:
        place = rules.place_of(url)
    except NoRepository as error:
        raise ForgeRefused(str(error), field="source") from error
    kind = rules.kind_of(place)
    try:
        kind = kind or (lab.forges.recognise(place.web) if may_ask else None)
    except SeamError as error:
        raise ForgeRefused(f"{place.host} could not be asked: {error}", field="source") from error
    if kind is None:
        text = f"{place.host} is neither GitHub nor Gitea or Forgejo, as far as it says itself."
        raise ForgeRefused(text, field="source")
    return Recognised(kind, place, rules.api_of(kind, place.web))


def add(
    lab: Lab,
    *,
    name: str,
    kind: str,
    web: str,
    api: str = "",
    credential: Mapping[str, str],
    by: str,
) -> Forge:
    """Keep an account; its API is where such forges have it, unless `api` says otherwise.

    Raises ForgeRefused.
    """
    chosen = _kind(kind)
    web = _address("web", web)
    forge = Forge(
        name=_name(name),
        kind=chosen,
        web=web,
        api=_address("api", api) if api.strip() else rules.api_of(chosen, web),
        credential=_credential(chosen, credential),
        created_at=lab.now(),
    )
    _save(lab, forge, f"an account on {forge.web} was added: {forge.name}", by)
    return forge


def said(forge: Forge) -> dict[str, str]:
    """What a form on an account shows."""
    return {"name": forge.name, "web": forge.web, "api": forge.api}


@transaction.atomic
def edit(
    lab: Lab,
    forge: Forge,
    *,
    name: str,
    web: str,
    api: str = "",
    credential: Mapping[str, str] | None = None,
    by: str,
    seen: str = "",
) -> Forge:
    """Change an account; without `credential` it keeps the one it has. Raises ForgeRefused.

    A credential never goes to another host than the one that it was written for. `seen` is the mark
    of what a form showed; raises ChangedMeanwhile when there is something else by now.
    """
    forge = Forge.objects.select_for_update().get(pk=forge.pk)
    edits.check(seen, said(forge))
    kind = _kind(forge.kind)
    before = forge.account.host
    forge.name, forge.web = _name(name), _address("web", web)
    forge.api = _address("api", api) if api.strip() else rules.api_of(kind, forge.web)
    what = ""
    if credential is not None and any(value.strip() for value in credential.values()):
        forge.credential, what = _credential(kind, credential), "; it has a new credential"
    elif forge.account.host != before:
        # Else whoever may edit could have a token that they never knew sent to a host of theirs.
        raise ForgeRefused(f"Write the token for {forge.account.host} too.", field="token")
    _save(lab, forge, f"the account {forge.name} on {forge.web} was changed{what}", by)
    return forge


def remove(lab: Lab, forge: Forge, *, by: str) -> None:
    """Forget an account that no project uses. Raises ForgeRefused."""
    try:
        with transaction.atomic():
            forge.delete()
            text = f"the account {forge.name} on {forge.web} was removed"
            announce.tell(lab, NoticeKind.SETTING_CHANGED, text, by=by)
            transaction.on_commit(lambda: lab.forges.forget(), robust=True)
    except ProtectedError as error:
        names = ", ".join(sorted(str(project) for project in error.protected_objects))
        raise ForgeRefused(
            f"It is used by {names}, so it was not removed.", code="in_use"
        ) from error


def try_out(
    lab: Lab, *, kind: str, api: str, credential: Mapping[str, str], repository: str, label: str
) -> Sequence[Finding]:
    """The connection test for an account that is not kept yet. Raises ForgeRefused."""
    chosen = _kind(kind)
    told = _credential(chosen, credential)
    account = Account(_address("api", api), **{part: told.get(part, "") for part in KNOWN})
    return lab.forges.try_out(chosen, account, repository, label)


def examine(lab: Lab, project: Project) -> Sequence[Finding]:
    """The connection test of a project's tracker, in words; what it found is kept. Never raises."""
    tracker = lab.tracker_for(project.tracker) if project.tracker else None
    if tracker is None:
        return [Finding("tracker", False, "labsite has no way to ask this project's tracker.")]
    try:
        found = list(tracker.examine(project.tracker_root, project.ready_label))
        if project.token:  # git pushes with another one than the account's, which was tried
            found = [one for one in found if one.name != "workflow files"]
        if not any(one.ok is False for one in found if one.name in ("account", "repository")):
            found += tracker.examine_branch(project.tracker_root, project.branch_prefix, ISSUE)
    except Exception as error:
        logger.exception("tracker was not examined", extra={"project": project.slug})
        text = f"labsite made a mistake ({type(error).__name__}); it is in the log."
        found = [Finding("tracker", None, text)]
    found.append(_git(lab, project))
    if project.forge_id is not None:
        wrong = " ".join(one.text for one in found if one.ok is False)
        Forge.objects.filter(pk=project.forge_id).update(examined_at=lab.now(), trouble=wrong)
    return found


def _git(lab: Lab, project: Project) -> Finding:
    """Whether git may push with the credential that agents get; nothing is pushed."""
    takes = _PUSHING.get(project.tracker, "")
    try:
        lab.repos.try_push(project.url, git_credentials.of_git(lab, project))
    except SeamError as error:
        said = str(error).rstrip(".")
        if rules.may_not_push(said):
            return Finding("git", False, f"git may not push to {project.url}: {said}.{takes}")
        return Finding("git", None, f"Whether git may push could not be told: {said}.")
    return Finding("git", True, f"git may push to {project.url}.")


def create_ready_label(lab: Lab, project: Project, *, by: str) -> None:
    """Make the label that marks ready issues; no error when it is there. Raises TrackerError."""
    tracker = lab.tracker_for(project.tracker) if project.tracker else None
    if tracker is None or Ability.CREATE_LABEL not in tracker.abilities:
        raise Refused("labsite cannot make labels on this project's tracker.")
    tracker.create_label(project.tracker_root, project.ready_label)
    with transaction.atomic():
        text = f"the label {project.ready_label} was made on the tracker"
        announce.tell(lab, NoticeKind.SETTING_CHANGED, text, project=project, by=by)


def _save(lab: Lab, forge: Forge, text: str, by: str) -> None:
    try:
        with transaction.atomic():
            forge.save()
            announce.tell(lab, NoticeKind.SETTING_CHANGED, text, by=by)
            transaction.on_commit(lambda: lab.forges.forget(), robust=True)
    except IntegrityError as error:
        text = f"There is an account called {forge.name} already."
        raise ForgeRefused(text, field="name") from error


def _kind(kind: str) -> ForgeKind:
    try:
        return ForgeKind(kind)
    except ValueError as error:
        raise ForgeRefused("Choose GitHub, or Gitea or Forgejo.", field="kind") from error


def _name(name: str) -> str:
    name = " ".join(name.split())
    if not name or len(name) > 60:
        raise ForgeRefused("Write a name of at most 60 characters.", field="name")
    return name


def _address(field: str, text: str) -> str:
    try:
        return rules.read_address(text)
    except NoRepository as error:
        raise ForgeRefused(str(error), field=field) from error


def _credential(kind: ForgeKind, told: Mapping[str, str]) -> dict[str, str]:
    """A token, or all three parts of a GitHub App. Raises ForgeRefused without repeating any."""
    found = SecretValues({part: value for part in KNOWN if (value := told.get(part, "").strip())})
    if any(len(value) > LONGEST for value in found.values()):
        raise ForgeRefused("That is too long to be a credential.", field="token")
    token = found.get("token", "")
    if not token.isascii() or any(letter.isspace() for letter in token):
        raise ForgeRefused(
            "A token is one word. Copy it without anything around it.", field="token"
        )
    app = [part for part in APP if part in found]
    if not app:
        if not token:
            raise ForgeRefused(
                "Write the access token that labsite is to use there.", field="token"
            )
        return found
    if kind is not ForgeKind.GITHUB or token:
        raise ForgeRefused(
            "Use either a token or a GitHub App, which only GitHub has.", field="token"
        )
    missing = [part for part in APP if part not in found]
    if missing:
        raise ForgeRefused(
            "A GitHub App needs its id, its installation and its key.", field=missing[0]
        )
    if "PRIVATE KEY" not in found["app_key"]:
        raise ForgeRefused(
            "Paste the private key as GitHub gave it: a text in PEM.", field="app_key"
        )
    return found
