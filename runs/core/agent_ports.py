"""What is asked of agents' own files and logins and of the world outside: protocols, part of `runs.core.ports`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from runs.core.states import ForgeKind
from trackers.account import Account
from trackers.base import Finding

if TYPE_CHECKING:
    from trackers.http.quota import Meter


class Trust(Protocol):
    """Prepares an agent's own files so that no prompt stops an unattended run (LAB-70)."""

    def approve(self, kind: str, worktree: Path, env: Mapping[str, str]) -> None:
        """Mark a worktree as trusted, keeping all unknown keys. Raises SeamError.

        `env` is what the agent's profile adds to the environment: it may move the agent's home.
        """


class Login(Protocol):
    """Whether an agent is logged in."""

    def check(self, command: Sequence[str], env: Mapping[str, str]) -> bool | None:
        """Ask the agent now, in its own environment; None when it could not be asked (LAB-68)."""


@dataclass(frozen=True, slots=True)
class Said:
    """How a program that was asked something ended, and what it printed."""

    status: int
    out: str
    err: str = ""


class Programs(Protocol):
    """The programs of agents, as a session of this host would find and start them.

    `env` is what the agent's profile adds to the environment of a session.
    """

    def find(self, program: str, env: Mapping[str, str]) -> str | None:
        """The path of the program that a session would start; empty when there is none.

        None when it cannot be told, as for a path that is relative to the worktree.
        """

    def ask(self, argv: Sequence[str], env: Mapping[str, str]) -> Said:
        """Run a program for its answer, in an empty folder and bounded. Raises SeamError."""

    def variable(self, name: str, env: Mapping[str, str]) -> str:
        """The value that a variable has in a session; empty when it is not set."""

    def is_root(self) -> bool:
        """Whether sessions run as root."""


class Desk(Protocol):
    """What answers `labctl` in a trial, in place of the product. It is open until it is closed."""

    @property
    def address(self) -> str:
        """Its base URL."""

    def asked(self) -> Sequence[str]:
        """What was asked with the right token so far, as method and path, oldest first."""

    def has_pull(self) -> bool:
        """Whether a pull request was opened."""

    def close(self) -> None:
        """Answer nobody any more."""


class Desks(Protocol):
    """Opens desks."""

    def open(self, token: str, branch: str, is_pushed: Callable[[], bool]) -> Desk:
        """A desk for one issue and one branch, which has to be pushed before it has a pull request.

        Raises SeamError.
        """


class Registry(Protocol):
    """The files in which an agent notes its own sessions."""

    def find(self, pattern: str, field: str, worktree: str, env: Mapping[str, str]) -> str:
        """The id under which the agent knows the session in a worktree; empty while there is none.

        `env` is what the agent's profile adds to the environment: it may move the agent's home.
        """


class Notifier(Protocol):
    """Tells people and programs outside. Every call is bounded; no error holds part of an address."""

    def check(self, url: str) -> str:
        """The name of the service that an address means. Raises UnfitAddress, SeamError."""

    def send(self, url: str, title: str, text: str) -> None:
        """Tell an address. Raises UnfitAddress when it can never work, else SeamError."""

    def ping(self, url: str) -> None:
        """Ask for a web address, for whoever counts how long ago that was. Raises SeamError."""


class Forges(Protocol):
    """What is asked of forges beside the questions of `Tracker`."""

    def recognise(self, web: str) -> ForgeKind | None:
        """What kind of forge is at an address; None when it is none. Raises SeamError."""

    def try_out(
        self, kind: ForgeKind, account: Account, repository: str, label: str
    ) -> Sequence[Finding]:
        """A connection test with an account that is not kept yet; never raises."""

    def forget(self) -> None:
        """An account was changed here: look it up again before the next question."""

    def meter(self) -> Meter | None:
        """What this process asked of forges, in memory; None while it asked nothing."""

    def git_token(self, account: Account, owner: str, name: str) -> str:
        """A token with which git may use one repository for some minutes. Raises SeamError."""

    def account_of(self, root: str) -> Account | None:
        """The account with which a root of a forge is asked, as last read."""
