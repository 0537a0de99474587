"""What the HTTP API answers. Nothing here names a secret, so none can be shown."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field, create_model

from runs.core.states import (
    AgentState,
    NoticeKind,
    Outcome,
    ProjectState,
    RunKind,
    RunState,
    Trouble,
    Wait,
    WorktreeFate,
)
from runs.dispatch.eligibility import Act, Why
from runs.models import AgentProfile, ApiToken
from runs.settings.acts import NUMBERS

# A string and no list of words: a newer worker beside this process may tell kinds that it lacks.
KINDS = f"One of {', '.join(NoticeKind)}; a newer version may tell others."


class Problem(BaseModel):
    """Every refusal: a code for programs, a sentence, and a sentence for each wrong field."""

    code: str
    text: str
    fields: dict[str, str]


class Project(BaseModel):
    """A git repository with its tracker, its settings and its runs."""

    id: int
    name: str
    state: ProjectState
    source: str
    default_branch: str
    tracker: str
    ready_label: str
    agent: int | None
    run_budget_minutes: int | None
    run_tokens_limit: Annotated[int | None, Field(description="Null: the general limit; 0: none.")]
    run_cost_limit: Annotated[
        float | None, Field(description="US dollars. Null: the general limit; 0: none.")
    ]
    day_tokens_limit: Annotated[int, Field(description="On one day of UTC; 0: none.")]
    day_cost_limit: Annotated[float, Field(description="US dollars; 0: none.")]
    waits_stop_budget: bool
    clone_progress: str
    error: str
    warning: str
    created_at: datetime
    last_opened_at: datetime | None
    is_auto: bool
    parallel_runs: int
    streak: Annotated[int, Field(ge=0, description="Failed runs in a row.")]
    is_paused: Annotated[bool, Field(description="Nothing starts by itself until Reset.")]
    last_failure: Annotated[int | None, Field(description="The run that failed last, if any.")]


class Removal(BaseModel):
    """What removing a project takes from labsite, and what is kept on disk. Null: git could not say."""

    to_stop: Annotated[
        list[str] | None,
        Field(description="What to do first; empty: it can be removed. Null: tmux did not answer."),
    ]
    parked: Annotated[int | None, Field(description="Branches that nothing live owns.")]
    unpushed: Annotated[int | None, Field(description="Commits that origin does not have.")]
    uncommitted: Annotated[list[str] | None, Field(description="Branches with changes on disk.")]
    rescues: int
    runs: int
    watch_sessions: int
    groups: int
    issues: Annotated[int, Field(description="Issues that labsite itself keeps.")]
    pulls: Annotated[int, Field(description="Pull requests that labsite itself keeps.")]
    is_hosted: Annotated[bool, Field(description="Whether labsite keeps its origin.")]


class Change(BaseModel):
    """What a person can do about a failed condition, and to which issue, branch or agent."""

    act: Act
    target: str
    text: str


class Obstacle(BaseModel):
    """One failed condition. `only_auto`: a start that names the issue passes it."""

    why: Why
    text: str
    only_auto: bool
    change: Change


class WaitingIssue(BaseModel):
    """A ready issue that is not running; without `failed` it starts at the next look."""

    issue: str
    title: str
    failed: list[Obstacle]
    changes: Annotated[list[Change], Field(description="The fewest changes that start it.")]


class WaitingIssues(BaseModel):
    """`is_known` is false when the tracker did not answer."""

    is_known: bool
    items: list[WaitingIssue]


class Projects(BaseModel):
    items: list[Project]
    next: int | None


class AgentHold(BaseModel):
    """Why nothing is started with an agent: its account cannot be used until then."""

    trouble: Trouble
    note: str
    since: datetime
    until: datetime


class Agent(BaseModel):
    """A coding program that may be chosen. Its arguments and environment are not shown.

    `hold` is null while its account can be used.
    """

    id: int
    name: str
    mode: AgentProfile.Mode
    models: list[str]
    efforts: list[str]
    is_chosen: bool
    is_found: Annotated[
        bool | None, Field(description="Whether its program is on the machine; null: not known.")
    ]
    version: Annotated[str, Field(description="As it told itself; empty: not known.")]
    untried: Annotated[
        str, Field(description="That nobody has tried this version, in words; empty otherwise.")
    ]
    is_logged_in: Annotated[bool | None, Field(description="As asked last; null: not known.")]
    checked_at: datetime | None
    hold: AgentHold | None


class Agents(BaseModel):
    items: list[Agent]


class Comment(BaseModel):
    id: int
    author: str
    body: str
    at: datetime


class Comments(BaseModel):
    items: list[Comment]
    next: int | None


class IssueRow(BaseModel):
    """An issue as a list shows it."""

    number: int
    title: str
    author: str
    labels: list[str]
    state: Literal["open", "closed"]
    comment_count: int
    created_at: datetime
    updated_at: datetime


class Issue(IssueRow):
    """An issue with its text and its first comments."""

    body: str
    comments: Comments


class Issues(BaseModel):
    items: list[IssueRow]
    next: int | None


class LabelNames(BaseModel):
    items: list[str]


class AgentTold(BaseModel):
    """What an agent told of itself; null where it told nothing, which is never zero.

    Tokens include those of subagents and, in `tokens_in`, those from the cache. Until a one-shot
    program has ended by itself they are what its messages reported up to now, and so at least that
    many. `context_tokens` is what its last message was given, of `context_window` at most.
    """

    state: AgentState | None
    until: datetime | None
    note: str
    session: str
    model: str
    turns: int | None
    tokens_in: int | None
    tokens_cached: int | None
    tokens_out: int | None
    context_tokens: int | None
    context_window: int | None
    cost_usd: float | None


class RunWait(BaseModel):
    """For what a working run waits that only a person can give, and what its program said of it.

    `answer`, `answered_by`, `answered_at`: what was sent, by whom, while it has not gone on yet;
    `has_changed`: whether its screen has changed since.
    """

    kind: Wait
    since: datetime
    note: str
    answer: str
    answered_by: str
    answered_at: datetime | None
    has_changed: bool


class RunInterrupt(BaseModel):
    """Who interrupted the agent's last turn, while it has no next word.

    `has_changed`: whether its screen has changed since the key was sent.
    """

    by: str
    at: datetime
    has_changed: bool


class RunRow(BaseModel):
    """One agent's work on one issue. `outcome` is null while the run is active.

    One that is held has no session and no slot; it goes on at `held_until`, or with null as soon
    as a slot is free. `resumes`: how often it was started again.
    """

    id: int
    project: int
    issue: str
    issue_title: str
    kind: RunKind
    state: RunState
    outcome: Outcome | None
    reason: str
    agent: str
    model: str
    effort: str
    session: str
    slot: int | None
    branch: str
    worktree: str
    worktree_fate: WorktreeFate
    started_by: str
    continues: Annotated[int | None, Field(description="The ended run that it goes on with.")]
    amends: Annotated[
        int | None, Field(description="The open pull request that it adds commits to.")
    ]
    requested_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    held_at: datetime | None
    held_until: datetime | None
    waits: RunWait | None
    interrupted: RunInterrupt | None
    resumes: int
    used_seconds: Annotated[int, Field(ge=0, description="Wall time used; never below 0.")]
    budget_seconds: Annotated[int, Field(ge=0, description="Wall time allowed.")]
    waited_seconds: Annotated[int, Field(ge=0, description="Of all time, waiting for a person.")]
    is_budget_stopped: Annotated[bool, Field(description="By its wait, as its project wants.")]
    commits: int
    proven: str
    pull_number: int | None
    pull_url: str
    exit_status: int | None
    exit_signal: int | None
    last_line: str
    warning: str
    told: AgentTold


class RunChoice(BaseModel):
    """One of the answers that an agent's dialog offers, and the digit that gives it."""

    digit: int
    text: str


class RunOffer(BaseModel):
    """How a run that waits may be answered now: with a text, or with a choice of the dialog `mark`."""

    has_text: bool
    choices: list[RunChoice]
    mark: str


class Run(RunRow):
    """A run with its task and the end of its screen.

    `offers` is null while it waits for nobody, or was answered a moment ago.
    """

    prompt: str
    follow_up: Annotated[str, Field(description="What its agent was told to go on with.")]
    last_words: str
    offers: RunOffer | None


class Runs(BaseModel):
    """`next` is a number in the order of starts, and in all others a word to be given back as it is."""

    items: list[RunRow]
    next: int | str | None


class Started(BaseModel):
    """How the start was answered. `code` is empty while the worker has not answered yet."""

    code: Literal["", "started"]
    text: str
    request: int
    run: RunRow | None


class Retried(BaseModel):
    """How far a retry is: its start request once the work is discarded, and the new run."""

    text: str
    request: int | None
    run: int | None


class Stopped(BaseModel):
    """How many runs were stopped."""

    stopped: int


class Entry(BaseModel):
    """One entry of the timeline. `by` is empty where the product itself did it.

    `watch` is the watch session that it is part of; its runs are too. `times`: how many equal passes of
    a monitor it stands for, the first told at `since` and the last at `at`.
    """

    id: int
    at: datetime
    kind: Annotated[str, Field(description=KINDS)]
    project: int | None
    run: int | None
    watch: int | None
    issue: str
    text: str
    by: str
    outcome: Outcome | None
    times: int
    since: datetime | None


class Timeline(BaseModel):
    """Entries, oldest first. `cursor` is the last one's id: ask with `after=cursor` next time."""

    items: list[Entry]
    cursor: int
    is_all: bool


class Acts(BaseModel):
    """What people did, newest first."""

    items: list[Entry]
    next: int | None


class Me(BaseModel):
    """Whose token this is and what it allows."""

    user: str
    token: str
    scope: ApiToken.Scope
    may_act: bool
    may_tune: bool
    expires_at: datetime | None


class _Described(BaseModel):
    """The settings in force."""

    agent: int | None
    model: str
    effort: str


_SHOWN: dict[str, tuple[object, object]] = {
    name: (float if name.endswith("_cost_limit") else int, ...) for name in NUMBERS
}
Limits = create_model("Settings", __base__=_Described, **_SHOWN)  # type: ignore[call-overload]
