"""System checks: settings that would make the product quietly wrong are errors with a hint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from runs.check_tags import OURS


@register(OURS)
def queue_is_a_queue(app_configs: Any, **kwargs: Any) -> Sequence[CheckMessage]:
    """Immediate mode outside tests means that web requests do the worker's work."""
    if settings.HUEY.immediate and not getattr(settings, "IS_TEST", False):
        return [
            Error(
                "The queue is in immediate mode.",
                hint="Set immediate=False on HUEY; only tests may run tasks at once.",
                id="runs.E001",
            )
        ]
    return []


@register(OURS)
def database_is_safe(app_configs: Any, **kwargs: Any) -> Sequence[CheckMessage]:
    """SQLite without immediate transactions loses writes under load (stack.md section 3)."""
    database: dict[str, Any] = settings.DATABASES["default"]
    if "sqlite" not in database["ENGINE"]:
        return []
    if database.get("OPTIONS", {}).get("transaction_mode") != "IMMEDIATE":
        return [
            Error(
                "SQLite does not use immediate transactions.",
                hint='Set OPTIONS["transaction_mode"] to "IMMEDIATE".',
                id="runs.E002",
            )
        ]
    return []


@register(OURS)
def no_channel_layer_in_memory(app_configs: Any, **kwargs: Any) -> Sequence[CheckMessage]:
    """An in-memory layer drops every push that another process sends (stack.md section 2)."""
    layers = getattr(settings, "CHANNEL_LAYERS", {})
    if any("InMemory" in layer.get("BACKEND", "") for layer in layers.values()):
        return [
            Error(
                "An in-memory channel layer is configured.",
                hint="Remove CHANNEL_LAYERS; pushes are read from the timeline.",
                id="runs.E003",
            )
        ]
    return []
