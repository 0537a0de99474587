"""Verbs on people: add, change the role, let out, let in again. The last admin always stays one."""

from __future__ import annotations

from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.contrib.auth.models import Permission, User
from django.contrib.sessions.models import Session
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet

from runs.core.ports import Lab
from runs.core.refusal import ActRefused
from runs.core.states import NoticeKind
from runs.models import NoticeAddress, PushAct
from runs.people.roles import MAY_ACT, Role, role_of
from runs.settings import edits
from runs.timeline import announce

LAST_ADMIN = (
    "{name} is the only admin who can log in. Nothing was changed. "
    "Make somebody else admin first; it counts once they have chosen a password."
)


class PeopleRefused(ActRefused):
    """Nothing was changed; `field` names what to correct, empty when it is no field's fault."""


def add(lab: Lab, name: str, wanted: Role, *, by: str) -> User:
    """A new person, who cannot log in before they have chosen a password. Raises PeopleRefused."""
    # As the login page reads what is typed, or its owner could never log in.
    name = User.normalize_username(name)
    user = User(username=name)
    user.set_unusable_password()
    try:
        user.clean_fields(exclude=["password"])
    except ValidationError as wrong:
        raise PeopleRefused(" ".join(wrong.messages), field="name") from wrong
    with transaction.atomic():
        _admins()  # one at a time, so that a name cannot be taken between look and save
        if User.objects.filter(username__iexact=name).exists():
            raise PeopleRefused(f"There is somebody called {name} already.", field="name")
        user.save()
        _give(user, wanted)
        tell(lab, f"{name} was added as {wanted}", by=by)
    return user


def role(user: User) -> Role:
    """The role of a person, also of one who is deactivated."""
    may_act = acting().filter(pk=user.pk).exists()
    return role_of(is_admin=user.is_superuser, may_act=may_act)


def acting() -> QuerySet[User]:
    """Everybody with the right to act, deactivated people too."""
    # The stubs do not know that None means both.
    return User.objects.with_perm(MAY_ACT, is_active=None)  # type: ignore[arg-type]


def change_role(lab: Lab, person: int, wanted: Role, *, by: str, seen: str = "") -> bool:
    """Give a person another role; False when it is no other. Raises PeopleRefused, User.DoesNotExist.

    `seen` is the mark of the role that a form showed. Raises ChangedMeanwhile when it is another by now.

    It counts at once: pages that are open lose or get their buttons with the next push.
    """
    with transaction.atomic():
        user = _locked(person)
        was = role(user)
        edits.check(seen, {"role": was})
        if wanted == was:
            return False
        _keep_an_admin(user)
        _give(user, wanted)
        tell(lab, f"{user.username} is {wanted} now, and was {was}", by=by)
    return True


def deactivate(lab: Lab, person: int, *, by: str) -> bool:
    """Let a person out: sessions end, tokens stop working. False when they were out already.

    Raises PeopleRefused for the last admin and for oneself, and User.DoesNotExist.
    """
    with transaction.atomic():
        user = _locked(person)
        if user.username == by:
            raise PeopleRefused("You cannot deactivate yourself. Ask another admin.")
        if not user.is_active:
            return False
        _keep_an_admin(user)
        user.is_active = False
        user.save(update_fields=["is_active"])
        end_sessions(user)
        tell(lab, f"{user.username} was deactivated", by=by)
    return True


def reactivate(lab: Lab, person: int, *, by: str) -> bool:
    """Let a person in again, with the role and the password that they had."""
    with transaction.atomic():
        user = _locked(person)
        if user.is_active:
            return False
        user.is_active = True
        user.save(update_fields=["is_active"])
        tell(lab, f"{user.username} was activated again", by=by)
    return True


def forget_password(lab: Lab, person: int, *, by: str) -> User:
    """Make a person's password, sessions and earlier links useless, so that a new link counts.

    Their devices get no pushes any more: whoever has one may not be them.

    Raises PeopleRefused for the last admin and for people who are deactivated.
    """
    with transaction.atomic():
        user = _locked(person)
        if not user.is_active:
            raise PeopleRefused(f"{user.username} is deactivated. Activate them first.")
        if user.has_usable_password():
            _keep_an_admin(user)
        user.set_unusable_password()
        user.save(update_fields=["password"])
        end_sessions(user)
        NoticeAddress.objects.filter(user=user).exclude(endpoint_digest="").delete()
        tell(lab, f"a new link was made for {user.username} to choose a password", by=by)
    return user


def end_sessions(user: User, but: str = "") -> None:
    """End the login sessions of a person, all or all but one, and what their pushes offer."""
    PushAct.objects.filter(user=user, used_at=None).delete()
    for session in Session.objects.exclude(pk=but).iterator():
        if session.get_decoded().get("_auth_user_id") == str(user.pk):
            session.delete()


def forget_ended_sessions(lab: Lab) -> None:
    """Delete the sessions that are over, so that their table does not grow for ever."""
    Session.objects.filter(expire_date__lt=lab.now()).delete()


def came_in(lab: Lab, user: User, how: str) -> None:
    """Write down that somebody has logged in, and by what."""
    with transaction.atomic():
        name = user.get_username()
        announce.tell(lab, NoticeKind.PERSON_IN, f"{name} logged in with {how}", by=name)


def went_out(lab: Lab, user: User) -> None:
    """Write down that somebody has logged out."""
    with transaction.atomic():
        name = user.get_username()
        announce.tell(lab, NoticeKind.PERSON_OUT, f"{name} logged out", by=name)


def tell(lab: Lab, text: str, *, by: str) -> None:
    """Write down what was done to people; open pages look at their rights anew because of it."""
    announce.tell(lab, NoticeKind.PERSON_CHANGED, text, by=by)


def _admins() -> list[User]:
    """Every admin, locked: whoever changes one waits here for whoever changes another."""
    return list(User.objects.select_for_update().filter(is_superuser=True).order_by("pk"))


def _locked(person: int) -> User:
    _admins()
    return User.objects.select_for_update().get(pk=person)


def _keep_an_admin(user: User) -> None:
    """Raise PeopleRefused when nobody but this person could mind people any more."""
    others = User.objects.filter(is_superuser=True, is_active=True).exclude(pk=user.pk)
    can_log_in = others.exclude(password__startswith=UNUSABLE_PASSWORD_PREFIX).exists()
    if user.is_superuser and user.is_active and not can_log_in:
        raise PeopleRefused(LAST_ADMIN.format(name=user.username))


def _give(user: User, wanted: Role) -> None:
    user.is_superuser = user.is_staff = wanted == Role.ADMIN
    user.save(update_fields=["is_superuser", "is_staff"])
    # What a group or a hand gave would outlive the role.
    user.groups.clear()
    user.user_permissions.clear()
    if wanted == Role.OPERATOR:
        app, _, codename = MAY_ACT.partition(".")
        user.user_permissions.add(
            Permission.objects.get(content_type__app_label=app, codename=codename)
        )
