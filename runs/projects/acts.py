"""Adds projects: check first, then a row, then the clone in the worker (`cloning`)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from runs.core import naming
from runs.core.database import prepared
from runs.core.ports import Lab, SeamError
from runs.core.refusal import ActRefused
from runs.core.states import Mirror, NoticeKind, ProjectState, TrackerKind
from runs.forges import rules as forge_rules
from runs.models import CheckDefaults, Forge, Project
from runs.projects import git_credentials
from runs.projects.cloning import PATIENCE, carry_out_clone
from runs.projects.sources import Source, WrongSource, name_from, read_source, resolved, split_login
from runs.timeline import announce
from trackers.builtin import store

__all__ = [
    "ProjectRefused",
    "add",
    "carry_out_clone",
    "named",
    "read_address",
    "recover",
    "retry",
]

SOURCE_CHARACTERS = 500
MOST_NAMES = 12
QUEUE_LOSS = timedelta(seconds=5)

_NO_LABEL = {"ready_label": ""}  # what is ready there, bd says itself


class ProjectRefused(ActRefused):
    """The project cannot be added as written; `field` names the one to correct."""


def named(name: str) -> Project:
    """The project that a command named. Raises ProjectRefused, which says what there is."""
    named = Q(name__iexact=name) | Q(slug__iexact=name)
    found = Project.objects.filter(named).order_by("pk").first()
    if found is not None:
        return found
    names = ", ".join(Project.objects.order_by("name").values_list("name", flat=True)[:MOST_NAMES])
    there = f"There is: {names}." if names else "There is none yet; add one in the page."
    raise ProjectRefused(f"Error: there is no project {name}. {there} Nothing was started.")


def add(
    lab: Lab,
    *,
    name: str,
    source: str,
    token: str,
    by: str,
    tracker: str = TrackerKind.BUILTIN,
    forge: Forge | None = None,
) -> Project:
    """Add a project; its clone goes on in the worker. Raises ProjectRefused, then nothing was made.

    The source is asked before anything is stored, so that a wrong URL, a refused credential or
    an empty repository is an answer at the field and not a failed project. With a `forge` its
    issues are where its repository is, and git may use the forge's credential.
    """
    name = name.strip() or name_from(source)
    slug = _free_slug(name)
    read, url, login = read_address(lab, source)
    if max(len(url), len(read.text)) > SOURCE_CHARACTERS:
        raise ProjectRefused(f"Use at most {SOURCE_CHARACTERS} characters.", field="source")
    token = token or login
    place = _place(tracker, forge, read, url)
    used = token
    try:
        used = token or git_credentials.of_forge(lab, forge, url)
        branch = lab.repos.probe(url or read.text, used)
    except SeamError as error:
        raise _explained(error, used) from error
    return _store(lab, name, slug, read, url, token, branch, place, by)


def read_address(lab: Lab, source: str) -> tuple[Source, str, str]:
    """What was typed, the URL that is its origin, and a credential out of that URL.

    The URL is empty for a folder without an origin. Raises ProjectRefused.
    """
    try:
        read = read_source(source)
    except WrongSource as error:
        raise ProjectRefused(str(error), field="source") from error
    if read.is_path:
        read = Source(str(_folder(read.text)), is_path=True)
    url, login = split_login(_origin(lab, read))
    return read, url, login


def retry(lab: Lab, project: Project, by: str) -> bool:
    """Clone a failed project again; False when its clone had not failed."""
    with transaction.atomic():
        won = Project.objects.filter(pk=project.pk, state=ProjectState.FAILED).update(
            state=ProjectState.CLONING, error="", clone_progress="", clone_deadline=None
        )
        if won:
            announce.tell(lab, NoticeKind.PROJECT_ADDED, "is cloned again", project=project, by=by)
            queue = lab.queue.on(project.home) if project.home else lab.queue
            transaction.on_commit(lambda: queue.clone(project.pk), robust=True)
    return bool(won)


def recover(lab: Lab) -> None:
    """Ask again for clones and removals whose task was lost or whose process died.

    Times too far ahead were stored before the clock was set back. A clone that goes on is not
    disturbed, whoever asks for it again.
    """
    for pk in _stored_lost_query(lab.host).rows(lab.now()):
        lab.queue.clone(pk)


def lost(now: datetime, host: str) -> QuerySet[Project, int]:
    """Clones and removals that nobody carries out any more."""
    unasked = Q(created_at__lt=now - QUEUE_LOSS) | Q(created_at__gt=now)
    has_nobody = (
        Q(unasked, clone_deadline=None)
        | Q(clone_deadline__lt=now)
        | Q(clone_deadline__gt=now + PATIENCE)
    )
    under_way = (ProjectState.CLONING, ProjectState.REMOVING)
    ours = Project.objects.filter(has_nobody, state__in=under_way, home__in=("", host))
    return ours.values_list("pk", flat=True)


_stored_lost_query = prepared(lost)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the issues are. The built-in tracker's root is made with the project."""

    tracker: str
    root: str = ""
    forge: Forge | None = None


def _place(tracker: str, forge: Forge | None, source: Source, url: str) -> _Place:
    """Raises ProjectRefused for a tracker that this source cannot have."""
    if forge is not None:
        repository = forge_rules.place_at(url, forge.web)
        if repository is None:
            text = f"The repository is not one of {forge.web}, as its address says."
            raise ProjectRefused(text, field="forge")
        return _Place(forge.kind, forge_rules.root_of(forge.pk, repository), forge)
    if tracker == TrackerKind.BEADS:
        if not (source.is_path and (Path(source.text) / ".beads").is_dir()):
            text = (
                "beads keeps its issues in a folder .beads; give the path of a repository with one."
            )
            raise ProjectRefused(text, field="tracker")
        return _Place(tracker, source.text)
    if tracker in ("", TrackerKind.BUILTIN):
        return _Place(tracker)
    raise ProjectRefused("Choose the account with which the forge is asked.", field="forge")


def _free_slug(name: str) -> str:
    """The name's part of session and folder names, if no other project has it."""
    slug = naming.sanitise(name)
    if not slug.strip("_-") or len(name) > 60:
        raise ProjectRefused(
            "Write a name with letters or digits, at most 60 characters.", field="name"
        )
    if Project.objects.filter(Q(name__iexact=name) | Q(slug__iexact=slug)).exists():
        raise ProjectRefused(
            f"There is a project called {name} already, or one that differs only in signs.",
            field="name",
        )
    return slug


def _folder(text: str) -> Path:
    """The folder that a typed path means."""
    try:
        path = Path(text).expanduser()
        is_there = path.is_dir()
    except (OSError, RuntimeError, ValueError) as error:
        why = getattr(error, "strerror", "") or error
        raise ProjectRefused(
            f"{text[:100]} cannot be read as a path: {why}", field="source"
        ) from error
    if not is_there:
        raise ProjectRefused(f"There is no folder {text} on this machine.", field="source")
    return path


def _origin(lab: Lab, source: Source) -> str:
    """The URL that is origin; empty when the product has to be origin itself (design.md 3)."""
    if not source.is_path:
        return source.text
    path = Path(source.text)
    try:
        url = lab.repos.remote_url(path)
    except SeamError as error:
        raise ProjectRefused(f"{source.text} is not a git repository.", field="source") from error
    top = next((p for p in (path, *path.parents) if (p / ".git").exists()), path)
    return resolved(url, top) if url else ""


def _explained(error: SeamError, token: str) -> ProjectRefused:
    """git's refusal, told at the field that can mend it."""
    said = str(error)
    lowered = said.lower()
    if any(
        word in lowered
        for word in ("authentication failed", "could not read username", "403", "permission denied")
    ):
        field = "token" if token else "source"
        return ProjectRefused(
            f"The repository refused the credential. git said: {said}", field=field
        )
    if "empty" in lowered:
        return ProjectRefused(
            "The repository is empty. Push a first commit, then add it again.", field="source"
        )
    return ProjectRefused(f"The repository cannot be read. git said: {said}", field="source")


def _store(
    lab: Lab,
    name: str,
    slug: str,
    source: Source,
    url: str,
    token: str,
    branch: str,
    place: _Place,
    by: str,
) -> Project:
    is_builtin = place.tracker == TrackerKind.BUILTIN
    try:
        with transaction.atomic():
            defaults = CheckDefaults.stored()
            project = Project.objects.create(
                name=name,
                slug=slug,
                source=source.text,
                url=url,
                is_hosted=not url,
                token=token,
                default_branch=branch,
                tracker=place.tracker,
                tracker_root=store.create_root(name) if is_builtin else place.root,
                forge=place.forge,
                mirror=Mirror.STATUS if place.tracker == TrackerKind.BEADS else Mirror.OFF,
                created_at=lab.now(),
                policy=defaults.policy,
                **_NO_LABEL if place.tracker == TrackerKind.BEADS else {},
            )
            if not defaults._state.adding:
                defaults.give(project)
            announce.tell(
                lab,
                NoticeKind.PROJECT_ADDED,
                "was added and is being cloned",
                project=project,
                by=by,
            )
            transaction.on_commit(lambda: lab.queue.clone(project.pk), robust=True)
    except IntegrityError as error:
        raise ProjectRefused(f"There is a project called {name} already.", field="name") from error
    return project
