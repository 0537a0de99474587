"""A query whose SQL is kept gives what Django's own gives, each time as things are then."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F, QuerySet

from runs.core.database import Compiled, prepared_with_keys
from runs.models import Due, Host, Project, Run
from tests import make
from tests.fakes import START


def near(now):
    late = Due.objects.filter(next_at__gt=now - timedelta(hours=1), next_at__lte=now)
    return late.order_by("next_at").values_list("activity", "next_at", named=True)


def kept_hosts(host):
    for hours in range(4):
        Due.objects.create(host=host, activity=f"n{hours}", next_at=START + timedelta(hours=hours))


@pytest.mark.django_db
def test_it_is_asked_about_another_moment_each_time() -> None:
    kept_hosts(Host.objects.create(name="local"))
    asked = Compiled(near)
    for hours in (0, 2, 1, 9):
        now = START + timedelta(hours=hours)
        assert asked.rows(now) == list(near(now))
        first = asked.first(now)
        assert (first and first[0]) == next((one.activity for one in near(now)), None)


@pytest.mark.django_db
def test_rows_are_those_that_django_makes_and_are_read_anew(django_assert_num_queries) -> None:
    project = make.a_project(agent=make.an_agent())
    runs = [make.a_run(project, str(key), slot=key) for key in (1, 2)]

    def make_rows(_now) -> QuerySet[Run]:
        rows = Run.objects.select_related("project__agent", "profile").annotate(twice=F("slot") * 2)
        return rows.filter(outcome="").order_by("-pk").prefetch_related("notice_set")

    asked = Compiled(make_rows)
    assert asked.rows() == runs[::-1]
    with django_assert_num_queries(2):
        found = asked.rows()
        assert [one.twice for one in found] == [4, 2]
        assert [one.project.agent.name for one in found] == ["Test agent"] * 2
        assert [list(one.notice_set.all()) for one in found] == [[], []]
    assert found[0].requested_at == START
    Run.objects.filter(pk=runs[0].pk).update(issue_title="other")
    assert [one.issue_title for one in asked.rows()] == ["Issue 2", "other"]
    # What is asked further of a row is not asked by the statement that was kept.
    assert Run.objects.filter(pk=runs[0].pk).get().pk == runs[0].pk


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_another_thread_asks_by_its_own_connection() -> None:
    make.a_project()
    asked = Compiled(lambda _now: Project.objects.filter(name="demo"))
    found = [asked.rows()]

    def ask() -> None:
        try:
            found.append(asked.rows())
        finally:
            connection.close()

    other = threading.Thread(target=ask)
    other.start()
    other.join()
    assert found[0] == found[1] != []


@prepared_with_keys(2)
def _runs_of(now, project, issue, state):
    rows = Run.objects.filter(project=project, issue_key=issue, state=state)
    return rows.filter(requested_at__lte=now).select_related("project")


@pytest.mark.postgres
@pytest.mark.django_db
def test_it_is_asked_about_other_rows_each_time() -> None:
    runs = [make.a_run(make.a_project(name), key) for name, key in (("one", "7"), ("two", "b-8"))]
    for run in runs * 2:
        keys = (run.project_id, run.issue_key)
        assert _runs_of("working").rows(START, keys) == [run]
        assert _runs_of("starting").rows(START, keys) == []
        assert _runs_of("working").rows(START - timedelta(seconds=1), keys) == []
    assert _runs_of("working").rows(START, (runs[0].project_id, "b-8")) == []
    first = _runs_of("working").first(START, (runs[1].project_id, "b-8"))
    assert first is not None
