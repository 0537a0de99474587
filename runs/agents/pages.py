"""What pages show of agents' profiles: program, version, login, account, and how the last trial ended."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from django.db.models import Max

from runs.accounts.payment_rules import Payment
from runs.agents import check_rules, checks
from runs.agents import trial as trials
from runs.agents.trial_rules import StepState, TrialState, Tried
from runs.core.ports import Lab
from runs.models import AgentProfile, AgentTrial, Project, Settings
from runs.overview import board
from runs.overview.board import Board


@dataclass(frozen=True, slots=True)
class Card:
    """One profile. `path` is where its program was found just now, `wrong` why it cannot start.

    `untried` says that nobody has tried the version that is installed here.
    """

    profile: AgentProfile
    path: str
    wrong: str
    is_chosen: bool
    trial: AgentTrial | None = None
    payment: Payment = field(default_factory=Payment)
    untried: str = ""

    @property
    def program(self) -> str:
        return str(self.profile.argv[0]) if self.profile.argv else ""

    @property
    def tone(self) -> str:
        """The colour of the card's mark."""
        if self.wrong or self.profile.is_logged_in is False:
            return "bad"
        return "warn" if self.profile.hold else "good" if self.path else ""


@dataclass(frozen=True, slots=True)
class AgentsPage:
    """The settings page as far as it is live."""

    board: Board
    cards: Sequence[Card]

    @property
    def rows(self) -> list[AgentProfile | AgentTrial]:
        """Everything that the cards show."""
        return _rows([one.profile for one in self.cards], [one.trial for one in self.cards])


def page(lab: Lab) -> AgentsPage:
    """All agents, with the frame around them. Seven queries."""
    picture = board.load(lab)
    return AgentsPage(picture, cards(lab, picture.facts.settings))


def rows() -> list[AgentProfile | AgentTrial]:
    """Everything that the cards show: the profiles, and the last trial of each. Two queries."""
    return _rows(list(AgentProfile.objects.all()), _trials())


def _rows(
    profiles: Sequence[AgentProfile], trials: Sequence[AgentTrial | None]
) -> list[AgentProfile | AgentTrial]:
    by_key = sorted(profiles, key=lambda one: one.pk)
    return [*by_key, *sorted((one for one in trials if one), key=lambda one: one.pk)]


def cards(lab: Lab, settings: Settings) -> list[Card]:
    """A card for each profile, the one for new sessions first. Starts no program."""
    profiles = AgentProfile.objects.order_by("name")
    last, tried = {trial.profile_id: trial for trial in _trials()}, trials.versions()
    made = [_card(lab, one, settings, last.get(one.pk), tried.get(one.pk, ())) for one in profiles]
    return sorted(made, key=lambda card: not card.is_chosen)


def of_new_sessions(lab: Lab, settings: Settings) -> Card | None:
    """The card of the agent that new sessions use; None when none is chosen. No query."""
    return _card(lab, settings.agent, settings) if settings.agent is not None else None


def missing(picture: Board, project: Project) -> str:
    """The name of the agent that a start would use when its program was not found; else empty."""
    if project.agent_id:
        is_gone = getattr(project, "agent_found", None) is False
        return getattr(project, "agent_name", "") if is_gone else ""
    agent = picture.facts.settings.agent
    return agent.name if agent is not None and agent.is_found is False else ""


def logged_out(picture: Board, project: Project) -> str:
    """The name of the agent that a start would use when it was logged out; else empty."""
    if project.agent_id:
        is_out = getattr(project, "agent_logged_in", None) is False
        return getattr(project, "agent_name", "") if is_out else ""
    agent = picture.facts.settings.agent
    return agent.name if agent is not None and agent.is_logged_in is False else ""


def _card(
    lab: Lab,
    profile: AgentProfile,
    settings: Settings,
    trial: AgentTrial | None = None,
    tried: Collection[str] | None = None,
) -> Card:
    """`tried`: the versions that trials started; without them nothing is said of the version."""
    path, unfit = checks.inspect(lab, profile)
    return Card(
        profile,
        profile.argv[0] if path is None else path,
        unfit.text if unfit is not None else "",
        profile.pk == settings.agent_id,
        trial,
        checks.payment(lab, profile),
        "" if tried is None else check_rules.untried(profile.argv, profile.version, tried),
    )


def _trials() -> list[AgentTrial]:
    last = AgentTrial.objects.order_by().values("profile").annotate(last=Max("pk"))
    return list(AgentTrial.objects.filter(pk__in=last.values("last")).defer("screen"))


_TONES: Mapping[StepState, str] = {
    StepState.PASSED: "good",
    StepState.FAILED: "bad",
    StepState.UNKNOWN: "warn",
}
_ENDS: Mapping[TrialState, str] = {
    TrialState.PASSED: "good",
    TrialState.FAILED: "bad",
    TrialState.RUNNING: "live",
}


@dataclass(frozen=True, slots=True)
class StepLine:
    """One step with its colour."""

    tried: Tried

    @property
    def tone(self) -> str:
        return _TONES.get(self.tried.state, "")


@dataclass(frozen=True, slots=True)
class TrialPage:
    """One trial with the frame around it."""

    board: Board
    trial: AgentTrial
    steps: Sequence[StepLine]

    @property
    def tone(self) -> str:
        return _ENDS.get(TrialState(self.trial.state), "")

    @property
    def shows_screen(self) -> bool:
        """Whether its last lines explain something: while it runs, and where it did not pass."""
        return bool(self.trial.screen) and self.trial.state != TrialState.PASSED


def trial_page(lab: Lab, trial_id: int) -> TrialPage | None:
    """Everything that the page shows; None when there is no such trial. Five queries."""
    found = AgentTrial.objects.select_related("profile").filter(pk=trial_id).first()
    if found is None:
        return None
    return TrialPage(board.load(lab), found, [StepLine(one) for one in trials.steps(found)])
