"""What a project proves and how, over the API: policy, terms, commands, and the specs that they give."""

from __future__ import annotations

from typing import Annotated, Any

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from pydantic import BaseModel, Field

from runs.api import etags, replies
from runs.api.asked import ProjectId
from runs.api.router import Router
from runs.core.states import CompletionPolicy
from runs.models import Project
from runs.projects.api import project_of
from runs.specs import acts, spec_file
from runs.specs.spec_file import CommandGiven, SpecFile, TermsGiven
from runs.validation import specs
from runs.validation.spec_models import terms_of
from runs.validation.specs import Scope, Switch
from runs.web.access import username
from runs.wiring import lab

router = Router(tags=["Checks"])


class Specs(BaseModel):
    """What is run to prove the commit of one issue, and all that a session delivered.

    `policy` says whether gates prove an issue. `disabled` are the switches that are off. `lacking`:
    what has to be set before changed code can be proved.
    """

    policy: CompletionPolicy
    disabled: list[Switch]
    per_issue: dict[str, Any]
    run_level: dict[str, Any]
    lacking: list[str]


class SpecsGiven(TermsGiven):
    """What is left out or null stays as it is. `commands` take the place of all that there are."""

    policy: Annotated[CompletionPolicy, Field(strict=False)] | None = None
    commands: Annotated[list[CommandGiven], Field(max_length=specs.MOST_COMMANDS)] | None = None


class Imported(BaseModel):
    """What an import did. `not_taken` says what of the document has no place here, and why."""

    changed: bool
    removed: list[str]
    not_taken: list[str]
    checks: Specs


@router.get(
    "/{int:project_id}/checks", response=replies.look(Specs), summary="Show a project's checks"
)
def checks_show(request: HttpRequest, response: HttpResponse, project_id: ProjectId) -> Specs:
    """The effective specs of both scopes: commands as they are run, coverage, end-to-end run.

    `ETag` is the mark of them all.
    """
    return etags.mark(response, _shown(project_of(project_id)))


@router.patch(
    "/{int:project_id}/checks", response=replies.edited(Specs), summary="Change a project's checks"
)
def checks_change(
    request: HttpRequest, response: HttpResponse, project_id: ProjectId, given: SpecsGiven
) -> Specs:
    """Change policy, terms and commands, all of it or nothing.

    With the `ETag` that was read as `If-Match` it is 412, and nothing is stored, once somebody else
    has changed them.
    """
    project, by = project_of(project_id), username(request)
    values = given.model_dump(exclude_none=True, exclude={"policy", "commands"})
    with transaction.atomic():
        Project.objects.hold(project.pk)
        etags.check(request, _shown(project_of(project_id)))
        if given.policy is not None:
            acts.store_policy(lab(), project, given.policy, by=by)
        acts.store_terms(lab(), project, values, by=by)
        if given.commands is not None:
            commands = [one.command() for one in given.commands]
            acts.replace_commands(lab(), project, commands, by=by)
    return etags.mark(response, _shown(project_of(project_id)))


@router.get(
    "/{int:project_id}/checks/export",
    response=replies.look(SpecFile),
    summary="Export a project's checks",
)
def checks_export(request: HttpRequest, project_id: ProjectId) -> SpecFile:
    """Policy, terms, commands and reviewers as one document, which an import takes."""
    return spec_file.of_project(project_of(project_id))


@router.post(
    "/{int:project_id}/checks/import",
    response=replies.given(Imported),
    summary="Import a project's checks",
)
def checks_import(request: HttpRequest, project_id: ProjectId, given: SpecFile) -> Imported:
    """Store a document of an export, all of it or nothing.

    Its commands and reviewers take the place of all that there are.
    """
    project = project_of(project_id)
    found = spec_file.take(lab(), project, given, by=username(request))
    return Imported(
        changed=found.is_change,
        removed=list(found.removed),
        not_taken=list(found.not_taken),
        checks=_shown(project_of(project_id)),
    )


def _shown(project: Project) -> Specs:
    terms = terms_of(project)
    made = {scope: specs.effective(terms, scope) for scope in Scope}
    return Specs(
        policy=CompletionPolicy(project.policy),
        disabled=sorted(terms.disabled),
        per_issue=specs.to_json(made[Scope.PER_ISSUE]),
        run_level=specs.to_json(made[Scope.RUN_LEVEL]),
        lacking=[why for scope in Scope for why in specs.lacking(terms, scope)],
    )
