"""Saving in admin: only what was changed is written, and the timeline tells who changed it."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.widgets import RelatedFieldWidgetWrapper
from django.db import models
from django.http import HttpRequest

from runs import wiring
from runs.core.states import NoticeKind
from runs.models import Project
from runs.settings.acts import describe
from runs.timeline import announce


class TellingAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Writes only the fields that the form changed, since a worker writes the others meanwhile."""

    def save_model(self, request: HttpRequest, obj: models.Model, form: Any, change: bool) -> None:
        """Save and tell, in the transaction that admin opened for the request (X-08)."""
        if not change:
            super().save_model(request, obj, form, change)
            self._tell(request, obj, f"{self.opts.verbose_name} {obj} was added")
            return
        before = self.model._default_manager.get(pk=obj.pk)
        changed = [n for n in form.changed_data if getattr(before, n) != getattr(obj, n)]
        if changed:
            obj.save(update_fields=changed)
            self._tell(request, obj, f"{self.subject(obj)}{describe(before, obj, changed)}")

    def delete_model(self, request: HttpRequest, obj: models.Model) -> None:
        self._tell(request, obj, f"{self.opts.verbose_name} {obj} was removed")
        super().delete_model(request, obj)

    def delete_queryset(
        self, request: HttpRequest, queryset: models.QuerySet[models.Model]
    ) -> None:
        for obj in queryset:
            self.delete_model(request, obj)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """A plain choice: what may be chosen is added and changed on its own page."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None and isinstance(field.widget, RelatedFieldWidgetWrapper):
            field.widget = field.widget.widget
        return field

    def subject(self, obj: models.Model) -> str:
        """What the sentence on the timeline starts with."""
        return f"{self.opts.verbose_name} {obj}: "

    def _tell(self, request: HttpRequest, obj: models.Model, text: str) -> None:
        announce.tell(
            wiring.lab(),
            NoticeKind.SETTING_CHANGED,
            text,
            project=obj if isinstance(obj, Project) else None,
            by=request.user.get_username(),
        )
