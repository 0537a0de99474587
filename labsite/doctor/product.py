"""What is fine, odd or wrong with the product, from the facts that Django and tmux told. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from labsite.doctor.lines import Line, ok, warning, wrong
from runs.core import naming
from runs.setup import proposal_rules
from runs.setup.proposal_rules import GitFacts
from trackers.keys import KeyRule

SHOWN = 5


def settings_line(error: str, unknown: Sequence[str], exposed: Sequence[str]) -> Line:
    """Whether Django's settings load; `unknown`: LAB_ variables that nothing reads."""
    if error:
        return wrong("settings", error, "Correct the environment, then check again.")
    if unknown:
        seen = f"nothing reads {_some(unknown)}"
        return warning("settings", seen, "A typing mistake? The README lists every variable.")
    if exposed:
        advice = "Put a proxy with TLS before it; docs/operating.md shows how."
        return warning("settings", "; ".join(exposed), advice)
    return ok("settings", "every LAB_ variable can be meant")


def migrations(waiting: Sequence[str], newer: Sequence[str], older: Sequence[str]) -> Line:
    """Steps that the next start applies, unless the database is too new or too old for it."""
    if newer:
        seen = f"a newer labsite changed the database: {_some(newer)}"
        return wrong(
            "migrations", seen, "Use that version again, or restore the backup made before."
        )
    if older:
        seen = f"the database is too old for this version: it ends at {_some(older)}"
        advice = "Start a version in between once, as docs/operating.md says, then this one."
        return wrong("migrations", seen, advice)
    if waiting:
        seen = f"{len(waiting)} changes wait: {_some(waiting)}"
        return warning("migrations", seen, "./lab up applies them at its start.")
    return ok("migrations", "all applied")


def tick(facts: Mapping[str, Any], is_running: bool) -> Line:
    """The heartbeat of the one judge; its age counts only while the product runs."""
    if facts.get("removed"):
        why, _, advice = facts["removed"].partition(". ")
        return wrong("last_tick", why, advice)
    age = facts["age"]
    if age is None:
        seen, late = "nothing has ticked yet", is_running
    else:
        seen, late = f"{max(0.0, age):.0f} seconds ago", bool(facts["is_late"]) and is_running
    if late:
        seen += f", and every {facts['interval']} seconds is wanted"
        return wrong(
            "last_tick", seen, "The worker hangs or is gone: look at its log, restart labsite."
        )
    if facts["error"]:
        return warning("last_tick", f"{seen}; it said: {facts['error']}", "See what it names.")
    return ok("last_tick", seen if is_running else f"{seen}; labsite does not run")


def agents(found: Sequence[Mapping[str, Any]]) -> Iterator[Line]:
    """A line for each profile; `logged_in` is None when its check was not asked or hung."""
    for agent in found:
        yield _program_of(agent) or _payment_of(agent) or _login_of(agent)
        yield from _version_of(agent)


def _program_of(agent: Mapping[str, Any]) -> Line | None:
    """What keeps an agent from starting; None when its program can be started.

    `found_by_worker` is what the running product saw last, whose PATH may be another one.
    """
    name, program, found = agent["name"], agent["program"] or "no program", agent["found"]
    if found is None and agent["found_by_worker"]:
        return ok(
            "agent", f"{name}: {program} is on the PATH of labsite, not on that of this shell"
        )
    if found is None and not agent["used"]:
        return ok("agent", f"{name}: {program} is not installed, and not in use")
    if found is None:
        advice = "Install it, or choose another agent on the settings page."
        return warning("agent", f"{name}: {program} is not on PATH", advice)
    if agent["unfit"] and not agent["used"]:
        return ok("agent", f"{name}: not in use. {agent['unfit']}")
    if agent["unfit"]:
        return warning("agent", f"{name}: {agent['unfit']}", "Or choose another agent.")
    if agent["found_by_worker"] is False and agent["used"]:
        seen = f"{name}: {found} is not on the PATH that labsite was started with"
        return warning("agent", seen, "Name its full path in the profile, or restart labsite.")
    return None


def _payment_of(agent: Mapping[str, Any]) -> Line | None:
    """Return that a key pays which nobody may have meant; None when no such key is in sight."""
    if not agent["odd_payment"] or not agent["used"]:
        return None
    said, _, advice = agent["odd_payment"].partition(". ")
    return warning("agent", f"{agent['name']}: {said}", advice)


def _version_of(agent: Mapping[str, Any]) -> Iterator[Line]:
    """That nobody has tried the version of an agent that is used."""
    if agent["untried"] and agent["used"]:
        seen = f"{agent['name']} {agent['version']}: {agent['untried'].rstrip('.')}"
        yield warning("agent_version", seen, f'Try it: ./lab agent try "{agent["name"]}"')


def _login_of(agent: Mapping[str, Any]) -> Line:
    name = agent["name"]
    if agent["asked"] and agent["logged_in"] is False:
        return warning("agent", f"{name}: not logged in", "Log in as the user who runs labsite.")
    if agent["asked"] and agent["logged_in"] is None:
        return warning("agent", f"{name}: the login check gave no answer", "Run it by hand.")
    login = "logged in" if agent["asked"] else "no login check"
    version = f", {agent['version']}" if agent["version"] else ""
    return ok("agent", f"{name}: {agent['found']}{version}, {login}")


def beads(facts: Mapping[str, Any]) -> Iterator[Line]:
    """One line when a project keeps its issues in beads, none when no one does."""
    trouble: Mapping[str, str] = facts["trouble"]
    texts = list(dict.fromkeys(trouble.values()))
    if texts:
        names = [[name for name, why in trouble.items() if why == text] for text in texts]
        seen = [f"{_some(some)}: {text}" for some, text in zip(names, texts, strict=True)]
        advice = "docs/trackers/beads.md says what labsite needs; its runs go on meanwhile."
        yield wrong("beads", "; ".join(seen), advice)
    elif facts["projects"]:
        number = facts["projects"]
        what = "1 project" if number == 1 else f"{number} projects"
        yield ok("beads", f"{facts['said']}, {what} can be read")


def forges(accounts: Sequence[Mapping[str, Any]]) -> Iterator[Line]:
    """A line for each account that a project uses; each was asked once."""
    for one in accounts:
        number = one["projects"]
        used = "1 project" if number == 1 else f"{number} projects"
        seen = f"{one['name']} ({used}), asked once: {one['said']}"
        if one["ok"]:
            yield ok("forges", seen)
        elif one["ok"] is None:
            yield warning("forges", seen, "Nothing starts there until it answers; runs go on.")
        else:
            yield wrong("forges", seen, "Give the account a token that it accepts, under Forges.")


def secrets(unreadable: int) -> Line:
    """Whether tokens and variables survived a change of the key."""
    if unreadable:
        seen = f"{unreadable} stored secrets were encrypted with another key"
        return warning("secrets", seen, "Put the old key back, or type tokens and variables again.")
    return ok("secrets", "every stored secret opens with the key")


def sessions(runs: Mapping[str, Sequence[str]], live: Sequence[str] | None) -> Line:
    """Sessions and rows against each other; `live` is None when tmux could not tell."""
    if live is None:
        return warning("sessions", "tmux could not tell", "See the line of tmux_server.")
    stray = [name for name in live if name not in runs["known"] and _is_run(name, runs["words"])]
    lost = [name for name in runs["working"] if name not in live]
    if stray:
        seen = f"sessions without a run: {_some(stray)}"
        return warning("sessions", seen, "The next tick adopts them, if their project is known.")
    if lost:
        seen = f"runs without a session: {_some(lost)}"
        return warning("sessions", seen, "The next tick judges them; nothing is lost.")
    return ok("sessions", f"{len(live)} sessions, {len(runs['working'])} runs at work")


def worktrees(rows: Sequence[str], folders: Sequence[str]) -> Line:
    """Folders that no run stands for are told and left alone."""
    stray = sorted(set(folders) - set(rows))
    if stray:
        seen = f"folders without a run: {_some(stray)}"
        return warning("worktrees", seen, "They may hold work. Look, then remove them by hand.")
    return ok("worktrees", f"{len(folders)} on disk, each with its run")


def beside(names: Sequence[str]) -> Line:
    """Clean worktrees, copies, fixtures and output that nothing removes any more."""
    if names:
        seen = f"folders of checks without a row: {_some(names)}"
        advice = (
            "They hold no work, only copies and output. Remove them by hand; "
            "`./lab validate` removes those of by-hand and kept itself."
        )
        return warning("checks", seen, advice)
    return ok("checks", "nothing is left of clean worktrees, reviews and fixtures")


def unlinked(names: Sequence[str]) -> Iterator[Line]:
    """Worktrees that git no longer sees as such: an agent removed or replaced their `.git`."""
    if names:
        seen = f"no worktrees of git any more, since their .git was removed or replaced: {_some(names)}"
        advice = "Their work is kept, and a backup holds it. Discard what is no longer needed."
        yield warning("worktrees", seen, advice)


def repositories(broken: Mapping[str, str], count: int) -> Iterator[Line]:
    """A line for each project whose repository git cannot read, with git's words."""
    for name, why in broken.items():
        yield wrong("repository", f"{name}: {why}", "Restore a backup, or add the project anew.")
    if not broken:
        yield ok("repository", f"{count} can be read")


def git_settings(facts: GitFacts) -> Iterator[Line]:
    """What the git settings of this user mean for commits of agents."""
    notes = proposal_rules.list_notes_on_git(facts)
    advice = (
        "Give this user a key without a passphrase, unlock it in its agent, or set commit.gpgsign "
        "to false; hooks are taken from core.hooksPath of its global settings."
    )
    for note in notes:
        yield warning("signing", note, advice)
    if not notes:
        yield ok("signing", "nothing in git's settings keeps agents from committing")


def describe_set_up(texts: Mapping[str, str], facts: GitFacts) -> list[str]:
    """Return what new worktrees of a project will lack, in sentences."""
    found = proposal_rules.list_troubles(texts, facts)
    if proposal_rules.names_submodules(texts) and not facts.has_submodules:
        found.append("It has submodules, which are not checked out: their folders are empty.")
    return found


def set_up(found: Mapping[str, Sequence[str]]) -> Iterator[Line]:
    """A line for each thing that new worktrees of a project will lack."""
    for name, sentences in found.items():
        for text in sentences:
            lfs = " Debian, Ubuntu: apt install git-lfs." if "git-lfs" in text else ""
            yield warning("set_up", f"{name}: {text}", f"Open the project's page Set-up.{lfs}")
    if not any(found.values()):
        yield ok("set_up", f"{len(found)} projects need nothing that new worktrees lack")


def _is_run(name: str, words: Sequence[str]) -> bool:
    """`words` are the projects whose keys are words."""
    is_word = naming.session_project(name) in words
    return naming.parse_session(name, KeyRule.WORD if is_word else KeyRule.NUMBER) is not None


def _some(names: Sequence[str]) -> str:
    rest = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")
