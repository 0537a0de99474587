"""Where a project's issues are, and what its labels are called: chosen, and changed later."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from django.db import transaction

from runs.core import writing
from runs.core.ports import Lab
from runs.core.refusal import ActRefused
from runs.core.states import Mirror, NoticeKind, TrackerKind
from runs.forges import cadence, rules
from runs.forges.rules import NoRepository
from runs.models import Forge, Project, Run
from runs.projects import start_waits
from runs.settings import edits
from runs.timeline import announce
from trackers.builtin import store

LABEL_CHARACTERS = 50
ACTIVE = "Runs are active. Stop them or let them end first, then change the tracker."
KEPT = (
    "The issues and pull requests that labsite keeps itself stay where they are, hidden, until "
    "this project comes back to them."
)
CLAIMS = (
    "Parked branches keep their issue numbers: an issue of the same number counts as claimed "
    "until they are discarded."
)


class SwitchRefused(ActRefused):
    """Nothing was changed; `field` names what to correct."""


class RunsActive(SwitchRefused):
    """The tracker stays as it is while runs are judged by it."""

    code = "runs_active"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A project's tracker as somebody wants it. Without `repository` the clone address tells it."""

    tracker: str
    forge: Forge | None = None
    repository: str = ""
    ready_label: str = ""
    working_label: str = ""
    mirror: str = Mirror.OFF


def stored(project: Project) -> dict[str, str]:
    """The choice in force, as the form has it."""
    is_forge = project.forge_id is not None
    return {
        "tracker": f"forge-{project.forge_id}" if is_forge else project.tracker,
        "repository": repository_of(project),
        "ready_label": project.ready_label,
        "working_label": project.working_label,
        "mirror": project.mirror,
    }


def choose(lab: Lab, project: Project, wanted: Wanted, *, by: str, seen: str = "") -> bool:
    """Make these the project's tracker, labels and mirror; False when they were so already.

    What labsite keeps itself stays, hidden, while the project is elsewhere. Raises SwitchRefused:
    with active runs the tracker stays, since they are judged by what it says. `seen` is the mark of
    what a form showed; raises ChangedMeanwhile when there is something else by now.
    """
    plain = {
        "ready_label": _label(
            "ready_label", wanted.ready_label, is_needed=wanted.tracker != TrackerKind.BEADS
        ),
        "working_label": _label("working_label", wanted.working_label, is_needed=False),
        "mirror": _mirror(wanted.mirror),
    }
    root = _root(project, wanted)
    with transaction.atomic():
        Project.objects.hold(project.pk)
        now = Project.objects.select_related("forge").get(pk=project.pk)
        edits.check(seen, stored(now))
        is_moved = _is_moved(now, wanted, root)
        if is_moved and Run.objects.active().filter(project=project).exists():
            raise RunsActive(ACTIVE, field="tracker")
        same = {name: getattr(now, name) for name in plain} == plain
        if same and not is_moved and now.forge_id == _pk(wanted.forge):
            return False
        moved = (
            _moved(now, wanted, root) if is_moved else {"tracker_root": root or now.tracker_root}
        )
        Project.objects.filter(pk=project.pk).update(forge=wanted.forge, **plain, **moved)
        if is_moved:  # the same key means another issue there
            start_waits.forget(project.pk)
        text = _told(wanted, root, is_moved=is_moved)
        announce.tell(lab, NoticeKind.SETTING_CHANGED, text, project=project, by=by)
        cadence.wake(lab, project.pk)
        transaction.on_commit(lambda: lab.queue.refresh(project.pk), robust=True)
        transaction.on_commit(lambda: lab.bell.look(project.slug), robust=True)
    return True


def has_beads(project: Project) -> bool:
    """Whether the project's own folder holds a beads database."""
    return Path(project.source).is_absolute() and (Path(project.source) / ".beads").is_dir()


def repository_of(project: Project) -> str:
    """Owner and name on its forge; empty for other trackers."""
    return project.tracker_root.partition("/")[2] if project.forge_id is not None else ""


def _root(project: Project, wanted: Wanted) -> str:
    """How the tracker names the project; empty for the built-in one, which makes its own."""
    if wanted.tracker == TrackerKind.BUILTIN:
        return ""
    if wanted.tracker == TrackerKind.BEADS:
        if not has_beads(project):
            raise SwitchRefused("The project's folder holds no .beads.", field="tracker")
        return project.source
    if wanted.forge is None or wanted.forge.kind != wanted.tracker:
        raise SwitchRefused("Choose the account with which the forge is asked.", field="tracker")
    named = wanted.repository.strip().strip("/")
    try:
        url = f"{wanted.forge.web}/{named}" if named else project.url
        place = rules.place_of(url, wanted.forge.web)
    except NoRepository as error:
        raise SwitchRefused(str(error), field="repository") from error
    if place.web != wanted.forge.web:
        text = f"The clone address is not on {wanted.forge.web}. Write the repository: owner/name."
        raise SwitchRefused(text, field="repository")
    return rules.root_of(wanted.forge.pk, place)


def _is_moved(now: Project, wanted: Wanted, root: str) -> bool:
    """Whether issues are looked for elsewhere; another account for the same place is no move."""
    if now.tracker != wanted.tracker:
        return True
    if wanted.tracker == TrackerKind.BUILTIN:
        return False
    if now.forge is None or wanted.forge is None:
        return now.tracker_root != root
    before = (now.forge.web, repository_of(now))
    return before != (wanted.forge.web, root.partition("/")[2])


def _moved(now: Project, wanted: Wanted, root: str) -> dict[str, object]:
    """The columns of a move. What was seen of the old tracker says nothing of the new one."""
    if now.tracker == TrackerKind.BUILTIN:
        kept: dict[str, object] = {"builtin_root": now.tracker_root}
    else:
        kept = {}
    if wanted.tracker == TrackerKind.BUILTIN:
        root = now.builtin_root or store.create_root(now.name)
    forgotten: dict[str, object] = dict.fromkeys(
        (
            *("queue_count", "queue_seen_at", "queue_asked_at", "asked_every", "pulls_seen_at"),
            *("pulls_asked_at", "claimable", "blocked"),
            *("hooked_at", "issues_hooked_at", "pulls_hooked_at"),
        ),
        None,
    )
    forgotten |= {
        "queue_seen": [],
        "held_seen": {},
        "pulls_seen": [],
        "pulls_closed": [],
        "asked_why": "",
        "warning": "",
        "silent_since": None,
    }
    return {"tracker": wanted.tracker, "tracker_root": root, **kept, **forgotten}


def _told(wanted: Wanted, root: str, *, is_moved: bool) -> str:
    if not is_moved:
        return "the settings of its tracker were changed"
    if wanted.tracker == TrackerKind.BUILTIN:
        return "its issues are kept by labsite itself from now on"
    if wanted.forge is None:
        return "its issues are those of beads in its folder from now on"
    repository = root.partition("/")[2]
    return f"its issues are those of {repository} on {wanted.forge.web} from now on"


def _label(field: str, text: str, *, is_needed: bool = True) -> str:
    label = " ".join(writing.clean(text).split())
    if not label and is_needed:
        raise SwitchRefused("Write the label that marks ready issues.", field=field)
    if len(label) > LABEL_CHARACTERS or "," in label:
        limit = (
            f"Use at most {LABEL_CHARACTERS} characters and no comma: forges list labels by commas."
        )
        raise SwitchRefused(limit, field=field)
    return label


def _mirror(text: str) -> str:
    try:
        return Mirror(text or Mirror.OFF)
    except ValueError as error:
        raise SwitchRefused("Choose what labsite writes on the tracker.", field="mirror") from error


def _pk(forge: Forge | None) -> int | None:
    return forge.pk if forge is not None else None
