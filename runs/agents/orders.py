"""What a run's session is started with: argument list, task, token, environment."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from runs.accounts import hold_rules
from runs.agents import claude_settings, commands
from runs.core import naming, tokens
from runs.core.ports import Lab, Order, SeamError
from runs.followups import nudge_rules
from runs.followups import rules as followups
from runs.forges import cadence
from runs.models import AgentProfile, Project, Run, Settings
from runs.projects import git_credentials
from runs.waits import codex_hooks
from trackers.keys import evidence_of

MOST_COMMITS = 100
_SIGNING = (
    "GIT_AUTHOR_",
    "GIT_COMMITTER_",
    "GIT_CONFIG_",
    "HOME",
    "XDG_CONFIG_HOME",
    "GNUPGHOME",
    "SSH_AUTH_SOCK",
)
UNSIGNED = (
    "git of the user that runs labsite signs commits, and could not do so without a person: {why}. "
    "Signing is off for this run, so that nothing waits for a passphrase"
)
_UNSIGNED = {"commit.gpgsign": "false", "tag.gpgsign": "false"}
COLUMNS = 120  # so that its screen fits beside the navigation, and a phone

logger = logging.getLogger(__name__)


def make(lab: Lab, run: Run, profile: AgentProfile, settings: Settings) -> Order:
    """The order for a run's session; its token starts to count, its task is kept on the row."""
    folder = lab.paths.run_folder(run.pk)
    prompt, follow_up = _texts(lab, run)
    argv = template_of(profile)
    start = hold_rules.start_of(
        argv, prompt, run.agent_session, was_held=bool(run.resumes), follow_up=follow_up
    )
    asked = run.gate_message if run.was_reentered else nudge(lab, run) if run.is_nudged_only else ""
    if asked and run.agent_session:
        start = hold_rules.asked_again(argv, asked) or start
    elif asked:  # a fresh session knows neither the task, nor the work, nor what a person asked for
        told = "\n\n".join(part for part in (follow_up, asked) if part)
        start = hold_rules.start_of(argv, prompt, "", follow_up=told)
    template = start.argv
    token = tokens.new_run_token()
    files = {"token": token, "prompt.md": start.words}
    if run.project.git_token:
        files["git-token"] = str(run.project.git_token)
    # The program of a loop gets the environment of each turn's agent with its order.
    own = {} if run.is_loop else {str(k): str(v) for k, v in profile.env.items()}
    env = {**_session_env(lab, run, folder, settings), **own}
    if env.get("BASH_ENV"):
        env["LAB_BASH_ENV"] = env["BASH_ENV"]
    env["BASH_ENV"] = str(lab.paths.bash_env)
    run.mode, run.output, run.resume_argv = _kind(run, profile)
    if not start.is_same_session and any("{session}" in word for word in template):
        run.agent_session = str(uuid.uuid4())
    if claude_settings.is_wanted(template):
        # What prints lines for us tells all of it there.
        labctl = None if profile.output else lab.paths.bin / "labctl"
        files[claude_settings.NAME] = claude_settings.content(labctl)
    env = {**switches_of(profile), **env}
    Run.objects.filter(pk=run.pk).update(
        prompt=prompt,
        token_hash=tokens.hash_token(token),
        mode=run.mode,
        output=run.output,
        resume_argv=run.resume_argv,
        agent_session=run.agent_session,
        link_waits=bool(profile.link_url or profile.link_generic),
        deep_link="",
    )
    values = {
        "prompt": start.words,
        "prompt_file": str(folder / "prompt.md"),
        "model": run.model,
        "effort": run.effort,
        "worktree": run.worktree,
        "settings": str(folder / claude_settings.NAME),
        "session": run.agent_session,
    }
    argv = commands.fill(template, values)
    argv = _equipped(lab, run, argv)
    return Order(
        session=run.session,
        folder=folder,
        cwd=Path(run.worktree),
        argv=argv,
        env=env,
        files=files,
        marker=run.marker(lab.paths),
        nofile=settings.nofile_limit,
        output=run.output,
        recording=settings.recording_mb * 1_000_000,
        columns=COLUMNS,
    )


def _kind(run: Run, profile: AgentProfile) -> tuple[str, str, list[str]]:
    """How the program of the session is read. That of a loop runs the agent once a turn, and prints
    for people."""
    if run.is_loop:
        return profile.mode, "", []
    return profile.mode, profile.output, profile.resume_argv


def _equipped(lab: Lab, run: Run, argv: list[str]) -> list[str]:
    """With what labsite gives to it; of a loop the program that runs its turns."""
    labctl = lab.paths.bin / "labctl"
    if run.is_loop:
        return [str(labctl), "turns"]
    return argv if run.is_one_shot else codex_hooks.equipped(argv, labctl)


def _texts(lab: Lab, run: Run) -> tuple[str, str]:
    """The task, and what a person told an agent that goes on with earlier work; empty for others."""
    evidence = _evidence(lab, run)
    labctl = str(lab.paths.bin / "labctl")
    about = {"key": run.issue_key, "title": run.issue_title, "branch": run.branch}
    if run.is_gated:
        task = commands.gated_task_text(**about, evidence=evidence, labctl=labctl)
    else:
        base = run.project.default_branch
        task = commands.task_text(**about, base=base, evidence=evidence, labctl=labctl)
    if run.continues_id is None:
        return task, ""
    told = followups.told(
        run.follow_up,
        key=run.issue_key,
        branch=run.branch,
        amends=run.amends,
        evidence=evidence,
        labctl=labctl,
    )
    told += f"\n{commands.CHECKED} Do so before you commit.\n" if run.is_gated else ""
    return task, told + followups.lacks(_behind(lab, run), run.branch)


def _behind(lab: Lab, run: Run) -> int:
    """How many commits origin's branch has, as last fetched, that its own has not."""
    repo = run.project.repo(lab.paths)
    try:
        here = lab.repos.tip(repo, f"refs/heads/{run.branch}")
        there = lab.repos.tip(repo, f"refs/remotes/origin/{run.branch}")
        return len(lab.repos.commits(repo, here, there, MOST_COMMITS)) if here and there else 0
    except SeamError as error:
        logger.info("branches were not compared", extra={"run_id": run.pk, "error": str(error)})
        return 0


def goes_on(run: Run, session: str) -> bool:
    """Whether its agent can be told something in this session of its own."""
    return run.profile is not None and hold_rules.goes_on(template_of(run.profile), session)


def nudge(lab: Lab, run: Run) -> str:
    """What an agent is asked that stopped without a delivery."""
    return nudge_rules.text(key=run.issue_key, branch=run.branch, evidence=_evidence(lab, run))


def _evidence(lab: Lab, run: Run) -> str:
    """The word by which a commit names the issue where no pull request is wanted; else empty."""
    names = evidence_of(run.project.tracker, run.issue_key)
    is_named = run.is_gated or cadence.is_without_pulls(lab, run.project)
    return names[0] if is_named else ""


def template_of(profile: AgentProfile) -> list[str]:
    """The profile's argument list; an interactive Claude Code is given our settings and an id."""
    is_claude = profile.trust == AgentProfile.TrustKind.CLAUDE
    if is_claude and profile.mode == AgentProfile.Mode.INTERACTIVE:
        return claude_settings.equipped(profile.argv)
    return list(profile.argv)


def switches_of(profile: AgentProfile) -> Mapping[str, str]:
    """What an agent's program is told by its environment where nobody sits beside it."""
    is_claude = profile.trust == AgentProfile.TrustKind.CLAUDE
    is_told = is_claude or claude_settings.is_wanted(profile.argv)
    return claude_settings.ENVIRONMENT if is_told else {}


def _session_env(lab: Lab, run: Run, folder: Path, settings: Settings) -> dict[str, str]:
    """What labctl and git need inside the session; paths only, no secret."""
    return {
        "LAB_RUN_FOLDER": str(folder),
        "LAB_ADDRESS_FILE": str(lab.paths.address),
        "LAB_WAKE_SOCKET": str(lab.paths.worker_socket),
        "LAB_PROJECT": run.project.slug,
        "LAB_SIGNALS": str(lab.paths.signals(run.project.slug)),
        "LAB_WORKTREE": run.worktree,
        "LAB_ISSUE": run.issue_key,
        "LAB_BRANCH": run.branch,
        **naming.ports_env(run.slot),
        "TMPDIR": str(lab.paths.temporary_folder(run.pk)),
        "GIT_TERMINAL_PROMPT": "0",
        **_git_env(lab, run),
        **committer_env(lab, run.project, settings),
    }


def without_signing(lab: Lab, order: Order) -> tuple[Order, str]:
    """Return an order under which git signs nothing, and why, where it would wait for a passphrase.

    Nobody could type it: a one-shot agent would hang, and no commit of another one would be made.
    """
    given = {name: text for name, text in order.env.items() if name.startswith(_SIGNING)}
    try:
        why = lab.repos.why_unsigned(given)
    except SeamError as error:
        logger.warning("whether git can sign could not be told", extra={"error": str(error)})
        why = ""
    if not why:
        return order, ""
    env = {**order.env, **_git_settings(order.env, _UNSIGNED)}
    return replace(order, env=env), UNSIGNED.format(why=why)


def _git_settings(env: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that add these settings of git to those which an environment holds."""
    told = env.get("GIT_CONFIG_COUNT", "")
    first = int(told) if told.isdecimal() else 0
    added = {"GIT_CONFIG_COUNT": str(first + len(settings))}
    for number, (name, value) in enumerate(settings.items(), first):
        added |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return added


def committer_env(lab: Lab, project: Project, settings: Settings) -> Mapping[str, str]:
    """Return who commits: whom the project names, else the settings, else git, else labsite.

    An agent's profile may set another.
    """
    chosen = project.committer or settings.committer
    if chosen:
        return naming.committer_env(*naming.parse_committer(chosen))
    try:
        is_known = lab.repos.committer(project.repo(lab.paths)) is not None
    except SeamError as error:
        logger.warning("who commits could not be told", extra={"error": str(error)})
        is_known = True
    return {} if is_known else naming.COMMITTER_ENV


def _git_env(lab: Lab, run: Run) -> dict[str, str]:
    """How git gets its password. One that does not last is kept by no helper that would store it."""
    parts = urlsplit(run.project.url)
    ask = {"GIT_ASKPASS": str(lab.paths.bin / "git-askpass")}
    if parts.scheme in ("http", "https"):
        ask["LAB_GIT_PLACE"] = f"{parts.scheme}://{parts.netloc}"
    if not git_credentials.is_asked_for(run.project):
        return ask if run.project.git_token else {}
    return ask | {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"credential.{parts.scheme}://{parts.netloc}.helper",
        "GIT_CONFIG_VALUE_0": "",
    }
