"""The built-in tracker."""

from __future__ import annotations

from django.apps import AppConfig


class BuiltinConfig(AppConfig):
    name = "trackers.builtin"
    label = "builtin"
    verbose_name = "Built-in tracker"
