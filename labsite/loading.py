"""How every program of the product loads Django and what it needs of us."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import gc
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

M_ARENA_MAX = -8
MADV_DONTNEED = 4
SWITCH_SECONDS = 0.0005
# Of what is asked for to fill gaps: large pieces first, then each size that glibc keeps apart.
PIECES = (*(1 << power for power in range(16, 10, -1)), *range(1032, 8, -16))


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Load what stays as long as the program lives, while the garbage collector rests.

    It would go through all that is loaded time and again, for a sixth of the time that loading
    takes. Afterwards it leaves alone what is there, which makes each later collection cheaper.
    """
    gc.disable()
    try:
        with _methods_later():
            yield
    finally:
        gc.freeze()
        gc.enable()


# Methods of a frozen dataclass that most are never asked for.
LATER = frozenset({"__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__"})


@contextlib.contextmanager
def _methods_later() -> Iterator[None]:
    """Have dataclasses write these methods when they are first called.

    The library compiles six functions for each frozen class from a text, a quarter of what loading
    takes. Where a version of Python has no such function it does as it always does.
    """
    make = getattr(dataclasses, "_create_fn", None)
    if make is None:
        yield
        return
    dataclasses._create_fn = lambda name, *args, **more: (  # type: ignore[attr-defined]
        _later(name, lambda: make(name, *args, **more))
        if name in LATER
        else make(name, *args, **more)
    )
    try:
        yield
    finally:
        dataclasses._create_fn = make  # type: ignore[attr-defined]


def _later(name: str, make: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    """A method that is made when it is called, and then stands in its class by itself."""

    made: list[Callable[..., Any]] = []

    def method(self: Any, *args: Any) -> Any:
        if not made:
            made.append(make())
            made[0].__qualname__ = method.__qualname__
            for owner in type(self).__mro__:
                if owner.__dict__.get(name) is method:
                    setattr(owner, name, made[0])
        return made[0](self, *args)

    method.__name__ = name
    return method


@contextlib.contextmanager
def without(*packages: str) -> Iterator[None]:
    """Import a library as if optional packages were not installed that it would load and we never use.

    What is loaded already stays. Only while a program starts: other threads would miss them too.
    """
    absent = [name for name in packages if name not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]  # None means: not there
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


def share_heap() -> None:
    """Have all threads share one heap: one a thread keeps what each freed, some MB in all.

    By a call and not by the environment, which agents would inherit. Only glibc has it.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)


def share_interpreter() -> None:
    """Have a busy thread hand Python on every half millisecond, in place of every five.

    A thread that asks the database or a program waits for it each time an answer comes: fifty short
    queries beside a busy thread took 37 ms and take 0.1. A start goes on beside the look that began
    it, a page beside the pushes to others.
    """
    sys.setswitchinterval(SWITCH_SECONDS)


def set_up() -> None:
    """Make Django ready to use."""
    share_heap()
    share_interpreter()
    with undisturbed():
        import django

        django.setup()


def give_back() -> None:
    """Return free memory to the system; what is left is as large as it was, and forks share it."""
    gc.collect()
    gc.freeze()
    trim()


def trim() -> None:
    """Return free memory to the system, some milliseconds of work. Only glibc has it."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def drop_libraries() -> None:
    """Let go of the pages of files, such as libraries, that this process has only read.

    Loading goes through 20 MB of them, which then count as its own for as long as it lives. What is
    read again comes from the system's cache. A mapping that was written to (`Anonymous` and `Swap` of
    proc_pid_smaps(5)) is left alone: of it the file does not have everything.
    """
    with contextlib.suppress(OSError, AttributeError, ValueError):
        library = ctypes.CDLL(None)
        library.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        start = end = 0
        is_read_only = False
        with Path("/proc/self/smaps").open() as mappings:
            for line in mappings:
                word, *more = line.split()
                if not word.endswith(":"):
                    is_file = len(more) > 4 and more[4].startswith("/") and more[0].endswith("p")
                    start, end = (int(one, 16) for one in word.split("-")) if is_file else (0, 0)
                elif word == "Anonymous:":
                    is_read_only = more[0] == "0"
                elif word == "Swap:" and more[0] == "0" and is_read_only and end:
                    library.madvise(start, end - start, MADV_DONTNEED)


class _Heap(ctypes.Structure):
    """What glibc tells of a heap (`mallinfo2`): ten sizes, of which we need the last two."""

    _fields_ = (
        *((f"_{n}", ctypes.c_size_t) for n in range(8)),
        ("free", ctypes.c_size_t),
        ("end", ctypes.c_size_t),  # of what is free, how much lies behind all else
    )


def fill_gaps() -> None:
    """Take what is free in between, so that what a fork makes new lies on pages of its own.

    Loading leaves some hundred kB free in small pieces all over the heap. A fork that put
    something there would have to copy the whole page that it shares with this process: opening
    one database cost it 4 MB. Nobody else could use these pages, so that nothing is lost. Only
    glibc has it.
    """
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallinfo2.restype = _Heap
        library.malloc.restype = library.sbrk.restype = ctypes.c_void_p
        library.malloc.argtypes = [ctypes.c_size_t]
        library.free.argtypes = [ctypes.c_void_p]
        library.sbrk.argtypes = [ctypes.c_ssize_t]
        heap = library.mallinfo2()
        end = library.sbrk(0) - heap.end
        left = heap.free + (1 << 20)  # what is kept for a thread at hand is not counted as free
        for size in PIECES:
            while left > 0 and (piece := library.malloc(size)):
                if piece >= end:
                    library.free(piece)
                    break
                left -= size


def load() -> None:
    """Make Django ready to use, damaged databases set aside first."""
    from labsite import database
    from labsite.env import state_dir
    from labsite.mend import mend
    from runs.core.paths import Paths

    mend(Paths(state_dir()), bool(database.chosen()))
    set_up()


def prepare(*options: str) -> None:
    """Make the state folder ready in this process.

    Raises SystemExit with the reason, or with a status when the reason was said already.
    """
    load()
    prepare_loaded(*options)


def prepare_loaded(*options: str) -> None:
    """The same where Django is loaded already."""
    from django.core.management import execute_from_command_line

    execute_from_command_line(["manage.py", "prepare", *options])
