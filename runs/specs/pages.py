"""What the page *Checks* shows of a project, with a fixed number of queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import Http404

from runs.core.ports import Lab, SeamError
from runs.core.states import CompletionPolicy
from runs.models import (
    AgentProfile,
    CheckCommand,
    CheckDefaults,
    CheckTerms,
    Project,
    Reviewer,
)
from runs.specs import acts, prerequisites, proposals, unfit, words
from runs.specs.proposals import Proposed
from runs.validation import specs
from runs.validation.command_rules import shown
from runs.validation.specs import Command, Kind, Scope, Spec, Terms

PARTS = {
    "spec-lacking": "specs/_lacking",
    "spec-commands": "specs/_commands",
    "spec-reviewers": "specs/_reviewers",
    "spec-happens": "specs/_happens",
    "spec-effective": "specs/_effective",
    "spec-needs": "specs/_needs",
}


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A stored command as its row shows it."""

    row: CheckCommand
    text: str
    notes: Sequence[str]
    is_first: bool
    is_last: bool

    @property
    def kind(self) -> str:
        return Kind(self.row.kind).words


@dataclass(frozen=True, slots=True)
class Effective:
    """The spec of one scope, as it would be run now."""

    spec: Spec
    lines: Sequence[tuple[Command, str]]

    @property
    def scope(self) -> Scope:
        return self.spec.scope


def project_of(project_id: int) -> Project:
    """A project with its agent and without its secrets, else 404."""
    rows = Project.objects.select_related("agent").defer("token", "hook_secret")
    found = rows.filter(pk=project_id).first()
    if found is None:
        raise Http404("There is no such project.")
    return found


def facts(lab: Lab, project: Project) -> dict[str, Any]:
    """Everything on the page but its forms. Five queries beside those of the frame."""
    row = acts.terms_row(project)
    commands = list(project.check_commands.all())
    reviewers = list(project.reviewers.select_related("profile"))
    terms = row.terms(tuple(one.command() for one in commands))
    chain = _chain(project, row, terms, reviewers)
    is_e2e = project.has_gates and specs.effective(terms, Scope.RUN_LEVEL).e2e.enabled
    needs = prerequisites.of_e2e(lab, project, terms.e2e) if is_e2e else []
    return {
        "project": project,
        "is_gates": project.has_gates,
        "terms": row,
        "commands": _lines(commands, terms),
        "reviewers": [(one, shown(one.command)) for one in reviewers],
        "lacking": lacking(terms),
        "issue_sentences": words.per_issue(chain),
        "session_sentences": words.per_session(chain),
        "effective": [effective(terms, scope) for scope in Scope],
        "needs": needs,
        "differs": acts.differing(project, row, CheckDefaults.stored()),
        "missing": prerequisites.missing(needs),
    }


def lacking(terms: Terms) -> list[str]:
    """What would keep changed code from being proven, in whichever scope, each once."""
    found: list[str] = []
    for scope in Scope:
        if not (found and scope is Scope.RUN_LEVEL):
            found += specs.lacking(terms, scope)
    return found


def effective(terms: Terms, scope: Scope) -> Effective:
    """The spec of a scope with its commands as they would be typed."""
    spec = specs.effective(terms, scope)
    return Effective(spec, [(one, shown(one.argv)) for one in spec.commands])


def proposed(lab: Lab, project: Project) -> tuple[str, Proposed]:
    """The commit of origin's default branch, and what its files suggest. Raises SeamError."""
    repo = project.repo(lab.paths)
    commit = lab.repos.upstream(repo, project.default_branch)
    texts = lab.repos.texts(repo, commit, proposals.FILES, proposals.MOST_BYTES)
    return commit, proposals.propose(texts)


def mala_file(lab: Lab, project: Project) -> str:
    """The repository's own mala.yaml; empty when there is none that could be read."""
    repo = project.repo(lab.paths)
    try:
        commit = lab.repos.upstream(repo, project.default_branch)
        return lab.repos.texts(repo, commit, ["mala.yaml"], proposals.MOST_BYTES).get(
            "mala.yaml", ""
        )
    except SeamError:
        return ""


def profiles() -> list[AgentProfile]:
    """The agents that may review."""
    return list(AgentProfile.objects.order_by("name"))


def term_lines(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Terms by the names of their columns, each as its name and value for people."""
    return [(unfit.TERM_NAMES[name], _term(name, value)) for name, value in values.items()]


def _term(name: str, value: Any) -> str:
    if name == "disabled":
        return f"off: {', '.join(value)}" if value else "all on"
    if isinstance(value, bool):
        return "on" if value else "off"
    if name == "e2e_command" and value:
        return shown(value)
    if isinstance(value, list):
        return ", ".join(value) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value) or "not set"


def _chain(
    project: Project, row: CheckTerms, terms: Terms, reviewers: Sequence[Reviewer]
) -> words.Chain:
    return words.Chain(
        CompletionPolicy(project.policy),
        terms,
        row.max_gate_attempts,
        row.max_review_attempts,
        tuple(one.name for one in reviewers if one.is_on),
        row.skip_without_reviewers,
        row.track_low_findings,
        project.fix_attempts,
        row.person_for_check_changes,
    )


def _lines(rows: Sequence[CheckCommand], terms: Terms) -> list[CommandLine]:
    """The commands in the order in which they run; one that a switch leaves out says so."""
    run = {one.name for scope in Scope for one in specs.effective(terms, scope).commands}
    order = {kind.value: place for place, kind in enumerate(Kind)}
    ordered = sorted(rows, key=lambda one: order[one.kind])
    ends: Mapping[str, list[int]] = {
        kind: [one.pk for one in ordered if one.kind == kind] for kind in order
    }
    return [
        CommandLine(
            one,
            shown(one.argv),
            _notes(one, is_run=one.name in run),
            one.pk == ends[one.kind][0],
            one.pk == ends[one.kind][-1],
        )
        for one in ordered
    ]


def _notes(row: CheckCommand, *, is_run: bool) -> list[str]:
    said = [
        (not is_run, "not run: a switch below turns it off"),
        (row.kind == Kind.E2E, "run level only"),
        (row.allow_fail, "may fail"),
        (row.use_test_mutex, "one at a time"),
        (row.is_integration, "integration"),
        (bool(row.coverage_args), "measures coverage"),
        (bool(row.lock_files), f"when {words.listed(row.lock_files)} changed"),
        (row.minutes != specs.COMMAND_MINUTES, f"{row.minutes} min"),
    ]
    return [text for is_so, text in said if is_so]
