"""Changes what a project's validations run, and for how long."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import transaction

from runs.core.ports import Lab
from runs.core.states import NoticeKind
from runs.models import Project
from runs.settings.acts import TuningRefused
from runs.timeline import announce

FIELDS = ("checks", "check_minutes", "fix_attempts")


def store(
    lab: Lab, project: Project, *, checks: str, check_minutes: int, fix_attempts: int, by: str
) -> bool:
    """Store the commands and limits of a project; the next validation has them. False: as before.

    Raises TuningRefused, which says at each wrong field why, and then nothing is stored.
    """
    wanted = {
        "checks": "\n".join(line.strip() for line in checks.splitlines()).strip(),
        "check_minutes": check_minutes,
        "fix_attempts": fix_attempts,
    }
    with transaction.atomic():
        Project.objects.hold(project.pk)
        row = Project.objects.get(pk=project.pk)
        changed = [name for name, value in wanted.items() if getattr(row, name) != value]
        for name in changed:
            setattr(row, name, wanted[name])
        _check(row)
        if changed:
            row.save(update_fields=changed)
            announce.tell(lab, NoticeKind.SETTING_CHANGED, _words(row), project=row, by=by)
    project.refresh_from_db()
    return bool(changed)


def _check(project: Project) -> None:
    """The limits of the model's own fields, as the admin's form checks them."""
    others = {field.name for field in Project._meta.fields} - set(FIELDS)
    try:
        project.clean_fields(exclude=others)
    except ValidationError as error:
        wrong = {name: " ".join(said) for name, said in error.message_dict.items()}
        raise TuningRefused(" ".join(wrong.values()), fields=wrong) from error


def _words(project: Project) -> str:
    """Without the commands themselves, in which somebody may have written a secret."""
    count = len(project.commands)
    commands = "no command" if not count else "1 command" if count == 1 else f"{count} commands"
    return (
        f"validations run {commands}, each for {project.check_minutes} min at most, and "
        f"{project.fix_attempts} fixers may try to mend what fails"
    )
