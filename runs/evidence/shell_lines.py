"""The single commands in a line of a shell, and what the line's own exit status tells of each. Pure.

What cannot be read for sure is not guessed: a status is told only where the shell's rules leave no
other, and a line with loops, conditions or functions has no commands at all.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

LONGEST = 20_000  # letters of a line; a longer one writes a file
_DEPTH = 3
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_HEREDOC = re.compile(r"<<-?[ \t]*(['\"]?)([A-Za-z_][A-Za-z0-9_]*)\1")
_OPERATOR = re.compile(r"\n|&&|\|\||\|&|&>>|&>|;;|;|\||&|\(|\)|<<<|<<|<\(|>\(|>>|>\||>&|<&|<>|>|<")
_REDIRECTS = ("<<<", "&>>", "&>", ">>", ">|", ">&", "<&", "<>", ">", "<")
_CONTROL = frozenset(
    (
        *(
            "if",
            "then",
            "else",
            "elif",
            "fi",
            "for",
            "while",
            "until",
            "do",
            "done",
            "case",
            "esac",
        ),
        *("function", "select", "{", "}", "!", "[[", "((", "eval", "trap", "alias", "coproc"),
    )
)
_LEAVING = ("exit", "return", "exec", "logout")
_SHELLS = ("bash", "sh", "zsh", "dash")
_DURATION = re.compile(r"[0-9.]+[smhd]?")
# What decides which program a name stands for, or what that program does with its arguments.
_DECIDING = re.compile(
    r"(PATH|PYTHONPATH|PYTHONHOME|MAKEFLAGS|BASH_ENV|ENV|\w+_ADDOPTS|(?:LD|DYLD)_\w+)(?:\+?=|$)"
)
_DECLARING = (
    *("export", "declare", "typeset", "readonly", "local", "unset", "read"),
    *("printf", "mapfile", "readarray"),
)
_STARTING = ("time", "command", "builtin", "exec", "nohup", "env")
_REDEFINING = ("hash", "enable", "unalias", "shopt")


@dataclass(frozen=True, slots=True)
class Simple:
    """One command: its words, the folder in which it ran, its exit status.

    The folder is None where it cannot be told. `hidden` says what hides the status.
    """

    argv: tuple[str, ...]
    folder: str | None
    status: int | None
    hidden: str = ""


@dataclass(frozen=True, slots=True)
class _Part:
    """One pipeline: how it is joined to the one before it, and its commands."""

    joined: str
    commands: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class _List:
    """Pipelines joined by && and ||, and what ends them: `;`, `&`, or nothing."""

    parts: tuple[_Part, ...]
    end: str


@dataclass(slots=True)
class _State:
    """What earlier commands of a line have set for the later ones."""

    folder: str | None
    errexit: bool = False
    pipefail: bool = False
    changed: str = ""  # why it is not sure which programs the later ones were


class _Unclear(Exception):
    """The line holds what is not read here."""


def read(text: str, status: int | None, folder: str | None) -> Sequence[Simple] | None:
    """The commands of a line that ended with this status and began in this folder.

    None where the line cannot be read.
    """
    try:
        return _read(text, status, _State(folder), "" if status is not None else "not told", 0)
    except (_Unclear, RecursionError):
        return None


def _read(text: str, status: int | None, state: _State, hidden: str, depth: int) -> list[Simple]:
    if len(text) > LONGEST or depth > _DEPTH:
        raise _Unclear
    found: list[Simple] = []
    lists = _lists(_without_heredocs(text))
    every = [words for one in lists for part in one.parts for words in part.commands]
    if any(_may_leave(words, status) for words in every[:-1]):
        raise _Unclear  # what stands behind it may never have run
    for number, one in enumerate(lists):
        is_last = number == len(lists) - 1
        found += _of_list(one, status, is_last, state, hidden, depth)
    return found


def _may_leave(words: tuple[str, ...], status: int | None) -> bool:
    """Whether the line may have ended here with its status."""
    if not words or words[0] not in _LEAVING:
        return False
    is_failure = words[0] != "exec" and len(words) == 2 and words[1].isdecimal()
    return not (is_failure and int(words[1]) and status == 0)


def _of_list(
    one: _List, status: int | None, is_last: bool, state: _State, hidden: str, depth: int
) -> list[Simple]:
    """The commands of one list. Of its statuses the line's own tells those that it depends on."""
    has_or = any(part.joined == "||" for part in one.parts)
    if hidden:
        pass
    elif one.end == "&":
        hidden = "it was left running in the background"
    elif has_or:
        hidden = "`||` hides its exit status"
    elif is_last:
        if status != 0 and (len(one.parts) > 1 or state.errexit):
            hidden = "it was in a chain that failed"
    elif not (state.errexit and status == 0 and len(one.parts) == 1):
        hidden = "commands after it hide its exit status"
    found = []
    for part in one.parts:
        found += _of_part(part, status, state, hidden, depth)
        _note(part, one.end == "&", has_or, state)
    return found


def _of_part(
    part: _Part, status: int | None, state: _State, hidden: str, depth: int
) -> list[Simple]:
    found = []
    last = len(part.commands) - 1
    for number, words in enumerate(part.commands):
        why = hidden or state.changed or _set_for_it(words)
        if not why and state.pipefail and last and status != 0:
            why = "it was in a pipe that failed"
        if not why and not state.pipefail and number < last:
            why = "a pipe hides its exit status"
        found += _of_command(words, None if why else status, why, state, depth)
    return found


def _of_command(
    words: tuple[str, ...], status: int | None, hidden: str, state: _State, depth: int
) -> list[Simple]:
    argv = _unwrapped(words)
    if not argv:
        return []
    if argv[0] in _CONTROL or not _is_known_source(argv):
        raise _Unclear
    script, inner = _script(argv, state)
    if script is None:
        return [Simple(argv, state.folder, status, hidden)]
    whole = Simple(argv, state.folder, status, hidden)
    return [whole, *_read(script, status, inner, hidden, depth + 1)]


def _is_known_source(argv: tuple[str, ...]) -> bool:
    """Whether it takes in no other file of commands than that of a virtual environment."""
    return argv[0] not in ("source", ".") or argv[-1].endswith("bin/activate")


def _note(part: _Part, is_apart: bool, has_or: bool, state: _State) -> None:
    """What a `cd` or a `set` changes for the commands after it."""
    if len(part.commands) > 1 or is_apart or not part.commands[0]:
        return
    argv = _unwrapped(part.commands[0])
    name = argv[0] if argv else ""
    state.changed = state.changed or _changes(part.commands[0], argv)
    if name in ("cd", "pushd", "popd"):
        is_plain = name == "cd" and len(argv) == 2 and not has_or
        state.folder = _moved(state.folder, argv[1]) if is_plain else None
    elif name == "set":
        words = " ".join(argv[1:])
        flags = "".join(one[1:] for one in argv[1:] if one.startswith("-"))
        if "n" in flags:
            raise _Unclear  # it only reads what follows
        state.errexit = state.errexit or "e" in flags or "-o errexit" in words
        state.pipefail = state.pipefail or "pipefail" in argv[1:]
        if any(one.startswith("+") for one in argv[1:]):
            state.errexit = state.pipefail = False


def _set_for_it(words: Sequence[str]) -> str:
    """Why a command with variables set for it alone may not be what it is called; else empty."""
    for word in words:
        if _ASSIGNMENT.match(word) and (found := _DECIDING.match(word)) is not None:
            return f"{found[1]} was set for it"
    return ""


def _changes(words: Sequence[str], argv: Sequence[str]) -> str:
    """Why the commands after this one may not be what they are called; else empty."""
    if not argv:
        found = next(filter(None, map(_DECIDING.match, words)), None)
    elif argv[0] in _REDEFINING:
        return f"`{argv[0]}` was used before it"
    elif argv[0] in _DECLARING:
        found = next(filter(None, map(_DECIDING.match, argv[1:])), None)
    else:
        return ""
    return f"{found[1]} was changed before it" if found is not None else ""


def _moved(folder: str | None, to: str) -> str | None:
    if folder is None or to.startswith(("-", "~")) or _is_opaque(to):
        return None
    return posixpath.normpath(posixpath.join(folder, to))


def _is_opaque(word: str) -> bool:
    """Whether only the shell knows what a word stands for."""
    return "$" in word or "`" in word


def _unwrapped(words: Sequence[str]) -> tuple[str, ...]:
    """A command without variables set for it alone, and without programs that only start it."""
    argv = list(words)
    while argv:
        head = argv[0]
        if _ASSIGNMENT.match(head) or head in _STARTING:
            argv = argv[1:]
        elif head == "timeout":
            argv = _after_options(argv[1:], ("-k", "-s"))
            if not argv or not _DURATION.fullmatch(argv[0]):
                return tuple(words)
            argv = argv[1:]
        elif head in ("nice", "stdbuf", "ionice", "xvfb-run"):
            argv = _after_options(argv[1:], ("-n", "-c", "-s"))
        else:
            break
    return tuple(argv)


def _after_options(argv: list[str], valued: Sequence[str]) -> list[str]:
    while argv and argv[0].startswith("-"):
        argv = argv[2:] if argv[0] in valued else argv[1:]
    return argv


def _script(argv: tuple[str, ...], state: _State) -> tuple[str | None, _State]:
    """The line that a shell is given with -c, and what its own options set; None for no such."""
    inner = _State(state.folder, changed=state.changed)
    if posixpath.basename(argv[0]) not in _SHELLS:
        return None, inner
    rest, is_line = list(argv[1:]), False
    while rest and rest[0][:1] in ("-", "+") and len(rest[0]) > 1:
        flag = rest.pop(0)
        if flag.startswith("--"):
            continue
        if "n" in flag:
            raise _Unclear
        is_line = is_line or "c" in flag
        inner.errexit = inner.errexit or "e" in flag
        if "o" in flag and rest:
            inner.pipefail = inner.pipefail or rest.pop(0) == "pipefail"
    if not is_line:
        return None, inner
    if not rest or (_is_opaque(rest[0]) and len(rest) > 1):
        raise _Unclear
    return rest[0], inner


def _without_heredocs(text: str) -> str:
    """A line without the texts that it hands to programs. Raises _Unclear where one has no end."""
    while (found := _HEREDOC.search(text)) is not None:
        head, line_end, rest = text[found.end() :].partition("\n")
        end = re.search(rf"^[ \t]*{re.escape(found[2])}[ \t]*$", rest, re.MULTILINE)
        if not line_end or end is None:
            raise _Unclear
        text = f"{text[: found.start()]} {head}\n{rest[end.end() :].removeprefix(chr(10))}"
    return text


def _lists(text: str) -> list[_List]:
    """A line as lists of pipelines of commands. Raises _Unclear."""
    found = _Lists()
    for is_word, one in _tokens(text):
        if is_word:
            found.word(one)
        else:
            found.operator(one)
    found.end_list("")
    return found.lists


@dataclass(slots=True)
class _Lists:
    """The lists of a line as far as it was read."""

    lists: list[_List] = field(default_factory=list)
    parts: list[_Part] = field(default_factory=list)
    pipe: list[tuple[str, ...]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    joined: str = ""
    skips: bool = False

    def word(self, one: str) -> None:
        """A word of a command, or the file that it is redirected to."""
        if not self.skips:
            self.words.append(one)
        self.skips = False

    def operator(self, one: str) -> None:
        if one in _REDIRECTS:
            self.skips = True
        elif one in ("|", "|&"):
            self.pipe.append(tuple(self.words))
            self.words = []
        elif one in ("&&", "||"):
            self._end_part()
            self.joined = one
        elif one in (";", "&"):
            self.end_list(one)
        elif one != "\n":
            raise _Unclear
        elif self.words or self.pipe or not self.joined:
            # A line that ends with an operator goes on in the next one.
            self.end_list(";")

    def end_list(self, by: str) -> None:
        self._end_part()
        if self.parts:
            self.lists.append(_List(tuple(self.parts), by))
        self.parts, self.joined = [], ""

    def _end_part(self) -> None:
        if self.words:
            self.pipe.append(tuple(self.words))
        if self.pipe:
            self.parts.append(_Part(self.joined, tuple(self.pipe)))
        self.pipe, self.words = [], []


def _tokens(text: str) -> Iterator[tuple[bool, str]]:
    """Words, and operators between them. Raises _Unclear for what has no end."""
    at, word = 0, _Word()
    while at < len(text):
        letter = text[at]
        if letter in " \t\r":
            yield from word.done()
            at += 1
        elif letter == "#" and not word.is_begun:
            at = _until(text, at, "\n", is_needed=False)
        elif letter in "\n;&|()<>":
            found = _OPERATOR.match(text, at)
            operator = found[0] if found else letter
            if operator in _REDIRECTS and word.is_number:
                word = _Word()
            yield from word.done()
            yield False, operator
            at += len(operator)
        else:
            at = word.take(text, at)
    yield from word.done()


@dataclass(slots=True)
class _Word:
    """A word as far as it was read."""

    text: str = ""
    is_begun: bool = False
    is_plain: bool = True

    @property
    def is_number(self) -> bool:
        return self.is_plain and self.text.isdecimal()

    def done(self) -> Iterator[tuple[bool, str]]:
        """The word, if there is one, and a new beginning."""
        if self.is_begun:
            yield True, self.text
        self.text, self.is_begun, self.is_plain = "", False, True

    def take(self, text: str, at: int) -> int:
        """Read what begins at a place into the word; where to go on."""
        letter = text[at]
        if text.startswith("\\\n", at):
            return at + 2
        self.is_begun = True
        if letter == "\\":
            self.text += text[at + 1 : at + 2]
            return at + 2
        if letter == "'":
            end = _until(text, at + 1, "'")
            self.text, self.is_plain = self.text + text[at + 1 : end], False
            return end + 1
        if letter == '"':
            end = _end_of_quotes(text, at + 1)
            self.text += re.sub(r'\\(["\\$`\n])', r"\1", text[at + 1 : end])
            self.is_plain = False
            return end + 1
        end = _end_of_substitution(text, at) if letter in "$`" else at + 1
        self.text += text[at:end]
        return end


def _until(text: str, at: int, mark: str, *, is_needed: bool = True) -> int:
    end = text.find(mark, at)
    if end < 0 and is_needed:
        raise _Unclear
    return end if end >= 0 else len(text)


def _end_of_quotes(text: str, at: int) -> int:
    """Where the double quotes end that begin before this place."""
    while at < len(text):
        letter = text[at]
        if letter == '"':
            return at
        if letter == "\\":
            at += 2
        elif letter in "$`":
            at = _end_of_substitution(text, at)
        else:
            at += 1
    raise _Unclear


def _end_of_substitution(text: str, at: int) -> int:
    """Behind the `$(…)`, `${…}` or backticks that begin here; behind one letter for a plain `$`."""
    if text[at] == "`":
        return _until(text, at + 1, "`") + 1
    opened = text[at + 1 : at + 2]
    if opened not in ("(", "{"):
        return at + 1
    return _end_of_brackets(text, at + 2, opened, {"(": ")", "{": "}"}[opened])


def _end_of_brackets(text: str, at: int, opened: str, closing: str) -> int:
    """Behind the bracket that closes the one before this place."""
    depth = 1
    while at < len(text):
        letter = text[at]
        at += 1
        if letter in (opened, closing):
            depth += 1 if letter == opened else -1
            if not depth:
                return at
        elif letter == "\\":
            at += 1
        elif letter == "'":
            at = _until(text, at, "'") + 1
        elif letter == '"':
            at = _end_of_quotes(text, at) + 1
    raise _Unclear
