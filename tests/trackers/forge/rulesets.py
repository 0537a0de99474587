"""Rules on branches as the forges tell them, and whether there are workflow files (from memory)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.trackers.forge.asking import Asked, Told

if TYPE_CHECKING:
    from tests.trackers.forge.double import Double

_PATH = re.compile(r"/repos/([^/]+/[^/]+)/(rules/branches/[^/]+|rulesets/(\d+)|branch_protections)")
_FILES = re.compile(r"/repos/([^/]+/[^/]+)/contents/.github/workflows")


def answer(forge: Double, asked: Asked, path: str) -> Told | None:
    """The answer to a question about rules or workflow files; None for any other."""
    found = _PATH.fullmatch(path) or _FILES.fullmatch(path)
    repo = forge.find_repo(found[1]) if found and asked.method == "GET" else None
    if found is None or repo is None:
        return None
    token = forge.tokens.get(asked.token)
    is_app = token is not None and token.kind == "installation"
    role = "write" if is_app else repo.role(token.person if token else None)
    if role == "none":
        return forge.error(404)
    if found.re is _FILES:
        return Told(200, [{"name": "ci.yml"}]) if repo.has_workflows else forge.error(404)
    if found[3]:
        ruleset = repo.rulesets.get(int(found[3]))
        return Told(200, ruleset) if ruleset is not None else forge.error(404)
    if found[2] == "branch_protections" and role != "admin":
        return forge.error(403, "user should be an owner or a collaborator with admin write")
    return Told(200, repo.branch_rules)
