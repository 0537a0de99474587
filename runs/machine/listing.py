"""Reads what git lists: changed files, commits, one file's content as a diff."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from runs.core.history_ports import Change, Commit
from runs.core.ports import SeamError
from runs.machine import shell

SUBMODULE = "160000"
COMMIT_FORMAT = "%H%x00%P%x00%an%x00%ct%x00%s%x00%b"
SUBJECT, BODY = 500, 20_000  # letters of a commit's message

_FIELDS = 6
_HUNK = re.compile(r"^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@", re.MULTILINE)
_ODD = re.compile(r'[\x00-\x1f"\\\x7f]')
_GLOB, _BACKSLASHED = re.compile(r"[\\*?\[\] ]"), r"\\\g<0>"
_PLACED, _PLACED_END = "# Files of the project's set-up (labsite):", "# end of labsite's"
_NO_NEWLINE = "\\ No newline at end of file\n"


def read(done: shell.Finished) -> list[Change]:
    """The files of `git diff --raw --numstat -z`. Raises SeamError for a list that is too long."""
    if done.is_cut:
        raise SeamError("too many files have changed to list them here; look at them with git")
    words = iter(done.stdout.split("\0"))
    try:
        return _read(words)
    except (ValueError, StopIteration) as error:
        raise SeamError("git diff gave a list that was not understood") from error


def _read(words: Iterator[str]) -> list[Change]:
    """First all files with modes and ids, then all again with their numbers of lines."""
    files: list[tuple[list[str], str, str]] = []
    word = next(words)
    while word.startswith(":"):
        about = word[1:].split(" ")
        is_pair = about[4][0] in "RC"
        old = next(words) if is_pair else ""
        files.append((about, old, next(words)))
        word = next(words)
    found = []
    for about, old, path in files:
        added, removed, name = word.split("\t", 2)
        if not name:
            name = (next(words), next(words))[1]
        if name != path:
            raise ValueError(name)
        old_mode, new_mode, old_id, new_id, kind = about
        found.append(
            Change(
                path,
                kind[0],
                number(added),
                number(removed),
                old,
                old_mode,
                new_mode,
                old_id,
                new_id,
            )
        )
        word = next(words)
    return found


def read_commits(text: str) -> list[Commit]:
    """The commits of `git log -z` with `COMMIT_FORMAT`; a last one that was cut off is left out."""
    words = text.split("\0")
    rows = zip(*(words[n::_FIELDS] for n in range(_FIELDS)), strict=False)
    return [
        Commit(
            ident, tuple(parents.split()), author[:SUBJECT], _at(when), short(subject), _body(body)
        )
        for ident, parents, author, when, subject, body in rows
    ]


def short(subject: str) -> str:
    """A subject that fits a page: whole paragraphs are one line for git."""
    return subject if len(subject) <= SUBJECT else f"{subject[: SUBJECT - 1]}…"


def _body(text: str) -> str:
    """The rest of a commit's message, of which only so much is kept; the end says how much is not."""
    text = text.strip()
    if len(text) <= BODY:
        return text
    return f"{text[:BODY]}\n… {len(text) - BODY:,} more characters are not shown here"


def whole(content: str, *, is_new: bool) -> str:
    """A file that is there on one side only, as the diff that git would print for it."""
    if not content:
        return ""
    lines = content.split("\n")
    ends_well = not lines[-1]
    count = len(lines) - ends_well
    sign, span = ("+", f"-0,0 +1,{count}") if is_new else ("-", f"-1,{count} +0,0")
    body = "".join(f"{sign}{line}\n" for line in lines[:count])
    names = "--- /dev/null\n+++ b/file" if is_new else "--- a/file\n+++ /dev/null"
    return f"{names}\n@@ {span} @@\n{body}{'' if ends_well else _NO_NEWLINE}"


def untracked(path: str, text: str | None) -> Change:
    """A file that git does not know, with its number of lines where its text is known."""
    lines = None if text is None else text.count("\n") + (not text.endswith("\n") and text != "")
    return Change(path, "?", lines, None if text is None else 0, is_open=True)


def added(path: str, text: str) -> str:
    """A file that git does not know, as the diff that git would print once it was added."""
    name = f'"b/{_escaped(path)}"' if _ODD.search(path) else f"b/{path}"
    body = whole(text, is_new=True).partition("+++ b/file")[2]
    return f"diff --git {name} {name}\nnew file mode 100644\n--- /dev/null\n+++ {name}{body}"


def ignoring(text: str, names: Sequence[str]) -> str:
    """Return a list of ignored files (info/exclude) in which labsite's own part names these.

    It stands at the end, where a line of somebody else cannot take a file out again.
    """
    before, _, rest = text.partition(f"{_PLACED}\n")
    kept = before + rest.partition(f"{_PLACED_END}\n")[2]
    if kept and not kept.endswith("\n"):
        kept += "\n"
    lines = [_PLACED, *(f"/{_GLOB.sub(_BACKSLASHED, name)}" for name in names), _PLACED_END]
    return kept + "".join(f"{line}\n" for line in lines)


def _escaped(path: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in os.fsencode(path))


def mended(patch: str) -> str:
    """A diff of one file that was cut off in a hunk: its last whole line ends that hunk."""
    kept = patch[: patch.rfind("\n") + 1]
    heads = list(_HUNK.finditer(kept))
    if not heads:
        return ""
    last = heads[-1]
    _, _, body = kept[last.start() :].partition("\n")
    lines = body.split("\n")
    old = sum(line[:1] in ("-", " ") for line in lines if line)
    new = sum(line[:1] in ("+", " ") for line in lines if line)
    head = f"@@ -{last[1]},{old} +{last[2]},{new} @@"
    return f"{kept[: last.start()]}{head}\n{body}" if body else kept[: last.start()]


def number(text: str) -> int | None:
    """A number of lines; git prints a dash for a binary file."""
    return int(text) if text.isdigit() else None


def _at(seconds: str) -> datetime:
    """When a commit was made. Nonsense, which git allows, is the beginning of time."""
    try:
        return datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)
