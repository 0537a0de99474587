"""Workflows that need a person: those that are held."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet

from runs.models import Project, Workflow
from runs.overview.need_facts import WorkflowNeeds

AT_MOST = 200


def with_held(rows: QuerySet[Project]) -> QuerySet[Any]:
    """Projects with whether a workflow of theirs is held, so that this costs no query."""
    held = Q(pk__in=Workflow.objects.held().order_by().values("project"))
    return rows.annotate(has_held=ExpressionWrapper(held, BooleanField()))


def by_project(projects: Iterable[Project]) -> Mapping[int, Sequence[WorkflowNeeds]]:
    """The held workflows of each project. No query, one while there is such a workflow."""
    if not any(getattr(project, "has_held", False) for project in projects):
        return {}
    found: dict[int, list[WorkflowNeeds]] = {}
    for row in Workflow.objects.held().order_by("pk")[:AT_MOST]:
        need = WorkflowNeeds(row.pk, row.name, row.note)
        found.setdefault(row.project_id, []).append(need)
    return found
