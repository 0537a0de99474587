"""Fixtures of the API tests: programs of Anna, who may act, and of Vera, who may look."""

from __future__ import annotations

import dataclasses

import pytest
from django.contrib.auth.models import User

from runs.models import Project
from tests import make
from tests.api.program import Program
from tests.fakes import World
from trackers import registry
from trackers.builtin import store


@pytest.fixture
def program(world: World, operator: User) -> Program:
    """Anna's, which may act."""
    return Program.of(operator)


@pytest.fixture
def looking(world: World, operator: User) -> Program:
    """Anna's, which may only look."""
    return Program.of(operator, "look")


@pytest.fixture
def project(world: World, db: None) -> Project:
    """A project with the built-in tracker."""
    trackers = {"memory": world.tracker}
    world.lab = dataclasses.replace(
        world.lab, tracker_for=lambda kind: trackers.get(kind) or registry.tracker(kind)
    )
    return make.a_project(tracker="builtin", tracker_root=store.create_root("demo"))
