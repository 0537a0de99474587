"""Commands that follow the product, as a person or a script starts them: real processes and signals."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.house.product import LAB, environment, until
from tests.patience import PATIENCE


class Command:
    """A running `./lab watch` or `./lab wait`."""

    def __init__(self, story, *argv: str, folder: Path | None = None) -> None:
        number = len(list(story.state.parent.glob("command-*.out")))
        self._out = story.state.parent / f"command-{number}.out"
        self._err = story.state.parent / f"command-{number}.err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [str(LAB), *argv],
                env=environment(story.state, **story.more),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    @property
    def out(self) -> str:
        return self._out.read_text()

    @property
    def err(self) -> str:
        return self._err.read_text()

    def says(self, text: str, seconds: float = PATIENCE) -> None:
        until(
            lambda: text in self.out + self.err or self.process.poll() is not None,
            seconds,
            told=lambda: self.out + self.err,
        )
        assert text in self.out + self.err, self.out + self.err

    def press(self) -> None:
        """Ctrl-C reaches the whole group of the terminal's foreground, which is this command."""
        os.killpg(self.process.pid, signal.SIGINT)

    def hang_up(self) -> None:
        """What the kernel sends to the same group when the terminal is closed."""
        os.killpg(self.process.pid, signal.SIGHUP)

    def ends(self, seconds: float = PATIENCE) -> int:
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it goes on:\n{self.out}\n{self.err}") from None

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE)


@contextlib.contextmanager
def started(story, name: str) -> Iterator[Callable[..., Command]]:
    """Starts commands of that name, and lets none outlive its test."""
    made: list[Command] = []

    def go(*argv: str, folder: Path | None = None) -> Command:
        made.append(Command(story, name, *argv, folder=folder))
        return made[-1]

    yield go
    for command in made:
        command.close()


def refuses(state: Path, *argv: str, says: str) -> None:
    """A command that ends with 2 and these words before anything was made."""
    done = subprocess.run(
        [str(LAB), *argv],
        env=environment(state),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert not state.exists()


def alive(story) -> list[str]:
    """Programs of the product that still run on this state folder."""
    done = subprocess.run(["ps", "axww", "-o", "args="], capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if str(story.state) in line]
