"""Our engines make the same SQL as Django's own, and read the same values."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.apps import apps
from django.db import connection, models
from django.db.models import Exists, F, OuterRef, QuerySet
from django.db.models.functions import Lower
from django.db.models.sql.compiler import SQLCompiler

from runs.models import Host, Project, Run, Tick

SHAPES: dict[str, Callable[[], QuerySet[Any, Any]]] = {
    "filtered": lambda: Run.objects.filter(outcome="").order_by("-id"),
    "deferred": lambda: Run.objects.defer("prompt").filter(project__name="a"),
    "only": lambda: Run.objects.only("state", "project").order_by("project__name"),
    "related": lambda: Run.objects.select_related("project__agent").filter(project__name="a"),
    "joined twice": lambda: Run.objects.select_related("project__agent", "profile").order_by("pk"),
    "only of related": lambda: Run.objects.select_related("project").only("state", "project__name"),
    "all related": lambda: Tick.objects.select_related(),
    "annotated": lambda: Project.objects.annotate(low=Lower("name")).order_by("low"),
    "by expression": lambda: Project.objects.order_by(
        F("name").desc(nulls_last=True), Lower("slug")
    ),
    "distinct": lambda: Project.objects.distinct().order_by("name"),
    "inside": lambda: Project.objects.filter(pk__in=Run.objects.values("project")),
    "correlated": lambda: Project.objects.filter(
        Exists(Project.objects.filter(pk=OuterRef("pk"), name=OuterRef("slug")))
    ),
    "united": lambda: Host.objects.filter(pk=1).union(Host.objects.filter(pk=2)).order_by("name"),
    "sliced": lambda: Run.objects.filter(project__in=Project.objects.order_by("name")[:2])[3:5],
    "extra": lambda: Host.objects.extra(select={"one": "1"}, order_by=["one"]),
    "combined dates": lambda: Host.objects.dates("last_tick_at", "day"),
    "values": lambda: Run.objects.values_list("state", "project__name").order_by("state"),
    "aggregate": lambda: Project.objects.annotate(n=models.Count("runs")).filter(n__gt=1),
}


def _as_django(rows: QuerySet[Any, Any]) -> SQLCompiler:
    return SQLCompiler(rows.query.clone(), connection, rows.db)


def _same(rows: QuerySet[Any, Any]) -> None:
    for _ in range(2):  # made, and then remembered
        ours, django = rows.query.clone().get_compiler(rows.db), _as_django(rows)
        assert ours.as_sql() == django.as_sql()
        assert ours.annotation_col_map == django.annotation_col_map
        assert str(ours.klass_info).count("select_fields") == str(django.klass_info).count(
            "select_fields"
        )
        columns = [column for column, _, _ in ours.select]
        assert columns == [column for column, _, _ in django.select]
        assert _names(ours.get_converters(columns)) == _names(django.get_converters(columns))


def _names(converters: dict[int, tuple[list[Any], Any]]) -> object:
    return {place: [one.__qualname__ for one in found] for place, (found, _) in converters.items()}


@pytest.mark.django_db
@pytest.mark.parametrize("shape", SHAPES)
def test_the_sql_is_as_django_makes_it(shape: str) -> None:
    _same(SHAPES[shape]())


@pytest.mark.django_db
def test_the_sql_of_every_model_is_as_django_makes_it() -> None:
    for model in apps.get_models():
        rows = model._base_manager.all()
        _same(rows)
        _same(rows.order_by("-pk"))


@pytest.mark.django_db
def test_rows_are_read_as_they_were_stored() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 678, UTC)
    host = Host.objects.create(name="a", last_tick_at=at, clock_apart=1.5)
    Tick.objects.create(host=host, at=at, was_skipped=True)
    for _ in range(2):
        tick = Tick.objects.select_related("host").get(host__name="a")
        assert (tick.at, tick.was_skipped, tick.host.last_tick_at) == (at, True, at)
        part = Tick.objects.only("at").get()
        assert part.get_deferred_fields() >= {"was_skipped", "error"}
        assert part.was_skipped is True
