"""Rows made in bulk are what Django itself would have made of them."""

from __future__ import annotations

import pytest
from django.db import models

from runs.models import Project, Run
from tests.make import a_project, a_run

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("model", [Run, Project])
def test_a_quick_row_is_the_row_that_django_makes(model: type[models.Model]) -> None:
    a_run(a_project())
    quick = model._default_manager.get()
    fields = [field.attname for field in model._meta.concrete_fields]
    plain = models.Model.from_db.__func__(  # type: ignore[attr-defined]
        model, "default", fields, [getattr(quick, name) for name in fields]
    )
    assert {k: v for k, v in vars(quick).items() if k != "_state"} == {
        k: v for k, v in vars(plain).items() if k != "_state"
    }
    assert (quick._state.adding, quick._state.db) == (plain._state.adding, plain._state.db)
    assert quick == plain


def test_what_was_not_asked_for_is_read_when_it_is_wanted() -> None:
    a_run(a_project(), last_words="bye")
    run = Run.objects.defer("last_words").get()
    assert run.get_deferred_fields() == {"last_words"}
    assert run.last_words == "bye"
    run.last_line = "hello"
    run.save()
    assert Run.objects.get().last_line == "hello"
