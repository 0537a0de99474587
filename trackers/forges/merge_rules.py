"""In which ways a pull request may be merged: what the repository and its rulesets allow. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trackers.forges import reading

# The order in which they are tried, and by which field a repository allows them.
GITHUB_STYLES = {
    "merge": "allow_merge_commit",
    "squash": "allow_squash_merge",
    "rebase": "allow_rebase_merge",
}
GITEA_STYLES = {
    "merge": "allow_merge_commits",
    "squash": "allow_squash_merge",
    "rebase": "allow_rebase",
    "rebase-merge": "allow_rebase_explicit",
    "fast-forward-only": "allow_fast_forward_only_merge",
}
_STYLE_REFUSED = ("are not allowed on this repository", "must not contain merge commits")


@dataclass(frozen=True, slots=True)
class MergeRules:
    """What the rulesets of GitHub say of merges into a branch.

    `styles`: the ways of merging that all of them allow.
    """

    has_queue: bool = False
    styles: frozenset[str] = frozenset(GITHUB_STYLES)


def read_merge_rules(entries: Sequence[Any]) -> MergeRules:
    """Return what the rules that apply to a branch say of merges. Unknown rules say nothing."""
    has_queue, styles = False, frozenset(GITHUB_STYLES)
    for entry in entries:
        kind = reading.text(entry, "type")
        has_queue = has_queue or kind == "merge_queue"
        if kind == "required_linear_history":
            styles -= {"merge"}
        allowed = reading.value(entry, "parameters", "allowed_merge_methods")
        if kind == "pull_request" and isinstance(allowed, list):
            styles &= {one for one in allowed if isinstance(one, str)}
    return MergeRules(has_queue, styles)


def github_styles(about: Any, rules: MergeRules | None) -> Sequence[str]:
    """Return the ways to try, in order; `rules` is None where they could not be read.

    GitHub shows what a repository allows only to those who may write: without that all are tried.
    """
    told = {style: reading.value(about, field) for style, field in GITHUB_STYLES.items()}
    known = any(isinstance(one, bool) for one in told.values())
    styles = rules.styles if rules is not None else frozenset(GITHUB_STYLES)
    return [style for style in told if style in styles and (told[style] is True or not known)]


def gitea_style(about: Any) -> str:
    """Return the repository's usual way, else the first that it allows."""
    allowed = [
        style for style, field in GITEA_STYLES.items() if reading.value(about, field) is True
    ]
    usual = reading.text(about, "default_merge_style")
    return usual if usual and (usual in allowed or not allowed) else (allowed or ["merge"])[0]


def is_style_refused(said: str) -> bool:
    """Return whether GitHub refuses this way of merging and another one may pass."""
    return any(words in said.lower() for words in _STYLE_REFUSED)


def is_queue_required(said: str) -> bool:
    """Return whether GitHub refuses a merge because its branch has a merge queue."""
    return "merge queue" in said.lower()
