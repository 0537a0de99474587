"""Looks at a project's repository for what a new worktree needs."""

from __future__ import annotations

from runs.core import naming
from runs.core.ports import Lab
from runs.models import Project
from runs.setup import proposal_rules
from runs.setup.proposal_rules import GitFacts, SetUpProposal
from runs.specs.proposals import MOST_BYTES


def read_proposal(lab: Lab, project: Project) -> SetUpProposal:
    """Return what the files of origin's default branch suggest, as last fetched. Raises SeamError."""
    repo = project.repo(lab.paths)
    commit = lab.repos.upstream(repo, project.default_branch)
    texts = lab.repos.texts(repo, commit, proposal_rules.FILES, MOST_BYTES)
    return proposal_rules.propose_setup(texts, _read_facts(lab, project))


def _read_facts(lab: Lab, project: Project) -> GitFacts:
    return GitFacts(
        has_lfs=lab.repos.has_lfs(),
        hooks_path=lab.repos.hooks_path(),
        why_unsigned=lab.repos.why_unsigned(naming.COMMITTER_ENV),
        url=project.url,
        has_submodules=project.has_submodules,
    )
