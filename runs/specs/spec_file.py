"""A project's checks as one JSON document: written by the export, read by the import, all of it or nothing.

Version 1 has policy, terms, commands and reviewers. What is left out or null stays as it is; commands
and reviewers take the place of all that there are. A reviewer's agent is named, since every labsite
has agents of its own: one whose agent is not here is left out and told.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal, NoReturn

from django.db import transaction
from pydantic import BeforeValidator, Field, ValidationError

from runs.agents.models import EFFORT_CHARACTERS, MODEL_CHARACTERS
from runs.api import problems
from runs.api.asked import NO_NUL, WHOLE, Given, Name
from runs.core.ports import Lab
from runs.core.states import CompletionPolicy
from runs.models import AgentProfile, Project
from runs.specs import acts, mala_file, unfit
from runs.specs.acts import SpecRefused
from runs.validation import specs
from runs.validation.specs import Command, Kind, Switch

FORMAT: Literal["labsite checks"] = "labsite checks"
VERSION: Literal[1] = 1

Argument = Annotated[str, Field(max_length=specs.ARGUMENT_CHARACTERS, pattern=NO_NUL)]
Arguments = Annotated[list[Argument], Field(max_length=unfit.MOST_ARGUMENTS)]
Flag = Annotated[bool, Field(strict=True)]


Minutes = Annotated[int, WHOLE, Field(ge=1, le=specs.MOST_MINUTES)]
EndToEndMinutes = Annotated[int, WHOLE, Field(ge=1, le=120)]
ReviewTotalMinutes = Annotated[int, WHOLE, Field(ge=1, le=1440)]
ReviewMinutes = Annotated[int, WHOLE, Field(ge=1, le=240)]
Attempts = Annotated[int, WHOLE, Field(ge=1, le=20)]


class CommandGiven(Given):
    """A command, an argument list that no shell reads."""

    name: Name
    argv: Arguments
    kind: Annotated[Kind, Field(strict=False)]
    use_test_mutex: Flag = False
    allow_fail: Flag = False
    coverage_args: Arguments = []
    unit_args: Arguments = []
    is_integration: Flag = False
    lock_files: Arguments = []
    minutes: Minutes = specs.COMMAND_MINUTES

    def command(self) -> Command:
        """The command as the rules read it."""
        given = self.model_dump()
        lists = ("argv", "coverage_args", "unit_args", "lock_files")
        return Command(**{**given, **{name: tuple(given[name]) for name in lists}})


class TermsGiven(Given):
    """Switches and limits. What is left out or null stays as it is."""

    disabled: (
        Annotated[list[Annotated[Switch, Field(strict=False)]], Field(max_length=20)] | None
    ) = None
    require_clean_git: Flag | None = None
    require_pytest_for_code_changes: Flag | None = None
    coverage_min_percent: Annotated[float, Field(ge=0, le=100, strict=True)] | None = None
    coverage_branch: Flag | None = None
    coverage_report_path: Annotated[str, Field(max_length=300, pattern=NO_NUL)] | None = None
    e2e_command: Arguments | None = None
    e2e_required_env: Arguments | None = None
    e2e_minutes: EndToEndMinutes | None = None
    keep_e2e_fixture: Flag | None = None
    keep_worktrees: Flag | None = None
    max_gate_attempts: Attempts | None = None
    max_review_attempts: Attempts | None = None
    review_minutes: ReviewMinutes | None = None
    review_total_minutes: ReviewTotalMinutes | None = None
    skip_without_reviewers: Flag | None = None
    track_low_findings: Flag | None = None
    person_for_check_changes: Flag | None = None


class ReviewerGiven(Given):
    """A reviewer: an agent by its name, or a command."""

    name: Name
    is_on: Flag = True
    agent: Name | None = None
    model: Annotated[str, Field(max_length=MODEL_CHARACTERS, pattern=NO_NUL)] = ""
    effort: Annotated[str, Field(max_length=EFFORT_CHARACTERS, pattern=NO_NUL)] = ""
    command: Arguments = []
    instructions: Annotated[str, Field(max_length=unfit.MOST_INSTRUCTIONS, pattern=NO_NUL)] = ""


def _format(given: object) -> object:
    if given != FORMAT:
        raise ValueError(f"This has to be “{FORMAT}”")
    return given


def _version(given: object) -> object:
    """The number of the format, not of the program."""
    if isinstance(given, bool) or given != VERSION:
        raise ValueError(f"This labsite reads version {VERSION} of the format and no other")
    return VERSION


class SpecFile(Given):
    """A project's checks. `version` is that of this format."""

    format: Annotated[Literal["labsite checks"], BeforeValidator(_format)]
    version: Annotated[Literal[1], BeforeValidator(_version)]
    policy: Annotated[CompletionPolicy, Field(strict=False)] | None = None
    terms: TermsGiven | None = None
    commands: Annotated[list[CommandGiven], Field(max_length=specs.MOST_COMMANDS)] | None = None
    reviewers: Annotated[list[ReviewerGiven], Field(max_length=acts.MOST_REVIEWERS)] | None = None


@dataclass(frozen=True, slots=True)
class Taken:
    """What a document changes. `removed` is what it does not name, `not_taken` what has no place here."""

    file: SpecFile
    is_change: bool
    removed: tuple[str, ...]
    not_taken: tuple[str, ...]

    @property
    def commands(self) -> Sequence[CommandGiven]:
        return self.file.commands or ()

    @property
    def reviewers(self) -> Sequence[ReviewerGiven]:
        return self.file.reviewers or ()

    @property
    def values(self) -> Mapping[str, Any]:
        """The terms by the names of their columns."""
        return _terms(self.file)


def is_one(text: str) -> bool:
    """Whether a text is meant to be such a document, and no mala.yaml."""
    return text.lstrip("\ufeff \t\r\n").startswith("{")


def of_project(project: Project) -> SpecFile:
    """The document of a project, which `take` makes the same checks of. Three queries."""
    terms = acts.terms_row(project)
    rows = project.reviewers.select_related("profile")
    return SpecFile(
        format=FORMAT,
        version=VERSION,
        policy=CompletionPolicy(project.policy),
        terms=TermsGiven(**{name: getattr(terms, name) for name in unfit.TERMS}),
        commands=[_command(one.command()) for one in project.check_commands.all()],
        reviewers=[
            ReviewerGiven(
                agent=one.profile.name if one.profile else None,
                **{name: getattr(one, name) for name in _OF_REVIEWER},
            )
            for one in rows
        ],
    )


_OF_REVIEWER = tuple(name for name in unfit.REVIEWER if name != "profile_id")


def _command(command: Command) -> CommandGiven:
    kept = asdict(command).items()
    return CommandGiven.model_validate(
        {name: list(value) if isinstance(value, tuple) else value for name, value in kept}
    )


def written(file: SpecFile) -> str:
    """The text of a document."""
    return json.dumps(file.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"


def read(text: str) -> SpecFile:
    """The document that a text holds. Raises SpecRefused, which names each wrong place by its path."""
    if len(text.encode("utf-8", "replace")) > unfit.MOST_FILE_BYTES:
        raise SpecRefused(f"The file is larger than {unfit.MOST_FILE_BYTES // 1_000_000} MB.")
    try:
        found = json.loads(
            text.lstrip("\ufeff"), object_pairs_hook=_once, parse_constant=_no_number
        )
    except RecursionError as error:
        raise SpecRefused("The file is nested too deeply.") from error
    except ValueError as error:
        raise SpecRefused(f"The file is no JSON: {str(error)[:200]}.") from error
    wrong = dict(_old_names(found, ""))
    try:
        made = SpecFile.model_validate(found)
    except ValidationError as error:
        told = {_path(one["loc"]): problems.words(one) for one in error.errors()}
        raise _refused({**told, **wrong}) from error
    return made


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """An object. What stands twice in it would be taken once without a word."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"“{twice[:60]}” stands twice in one object")
    return found


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _old_names(value: object, path: str) -> Iterator[tuple[str, str]]:
    """Names of before a rename, wherever they stand: they are neither taken nor translated."""
    pairs: Iterable[tuple[object, object]] = ()
    if isinstance(value, dict):
        pairs = value.items()
    elif isinstance(value, list):
        pairs = enumerate(value)
    for name, one in pairs:
        place = f"{path}.{name}" if path else str(name)
        if why := mala_file.old_name(str(name)):
            yield place, why
        yield from _old_names(one, place)


def _path(loc: Sequence[object]) -> str:
    return ".".join(map(str, loc)) or "the file"


def _refused(wrong: Mapping[str, str]) -> SpecRefused:
    return SpecRefused(" ".join(f"{name}: {why}" for name, why in wrong.items()), fields=wrong)


def take(lab: Lab, project: Project, file: SpecFile, *, by: str) -> Taken:
    """Store what a document says of a project, all of it or nothing. Raises SpecRefused with paths."""
    with transaction.atomic():
        removed = tuple(_removed(project, file))
        wanted, not_taken = _reviewers(file)
        changes = []
        if file.policy is not None:
            changes.append(acts.store_policy(lab, project, file.policy, by=by))
        if values := _terms(file):
            with _Below("terms"):
                changes.append(acts.store_terms(lab, project, values, by=by))
        if file.commands is not None:
            commands = [one.command() for one in file.commands]
            changes.append(acts.replace_commands(lab, project, commands, by=by))
        if file.reviewers is not None:
            with _Below("", {"profile_id": "agent"}, [*wanted]):
                changes.append(acts.replace_reviewers(lab, project, [*wanted.values()], by=by))
    return Taken(file, any(changes), removed, not_taken)


def preview(lab: Lab, project: Project, file: SpecFile) -> Taken:
    """What `take` would change, by the same checks; nothing is stored. Raises SpecRefused."""
    with transaction.atomic():
        found = take(lab, Project.objects.get(pk=project.pk), file, by="")
        transaction.set_rollback(True)
    return found


def _terms(file: SpecFile) -> dict[str, Any]:
    if file.terms is None:
        return {}
    return file.terms.model_dump(mode="json", exclude_none=True)


def _removed(project: Project, file: SpecFile) -> Iterator[str]:
    for what, rows, given in (
        ("command", project.check_commands.all(), file.commands),
        ("reviewer", project.reviewers.all(), file.reviewers),
    ):
        names = {one.name for one in given or ()}
        yield from (
            f"{what} {one.name}" for one in rows if given is not None if one.name not in names
        )


def _reviewers(file: SpecFile) -> tuple[dict[int, Mapping[str, Any]], tuple[str, ...]]:
    """Each reviewer that can be had here by its place in the file, and what is said of the others."""
    agents = {one.name: one for one in AgentProfile.objects.all()}
    wanted: dict[int, Mapping[str, Any]] = {}
    left = []
    for place, one in enumerate(file.reviewers or ()):
        if one.agent is not None and one.agent not in agents:
            left.append(f"reviewers.{place} ({one.name}): there is no agent {one.agent} here.")
            continue
        given = one.model_dump(exclude={"agent"})
        profile = agents[one.agent] if one.agent is not None else None
        for name in ("model", "effort"):
            asked = {"model": "", "effort": "", name: given[name]}
            if profile is not None and not profile.allows(**asked):
                text = f"{profile.name} does not offer {given[name]} here."
                left.append(f"reviewers.{place}.{name}: {text}")
                given[name] = ""
        wanted[place] = {**given, "profile_id": profile.pk if profile else None}
    return wanted, tuple(left)


class _Below:
    """Names what an act refuses by its path in the document."""

    def __init__(
        self, prefix: str, names: Mapping[str, str] | None = None, places: Sequence[int] = ()
    ) -> None:
        self._prefix, self._names, self._places = prefix, names or {}, places

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, SpecRefused) and error.fields:
            raise _refused({self._path(n): why for n, why in error.fields.items()}) from error

    def _path(self, name: str) -> str:
        parts = [self._names.get(part, part) for part in name.split(".")]
        if self._places and len(parts) > 1:
            parts[1] = str(self._places[int(parts[1])])
        return ".".join(filter(None, [self._prefix, *parts]))
