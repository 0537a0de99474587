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
FILES = (*proposals.FILES, ".gitmodules", ".gitattributes", *EXAMPLES)
_BY_LFS = re.compile(r"^[^#\n]*\bfilter=lfs\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SetUpProposal:
    """What the files suggest: whether submodules are checked out, command lines, and why, in sentences."""

    has_submodules: bool = False
    commands: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()


def propose_setup(texts: Mapping[str, str]) -> SetUpProposal:
    """Return what a new worktree needs, by the files at the top of a repository.

    Args:
        texts: the contents of those of `FILES` that are there, by their names.
    """
    has_submodules = "[submodule" in texts.get(".gitmodules", "")
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
        *_notes(texts),
    ]
    return SetUpProposal(has_submodules, tuple(line for line, _ in commands), tuple(sentences))


def _notes(texts: Mapping[str, str]) -> Iterator[str]:
    """Yield what a person has to see to."""
    if _BY_LFS.search(texts.get(".gitattributes", "")):
        yield (
            ".gitattributes keeps large files with Git LFS: where git-lfs is not installed and set up "
            "for the user that runs labsite (git lfs install), agents find short texts in their place."
        )
    for name in EXAMPLES:
        if name in texts:
            yield (
                f"{name} is an example of a file that is not in the repository. If the project needs it, "
                "paste it under Files."
            )


def add_commands(stored: str, lines: Sequence[str]) -> str:
    """Return the stored set-up commands with those added, at the end, that are not among them."""
    known = read_commands(stored)
    added = [line for line in lines if shlex.split(line) not in known]
    return "\n".join([*filter(None, [stored.rstrip("\n")]), *added])
