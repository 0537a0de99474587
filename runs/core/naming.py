"""Names that carry meaning: sessions, branches, worktrees. The only place that makes or reads them.

A session name is the whole registration of a live run, a branch name is the claim, so both are parsed strictly and built from sanitised parts only.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from runs.core.states import RunKind
from trackers.keys import MARKER, KeyRule, is_key

BRANCH_PREFIX = "afk/"
PERSON_PREFIX = "lab/"
MANAGED = (BRANCH_PREFIX, PERSON_PREFIX)
PREFIX_CHARACTERS = 60
SEPARATOR = "~"
LABEL_CHARACTERS = 32

_WORD = re.compile(r"[A-Za-z0-9_~-]+", re.ASCII)
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
# Bounded, since anybody can make a session or a branch: a number that no column holds is no run.
_SLOT = re.compile(r"(?=[0-9]{1,6}\Z)0*[1-9][0-9]*", re.ASCII)
_NUMBERED = re.compile(r"afk-(auto-)?((?=[0-9]{1,18}\Z)0*[1-9][0-9]*)", re.ASCII)
_WORDED = re.compile(r"afk-(auto-)?([A-Za-z0-9_-]+)", re.ASCII)
_DOT = "__"  # tmux turns a dot in a name into one underscore; no key holds two of them
_BRANCH = re.compile(r"[^\x00-\x20\x7f~^:?*\[\\]{1,195}")
_PREFIX = re.compile(r"[A-Za-z0-9._/+-]+", re.ASCII)
_CHECK = re.compile(r"check-[0-9]+", re.ASCII)
_FIX = re.compile(r"lab/fix-[0-9]+-[0-9]+-[0-9]{8}-[0-9]{4}", re.ASCII)

# Who commits what labsite writes itself, and what agents write where git knows no name.
FIRST_PORT, PORTS, PORT_BLOCKS = 20_000, 100, 120
COMMITTER, COMMITTER_ADDRESS = "labsite", "labsite@localhost"
_COMMITTER = re.compile(r"([^<>\x00-\x1f\x7f]{1,100}?) <([^<>\s\x00-\x1f\x7f]{1,100})>")


@dataclass(frozen=True, slots=True)
class RunName:
    """What a session name says about a run: project part, slot if given, issue key, kind."""

    project: str
    slot: int | None
    key: str
    kind: RunKind


def parse_committer(text: str) -> tuple[str, str]:
    """Return name and address of “Name <address>”, as git writes who commits.

    Raises ValueError for any other text, and for a name of which git would leave nothing.
    """
    found = _COMMITTER.fullmatch(text.strip())
    if found is None or not any(one.isalnum() for one in found[1]):
        raise ValueError(f"not a name with an address: {text!r}")
    return found[1].strip(), found[2]


def committer_env(name: str, address: str) -> dict[str, str]:
    """Return the variables by which git takes this person for author and committer."""
    return {
        f"GIT_{who}_{what}": text
        for who in ("AUTHOR", "COMMITTER")
        for what, text in (("NAME", name), ("EMAIL", address))
    }


COMMITTER_ENV = committer_env(COMMITTER, COMMITTER_ADDRESS)


def sanitise(text: str) -> str:
    """`text` with only letters, digits, `_` and `-`: `/` becomes `-`, the rest `_`."""
    return _UNSAFE.sub("_", text.replace("/", "-"))


def session_name(project: str, slot: int, key: str, kind: RunKind) -> str:
    """The tmux session name of a run, in its full form: project, slot, label."""
    marker = MARKER if kind is RunKind.AUTO else ""
    said = sanitise(key.replace(".", _DOT))
    return f"{sanitise(project)}{SEPARATOR}{slot}{SEPARATOR}afk-{marker}{said}"


def parse_session(name: str, keys: KeyRule = KeyRule.NUMBER) -> RunName | None:
    """The run that a session name stands for, or None when it is not a run.

    `keys` is what the keys of the project's tracker look like. Both `project~slot~afk-7` and the short `project~afk-7` are read. Never raises.
    """
    project, boundary, rest = name.partition(SEPARATOR)
    if not boundary or not project or sanitise(project) != project:
        return None
    slot_text, second, label = rest.partition(SEPARATOR)
    if not second:
        slot_text, label = "", rest
    elif not _SLOT.fullmatch(slot_text):
        return None
    found = (_NUMBERED if keys is KeyRule.NUMBER else _WORDED).fullmatch(label)
    key = _key_said(found[2], keys) if found is not None else None
    if found is None or key is None:
        return None
    kind = RunKind.AUTO if found[1] else RunKind.MANUAL
    return RunName(project, int(slot_text) if slot_text else None, key, kind)


def may_be_run(name: str) -> bool:
    """Whether a session name is that of a run by one rule or the other; cheap, for a first look."""
    return any(parse_session(name, rule) for rule in KeyRule)


def is_word(text: str) -> bool:
    """Whether tmux can read a session name or marker as nothing but itself."""
    return bool(_WORD.fullmatch(text))


def session_project(name: str) -> str | None:
    """The project part of any session of ours, run or not; None for a foreign session."""
    project, boundary, _ = name.partition(SEPARATOR)
    return project if boundary and project else None


def woken_project(text: str) -> str:
    """The project that a wake-up means: it names one, or a session of one; empty for anything else."""
    words = text.split()
    project = (session_project(words[0]) or words[0]) if words else ""
    return project if sanitise(project) == project else ""


def branch_for(key: str, prefix: str = BRANCH_PREFIX) -> str:
    """The branch whose existence claims the issue."""
    return f"{prefix}{key}"


def is_managed(branch: str, prefixes: Collection[str] = MANAGED) -> bool:
    """Whether a branch is the product's to remove: under one of the prefixes, and nothing odd."""
    is_name = bool(_BRANCH.fullmatch(branch)) and not branch.endswith(("/", "."))
    is_ours = any(branch.startswith(one) and branch != one for one in prefixes)
    return is_name and is_ours and not any(odd in branch for odd in ("..", "//", "/.", "@{"))


def claimed_key(
    branch: str, keys: KeyRule = KeyRule.NUMBER, prefixes: Collection[str] = (BRANCH_PREFIX,)
) -> str | None:
    """The issue that a branch claims; None unless it is exactly a prefix and a key."""
    for prefix in prefixes:
        key = branch.removeprefix(prefix)
        if key != branch and is_key(key, keys):
            return key
    return None


def without_prefix(branch: str, prefixes: Collection[str] = (BRANCH_PREFIX,)) -> str:
    """Return what a branch is called below the first of these prefixes that it has."""
    found = (one for one in prefixes if branch.startswith(one))
    return branch.removeprefix(next(found, ""))


def refs_under(prefix: str) -> str:
    """Return the pattern by which git lists branches with this prefix."""
    return f"{prefix}*" if prefix.endswith(("-", "_")) else prefix


def check_prefix(prefix: str, default_branch: str = "") -> None:
    """Raise ValueError, with the reason, for what cannot be the prefix of claims.

    Stricter than git, since agents type these names into shells.
    """
    if reason := _unfit_prefix(prefix) or _beside_default(prefix, default_branch):
        raise ValueError(reason)


def _unfit_prefix(prefix: str) -> str:
    parts = prefix.split("/")
    rules = (
        (not prefix, "Write a prefix, such as afk/."),
        (len(prefix) > PREFIX_CHARACTERS, f"At most {PREFIX_CHARACTERS} characters."),
        (not _PREFIX.fullmatch(prefix), "Use letters, digits and / - _ . + only."),
        (prefix.startswith(("/", "-")), "It cannot begin with / or -."),
        (not prefix.endswith(("/", "-", "_")), "End it with /, - or _: the issue follows."),
        ("//" in prefix or ".." in prefix, "Git allows no // and no .. in a branch."),
        (any(one.startswith(".") for one in parts), "Git allows no part that begins with a dot."),
        (any(one.endswith(".lock") for one in parts), "Git allows no part that ends in .lock."),
        (parts[0] == "refs", "Leave out refs/heads/: it is the name of a branch that is meant."),
        (prefix.startswith(PERSON_PREFIX), "lab/ is for sessions that people drive."),
    )
    return next((reason for is_so, reason in rules if is_so), "")


def _beside_default(prefix: str, default_branch: str) -> str:
    if default_branch.startswith(prefix):
        return (
            f"The default branch {default_branch} begins with it, and would be taken for a claim."
        )
    if default_branch and prefix.startswith(f"{default_branch}/"):
        return f"Git allows no branch below {default_branch}/ beside the branch {default_branch}."
    return ""


def person_label(text: str, now: datetime, taken: Collection[str]) -> str:
    """The label of a session that a person drives: what they wrote, made safe, and when.

    One that is taken gets the next free minute, so that no two are the same.
    """
    words = sanitise(" ".join(text.split())).strip("-_")[:LABEL_CHARACTERS]
    minute = now
    while True:
        label = "-".join(part for part in (words, f"{minute:%Y%m%d-%H%M}") if part)
        if label not in taken:
            return label
        minute += timedelta(minutes=1)


def person_branch(label: str) -> str:
    """The branch of a session that a person drives; it claims no issue."""
    return f"{PERSON_PREFIX}{label}"


def person_session(project: str, label: str) -> str:
    """Its tmux session: the project's, so that it holds a slot, and never the name of a run."""
    return f"{sanitise(project)}{SEPARATOR}{label}"


def fix_label(validation: int, attempt: int, now: datetime) -> str:
    """The label of a fixer; with the time, so that a database that begins anew repeats none."""
    return f"fix-{validation}-{attempt}-{now:%Y%m%d-%H%M}"


def is_fix(branch: str) -> bool:
    """Whether a branch holds what a fixer made."""
    return bool(_FIX.fullmatch(branch))


def check_folder(project: str, validation: int) -> str:
    """The folder of a validation's worktree; no other worktree's name holds a dot."""
    return f"{sanitise(project)}.check-{validation}"


def rescue_name(branch: str, stamp: str) -> str:
    """The last part of a rescue ref: when, and of what."""
    return f"{stamp}-{sanitise(branch)}"


def worktree_name(project: str, key: str) -> str:
    """The folder of a run's worktree; never holds `~`, which stalls agents.

    A key that is a word comes after a dot: no project has one in its name, so that project `a`
    with key `b-c` and project `a-b` with another key never share a folder.
    """
    if is_key(key, KeyRule.WORD):
        return f"{sanitise(project)}.{key}"
    return f"{sanitise(project)}-{sanitise(key)}"


def worktree_key(project: str, folder: str, keys: KeyRule = KeyRule.NUMBER) -> str | None:
    """The issue whose run would have a worktree of this name; None for any other folder."""
    mark = "-" if keys is KeyRule.NUMBER else "."
    key = folder.removeprefix(f"{sanitise(project)}{mark}")
    if key == folder or not is_key(key, keys) or _CHECK.fullmatch(key):
        return None
    return key if worktree_name(project, key) == folder else None


def ports_env(slot: int | None) -> dict[str, str]:
    """Return the variable that names the first of a run's own `PORTS` ports; slots share none.

    They lie below the ports that systems give away by themselves (Linux: from 32768).
    """
    if slot is None:
        return {}
    return {"LAB_PORT_BASE": str(FIRST_PORT + (slot - 1) % PORT_BLOCKS * PORTS)}


def marker(state: str, run_id: int) -> str:
    """The mark that every process of a run carries in its environment; unique across state folders."""
    return f"{hashlib.sha256(state.encode()).hexdigest()[:12]}-{run_id}"


def _key_said(text: str, keys: KeyRule) -> str | None:
    """The key that a session name says; numbers come without leading zeros."""
    if keys is KeyRule.NUMBER:
        return str(int(text))
    key = text.replace(_DOT, ".")
    return key if is_key(key, keys) else None
