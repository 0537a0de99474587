"""The commands that ask labsite something, and what each prints."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Mapping

from labctl import show
from labctl.client import Failed, quoted
from labctl.session import WrongArguments, as_json, client, read

TYPE_CHECKING = False  # importing `typing` takes as long as Python itself
if TYPE_CHECKING:
    from typing import Any

    Things = argparse._SubParsersAction[argparse.ArgumentParser]


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code; never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
    words = [_text(word) for word in arguments]
    options = _parser(words[0] if words else "").parse_args(words)
    status = 0
    try:
        if "status" in options:  # it prints by itself, and its status says how that went
            status = options.status(options, os.environ)
        else:
            print(options.act(options, os.environ))
        sys.stdout.flush()
    except WrongArguments as error:
        print(f"labctl: {error}", file=sys.stderr)
        return 2
    except Failed as error:
        print(f"labctl: {show.plain(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 1
    except BrokenPipeError:
        # The reader of a pipe has seen enough; without this Python complains on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return int(status)


def issue_view(options: argparse.Namespace, env: Mapping[str, str]) -> str:
    """`labctl issue view`."""
    answer = client(env).call("GET", f"/agent/issues/{_key(options, env)}")
    return as_json(answer) if options.json else show.issue(answer)


def issue_list(options: argparse.Namespace, env: Mapping[str, str]) -> str:
    """`labctl issue list`."""
    found = client(env).call("GET", "/agent/issues")["issues"]
    return as_json(found) if options.json else show.issues(found)


def issue_comment(options: argparse.Namespace, env: Mapping[str, str]) -> str:
    """`labctl issue comment`."""
    key = _key(options, env)
    body = options.message if options.message is not None else read(options.file)
    client(env).call("POST", f"/agent/issues/{key}/comments", {"body": body})
    return f"Commented on #{key}."


def issue_no_change(options: argparse.Namespace, env: Mapping[str, str]) -> str:
    """`labctl issue no-change`."""
    return _claim("no-change", options, env)


def issue_obsolete(options: argparse.Namespace, env: Mapping[str, str]) -> str:
    """`labctl issue obsolete`."""
    return _claim("obsolete", options, env)


def _claim(word: str, options: argparse.Namespace, env: Mapping[str, str]) -> str:
    request = {"message": options.message}
    return show.claimed(client(env).call("POST", f"/agent/claims/{word}", request))


def pr_create(options: argparse.Namespace, env: Mapping[str, str]) -> str:
    """`labctl pr create`."""
    body = options.body if options.body_file is None else read(options.body_file)
    title = options.title if options.title is not None else _last_subject()
    request = {"title": title, "body": body or "", "base": options.base}
    answer = client(env).call("POST", "/agent/pull", request)
    return as_json(answer) if options.json else show.pull(answer)


def pr_view(options: argparse.Namespace, env: Mapping[str, str]) -> str:
    """`labctl pr view`."""
    answer = client(env).call("GET", "/agent/pull")
    return as_json(answer) if options.json else show.pull(answer)


def pr_comment(options: argparse.Namespace, env: Mapping[str, str]) -> str:
    """`labctl pr comment`."""
    body = options.message if options.message is not None else read(options.file)
    answer = client(env).call("POST", "/agent/pull/comments", {"body": body})
    return f"Commented on pull request #{answer.get('number')}."


def done(options: argparse.Namespace, env: Mapping[str, str]) -> str:
    """`labctl done`. What is missing is an error, so that an agent goes on."""
    answer = client(env).call("POST", "/agent/done")
    if "expects" in answer:
        return show.claimed(answer)
    if answer.get("is_done") is False:
        raise Failed(show.missing(answer))
    return show.delivered(answer)


def git_credential(options: argparse.Namespace, env: Mapping[str, str]) -> str:
    """`labctl git-credential`, called by git's helper with the words of git's question."""
    answer = client(env).call("POST", "/agent/git-credential", {"prompt": options.prompt})
    return str(answer.get("password", ""))


class _Parser(argparse.ArgumentParser):
    """One that finds the terminal's width itself: argparse loads modules for archives to do it."""

    def _get_formatter(self) -> argparse.HelpFormatter:
        formatter: Any = self.formatter_class  # each of them takes a width
        made: argparse.HelpFormatter = formatter(prog=self.prog, width=_columns() - 2)
        return made


def _columns() -> int:
    text = os.environ.get("COLUMNS", "")
    if text.isdecimal() and int(text) > 0:
        return int(text)
    try:
        return os.get_terminal_size().columns or 80
    except OSError:
        return 80


def _parser(word: str) -> argparse.ArgumentParser:
    """The parser of one command, or of all where `word` is none: each costs time to load and make."""
    parser: argparse.ArgumentParser = _Parser(
        prog="labctl",
        description="Issues, tasks, memories, and the pull request of this run.",
        allow_abbrev=False,
    )
    parser.set_defaults(json=False)
    things = parser.add_subparsers(prog="labctl", metavar="COMMAND", required=True)
    wanted = _ADDS.get(word)
    for add in (wanted,) if wanted is not None else dict.fromkeys(_ADDS.values()):
        add(things)
    return parser


def _add_issue(things: Things) -> None:
    issue = things.add_parser(
        "issue", help="read and comment on issues, say that this one needs nothing"
    ).add_subparsers(prog="labctl issue", metavar="ACT", required=True)
    view = issue.add_parser("view", help="one issue with its comments")
    view.set_defaults(act=issue_view)
    listed = issue.add_parser("list", help="open issues of this project")
    listed.set_defaults(act=issue_list)
    comment = issue.add_parser("comment", help="comment on an issue")
    comment.set_defaults(act=issue_comment)
    for part in (view, comment):
        part.add_argument("number", nargs="?", metavar="N", help="default: the issue of this run")
    _add_text(comment)
    for name, act, text in (
        ("no-change", issue_no_change, "say that the issue of this run needs no change, and why"),
        ("obsolete", issue_obsolete, "say that the issue of this run is obsolete, and why"),
    ):
        claim = issue.add_parser(
            name, help=text, description=f"{text.capitalize()}. It ends the run."
        )
        claim.set_defaults(act=act)
        claim.add_argument("-m", "--message", required=True, metavar="TEXT", help="the reason")
    for part in (view, listed):
        _add_json(part)


def _add_pull(things: Things) -> None:
    pull = things.add_parser("pr", help="the pull request of this run").add_subparsers(
        prog="labctl pr", metavar="ACT", required=True
    )
    create = pull.add_parser("create", help="open it; push the branch first")
    create.set_defaults(act=pr_create)
    create.add_argument("-t", "--title", help="default: the first line of the last commit")
    body = create.add_mutually_exclusive_group()
    body.add_argument("-b", "--body", default="")
    body.add_argument("-F", "--body-file", metavar="FILE", help="- reads standard input")
    create.add_argument("-B", "--base", default="", help="default: the default branch")
    shown = pull.add_parser("view", help="show it with its comments")
    shown.set_defaults(act=pr_view)
    said = pull.add_parser("comment", help="comment on it")
    said.set_defaults(act=pr_comment)
    _add_text(said)
    for part in (create, shown):
        _add_json(part)


def _add_done(things: Things) -> None:
    finished = things.add_parser(
        "done", help="say that the work is done, where no pull request says so"
    )
    finished.set_defaults(act=done)


def _add_git_credential(things: Things) -> None:
    asked = things.add_parser("git-credential")
    asked.set_defaults(act=git_credential)
    asked.add_argument("prompt")


def _add_checks(things: Things) -> None:
    from labctl import checks

    checks.add(things)


def _add_groups(things: Things) -> None:
    from labctl import groups

    groups.add(things)


def _add_notes(things: Things) -> None:
    from labctl import loop_notes

    loop_notes.add(things)


def _add_next(things: Things) -> None:
    from labctl import loop_next

    loop_next.add(things)


def _add_others(things: Things) -> None:
    """Those that have entries of their own in `labctl.__main__`; here for the help."""
    things.add_parser("emit", help="in a loop: tell an event, TOPIC [TEXT]")
    things.add_parser(
        "ask", help="in a loop: ask a person TEXT; the next turn waits for the answer"
    )
    things.add_parser("wake", help="ask labsite to look at this project now")
    things.add_parser("hook", help="called by the agent's own hooks: task-completed, idle, session")


_ADDS: Mapping[str, Callable[[Things], None]] = {
    "issue": _add_issue,
    "pr": _add_pull,
    "check": _add_checks,
    "done": _add_done,
    "git-credential": _add_git_credential,
    "group": _add_groups,
    "task": _add_groups,
    "memory": _add_notes,
    "ack": _add_notes,
    "next": _add_next,
    "emit": _add_others,
}


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def _add_text(parser: argparse.ArgumentParser) -> None:
    """Where the text of a comment comes from."""
    text = parser.add_mutually_exclusive_group()
    text.add_argument("-m", "--message", "-b", "--body", metavar="TEXT")
    text.add_argument(
        *("-F", "--file", "--body-file"),
        metavar="FILE",
        help="- reads standard input, as does neither",
    )


def _key(options: argparse.Namespace, env: Mapping[str, str]) -> str:
    key = options.number or env.get("LAB_ISSUE", "")
    if not options.number and "LAB_LOOP_EVENTS" in env:  # a loop may have taken another one since
        key = str(client(env).call("GET", "/agent/whoami").get("issue") or "")
    key = key.removeprefix("#")
    if not key:
        raise WrongArguments("which issue? Write its number.")
    return quoted(key)


def _last_subject() -> str:
    """The first line of the last commit's message."""
    import subprocess  # noqa: TID251  (rarely needed, and slow to import)

    command = ["git", "log", "-1", "--format=%s"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=20, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError) as error:
        raise WrongArguments("no commit was found to take the title from; use --title.") from error
    return done.stdout.decode("utf-8", "replace").strip()


def _text(word: str) -> str:
    """An argument as text, whatever the locale of the session made of it."""
    return os.fsencode(word).decode("utf-8", "replace")
