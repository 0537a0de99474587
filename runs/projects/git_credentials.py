"""With what git reaches origin over https: what was typed, a forge's token, or an App's short one."""

from __future__ import annotations

from urllib.parse import urlsplit

from runs.core.encrypted import Secret
from runs.core.ports import Lab
from runs.forges import rules as forge_rules
from runs.models import Forge, Project
from trackers.base import Refused


def of_git(lab: Lab, project: Project) -> str:
    """The project's own credential, or that of its forge. Raises SeamError where an App has none."""
    known = project.git_token
    return known or _bought(lab, project.forge, project.url)


def of_forge(lab: Lab, forge: Forge | None, url: str) -> str:
    """The same for an address that is no project yet."""
    return "" if forge is None else forge.git_token(url) or _bought(lab, forge, url)


def place(project: Project) -> str:
    """The server of a project's origin, the only one that gets its token; empty for no https."""
    parts = urlsplit(project.url)
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme in ("http", "https") else ""


def environment(lab: Lab, project: Project) -> dict[str, str]:
    """With what git in a worktree gets the token for origin's server and no other. Raises SeamError.

    Only for commands of labsite's own: programs of the repository would read it.
    """
    where = place(project)
    token = of_git(lab, project) if where else ""
    if not token:
        return {}
    return {
        "GIT_ASKPASS": str(lab.paths.bin / "git-askpass"),
        "GIT_TERMINAL_PROMPT": "0",
        "LAB_GIT_TOKEN": token,
        "LAB_GIT_PLACE": where,
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"credential.{where}.helper",
        "GIT_CONFIG_VALUE_0": "",
    }


def is_asked_for(project: Project) -> bool:
    """Whether git in a session has to ask for a token each time, since none lasts."""
    return not project.git_token and _is_of_app(project.forge, project.url)


def answer(lab: Lab, project: Project, prompt: str) -> str:
    """The token for git in a session, which was asked for with these words.

    Raises Refused when they are about another server, or the session has what it needs; SeamError.
    """
    if not is_asked_for(project) or not forge_rules.is_asked_for(prompt, project.url):
        raise Refused("labsite has no password for that.")
    return of_git(lab, project)


def _is_of_app(forge: Forge | None, url: str) -> bool:
    return forge is not None and bool(forge.account.app_id) and forge.is_at(url)


def _bought(lab: Lab, forge: Forge | None, url: str) -> str:
    if forge is None or not _is_of_app(forge, url):
        return ""
    try:
        place = forge_rules.place_of(url, forge.web)
    except forge_rules.NoRepository:
        return ""
    return Secret(lab.forges.git_token(forge.account, place.owner, place.repo))
