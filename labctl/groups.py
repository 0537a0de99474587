"""`labctl group …` and `labctl task …`: one piece of work that several share.

Without a group `labctl task` is about the tasks of a loop.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from labctl import loop_notes
from labctl import show_groups as show
from labctl.client import Failed, quoted
from labctl.session import WrongArguments, as_json, client, read, remember_group
from labctl.show import line

TYPE_CHECKING = False  # importing `typing` takes as long as Python itself
if TYPE_CHECKING:
    from typing import Any

Env = Mapping[str, str]


def add(things: Any) -> None:
    """Teach the command line both words."""
    _add_group(things.add_parser("group", help="task groups of this project"))
    _add_task(things.add_parser("task", help="tasks of a loop or of a group: add, list, done"))


def group_create(options: argparse.Namespace, env: Env) -> str:
    """`labctl group create`: of tasks, or of issues, which then follow their runs."""
    is_of_issues = bool(options.issue or options.label or options.milestone)
    lines = read(options.tasks_file).splitlines() if options.tasks_file else []
    subjects = [*options.task, *(line.strip() for line in lines if line.strip())]
    if is_of_issues and (subjects or options.worker or options.output_dir):
        raise WrongArguments("make a group of issues or of tasks, not of both.")
    request: dict[str, Any] = {"name": options.name, "preset": options.preset}
    if is_of_issues:
        request |= {"issues": options.issue, "label": options.label or ""}
        request |= {"milestone": options.milestone or ""}
    else:
        request |= {"tasks": [{"subject": one} for one in subjects]}
        request |= {"workers": [_worker(one) for one in options.worker]}
        request |= {"output_dir": options.output_dir}
    made = client(env).call("POST", "/agent/groups", request)
    remember_group(env, options.name)
    return as_json(made) if options.json else show.group(made)


def group_show(options: argparse.Namespace, env: Env) -> str:
    """`labctl group show`."""
    found = client(env).call("GET", _at(options.name))
    return as_json(found) if options.json else show.group(found)


def group_list(options: argparse.Namespace, env: Env) -> str:
    """`labctl group list`."""
    found = client(env).call("GET", "/agent/groups")["groups"]
    return as_json(found) if options.json else show.groups(found)


def group_watch(options: argparse.Namespace, env: Env) -> str:
    """`labctl group watch`: start a monitor, with what the preset says where nothing else is said."""
    request: dict[str, Any] = {"preset": options.preset, "expected": options.expected}
    made = client(env).call("POST", _at(options.name, "watch"), request)
    return as_json(made) if options.json else show.monitor(made)


def group_close(options: argparse.Namespace, env: Env) -> str:
    """`labctl group close`."""
    client(env).call("POST", _at(options.name, "close"), {})
    return f"Closed {line(options.name)}."


def task_list(options: argparse.Namespace, env: Env) -> str:
    """`labctl task list`."""
    if options.group is None:
        return loop_notes.task_list(options, env)
    found = client(env).call("GET", _at(options.group, "tasks"))["tasks"]
    return as_json(found) if options.json else show.tasks(found)


def task_add(options: argparse.Namespace, env: Env) -> str:
    """`labctl task add`: a task of the loop, or of a group one for each subject."""
    group, *subjects = options.words
    if not subjects:
        if options.key or options.message is not None or options.file:
            raise WrongArguments("a task of a loop is one text; a task of a group needs a subject.")
        return loop_notes.task_add(options, env, group)
    if options.key and len(subjects) > 1:
        raise WrongArguments("a key is for one task.")
    text = options.message
    if text is None:
        text = read(options.file) if options.file else ""
    new = [{"subject": one, "key": options.key or "", "description": text} for one in subjects]
    try:
        made = client(env).call("POST", _at(group, "tasks"), {"tasks": new})["tasks"]
    except Failed as error:
        if error.status == 404 and env.get("LAB_LOOP_EVENTS"):
            raise loop_notes.of_one_word(error, options.words) from error
        raise
    return as_json(made) if options.json else show.tasks(made)


def task_claim(options: argparse.Namespace, env: Env) -> str:
    """`labctl task claim`. That nothing is free is an error, so that a worker can end on it."""
    request = {"key": options.key or "", "worker": options.worker or ""}
    found = client(env).call("POST", _at(options.group, "claim"), request)["task"]
    if found is None:
        raise Failed(f"No task of {options.group} is free.")
    remember_group(env, options.group)
    return as_json(found) if options.json else show.task(found)


def task_done(options: argparse.Namespace, env: Env) -> str:
    """`labctl task done`."""
    if options.key is None:
        return loop_notes.task_done(options.group, env)
    path = _at(options.group, "tasks", options.key, "done")
    found = client(env).call("POST", path, {"worker": options.worker or ""})["task"]
    return f"Task #{line(found['key'])} is completed."


def task_release(options: argparse.Namespace, env: Env) -> str:
    """`labctl task release`."""
    note = options.message
    if note is None:
        note = read(options.file) if options.file else ""
    request = {"worker": options.worker or "", "note": note}
    path = _at(options.group, "tasks", options.key, "release")
    found = client(env).call("POST", path, request)["task"]
    return f"Task #{line(found['key'])} is free again."


def _add_group(parser: argparse.ArgumentParser) -> None:
    acts = parser.add_subparsers(prog="labctl group", metavar="ACT", required=True)
    create = acts.add_parser("create", help="make one, of tasks or of issues")
    create.set_defaults(act=group_create)
    create.add_argument("name", metavar="NAME", help="letters, digits, _ and -")
    create.add_argument("--preset", default="work", help="how it is watched (default: work)")
    create.add_argument("--task", action="append", default=[], metavar="SUBJECT")
    create.add_argument("--tasks-file", metavar="FILE", help="a subject a line; - reads input")
    create.add_argument(
        "--worker",
        action="append",
        default=[],
        metavar="NAME[=FILE]",
        help="who works on it, and the output file that it has to leave",
    )
    create.add_argument("--output-dir", default="", metavar="DIR", help="where those files lie")
    create.add_argument("--issue", action="append", default=[], metavar="N")
    create.add_argument("--label", metavar="LABEL", help="all open issues with this label")
    create.add_argument("--milestone", metavar="TITLE", help="all open issues of a milestone")
    shown = acts.add_parser("show", help="one group with its tasks")
    shown.set_defaults(act=group_show)
    listed = acts.add_parser("list", help="open groups")
    listed.set_defaults(act=group_list)
    watch = acts.add_parser("watch", help="start a monitor; group show tells how it stands")
    watch.set_defaults(act=group_watch)
    watch.add_argument("--preset", help="default: the one that the group was made with")
    watch.add_argument("--expected", type=int, metavar="N", help="default: all tasks there are")
    close = acts.add_parser("close", help="close one that this run made")
    close.set_defaults(act=group_close)
    for part in (shown, watch, close):
        part.add_argument("name", metavar="NAME")
    for part in (create, shown, listed, watch):
        part.add_argument("--json", action="store_true", help="print JSON")


def _add_task(parser: argparse.ArgumentParser) -> None:
    acts = parser.add_subparsers(prog="labctl task", metavar="ACT", required=True)
    listed = acts.add_parser("list", help="all tasks of the loop, or of a group")
    listed.set_defaults(act=task_list)
    more = acts.add_parser("add", help="add a task to the loop (one text), or tasks to a group")
    more.set_defaults(act=task_add)
    claim = acts.add_parser("claim", help="take a task; asked again, the one that you have")
    claim.set_defaults(act=task_claim)
    finished = acts.add_parser("done", help="say that a task is completed")
    finished.set_defaults(act=task_done)
    back = acts.add_parser("release", help="give your task back")
    back.set_defaults(act=task_release)
    listed.add_argument("group", nargs="?", metavar="GROUP", help="default: the loop's own tasks")
    more.add_argument(
        "words",
        nargs="+",
        metavar="TEXT",
        help="TEXT alone for a task of the loop, GROUP SUBJECT… for tasks of a group",
    )
    for part in (claim, back):
        part.add_argument("group", metavar="GROUP")
    more.add_argument("--key", help="default: the next free number")
    claim.add_argument("key", nargs="?", metavar="KEY", help="default: the first that is free")
    finished.add_argument("group", metavar="GROUP", help="or the number of a task of the loop")
    finished.add_argument("key", nargs="?", metavar="KEY", help="which task of the group")
    back.add_argument("key", metavar="KEY")
    loop_notes.add_task_acts(acts)
    for part in (claim, finished, back):
        part.add_argument(
            "--as",
            dest="worker",
            metavar="WORKER",
            help="which worker you are, where a run has several (default: the run)",
        )
    for part in (more, back):
        text = part.add_mutually_exclusive_group()
        text.add_argument("-m", "--message", metavar="TEXT")
        text.add_argument("-F", "--file", metavar="FILE", help="- reads standard input")
    for part in (listed, more, claim):
        part.add_argument("--json", action="store_true", help="print JSON")


def _worker(text: str) -> dict[str, str]:
    name, _, file = text.partition("=")
    return {"name": name, "output_file": file}


def _at(name: str, *rest: str) -> str:
    return "/".join(["/agent/groups", *(quoted(part) for part in (name, *rest))])
