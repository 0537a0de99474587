"""`labctl memory`, `labctl ack`, and `labctl task` without a group: what the agents of a loop keep."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

from labctl.client import Failed, quoted
from labctl.session import WrongArguments, as_json, client, read
from labctl.show import line, plain

TYPE_CHECKING = False  # importing `typing` takes as long as Python itself
if TYPE_CHECKING:
    from typing import Any

Env = Mapping[str, str]
MEMORIES, TASKS = "/agent/loop/memories", "/agent/loop/tasks"
STATES = {"ready": "ready", "open": "blocked", "closed": "done"}


def add(things: Any) -> None:
    """Teach the command line `memory` and `ack`; `labctl.groups` has `task`, which both share."""
    memory = things.add_parser(
        "memory", help="what this run leaves for all later ones: add, list, search"
    ).add_subparsers(prog="labctl memory", metavar="ACT", required=True)
    more = memory.add_parser("add", help="keep a text for all later runs of this project")
    more.set_defaults(act=memory_add)
    more.add_argument("words", nargs="*", metavar="TEXT", help="or -F FILE")
    more.add_argument("-F", "--file", metavar="FILE", help="- reads standard input")
    listed = memory.add_parser("list", help="the newest memories of this project")
    listed.set_defaults(act=memory_list)
    found = memory.add_parser("search", help="those that have a text, in any case of letters")
    found.set_defaults(act=memory_search)
    found.add_argument("words", nargs="+", metavar="TEXT")
    for part in (more, listed, found):
        part.add_argument("--json", action="store_true", help="print JSON")
    heard = things.add_parser(
        "ack", help="in a loop: confirm the guidance of a person that your prompt showed"
    )
    heard.set_defaults(act=acknowledge)


def memory_add(options: argparse.Namespace, env: Env) -> str:
    """`labctl memory add`."""
    if options.words and options.file:
        raise WrongArguments("write the memory as words or name a file, not both.")
    text = " ".join(options.words) or read(options.file)
    made = client(env).call("POST", MEMORIES, {"text": text})
    return as_json(made) if options.json else f"Memory {made.get('id')} is kept for all later runs."


def memory_list(options: argparse.Namespace, env: Env) -> str:
    """`labctl memory list`."""
    return _memories(options, client(env).call("GET", MEMORIES), "No memories yet.")


def memory_search(options: argparse.Namespace, env: Env) -> str:
    """`labctl memory search`. That nothing was found is no error."""
    word = " ".join(options.words)
    found = client(env).call("GET", f"{MEMORIES}?q={quoted(word)}")
    return _memories(options, found, f"No memory has {line(word)}.")


def acknowledge(options: argparse.Namespace, env: Env) -> str:
    """`labctl ack`."""
    count = client(env).call("POST", "/agent/loop/ack")["acknowledged"]
    if not count:
        return "There was no guidance to confirm."
    return f"{count} {'piece' if count == 1 else 'pieces'} of guidance confirmed."


def task_list(options: argparse.Namespace, env: Env) -> str:
    """`labctl task list`."""
    found = client(env).call("GET", TASKS)["tasks"]
    if options.json:
        return as_json(found)
    return "\n".join(map(_task, found)) or "No tasks yet."


def task_add(options: argparse.Namespace, env: Env, text: str) -> str:
    """`labctl task add TEXT`."""
    made = client(env).call("POST", TASKS, {"text": text})
    return as_json(made) if options.json else _task(made)


def task_done(number: str, env: Env) -> str:
    """`labctl task done N`."""
    return _set(env, number, "done", "")


def task_block(options: argparse.Namespace, env: Env) -> str:
    """`labctl task block N`."""
    return _set(env, options.number, "block", options.message)


def task_ready(options: argparse.Namespace, env: Env) -> str:
    """`labctl task ready N`."""
    return _set(env, options.number, "ready", "")


def add_task_acts(acts: Any) -> None:
    """The acts on tasks that only loops have."""
    block = acts.add_parser("block", help="in a loop: say that a task cannot go on, and why")
    block.set_defaults(act=task_block)
    block.add_argument("-m", "--message", default="", metavar="TEXT", help="the reason")
    ready = acts.add_parser("ready", help="in a loop: a task that was blocked can go on")
    ready.set_defaults(act=task_ready)
    for part in (block, ready):
        part.add_argument("number", metavar="N")


def _set(env: Env, text: str, act: str, note: str) -> str:
    number = text.removeprefix("#")
    if not number.isascii() or not number.isdigit() or len(number) > 9:
        raise WrongArguments(f"{line(text)} is no number of a task; labctl task list shows them.")
    return _task(client(env).call("POST", f"{TASKS}/{int(number)}/{act}", {"note": note}))


def _memories(options: argparse.Namespace, answer: Mapping[str, Any], nothing: str) -> str:
    found: Sequence[Mapping[str, Any]] = answer["memories"]
    if options.json:
        return as_json(found)
    return (
        "\n".join(f"- {plain(one['text']).replace(chr(10), f'{chr(10)}  ')}" for one in found)
        or nothing
    )


def _task(one: Mapping[str, Any]) -> str:
    note = f"\t{line(one['note'])}" if one["note"] else ""
    state = STATES.get(one["state"], line(one["state"]))
    return f"#{one['number']}\t{state}\t{line(one['text'])}{note}"


def of_one_word(error: Failed, words: Sequence[str]) -> Failed:
    """The refusal of a group that is not there, for an agent that meant a task of its loop."""
    return Failed(
        f"{error} For a task of this loop put its text in quotes: labctl task add "
        f'"{line(" ".join(words))}"',
        error.code,
        error.status,
    )
