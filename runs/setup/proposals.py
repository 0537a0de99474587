"""Looks at a project's repository for what a new worktree needs."""

from __future__ import annotations

from runs.core.ports import Lab
from runs.models import Project
from runs.setup import proposal_rules
from runs.setup.proposal_rules import SetUpProposal
from runs.specs.proposals import MOST_BYTES


def read_proposal(lab: Lab, project: Project) -> SetUpProposal:
    """Return what the files of origin's default branch suggest, as last fetched. Raises SeamError."""
    repo = project.repo(lab.paths)
    commit = lab.repos.upstream(repo, project.default_branch)
    return proposal_rules.propose_setup(
        lab.repos.texts(repo, commit, proposal_rules.FILES, MOST_BYTES)
    )
