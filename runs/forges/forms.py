"""Forms on trackers: accounts on forges, and where a project's issues are. The verbs decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms

from runs.core.states import ForgeKind, Mirror, TrackerKind
from runs.forges import acts, switching
from runs.forges.recognise import Offer
from runs.forges.switching import Wanted
from runs.models import Forge, Project
from runs.settings import edits
from runs.settings.edit_forms import EditForm

PLAIN = {"autocomplete": "off", "spellcheck": "false"}
CREDENTIAL = ("token", "app_id", "app_installation", "app_key")


class SecretArea(forms.Textarea):
    """A secret of many lines; what was typed is never sent back."""

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        return super().get_context(name, None, attrs)


class AccountForm(EditForm):
    """An account that is kept already. Its credential goes in and never comes out."""

    name = forms.CharField(
        label="Name",
        max_length=60,
        help_text="Display name, such as: GitHub, the lab's robot.",
        widget=forms.TextInput(attrs=PLAIN),
        error_messages={"required": "Write a name."},
    )
    web = forms.CharField(
        label="Address",
        max_length=500,
        help_text="Where people open the forge, such as https://git.example.org.",
        widget=forms.TextInput(attrs=PLAIN),
        error_messages={"required": "Write the address of the forge."},
    )
    api = forms.CharField(
        label="Address of its API",
        max_length=500,
        required=False,
        help_text="Only where it is in an unusual place. Empty: where such forges have it.",
        widget=forms.TextInput(attrs=PLAIN),
    )
    token = forms.CharField(
        label="Access token",
        max_length=20_000,
        required=False,
        help_text="Stored encrypted, never shown again.",
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )
    app_id = forms.CharField(
        label="Id of the app",
        max_length=100,
        required=False,
        widget=forms.TextInput(attrs=PLAIN),
    )
    app_installation = forms.CharField(
        label="Id of its installation",
        max_length=100,
        required=False,
        widget=forms.TextInput(attrs=PLAIN),
    )
    app_key = forms.CharField(
        label="Its private key",
        max_length=20_000,
        required=False,
        help_text="The text of the .pem file. Stored encrypted, never shown again.",
        widget=SecretArea(attrs={**PLAIN, "rows": 4}),
    )

    @classmethod
    def stored(cls, forge: Forge) -> AccountForm:
        """The form with what is kept, but its credential."""
        shown = acts.said(forge)
        return cls(initial={**shown, "seen": edits.mark(shown)})

    @property
    def credential(self) -> Mapping[str, str]:
        return {part: self.cleaned_data[part] for part in CREDENTIAL}

    @property
    def plain_fields(self) -> Sequence[forms.BoundField]:
        """Those above the GitHub App."""
        return [field for field in self.visible_fields() if not field.name.startswith("app_")]

    @property
    def app_fields(self) -> Sequence[forms.BoundField]:
        return [field for field in self if field.name.startswith("app_")]

    @property
    def has_app_errors(self) -> bool:
        return any(field.errors for field in self.app_fields)


class NewAccountForm(AccountForm):
    """A new account."""

    kind = forms.ChoiceField(label="Kind", choices=[(k.value, k.label) for k in ForgeKind])
    field_order = ["kind", "name", "web", "api", "token"]


class TrackerForm(EditForm):
    """Where a project's issues are, and what its labels are called."""

    tracker = forms.ChoiceField(label="Issues are", widget=forms.RadioSelect)
    repository = forms.CharField(
        label="Repository on the forge",
        max_length=300,
        required=False,
        help_text="owner/name. Empty: as the clone address says.",
        widget=forms.TextInput(attrs=PLAIN),
    )
    ready_label = forms.CharField(
        label="Ready label",
        max_length=60,
        required=False,
        help_text="Issues with this label may be started. Beads: empty for whatever bd calls ready.",
        widget=forms.TextInput(attrs=PLAIN),
    )
    working_label = forms.CharField(
        label="Working label",
        max_length=60,
        required=False,
        help_text="Set while a run works, if labsite writes its status. Such as: in-progress.",
        widget=forms.TextInput(attrs=PLAIN),
    )
    mirror = forms.ChoiceField(
        label="labsite writes on the tracker",
        required=False,
        choices=[(one.value, one.label) for one in Mirror],
        help_text="A trace for people. Nothing depends on it, and it is never read.",
    )

    def __init__(self, project: Project, forges: Sequence[Forge], data: Any = None) -> None:
        self._forges = {f"forge-{forge.pk}": forge for forge in forges}
        shown = switching.stored(project)
        super().__init__(data, initial={**shown, "seen": edits.mark(shown)})
        choose = self.fields["tracker"]
        assert isinstance(choose, forms.ChoiceField)  # noqa: S101  (tells mypy)
        choose.choices = choices(forges, switching.has_beads(project))
        choose.error_messages["invalid_choice"] = "That tracker is not on the list."

    def wanted(self) -> Wanted:
        """What was chosen, for the verb."""
        told = {name: value for name, value in self.cleaned_data.items() if name != "seen"}
        tracker, forge = meant(told.pop("tracker"), self._forges.values())
        return Wanted(tracker, forge, **told)


def choices(forges: Sequence[Forge], has_beads: bool) -> list[tuple[str, str]]:
    """The trackers that can be chosen."""
    found = [(TrackerKind.BUILTIN.value, "kept by labsite itself")]
    found += [(f"forge-{one.pk}", f"on {one.web}, asked as {one.name}") for one in forges]
    return found + ([(TrackerKind.BEADS.value, "those of beads in its folder")] * has_beads)


def meant(choice: str, forges: Any) -> tuple[str, Forge | None]:
    """Kind and account of a choice."""
    named, _, pk = choice.partition("-")
    if named != "forge":
        return choice, None
    forge = next((one for one in forges if str(one.pk) == pk), None)
    return (forge.kind if forge is not None else ""), forge


def chosen_of(offer: Offer, choice: str) -> tuple[str, Forge | None] | None:
    """Kind and account of what was chosen for a new project; None for what was not offered."""
    if choice not in dict(choices(offer.forges, offer.has_beads)):
        return None
    return meant(choice, offer.forges)
