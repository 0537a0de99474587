"""Forms that say who changed a thing meanwhile, show both values of each field, and let one choose."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.db.models import QuerySet
from django.http import QueryDict

from runs.core.refusal import ActRefused
from runs.core.states import NoticeKind
from runs.models import Notice
from runs.settings import edits
from runs.web.refusals import at_fields

TAKE, THEIRS = "take-", "theirs"
LOOKED_AT = 50


@dataclass(frozen=True, slots=True)
class Both:
    """One field that two people changed: what stands in the form, and what is stored by now."""

    name: str
    label: str
    mine: str
    theirs: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """Who changed the thing last, when, and what of it."""

    by: str
    at: datetime | None
    fields: Sequence[Both]


class SeenField(forms.CharField):
    """The mark of what a form showed; itself no setting that could be changed."""

    def has_changed(self, initial: Any, data: Any) -> bool:
        return False


def seen_field() -> forms.CharField:
    """The mark of what a form showed."""
    return SeenField(required=False, max_length=edits.MOST, widget=forms.HiddenInput)


class EditForm(forms.Form):
    """A form on something stored; it says what somebody else changed of that while it was open."""

    seen = seen_field()
    conflict: Conflict | None = None
    by_column: ClassVar[
        Mapping[str, str]
    ] = {}  # fields that are called otherwise than what they store

    def meet(
        self, meanwhile: edits.ChangedMeanwhile, now: forms.BaseForm, told: QuerySet[Notice]
    ) -> None:
        """Show both values of what was changed; `now` is the same form with what is stored. One query."""
        names = [self.by_column.get(name, name) for name in meanwhile.names]
        self.conflict = conflict(self, now, names, told)
        marked(self, now.initial["seen"])


def chosen(sent: QueryDict, now: forms.BaseForm) -> QueryDict:
    """What was sent, with the stored value of `now` wherever somebody chose to take it."""
    names = [name for name in now.fields if sent.get(f"{TAKE}{name}") == THEIRS]
    if not names:
        return sent
    data = sent.copy()
    for name in names:
        value = now[name].value()
        if isinstance(now.fields[name].widget, forms.CheckboxInput):
            data.setlist(name, ["on"] if value else [])
        elif isinstance(value, list | tuple):
            data.setlist(name, [str(one) for one in value])
        else:
            data[name] = "" if value is None else str(value)
    return data


def conflict(
    form: forms.BaseForm, now: forms.BaseForm, names: Collection[str], told: QuerySet[Notice]
) -> Conflict:
    """What `form` shows above its fields, where `now` is the same form with what is stored. One query.

    `told`: what was told of the thing; the newest that names one of the fields says who it was.
    """
    both = [
        Both(name, str(now[name].label), _words(form, name), _words(now, name))
        for name in now.fields
        if name in names
    ]
    return told_of(both, told)


def told_of(both: Sequence[Both], told: QuerySet[Notice]) -> Conflict:
    """The fields that differ, with who changed them last as the timeline says. One query."""
    last = list(told.order_by("-pk")[:LOOKED_AT])
    labels = [one.label.lower() for one in both]
    naming = (one for one in last if any(label in one.text.lower() for label in labels))
    found = next(naming, last[0] if last else None)
    differing = [one for one in both if one.mine != one.theirs]
    if found is None:
        return Conflict("", None, differing)
    return Conflict(found.by, found.at, differing)


def marked(form: Any, mark: str) -> None:
    """Let the form carry the mark of what is stored now: whoever was told may save it again."""
    form.data = form.data.copy()
    form.data[form.add_prefix("seen")] = mark


def stored(
    form: EditForm,
    store: Callable[[], Any],
    now: Callable[[], forms.BaseForm] | None = None,
    told: QuerySet[Notice] | None = None,
) -> Any:
    """What `store` answers for a valid form; None with the reason at its field, or with both values.

    `now`: the same form with what is stored; without it there is nothing to have changed.
    """
    if not form.is_valid():
        return None
    try:
        return store()
    except edits.ChangedMeanwhile as meanwhile:
        if now is None:
            raise
        form.meet(meanwhile, now(), told if told is not None else told_as(""))
    except ActRefused as refused:
        at_fields(form, refused)
    return None


def told_as(what: str, **about: Any) -> QuerySet[Notice]:
    """Changes of settings that the timeline tells with these words."""
    return Notice.objects.filter(kind=NoticeKind.SETTING_CHANGED, text__contains=what, **about)


def status(form: EditForm) -> int:
    """The status of an answer that shows a form again, or for the first time."""
    return 409 if form.conflict else 422 if form.errors else 200


def _words(form: forms.BaseForm, name: str) -> str:
    """The value of a field as a person reads it."""
    field, value = form.fields[name], form[name].value()
    if isinstance(field, forms.BooleanField):
        return "on" if value and value != "False" else "off"
    if isinstance(value, list | tuple):
        return ", ".join(_label(field, one) for one in value)
    return _label(field, _typed(field, value))


def _typed(field: forms.Field, value: Any) -> Any:
    """A value as its box shows it."""
    return field.widget.format_value(value) if isinstance(field, forms.TimeField) else value


def _label(field: forms.Field, value: Any) -> str:
    """What a choice is called, in groups too; anything else as it is."""
    plain = "" if value is None else str(value).replace("\r\n", "\n")
    for key, label in getattr(field, "choices", ()):
        inner = label if isinstance(label, list | tuple) else [(key, label)]
        for one, words in inner:
            if str(getattr(one, "value", one)) == plain:
                return str(words)
    return plain
