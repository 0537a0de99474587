"""How each kind of forge wants to be asked, and what it calls the permissions that are needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Need(StrEnum):
    """What an account has to be allowed, in our words; each forge has its own."""

    SEE = "see the repository"
    READ_ISSUES = "read issues"
    WRITE_ISSUES = "write issues"
    READ_PULLS = "read pull requests"
    WRITE_PULLS = "open pull requests"
    READ_CHECKS = "read checks"
    MERGE = "merge pull requests"
    HOOKS = "set webhooks up"


@dataclass(frozen=True, slots=True)
class Dialect:
    """The manners of one kind of forge. `needs` names permissions as its own pages do."""

    name: str
    scheme: str
    headers: Mapping[str, str]
    size_name: str
    size: int
    needs: Mapping[Need, str]


GITHUB = Dialect(
    name="GitHub",
    scheme="Bearer",
    headers={"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"},
    size_name="per_page",
    size=100,
    needs={
        Need.SEE: "“Metadata: read”",
        Need.READ_ISSUES: "“Issues: read”",
        Need.WRITE_ISSUES: "“Issues: read and write”",
        Need.READ_PULLS: "“Pull requests: read”",
        Need.WRITE_PULLS: "“Pull requests: read and write”",
        Need.READ_CHECKS: "“Checks: read” and “Commit statuses: read”",
        Need.MERGE: "“Contents: read and write”",
        Need.HOOKS: "“Webhooks: read and write” and the role of an admin",
    },
)

GITEA = Dialect(
    name="Gitea",
    scheme="token",
    headers={"Accept": "application/json"},
    size_name="limit",
    size=50,
    needs={
        Need.SEE: "“read:repository”",
        Need.READ_ISSUES: "“read:issue”",
        Need.WRITE_ISSUES: "“write:issue”",
        Need.READ_PULLS: "“read:repository”",
        Need.WRITE_PULLS: "“write:repository”",
        Need.READ_CHECKS: "“read:repository”",
        Need.MERGE: "“write:repository”",
        Need.HOOKS: "“write:repository” and the role of an admin",
    },
)
