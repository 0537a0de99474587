"""Where a trial of an agent takes place, and what can be seen of it."""

from __future__ import annotations

import shutil
from pathlib import Path

from runs.agents.trial_rules import TrialFacts
from runs.core import naming
from runs.core.ports import Desk, Lab, Order, SeamError
from runs.core.states import AgentMode, TrackerKind
from runs.models import AgentTrial, Project, Run, Settings
from runs.transcript import hook_events, screens

SCREEN_LINES = 40
_OF_TMUX = "Pane is dead ("
KEY, TITLE = "1", "Add a file with one line"
README = "A scratch repository of labsite, made to try an agent. It is removed afterwards.\n"


def folder(lab: Lab, trial: AgentTrial) -> Path:
    """One a profile, so that an agent that notes folders which it trusts notes one."""
    return lab.paths.trials / str(trial.profile_id)


def scratch(lab: Lab, trial: AgentTrial) -> Run:
    """A repository with an origin of its own, and a run that is stored nowhere. Raises SeamError."""
    here = folder(lab, trial)
    source, origin, repo = here / "source", here / "origin.git", here / "repo.git"
    try:
        shutil.rmtree(here, ignore_errors=True)
        source.mkdir(parents=True, mode=0o700)
        (source / "README.md").write_text(README, encoding="utf-8")
    except OSError as error:
        raise SeamError(f"{here} could not be written: {error.strerror}") from error
    lab.repos.found(source, "docs: say what this is")
    lab.repos.create_origin(origin, source)
    lab.repos.create(repo, str(origin))
    lab.repos.fetch(repo, url=str(origin))
    commit = lab.repos.upstream(repo, "main")
    branch, tree = naming.branch_for(KEY), here / "tree"
    lab.repos.add_worktree(repo, tree, branch, commit)
    settings = Settings.current()
    is_general = trial.profile_id == settings.agent_id
    project = Project(
        name="trial",
        slug="trial",
        url=str(origin),
        default_branch="main",
        tracker=TrackerKind.BUILTIN,
    )
    return Run(
        pk=-trial.pk,
        project=project,
        issue_key=KEY,
        issue_title=TITLE,
        session=trial.session,
        branch=branch,
        fork_point=commit,
        worktree=str(tree),
        mark=trial.mark,
        model=settings.model if is_general else "",
        effort=settings.effort if is_general else "",
    )


def facts(lab: Lab, trial: AgentTrial, run: Run, desk: Desk, order: Order) -> TrialFacts:
    alive, status = _is_alive(lab, trial, order)
    screen = _screen(lab, trial)
    hooks = any(name.endswith("settings.json") for name in order.files) and not order.output
    told = _hooked(lab, order)
    return TrialFacts(
        is_one_shot=trial.profile.mode == AgentMode.ONE_SHOT,
        has_hooks=hooks,
        alive=alive,
        exit_status=status,
        asked=desk.asked(),
        is_pushed=_pushed(lab, run),
        heard=told.read > 0,
        began=told.began_at is not None,
        turn_over=told.turn_ended_at is not None,
        refused=told.report.agent_note if told.was_refused else "",
        is_late=lab.now() >= trial.deadline,
        last_line=screens.last_line(screen),
    )


def _is_alive(lab: Lab, trial: AgentTrial, order: Order) -> tuple[bool | None, int | None]:
    """Whether the program runs, and the status with which it ended; None: could not tell."""
    try:
        seen = lab.sessions.look().get(trial.session)
    except SeamError:
        return None, None
    if seen is not None and seen.alive:
        return True, None
    kept = lab.sessions.exit_of(order.folder)
    status = kept.status if kept is not None else None
    return False, status if status is not None or seen is None else seen.exit_status


def _hooked(lab: Lab, order: Order) -> hook_events.Session:
    piece = lab.sessions.output(order.folder, 0, hook_events.MOST_BYTES, hook_events.FILE)
    return hook_events.read_on(hook_events.Session(), piece.data if piece else b"", lab.now())


def _screen(lab: Lab, trial: AgentTrial) -> str:
    """The last lines of the session, without what only a terminal understands; kept on the row."""
    try:
        shown = lab.sessions.screens([trial.session], SCREEN_LINES).get(trial.session)
    except SeamError:
        shown = None
    if shown is not None:
        lines = [line.rstrip() for line in screens.plain(shown).splitlines()]
        trial.screen = "\n".join(
            [line for line in lines if line and not line.startswith(_OF_TMUX)][-SCREEN_LINES:]
        )
    return trial.screen


def _pushed(lab: Lab, run: Run) -> bool | None:
    try:
        return is_pushed(lab, run)
    except SeamError:
        return None


def is_pushed(lab: Lab, run: Run) -> bool:
    """Whether the scratch origin has the branch with a commit of its own. Raises SeamError."""
    repo = _repo(run)
    tip = lab.repos.pushed(repo, run.branch, url=run.project.url)
    return tip is not None and tip != run.fork_point


def _repo(run: Run) -> Path:
    return Path(run.worktree).with_name("repo.git")
