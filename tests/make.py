"""Makes rows for tests: plain functions, no factory library."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User

from runs.core import naming
from runs.core.states import Outcome, ProjectState, RunKind, RunState
from runs.groups.terms import TaskStatus
from runs.models import AgentProfile, Project, Run, Task, TaskGroup
from tests.fakes import START


def a_user(name: str = "anna", *, operator: bool = True) -> User:
    """Someone who may act, or with `operator=False` only look."""
    make = User.objects.create_superuser if operator else User.objects.create_user
    return make(name, password="correct horse battery")


def an_agent(name: str = "Test agent", **fields: Any) -> AgentProfile:
    fields.setdefault("argv", ["agent", "{prompt}"])
    return AgentProfile.objects.create(name=name, **fields)


def a_project(name: str = "demo", **fields: Any) -> Project:
    """A usable project on the memory tracker, whose root is the name."""
    fields.setdefault("state", ProjectState.READY)
    fields.setdefault("tracker", "memory")
    fields.setdefault("tracker_root", name)
    fields.setdefault("default_branch", "main")
    fields.setdefault("created_at", START)
    fields.setdefault("url", "/nowhere")
    return Project.objects.create(
        name=name, slug=naming.sanitise(name), source="/nowhere", **fields
    )


def a_run(project: Project, key: str = "7", *, slot: int = 1, **fields: Any) -> Run:
    """A working run, or with `outcome=` an ended and settled one."""
    outcome = fields.get("outcome", "")
    fields.setdefault("kind", RunKind.MANUAL)
    fields.setdefault("state", RunState.ENDED if outcome else RunState.WORKING)
    fields.setdefault("requested_at", START)
    fields.setdefault("started_at", START)
    fields.setdefault("issue_title", f"Issue {key}")
    fields.setdefault("session", naming.session_name(project.slug, slot, key, fields["kind"]))
    fields.setdefault("branch", naming.branch_for(key))
    if outcome:
        fields.setdefault("ended_at", START)
        fields.setdefault("settled_at", START)
        fields.setdefault("outcome", Outcome(outcome))
    fields.setdefault("host", "local")
    return Run.objects.create(project=project, issue_key=key, slot=slot, **fields)


def a_group(project: Project, name: str = "wave", tasks: int = 0, **fields: Any) -> TaskGroup:
    """An open group with so many pending tasks, whose keys count from 1."""
    group = TaskGroup.objects.create(project=project, name=name, **{"made_at": START} | fields)
    Task.objects.bulk_create(
        Task(group=group, key=str(n), subject=f"Part {n}") for n in range(1, tasks + 1)
    )
    return group


def a_task(
    group: TaskGroup, key: str, status: TaskStatus = TaskStatus.PENDING, **fields: Any
) -> Task:
    """A task of a group; one in progress is fa-1's."""
    if status is TaskStatus.IN_PROGRESS:
        fields = {"owner": "fa-1", "claim": 1, "claimed_at": START} | fields
    if status is TaskStatus.COMPLETED:
        fields = {"completed_at": START} | fields
    subject = fields.pop("subject", f"Part {key}")
    return Task.objects.create(group=group, key=key, subject=subject, status=status, **fields)
