"""Agent profiles, logins in progress and trials: how each coding program is started, and how it stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q

from runs.accounts.login_rules import LINK_CHARACTERS, LoginState
from runs.agents.trial_rules import OPEN, TrialState
from runs.core.encrypted import HIDDEN, EncryptedJSONField
from runs.core.states import Trouble

MODEL_CHARACTERS, EFFORT_CHARACTERS = 100, 40
_CHECKED = ("argv", "env", "login_command")
_UNCHECKED: Mapping[str, Any] = {
    **{"is_found": None, "version": "", "checked_at": None},
    **{"is_logged_in": None, "login_checked_at": None},
}


def _is_strings(value: object) -> bool:
    """Whether it is a list of texts that a program can be started with: no letter 0 in any."""
    return isinstance(value, list) and all(isinstance(s, str) and "\0" not in s for s in value)


class AgentProfile(models.Model):
    """One coding program and the argument list that starts it. Never a shell line."""

    class Mode(models.TextChoices):
        INTERACTIVE = "interactive", "interactive: stays open until it is ended"
        ONE_SHOT = "one_shot", "one-shot: ends by itself"

    class Output(models.TextChoices):
        PLAIN = "", "a screen for people"
        CLAUDE = "claude_stream_json", "JSON lines of claude -p --output-format stream-json"
        CODEX = "codex_exec_json", "JSON lines of codex exec --json"

    class TrustKind(models.TextChoices):
        NONE = "", "nothing to prepare"
        CLAUDE = "claude", "Claude Code: trust the worktree, accept its project servers"

    name = models.CharField(max_length=60, unique=True)
    mode = models.CharField(max_length=20, choices=Mode, default=Mode.INTERACTIVE)
    output = models.CharField(
        max_length=20,
        choices=Output,
        default=Output.PLAIN,
        blank=True,
        help_text=(
            "What a one-shot program prints. JSON lines are kept and read: session, turns, tokens, "
            "cost, rate limits; the terminal shows them as words."
        ),
    )
    argv = models.JSONField(
        "argument list",
        default=list,
        help_text=(
            'The program and its arguments as a JSON list, for example ["claude", "{prompt}"]. '
            "{prompt} becomes one argument, {prompt_file} the path of a file with the same text, "
            "{model} and {effort} the choice from the settings page, {worktree} the working copy. "
            "An argument whose placeholder has no value is left out together with the flag before it."
        ),
    )
    env = EncryptedJSONField(
        "environment",
        default=dict,
        blank=True,
        help_text=(
            "Extra variables as a JSON object of strings; an empty one is left out of the sessions, "
            "though labsite was started with it. They are stored encrypted; a value that "
            f"is saved is shown as {HIDDEN} from then on and stays as it is while that stands there. "
            "Secrets among them are shown as [hidden] wherever output is kept or shown: values of at "
            "least 8 characters whose name says so (KEY, TOKEN, SECRET, PASSWORD, AUTH …) or that "
            "have the form of a key; numbers, words such as true, paths and plain addresses are not."
        ),
    )
    resume_argv = models.JSONField(
        "resume command",
        default=list,
        blank=True,
        help_text=(
            "What a person types to go on with an ended session, as a JSON list with {session} in "
            "it. Empty: no such command."
        ),
    )
    model_names = models.JSONField(
        "models", default=list, blank=True, help_text="Closed list of models that may be chosen."
    )
    efforts = models.JSONField(
        "efforts", default=list, blank=True, help_text="Closed list of efforts that may be chosen."
    )
    trust = models.CharField(max_length=20, choices=TrustKind, default=TrustKind.NONE, blank=True)
    login_command = models.JSONField(
        "login check",
        default=list,
        blank=True,
        help_text="A command (JSON list) that exits 0 when the agent is logged in. Empty: no check.",
    )

    login_argv = models.JSONField(
        "login program",
        default=list,
        blank=True,
        help_text=(
            "What logs the agent in, as a JSON list: a program that shows a link and asks for the "
            "code behind it. Empty: no log-in from the browser."
        ),
    )
    link_files = models.CharField(
        "session files",
        max_length=300,
        blank=True,
        help_text=(
            "Where the agent notes its sessions, as a pattern such as ~/.agent/sessions/*.json. A "
            "JSON object in them that names the worktree holds the id of the session."
        ),
    )
    link_field = models.CharField(
        "name of the id",
        max_length=60,
        blank=True,
        help_text="Under which name the id stands there.",
    )
    link_url = models.CharField(
        "session link",
        max_length=400,
        blank=True,
        help_text="The agent's own page of a session, with {id} in it. Empty: it has none.",
    )
    link_generic = models.URLField(
        "general link",
        max_length=400,
        blank=True,
        help_text="Shown when the session was not found within 30 seconds.",
    )
    is_logged_in = models.BooleanField(null=True, blank=True, editable=False)
    login_checked_at = models.DateTimeField(null=True, blank=True, editable=False)
    is_found = models.BooleanField(
        null=True, blank=True, editable=False, help_text="Whether its program is on this machine."
    )
    version = models.CharField(max_length=100, blank=True, default="", editable=False)
    checked_at = models.DateTimeField(null=True, blank=True, editable=False)
    hold = models.CharField(
        max_length=12,
        blank=True,
        default="",
        editable=False,
        choices=[(t.value, t.value or "none") for t in Trouble],
        help_text="Why nothing is started with it: the trouble of its account.",
    )
    hold_note = models.CharField(max_length=300, blank=True, default="", editable=False)
    held_at = models.DateTimeField(null=True, blank=True, editable=False)
    held_until = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="When it is tried again."
    )
    told_hold = models.CharField(
        max_length=12, blank=True, default="", editable=False, help_text="The last trouble told."
    )
    holds = models.PositiveIntegerField(
        default=0, editable=False, help_text="Holds in a row without work in between."
    )

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                name="agent_held_iff_reason",
                condition=(
                    Q(hold="", held_at=None, held_until=None)
                    | ~Q(hold="") & Q(held_at__isnull=False, held_until__isnull=False)
                ),
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def save(self, **options: Any) -> None:
        """Store it. What was found out about another program, environment or check is forgotten."""
        before = AgentProfile.objects.filter(pk=self.pk).first() if self.pk else None
        if before is not None and any(
            getattr(before, name) != getattr(self, name) for name in _CHECKED
        ):
            for name, unknown in _UNCHECKED.items():
                setattr(self, name, unknown)
            if options.get("update_fields") is not None:
                options["update_fields"] = {*options["update_fields"], *_UNCHECKED}
        super().save(**options)

    def clean(self) -> None:
        """Refuse lists that could not be started, with a message at the field."""
        wrong: dict[str, str] = {}
        if not _is_strings(self.argv) or not self.argv:
            wrong["argv"] = "Write a JSON list of strings with at least the program."
        elif not any("{prompt}" in item or "{prompt_file}" in item for item in self.argv):
            wrong["argv"] = "The task has to reach the agent: use {prompt} or {prompt_file}."
        for field in ("model_names", "efforts", "login_command", "login_argv", "resume_argv"):
            if not _is_strings(getattr(self, field)):
                wrong[field] = "Write a JSON list of strings."
        wrong |= self._too_long("model_names", MODEL_CHARACTERS)
        wrong |= self._too_long("efforts", EFFORT_CHARACTERS)
        if not isinstance(self.env, dict) or not _is_strings(list(self.env.values())):
            wrong["env"] = "Write a JSON object whose values are strings."
        wrong = {**self._wrong_of_one_shots(), **self._wrong_of_links(), **wrong}
        if wrong:
            raise ValidationError(wrong)

    def _wrong_of_one_shots(self) -> dict[str, str]:
        wrong: dict[str, str] = {}
        resume = self.resume_argv
        if resume and _is_strings(resume) and "{session}" not in resume:
            wrong["resume_argv"] = "The session has to be named: use {session} as one argument."
        if self.output and self.mode != self.Mode.ONE_SHOT:
            text = "Only a one-shot program can be read; an interactive one has a screen."
            wrong["output"] = text
        return wrong

    def _wrong_of_links(self) -> dict[str, str]:
        wrong: dict[str, str] = {}
        url = self.link_url
        if url and not (url.startswith("https://") and "{id}" in url):
            wrong["link_url"] = "Write an address with https and {id} in it."
        if url and not self.link_files:
            wrong["link_files"] = "Say in which files the id is found."
        if url and not self.link_field:
            wrong["link_field"] = "Say under which name the id is found."
        return wrong

    def _too_long(self, field: str, most: int) -> dict[str, str]:
        names = getattr(self, field)
        if not _is_strings(names) or all(len(name) <= most for name in names):
            return {}
        return {field: f"A name in this list has at most {most} characters."}

    def allows(self, model: str, effort: str) -> bool:
        """Whether the pair may be chosen; empty means the program's own default."""
        return (not model or model in self.model_names) and (not effort or effort in self.efforts)


class LoginAttempt(models.Model):
    """One log-in of an agent from the browser, from its program's start to its end."""

    profile = models.ForeignKey(AgentProfile, on_delete=models.CASCADE)
    by = models.CharField(max_length=150)
    mark = models.CharField(max_length=64)
    state = models.CharField(
        max_length=10,
        choices=[(s.value, s.value) for s in LoginState],
        default=LoginState.WAITING,
    )
    link = models.CharField(max_length=LINK_CHARACTERS, blank=True)
    error = models.TextField(blank=True)
    started_at = models.DateTimeField()
    deadline = models.DateTimeField()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                name="login_one_open_per_agent",
                fields=["profile"],
                condition=~Q(state__in=[LoginState.DONE, LoginState.FAILED]),
            ),
        ]

    def __str__(self) -> str:
        return f"log-in {self.pk} ({self.state})"

    @property
    def session(self) -> str:
        """Its tmux session; no project's, so that it takes no slot."""
        return f"login-{self.pk}"

    @property
    def is_over(self) -> bool:
        return LoginState(self.state).is_over


class AgentTrial(models.Model):
    """One trial of an agent's profile, from the press to its end."""

    profile = models.ForeignKey(AgentProfile, on_delete=models.CASCADE)
    by = models.CharField(max_length=150)
    mark = models.CharField(max_length=64)
    state = models.CharField(
        max_length=10, choices=[(s.value, s.value) for s in TrialState], default=TrialState.WAITING
    )
    process = models.CharField(max_length=100, blank=True, default="")
    is_stop_wanted = models.BooleanField(default=False)
    steps = models.JSONField(default=list)
    screen = models.TextField(blank=True, default="")
    note = models.CharField(max_length=500, blank=True, default="")
    asked_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    deadline = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                name="trial_one_open_per_agent", fields=["profile"], condition=Q(state__in=OPEN)
            ),
            models.CheckConstraint(
                name="trial_ended_iff_over",
                condition=(
                    Q(state__in=OPEN, ended_at=None)
                    | ~Q(state__in=OPEN) & Q(ended_at__isnull=False)
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"trial {self.pk} of {self.profile_id} ({self.state})"

    @property
    def session(self) -> str:
        """Its tmux session; no project's, so that it takes no slot."""
        return f"trial-{self.pk}"

    @property
    def is_over(self) -> bool:
        return TrialState(self.state).is_over
