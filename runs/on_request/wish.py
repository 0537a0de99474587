"""What is wanted of a validation by hand, and where it is told to. Knows no Django."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from runs.validation.specs import UNCHANGED, Scope, Switches


@dataclass(frozen=True, slots=True)
class Wish:
    """Of what a project's commands are run, and with which switches over its terms.

    Without issue and commit it is origin's default branch.
    """

    project: str
    issue: str = ""
    commit: str = ""
    scope: Scope = Scope.PER_ISSUE
    switches: Switches = UNCHANGED


@dataclass(frozen=True, slots=True)
class Subject:
    """What is validated. `folder` holds what the commands print, `warning` why it may be old."""

    project: str
    commit: str
    name: str
    scope: Scope
    folder: str
    warning: str = ""


class Lines(Protocol):
    """Where it is told to."""

    def begun(self, subject: Subject) -> None: ...
    def command(self, result: Mapping[str, Any]) -> None: ...
    def ended(self, result: Mapping[str, Any], code: int) -> None: ...
    def skipped(self, why: str) -> None: ...
