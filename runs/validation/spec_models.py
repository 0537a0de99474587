"""What a project's *Checks* page says of its commands: the tables behind a spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from runs.core.states import CompletionPolicy
from runs.projects.models import Project
from runs.validation import specs
from runs.validation.specs import Command, Coverage, Kind, Switch, Switches, Terms, WorktreePlan

_PERCENT = [MinValueValidator(0.0), MaxValueValidator(100.0)]


class TermsColumns(models.Model):
    """The columns that a project's terms and the defaults of new projects have in common."""

    require_clean_git = models.BooleanField(default=True)
    require_pytest_for_code_changes = models.BooleanField(default=True)
    coverage_min_percent = models.FloatField(default=specs.MIN_PERCENT, validators=_PERCENT)
    coverage_branch = models.BooleanField(default=True)
    coverage_report_path = models.CharField(max_length=300, blank=True, default="")
    e2e_command = models.JSONField(
        default=list, blank=True, help_text="An argument list; empty: labsite's own ./lab watch."
    )
    e2e_required_env = models.JSONField(default=list, blank=True)
    e2e_minutes = models.PositiveIntegerField(
        default=specs.E2E_MINUTES, validators=[MinValueValidator(1), MaxValueValidator(120)]
    )
    keep_e2e_fixture = models.BooleanField(default=False)
    keep_worktrees = models.BooleanField(default=False)
    disabled = models.JSONField(default=list, blank=True, help_text="Switches that are off.")
    max_gate_attempts = models.PositiveIntegerField(
        default=3, validators=[MinValueValidator(1), MaxValueValidator(20)]
    )
    max_review_attempts = models.PositiveIntegerField(
        default=3, validators=[MinValueValidator(1), MaxValueValidator(20)]
    )
    skip_without_reviewers = models.BooleanField(
        default=False,
        help_text="Without an available reviewer the review is skipped with a warning; off: it fails.",
    )
    track_low_findings = models.BooleanField(
        default=False, help_text="Findings P2 and P3 become one tracking issue."
    )
    person_for_check_changes = models.BooleanField(
        default=False,
        db_default=False,
        help_text="What changes the checks themselves waits for a person before it is accepted.",
    )
    review_minutes = models.PositiveIntegerField(
        default=20, validators=[MinValueValidator(1), MaxValueValidator(240)]
    )
    review_total_minutes = models.PositiveIntegerField(
        default=120,
        db_default=120,
        validators=[MinValueValidator(1), MaxValueValidator(1440)],
        help_text="What reviews of a run may take in all its attempts together.",
    )

    class Meta:
        abstract = True

    def terms(self, commands: tuple[Command, ...]) -> Terms:
        """These terms with a project's commands, as the rules read them."""
        return Terms(
            commands,
            self.require_clean_git,
            self.require_pytest_for_code_changes,
            Coverage(
                True,
                self.coverage_min_percent,
                self.coverage_branch,
                self.coverage_report_path or None,
            ),
            specs.E2E(
                True,
                "",
                tuple(self.e2e_command),
                tuple(self.e2e_required_env),
                self.e2e_minutes,
                self.keep_e2e_fixture,
            ),
            frozenset(Switch(one) for one in self.disabled if one in set(Switch)),
            WorktreePlan("", self.keep_worktrees),
        )


_PERCENT_IS_ONE = Q(coverage_min_percent__gte=0, coverage_min_percent__lte=100)
_HAS_ATTEMPTS = Q(max_gate_attempts__gte=1, max_review_attempts__gte=1)


class CheckTerms(TermsColumns):
    """The terms of one project, beside its commands; a project without a row has those of the program."""

    project = models.OneToOneField(Project, on_delete=models.CASCADE, related_name="check_terms")

    class Meta:
        verbose_name = "checks of a project"
        verbose_name_plural = "checks of projects"
        constraints = [
            models.CheckConstraint(name="check_terms_percent", condition=_PERCENT_IS_ONE),
            models.CheckConstraint(
                name="check_terms_at_least_one_attempt", condition=_HAS_ATTEMPTS
            ),
        ]

    def __str__(self) -> str:
        return f"terms of the checks of {self.project_id}"


class CheckDefaults(TermsColumns):
    """What an admin set for new projects. One row with primary key 1, or none while nothing was set."""

    policy = models.CharField(
        "completion policy",
        max_length=14,
        choices=[(p.value, p.label) for p in CompletionPolicy],
        default=CompletionPolicy.PULL_REQUEST,
        help_text="What proves that a run of a new project is done.",
    )

    class Meta:
        verbose_name = "checks of new projects"
        verbose_name_plural = "checks of new projects"
        constraints = [
            models.CheckConstraint(condition=Q(pk=1), name="check_defaults_is_one_row"),
            models.CheckConstraint(name="check_defaults_percent", condition=_PERCENT_IS_ONE),
            models.CheckConstraint(
                name="check_defaults_at_least_one_attempt", condition=_HAS_ATTEMPTS
            ),
        ]

    def __str__(self) -> str:
        return "checks of new projects"

    @classmethod
    def stored(cls) -> CheckDefaults:
        """What was set; those of the program, not stored, while nothing was."""
        return cls.objects.filter(pk=1).first() or cls(pk=1)

    def give(self, project: Project) -> CheckTerms:
        """Store these terms as those of a new project."""
        own = {one.name for one in CheckTerms._meta.fields} - {"id", "project"}
        return CheckTerms.objects.create(
            project=project, **{name: getattr(self, name) for name in own}
        )


class CheckCommand(models.Model):
    """One command of a project's spec, as `specs.Command` describes it."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="check_commands")
    position = models.PositiveIntegerField()
    name = models.CharField(max_length=60)
    argv = models.JSONField()
    kind = models.CharField(max_length=10, choices=[(k.value, k.value) for k in Kind])
    use_test_mutex = models.BooleanField(default=False)
    allow_fail = models.BooleanField(default=False)
    coverage_args = models.JSONField(default=list, blank=True)
    unit_args = models.JSONField(default=list, blank=True)
    is_integration = models.BooleanField(default=False)
    lock_files = models.JSONField(default=list, blank=True)
    minutes = models.PositiveIntegerField(
        default=specs.COMMAND_MINUTES, validators=[MinValueValidator(1), MaxValueValidator(1440)]
    )

    class Meta:
        ordering = ["project", "position"]
        constraints = [
            models.UniqueConstraint(name="check_command_name_once", fields=["project", "name"]),
            models.CheckConstraint(
                name="check_command_kind_known", condition=Q(kind__in=[k.value for k in Kind])
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.kind})"

    def command(self) -> Command:
        """This row as the rules read it."""
        return Command(
            self.name,
            tuple(self.argv),
            Kind(self.kind),
            self.use_test_mutex,
            self.allow_fail,
            tuple(self.coverage_args),
            tuple(self.unit_args),
            self.is_integration,
            tuple(self.lock_files),
            self.minutes,
        )


def limits_of(project: Project) -> CheckTerms:
    """The terms of a project; one without a row has the defaults."""
    return CheckTerms.objects.filter(project=project).first() or CheckTerms(project=project)


def terms_of(project: Project, switches: Mapping[str, Any] | None = None) -> Terms:
    """A project's terms with its commands; the defaults where it has set none. Two queries.

    `switches`: those of a session's row, over them.
    """
    terms = limits_of(project).terms(tuple(one.command() for one in project.check_commands.all()))
    return specs.over(terms, Switches.stored(switches or {}))
