"""The app that holds projects and runs."""

from __future__ import annotations

from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "runs"
    verbose_name = "Control room"

    def ready(self) -> None:
        from django.db.models import CharField

        from runs import checks  # noqa: F401  (registers the system checks)
        from runs.core.database import InWords

        CharField.register_lookup(InWords)
