"""What transactional tests leave to the next one: nothing but what the migrations wrote."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission
from django.db import connection

from tests import emptying, make
from tests.fakes import World

pytestmark = pytest.mark.django_db(transaction=True)


def counts() -> dict[str, int]:
    models = apps.get_models(include_auto_created=True)
    found = {model._meta.db_table: model._default_manager.count() for model in models}
    return {table: number for table, number in found.items() if number}


def test_rows_go_and_permissions_stay(world: World) -> None:
    user = make.a_user("anna")
    user.user_permissions.add(Permission.objects.get(codename="act"))
    make.a_run(make.a_project(agent=make.an_agent()), "1")
    before = counts()
    assert {"auth_user", "auth_user_user_permissions", "runs_run"} <= before.keys()
    emptying.empty(connection)
    assert counts().keys() == {"auth_permission", "django_content_type"}
    assert counts()["auth_permission"] == before["auth_permission"]
