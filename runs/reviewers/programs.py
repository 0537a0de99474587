"""How each kind of reviewer is asked, and where its answer stands in what it prints. Pure.

Claude Code and Codex are started read-only and without what a repository tells them to do: its
instruction files, hooks, servers and settings are part of the work under review. Tried with Claude
Code 2.1.197 and Codex 0.169.0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from pathlib import PurePath
from typing import Any

from runs.accounts import hold_rules
from runs.accounts.refusal_rules import Refused
from runs.agents import commands
from runs.core import lenient_json
from runs.core.states import OutputKind, Trouble
from runs.reviewers import rules
from runs.reviewers.rules import Code, Finding, ReviewState, Unreadable
from runs.spending import day_rules
from runs.spending.day_rules import Used
from runs.transcript import record
from runs.transcript.record import Reading
from runs.transcript.reports import Report

# What an argument holds at most on Linux is 128 KB.
ARGUMENT_BYTES = 100_000
# Tokens of forges, and the agent by which git would push.
NOT_GIVEN = (
    *("GH_", "GITHUB_", "GITLAB_", "GITEA_", "FORGEJO_", "CODEBERG_", "BITBUCKET_", "TEA_"),
    *("SSH_AUTH_SOCK", "SSH_AGENT_PID", "GIT_SSH"),
)
# git speaks with no other repository, and runs nothing that the repository names.
_GIT = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "core.hooksPath",
    "GIT_CONFIG_VALUE_0": "/dev/null",
    "GIT_CONFIG_KEY_1": "core.fsmonitor",
    "GIT_CONFIG_VALUE_1": "false",
}
# By `sysexits`, by a shell that finds no program, and by one that may not run it.
_UNAVAILABLE = {
    69: "it said that its service is unavailable (exit status 69)",
    75: "it said that it cannot answer for now (exit status 75)",
    126: "its program may not be run (exit status 126)",
    127: "its program was not found (exit status 127)",
}
NOTHING_TOLD = Used()
_OF_CLAUDE = ("--model", "--effort", "--fallback-model", "--betas", "--settings")
_OF_CODEX = ("-c", "--config", "-m", "--model", "-p", "--profile", "--local-provider")
_FLAGS_OF_CODEX = ("--oss",)
# What reads the file that its first argument names.
_INTERPRETER = re.compile(
    r"python[0-9.]*|pypy[0-9.]*|[bdkz]?a?sh|fish|node|deno|bun|tsx|ruby|perl|php|lua|Rscript|uv"
)
_SHELL = re.compile(r"[bdkz]?a?sh|fish")
_PYTHON = re.compile(r"python[0-9.]*|pypy[0-9.]*")
# Options of them that have a value, and those with which a line or a module takes the place of a file.
_WITH_VALUE = (
    *("-W", "-X", "-r", "--require", "--import", "--loader", "--with", "--python", "-p"),
    *("--group", "--extra", "--project", "--directory"),
)
_RUNS = ("run", "exec")
# What does as a file of its folder says.
_BY_FOLDER = ("make", "gmake", "just", "rake", "npm", "pnpm", "yarn")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_NOT_FROM_PROFILE = ("sandbox", "approval", "permissions", "default_permissions", "mcp_servers")


class Kind(StrEnum):
    """How a reviewer is started: one of two programs that are known, or as it is written down."""

    CLAUDE = "claude"
    CODEX = "codex"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Papers:
    """What a reviewer is given: where it works, and files with what it needs."""

    review: str
    worktree: str
    prompt_file: str
    issue_file: str
    diff_file: str
    schema_file: str
    commit: str
    base: str


def kind_of(argv: Sequence[str]) -> Kind:
    """The program that an argument list starts."""
    name = PurePath(argv[0]).name if argv else ""
    return Kind(name) if name in (Kind.CLAUDE, Kind.CODEX) else Kind.OTHER


def is_inside(argv: Sequence[str]) -> bool:
    """Whether a path says that its program lies inside the work, so that its author is the reviewed.

    Also where an interpreter is what reads it, or `make` what it does: each path that does not
    begin at the root begins in the copy of the commit.
    """
    words = _behind_env(argv)
    if not words:
        return False
    program = PurePath(words[0]).name
    if "/" in words[0] and not words[0].startswith("/"):
        return True
    if program in _BY_FOLDER:
        return not any(word.startswith("/") for word in words[1:])
    if not _INTERPRETER.fullmatch(program):
        return False
    file = _file_of(program, words[1:])
    if program == "uv" and "/" not in file and not file.endswith(".py"):
        return False  # a program of its environment
    return bool(file) and not file.startswith("/")


def _behind_env(argv: Sequence[str]) -> Sequence[str]:
    if not argv or PurePath(argv[0]).name != "env":
        return argv
    rest = list(argv[1:])
    while rest and _VARIABLE.match(rest[0]):
        rest.pop(0)
    return rest


def _file_of(program: str, words: Sequence[str]) -> str:
    """The file that an interpreter reads; empty where it is given a line or a module instead."""
    letters = "c" if _SHELL.fullmatch(program) else "cm" if _PYTHON.fullmatch(program) else "e"
    is_value = False
    for word in words:
        if is_value or word in _RUNS:
            is_value = False
        elif re.fullmatch(f"-[A-Za-z]*[{letters}]|--eval", word):
            return ""
        elif word.startswith("-") and len(word) > 1:
            is_value = word in _WITH_VALUE
        else:
            return word
    return ""


def own_path(argv: Sequence[str]) -> dict[str, str]:
    """What keeps Python, given a line or a module, from looking for modules in the work first."""
    words = _behind_env(argv)
    program = PurePath(words[0]).name if words else ""
    is_given_none = _PYTHON.fullmatch(program) and not _file_of(program, words[1:])
    return {"PYTHONSAFEPATH": "1"} if is_given_none else {}


def output_of(kind: Kind, output: str) -> str:
    """What a reviewer prints; `output` is what its profile says of it."""
    known = {Kind.CLAUDE: OutputKind.CLAUDE, Kind.CODEX: OutputKind.CODEX}
    return known.get(kind, OutputKind(output))


def has_schema(kind: Kind) -> bool:
    """Whether the program itself holds its answer to the schema."""
    return kind is not Kind.OTHER


def agent_argv(
    template: Sequence[str], papers: Papers, prompt: str, model: str = "", effort: str = ""
) -> list[str]:
    """The argument list of an agent that reviews. Each reads the prompt as its standard input."""
    chosen = {**_nothing(), "model": model, "effort": effort}
    kind = kind_of(template)
    if kind is Kind.OTHER:
        fits = len(prompt.encode()) <= ARGUMENT_BYTES
        values = {
            "prompt": prompt if fits else f"Do what the file {papers.prompt_file} says.",
            "prompt_file": papers.prompt_file,
            "worktree": papers.worktree,
        }
        return commands.fill(template, {**chosen, **values})
    # A flag that stands right before the prompt stays.
    values = {"prompt": "-", "prompt_file": "-", "worktree": papers.worktree}
    plain = commands.fill(template, {**chosen, **values})
    return _claude(plain) if kind is Kind.CLAUDE else _codex(plain, papers)


def _nothing() -> dict[str, str]:
    """Placeholders of runs that mean nothing in a review."""
    return dict.fromkeys(("settings", "session"), "")


def _claude(plain: Sequence[str]) -> list[str]:
    """Print mode with nothing but tools that read, and nothing of the repository's own settings."""
    return [
        plain[0],
        *("-p", "--output-format", "stream-json", "--verbose"),
        *("--json-schema", json.dumps(rules.SCHEMA)),
        *("--tools", "Read,Grep,Glob", "--permission-mode", "dontAsk"),
        *("--safe-mode", "--strict-mcp-config", "--no-session-persistence"),
        *_options(plain, _OF_CLAUDE),
    ]


def _codex(plain: Sequence[str], papers: Papers) -> list[str]:
    """`exec` in its read-only sandbox, asking nobody, without the repository's instructions."""
    return [
        plain[0],
        *("exec", "--json", "--ephemeral", "--skip-git-repo-check", "--ignore-rules"),
        *_options(plain, _OF_CODEX),
        *(flag for flag in _FLAGS_OF_CODEX if flag in plain),
        *("-c", "check_for_update_on_startup=false", "-c", "analytics.enabled=false"),
        *("-c", "project_doc_max_bytes=0", "-c", 'approval_policy="never"'),
        *("--sandbox", "read-only", "--output-schema", papers.schema_file, "-"),
    ]


def _options(plain: Sequence[str], names: Sequence[str]) -> Iterator[str]:
    """The options of a profile that choose model and service; none that would permit anything."""
    for at, word in enumerate(plain[:-1]):
        value = plain[at + 1]
        if word in names and not value.startswith(_NOT_FROM_PROFILE):
            yield from (word, value)


def environment(papers: Papers, own: Mapping[str, str]) -> dict[str, str]:
    """What a reviewer finds in its environment; `own` is what its profile adds."""
    kept = {str(name): str(value) for name, value in own.items() if not name.startswith(NOT_GIVEN)}
    return {
        **kept,
        "LAB_REVIEW": papers.review,
        "LAB_REVIEW_PROMPT": papers.prompt_file,
        "LAB_REVIEW_ISSUE": papers.issue_file,
        "LAB_REVIEW_DIFF": papers.diff_file,
        "LAB_REVIEW_SCHEMA": papers.schema_file,
        "LAB_REVIEW_COMMIT": papers.commit,
        "LAB_REVIEW_BASE": papers.base,
        "LAB_WORKTREE": papers.worktree,
        **_GIT,
    }


@dataclass(frozen=True, slots=True)
class Printed:
    """How a reviewer's program ended and the end of what it printed; `is_whole`: it is all of it."""

    status: int | None
    data: bytes
    is_whole: bool = True
    signal: int | None = None
    is_over_time: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of asking once: findings, or why there are none.

    With `is_unavailable` the program or its account could not be asked; `refused` says for how
    long its service turned the account away. `may_ask_again`: another try may give an answer.
    `failure`: how its program failed although it answered. `used`: the tokens and money that its
    program told. `unnamed`: what it printed, where that is an object that does not name the review,
    which the author of the work may have written.
    """

    findings: tuple[Finding, ...] | None = None
    why: str = ""
    is_unavailable: bool = False
    refused: Refused | None = None
    may_ask_again: bool = False
    failure: str = ""
    used: Used = NOTHING_TOLD
    unnamed: str = ""


def answer(printed: Printed, output: str, review: str, now: datetime) -> Answer:
    """What a program gave, and what it told that it used."""
    report = _report(printed, output, now)
    used = Used(day_rules.tokens(report.tokens_in, report.tokens_out), report.cost_usd)
    return replace(_answer(printed, output, review, report), used=used)


def _report(printed: Printed, output: str, now: datetime) -> Report:
    if output == OutputKind.PLAIN:
        return Report()
    return record.read(output, Reading(), printed.data, now, is_over=True).report


def _answer(printed: Printed, output: str, review: str, report: Report) -> Answer:
    refused = _refused(printed, output, report)
    if refused:
        return Answer(why=refused, is_unavailable=True, refused=_turned_away(report))
    if printed.is_over_time:
        return Answer(why="it did not end within its time")
    if output == OutputKind.PLAIN and printed.status in _UNAVAILABLE:
        return Answer(why=_UNAVAILABLE[printed.status], is_unavailable=True)
    try:
        findings = _findings(printed, output, review)
    except Unreadable as error:
        return Answer(why=_ended(printed, str(error)), may_ask_again=True)
    has_failed = printed.status != 0 or report.is_error
    return Answer(
        findings,
        failure=_ended(printed, "it failed") if has_failed else "",
        unnamed=rules.find_unnamed(_text(printed), review) if output == OutputKind.PLAIN else "",
    )


def refuse_quotation(found: Answer) -> Answer:
    """Return what is left of an answer that stands in the work under review: none."""
    return Answer(why=rules.QUOTED, may_ask_again=True, used=found.used)


def held_against(found: Answer, code: Code, root: str) -> Answer:
    """An answer whose findings are matched with the code.

    A no counts however its program ended, a yes only of one that ended well.
    """
    if found.findings is None:
        return found
    findings = rules.matched(found.findings, code, root)
    if found.failure and rules.state_of(findings) is not ReviewState.FAILED:
        return Answer(why=found.failure, may_ask_again=True, used=found.used)
    return Answer(findings, used=found.used)


def _ended(printed: Printed, why: str) -> str:
    if printed.signal is not None:
        return f"{why} (ended by signal {printed.signal})"
    return why if printed.status in (0, None) else f"{why} (exit status {printed.status})"


def _refused(printed: Printed, output: str, report: Report) -> str:
    """Why its account could not be used, by the program's own lines; empty where that is not it."""
    if output == OutputKind.PLAIN:
        return ""
    if report.is_error and report.trouble is not Trouble.NONE:
        return f"{hold_rules.words(report.trouble)}: {report.agent_note}"[:300]
    if printed.is_over_time and not report.has_result and report.agent_state.is_waiting:
        return f"its service did not answer in time: {report.agent_note}"[:300]
    return ""


def _turned_away(report: Report) -> Refused | None:
    """What holds its account, for runs too; None where its program only did not end in time."""
    if not report.is_error:
        return None
    return Refused(report.trouble, report.agent_note, report.agent_until)


def _findings(printed: Printed, output: str, review: str) -> tuple[Finding, ...]:
    if output == OutputKind.PLAIN:
        return rules.read(_text(printed), review)
    entries = [lenient_json.entry(line) for line in reversed(printed.data.split(b"\n"))]
    said = _of_claude(entries) if output == OutputKind.CLAUDE else _of_codex(entries)
    return rules.read(said, review) if isinstance(said, str) else rules.checked(said)


def _text(printed: Printed) -> str:
    """What a plain program printed; cut off at its beginning it is no whole object."""
    text = printed.data.decode("utf-8", "replace")
    return text if printed.is_whole else f"…\n{text}"


def _of_claude(entries: Sequence[Mapping[str, Any] | None]) -> object:
    """What its last result line holds: the object that its schema asks for, or its last words."""
    found = next((one for one in entries if one and one.get("type") == "result"), {})
    said = found.get("structured_output")
    return said if isinstance(said, dict) else str(found.get("result") or "")


def _of_codex(entries: Sequence[Mapping[str, Any] | None]) -> str:
    """Its last message."""
    for one in entries:
        if one and lenient_json.at(one, "item", "type") == "agent_message":
            return str(lenient_json.at(one, "item", "text") or "")
    return ""
