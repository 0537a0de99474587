"""Which texts can be the key of an issue. Strict, since keys become branches, sessions and paths.

A key that breaks these rules is never asked for and never started.
"""

from __future__ import annotations

import re
from enum import StrEnum

LONGEST = 60  # what the column of a run's issue holds
MARKER = "auto-"
EVIDENCE = "bd-"

# Bounded, since anybody can make a session or a branch: a number that no column holds is no key.
_NUMBER = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)
# At least one hyphen, as in every key of bd. No doubled dot or underscore, so that a session name,
# which cannot hold a dot, can be read back.
_PART = r"[A-Za-z0-9]+(?:[._][A-Za-z0-9]+)*"
_WORD = re.compile(rf"{_PART}(?:-+{_PART})+", re.ASCII)
_STAMP = re.compile(r"-[0-9]{8}-[0-9]{4}\Z", re.ASCII)


class KeyRule(StrEnum):
    """What the keys of a tracker look like: numbers, or words such as `bd-a1b2.3`."""

    NUMBER = "number"
    WORD = "word"


def rule_of(kind: str) -> KeyRule:
    """The rule for the keys of a kind of tracker."""
    return KeyRule.WORD if kind == "beads" else KeyRule.NUMBER


def is_key(text: str, rule: KeyRule) -> bool:
    """Whether a text is a key that can be used as it is in branch, session and path."""
    return not why_unfit(text, rule)


def why_unfit(text: str, rule: KeyRule) -> str:
    """Why a text cannot be used as a key, in words; empty when it can."""
    if rule is KeyRule.NUMBER:
        return "" if _NUMBER.fullmatch(text) else "it is not a number"
    if len(text) > LONGEST:
        return f"it is longer than {LONGEST} characters"
    if text.startswith(MARKER):
        return f"it begins with {MARKER}, which marks automatic runs"
    if text.endswith(".lock"):
        return "git allows no branch that ends in .lock"
    if _STAMP.search(text):
        return "it ends like the name of a session that a person drives"
    if not _WORD.fullmatch(text):
        return "it holds characters that a branch or a session cannot have"
    return ""


def evidence_of(kind: str, key: str) -> tuple[str, ...]:
    """The words by which a commit names an issue of a kind of tracker, the preferred one first."""
    if kind != "beads":
        return (f"#{key}",)
    return (key, f"{EVIDENCE}{key}") if key.startswith(EVIDENCE) else (f"{EVIDENCE}{key}",)
