"""Changes the tunable numbers, and puts into words what was changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal

from django.core.exceptions import ValidationError
from django.db import models, transaction

from runs.core.encrypted import SecretField
from runs.core.ports import Lab
from runs.core.refusal import ActRefused
from runs.core.states import NoticeKind
from runs.models import Settings
from runs.timeline import announce

# Texts in which somebody may have written a secret.
UNTOLD = frozenset({"setup", "setup_again", "setup_after", "setup_removal"})
NUMBERS = (
    "tick_seconds",
    "launch_seconds",
    "watch_seconds",
    "run_budget_minutes",
    "session_cap",
    "git_timeout_seconds",
    "nofile_limit",
    "refresh_seconds",
    "sweep_minutes",
    "quiet_minutes",
    "rescue_days",
    "output_days",
    "recording_mb",
    "fold_days",
    "delivery_days",
    "people_percent",
    "disk_quota_mb",
    "run_tokens_limit",
    "run_cost_limit",
    "day_tokens_limit",
    "day_cost_limit",
)


class TuningRefused(ActRefused):
    """A number cannot be used; `fields` says for each wrong one why."""


def tune(lab: Lab, numbers: Mapping[str, int | Decimal], *, by: str) -> Settings:
    """Store these numbers of the settings; the next tick works with them.

    Only what differs is written and told. Raises TuningRefused, and then nothing is stored.
    """
    unknown = {name: "There is no such number." for name in numbers if name not in NUMBERS}
    if unknown:
        raise TuningRefused(" ".join(unknown.values()), fields=unknown)
    Settings.current()
    with transaction.atomic():
        rows = Settings.objects.select_for_update(of=("self",)).select_related("agent")
        before, after = rows.get(pk=1), rows.get(pk=1)
        changed = [name for name, value in numbers.items() if getattr(before, name) != value]
        for name in changed:
            setattr(after, name, numbers[name])
        _check(after, changed)
        if changed:
            after.save(update_fields=changed)
            announce.tell(lab, NoticeKind.SETTING_CHANGED, describe(before, after, changed), by=by)
    return after


def describe(before: models.Model, after: models.Model, changed: Iterable[str]) -> str:
    """What changed, as a sentence.

    Lists, commands, environments and secrets are named without their contents, which may hold a secret.
    """
    parts = []
    for name in changed:
        field = after._meta.get_field(name)
        label = str(getattr(field, "verbose_name", name))
        if isinstance(field, models.JSONField | SecretField) or name in UNTOLD:
            parts.append(f"{label} changed")
        else:
            parts.append(f"{label} changed from {_shown(before, name)} to {_shown(after, name)}")
    return "; ".join(parts)


def _check(settings: Settings, changed: Iterable[str]) -> None:
    """The limits of the model's own fields, as the admin's form checks them."""
    kept = {field.name for field in Settings._meta.fields} - set(changed)
    try:
        settings.clean_fields(exclude=kept)
    except ValidationError as error:
        wrong = {name: " ".join(said) for name, said in error.message_dict.items()}
        raise TuningRefused(" ".join(wrong.values()), fields=wrong) from error


def _shown(obj: models.Model, name: str) -> str:
    value = getattr(obj, name)
    return "not set" if value is None or value == "" else str(value)
