"""What a run's session is started with: argument list, task, token, environment."""

from __future__ import annotations

from pathlib import Path

from runs.domain import commands, tokens
from runs.domain.ports import Lab, Order
from runs.models import AgentProfile, Run, Settings
from runs.work import reaper


def make(lab: Lab, run: Run, profile: AgentProfile, settings: Settings) -> Order:
    """The order for a run's session; its token starts to count, its task is kept on the row (LAB-62)."""
    folder = lab.paths.run_folder(run.pk)
    prompt = commands.task_text(
        key=run.issue_key, title=run.issue_title, branch=run.branch, base=run.project.default_branch
    )
    token = tokens.new_token()
    files = {"token": token, "prompt.md": prompt}
    if run.project.token:
        files["git-token"] = str(run.project.token)
    env = {**_session_env(lab, run, folder), **{str(k): str(v) for k, v in profile.env.items()}}
    run.mode, run.output, run.resume_argv = profile.mode, profile.output, profile.resume_argv
    Run.objects.filter(pk=run.pk).update(
        prompt=prompt,
        token_hash=tokens.hash_token(token),
        mode=run.mode,
        output=run.output,
        resume_argv=run.resume_argv,
        link_waits=bool(profile.link_url or profile.link_generic),
        deep_link="",
    )
    values = {
        "prompt": prompt,
        "prompt_file": str(folder / "prompt.md"),
        "model": run.model,
        "effort": run.effort,
        "worktree": run.worktree,
    }
    argv = commands.fill(profile.argv, values)
    return Order(
        session=run.session,
        folder=folder,
        cwd=Path(run.worktree),
        argv=argv,
        env=env,
        files=files,
        marker=reaper.marker(lab, run),
        nofile=settings.nofile_limit,
        output=run.output,
    )


def _session_env(lab: Lab, run: Run, folder: Path) -> dict[str, str]:
    """What labctl and git need inside the session; paths only, no secret."""
    return {
        "LAB_RUN_FOLDER": str(folder),
        "LAB_ADDRESS_FILE": str(lab.paths.address),
        "LAB_WAKE_SOCKET": str(lab.paths.worker_socket),
        "LAB_PROJECT": run.project.slug,
        "LAB_ISSUE": run.issue_key,
        "LAB_BRANCH": run.branch,
        "GIT_TERMINAL_PROMPT": "0",
        **({"GIT_ASKPASS": str(lab.paths.bin / "git-askpass")} if run.project.token else {}),
    }
