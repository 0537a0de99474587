"""`labctl emit`: an agent of a loop tells an event, as one line of its turn's events file.

Each call appends with a single write, so that events of concurrent commands do not interleave. It
asks nobody, so it works while labsite is away; labsite reads the file when the turn has ended.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
import time

TYPE_CHECKING = False  # importing `typing` would take longer than all else here
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

USAGE = "usage: labctl emit TOPIC [TEXT]"
ASK_USAGE = "usage: labctl ask TEXT"
ASK = "human.interact"
TOPIC = re.compile(r"[A-Za-z][A-Za-z0-9_]*([.-][A-Za-z0-9_]+)*", re.ASCII)
MOST_TOPIC = 100
MOST_PAYLOAD = 8000
FULL = 32_000_000  # bytes; of more than a thousand events labsite reads none anyway
DONE, FAILED, WRONG = 0, 1, 2
_APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def is_topic(text: str) -> bool:
    """Whether a text may be the topic of an event: words of letters and digits, joined by dots."""
    return len(text) <= MOST_TOPIC and TOPIC.fullmatch(text) is not None


def run(arguments: Sequence[str]) -> int:
    """Tell one event; several words of text are joined. 1: it could not be told, 2: wrong arguments."""
    if list(arguments) in (["-h"], ["--help"]):
        print(USAGE)
        return DONE
    # Whatever the locale of the session made of the bytes.
    words = [os.fsencode(word).decode("utf-8", "replace") for word in arguments]
    trouble = WRONG, USAGE
    if words:
        trouble = emit(os.environ, words[0], " ".join(words[1:]))
    code, text = trouble
    if text:
        print(f"labctl: {text}" if words else text, file=sys.stderr)
    return code


def ask(arguments: Sequence[str]) -> int:
    """Ask a person, by the event that says so; like `run`."""
    if not " ".join(arguments).strip() or list(arguments) in (["-h"], ["--help"]):
        is_help = bool(arguments) and bool(arguments[0].strip())
        print(ASK_USAGE, file=sys.stdout if is_help else sys.stderr)
        return DONE if is_help else WRONG
    code = run([ASK, *arguments])
    if code == DONE:
        print("Asked. End this turn now: the next one waits for the answer, and its prompt has it.")
    return code


def emit(env: Mapping[str, str], topic: str, text: str) -> tuple[int, str]:
    """Append one event to the file that LAB_LOOP_EVENTS names; the exit code and what was wrong."""
    if not is_topic(topic):
        shown = topic[:MOST_TOPIC].encode("ascii", "backslashreplace").decode()
        return WRONG, (
            f"{shown!r} is no topic: words of letters, digits and _, joined by dots or hyphens, "
            f"such as build.done, of at most {MOST_TOPIC} characters."
        )
    path = env.get("LAB_LOOP_EVENTS", "")
    if not path:
        return FAILED, "this is no loop run, so nobody listens to events."
    event = {"topic": topic, "payload": text[:MOST_PAYLOAD], "at": time.time()}
    line = json.dumps(event, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    try:
        return _append(path, line)
    except (OSError, ValueError) as error:
        words = error.strerror if isinstance(error, OSError) else "its name is invalid"
        return FAILED, f"the event could not be written to {path}: {words}."


def _append(path: str, line: bytes) -> tuple[int, str]:
    file = os.open(path, _APPEND, 0o600)
    try:
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode):
            return FAILED, f"{path} is no plain file, so no event was written."
        if facts.st_size >= FULL:
            return (
                FAILED,
                "this turn has told more events than anybody reads; this one is not kept.",
            )
        if facts.st_size and os.pread(file, 1, facts.st_size - 1) != b"\n":
            line = b"\n" + line  # behind one of which a full disk took a part
        if os.write(file, line) < len(line):
            return FAILED, f"the disk of {path} is full, so the event was not told."
    finally:
        os.close(file)
    return DONE, ""
