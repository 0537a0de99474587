"""What a repository's own files say that a new worktree needs. Nothing here runs, and nothing is stored. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from runs.specs import proposals
from runs.validation.command_rules import read_commands
from runs.validation.specs import Kind

EXAMPLES = (".env.example", ".env.sample", ".env.template")
HOOKS = (".pre-commit-config.yaml", "lefthook.yml", ".lefthook.yml")
FILES = (*proposals.FILES, ".gitmodules", ".gitattributes", *EXAMPLES, *HOOKS)
_BY_LFS = re.compile(r"^[^#\n]*\bfilter=lfs\b", re.MULTILINE)
_MODULE_URL = re.compile(r"^\s*url\s*=\s*(\S+)", re.MULTILINE)
_NODE_HOOKS = re.compile(r'"(husky|simple-git-hooks|lefthook)"')
_SCP = re.compile(r"(?:[^@/\s]+@)?([\w.-]+):(?!//)")
_HOOKS_RUN = "once they are installed, every commit or push of an agent runs what they name."


@dataclass(frozen=True, slots=True)
class GitFacts:
    """What git can do for the user that runs labsite, and what the project is.

    Attributes:
        has_lfs: None when git could not be asked.
        hooks_path: the folder of hooks that this user's git takes for all repositories.
        why_unsigned: why commits that git is to sign cannot be signed without a person.
        url: origin of the project.
        has_submodules: whether they are checked out.
    """

    has_lfs: bool | None = None
    hooks_path: str = ""
    why_unsigned: str = ""
    url: str = ""
    has_submodules: bool = False


@dataclass(frozen=True, slots=True)
class SetUpProposal:
    """What the files suggest: whether submodules are checked out, command lines, and why, in sentences."""

    has_submodules: bool = False
    commands: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()


def propose_setup(texts: Mapping[str, str], facts: GitFacts) -> SetUpProposal:
    """Return what a new worktree needs, by the files at the top of a repository.

    Args:
        texts: the contents of those of `FILES` that are there, by their names.
        facts: of this machine and the project.
    """
    has_submodules = names_submodules(texts)
    commands = [
        (shlex.join(one.command.argv), one.because)
        for one in proposals.propose(texts).commands
        if one.command.kind is Kind.DEPS
    ]
    sentences = [
        *(["Submodules are checked out, since .gitmodules names some."] if has_submodules else []),
        *(
            f"{line} installs what the project depends on ({because})."
            for line, because in commands
        ),
        *list_troubles(texts, facts),
        *_notes(texts),
        *list_notes_on_git(facts),
    ]
    return SetUpProposal(has_submodules, tuple(line for line, _ in commands), tuple(sentences))


def _notes(texts: Mapping[str, str]) -> Iterator[str]:
    """Yield what a person has to see to."""
    tools = [*_NODE_HOOKS.findall(texts.get("package.json", ""))[:1]]
    hooks = [
        *(name for name in HOOKS if name in texts),
        *(f"{one} (package.json)" for one in tools),
    ]
    if hooks:
        verb = "keeps" if len(hooks) == 1 else "keep"
        yield f"{' and '.join(hooks)} {verb} hooks of git: {_HOOKS_RUN}"
    for name in EXAMPLES:
        if name in texts:
            yield (
                f"{name} is an example of a file that is not in the repository. If the project needs it, "
                "paste it under Files."
            )


def list_troubles(texts: Mapping[str, str], facts: GitFacts) -> list[str]:
    """Return what of a repository will not be in a new worktree, in sentences."""
    found = []
    if _BY_LFS.search(texts.get(".gitattributes", "")) and not facts.has_lfs:
        is_known = facts.has_lfs is False
        why = "git-lfs is not installed here" if is_known else "whether git-lfs is here is unknown"
        found.append(
            f".gitattributes keeps large files with Git LFS, and {why}: without it agents find "
            "short texts in their place."
        )
    urls = _MODULE_URL.findall(texts.get(".gitmodules", ""))
    elsewhere = sorted({host for one in urls if (host := _host(one)) not in ("", _host(facts.url))})
    if elsewhere:
        found.append(
            f".gitmodules names repositories on {', '.join(elsewhere)}, where the project's token "
            "is not sent: they can be fetched only if everybody, or the SSH key of this user, may "
            "read them."
        )
    return found


def list_notes_on_git(facts: GitFacts) -> list[str]:
    """Return what the git settings of the user that runs labsite mean for commits of agents."""
    found = []
    if facts.hooks_path:
        found.append(
            f"Git of the user that runs labsite takes hooks from {facts.hooks_path} for all "
            "repositories: every commit of an agent runs them."
        )
    if facts.why_unsigned:
        found.append(
            "Git of the user that runs labsite signs commits, and could not do so without a person: "
            f"{facts.why_unsigned}. Runs sign nothing as long as that is so."
        )
    return found


def names_submodules(texts: Mapping[str, str]) -> bool:
    """Return whether a repository has submodules."""
    return "[submodule" in texts.get(".gitmodules", "")


def _host(url: str) -> str:
    """The host of an address; empty for a path, such as one beside the project's own."""
    by_ssh = _SCP.match(url)
    if "://" not in url:
        return by_ssh[1].casefold() if by_ssh else ""
    return url.partition("://")[2].partition("/")[0].rpartition("@")[2].partition(":")[0].casefold()


def add_commands(stored: str, lines: Sequence[str]) -> str:
    """Return the stored set-up commands with those added, at the end, that are not among them."""
    known = read_commands(stored)
    added = [line for line in lines if shlex.split(line) not in known]
    return "\n".join([*filter(None, [stored.rstrip("\n")]), *added])
