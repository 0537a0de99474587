"""What proves that a run without pull requests delivered: commits that name the issue, on origin.

The agent's word only asks for a look; it proves nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

SHORT = 7


@dataclass(frozen=True, slots=True)
class Said:
    """One commit since the fork point, with its whole message."""

    id: str
    message: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """What git and origin say of a run's branch. None means "could not tell".

    `commits`: how many there are since the fork point. `is_pushed`: origin itself says that the
    branch is there as it is here. `named_in`: the newest commit that names the issue, or ''. `tip`:
    the newest commit of all.
    """

    commits: int | None = None
    is_pushed: bool | None = None
    named_in: str | None = None
    tip: str = ""


def wants_look(alive: bool, was_asked: bool, is_over: bool) -> bool:
    """Whether origin is asked at all: never while an agent works that has not said it is done."""
    return was_asked or is_over or not alive


def is_delivered(found: Evidence) -> bool | None:
    """The done signal: all three. What is missing for sure outweighs what could not be told."""
    facts = (_yes(found.commits), found.is_pushed, _yes(found.named_in))
    if False in facts:
        return False
    return None if None in facts else True


def lacking(found: Evidence, branch: str, words: Collection[str]) -> list[str]:
    """What is missing for sure, as "no …", in the order in which an agent does it."""
    if found.commits == 0:
        return [f"no commit on {branch} since the run began"]
    missing = []
    if found.named_in == "":
        missing.append(f"no commit whose message names {' or '.join(words)}")
    if found.is_pushed is False:
        missing.append(f"no push of the newest commit (git push origin {branch})")
    return missing


def told(found: Evidence) -> str:
    """What is proven so far, in a few words for the run page."""
    if not found.commits:
        return "" if found.commits is None else "nothing committed"
    upto = f" up to {found.tip[:SHORT]}" if found.tip else ""
    parts = [f"{found.commits} committed{upto}"]
    if found.is_pushed is not None:
        parts.append("pushed" if found.is_pushed else "not pushed")
    if found.named_in is not None:
        parts.append(f"named in {found.named_in[:SHORT]}" if found.named_in else "not named")
    return ", ".join(parts)


def naming_commit(commits: Iterable[Said], words: Collection[str]) -> str:
    """The first of these commits that names one of the words; '' when none does."""
    return next((one.id for one in commits if names(one.message, words)), "")


def names(message: str, words: Collection[str]) -> bool:
    """Whether a message has one of the words as a whole token.

    Not as a part of another key, nor of a branch: git itself writes those into merge commits.
    """
    return any(_token(word).search(message) for word in words)


MOST_BRANCHES = 20
_LOCAL, _ORIGIN = "refs/heads/", "refs/remotes/origin/"


def branches_beside(
    refs: Mapping[str, str], branch: str, base: str, fork_point: str
) -> Sequence[str]:
    """Return the names under which a run's own repository has its work beside its branch.

    Local branches, and those of origin that stand at a commit of a local one or of the head: what was
    only fetched is somebody else's.
    """
    own = {commit for ref, commit in refs.items() if not ref.startswith(_ORIGIN)} - {fork_point}
    names = {
        ref.removeprefix(prefix)
        for prefix in (_LOCAL, _ORIGIN)
        for ref, commit in refs.items()
        if ref.startswith(prefix) and commit in own
    }
    return sorted(names - {branch, base, "HEAD"})[:MOST_BRANCHES]


def elsewhere(pulls: Sequence[tuple[int, str]], branch: str) -> str:
    """That an agent opened pull requests, by number and branch, from other branches than its own.

    For the end of a sentence; empty for none.
    """
    if not pulls:
        return ""
    told = " and ".join(f"{number} from its branch {name}" for number, name in pulls)
    word = "pull request" if len(pulls) == 1 else "pull requests"
    return f"; it opened {word} {told} instead of {branch}: look at what it holds"


def _token(word: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?<![A-Za-z0-9_./-]){re.escape(word)}(?![A-Za-z0-9_/-]|\.[A-Za-z0-9])", re.ASCII
    )


def _yes(fact: int | str | None) -> bool | None:
    return None if fact is None else bool(fact)
