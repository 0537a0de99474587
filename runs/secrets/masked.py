"""The outside as labsite sees it: what comes from there is masked before anybody keeps or shows it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from runs.core import masking
from runs.core.history_ports import Change, Commit
from runs.core.ports import Lab, Order, Repos, Sessions
from runs.groups.signal_rules import Crash, SentBack, Signals
from runs.secrets import keys
from runs.secrets.known import Known
from runs.validation.command_rules import Check, Checked, Checks


def lab(plain: Lab, known: Known) -> Lab:
    """The same `Lab` with masks on the ways by which the output of programs comes in."""
    return replace(
        plain,
        sessions=cast("Sessions", MaskedSessions(plain.sessions, known)),
        repos=cast("Repos", MaskedRepos(plain.repos, known)),
        checks=cast("Checks", MaskedChecks(plain.checks, known)),
        signals=cast("Signals", MaskedSignals(plain.signals, known)),
        mask=known,
    )


class _Wrapped:
    """Everything that is not masked is the wrapped one's."""

    def __init__(self, inner: object, known: Known) -> None:
        self._inner: Any = inner
        self._known = known

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class MaskedSessions(_Wrapped):
    """Sessions whose screens show no secret, and whose launchers keep none."""

    def start(self, order: Order) -> None:
        """Start a session; what is stored as secret up to now is known to its launcher."""
        known = self._known.mask(fresh=True).secrets
        if order.output or order.recording:
            own = [order.files[name] for name in ("token", "git-token") if name in order.files]
            text = json.dumps([*known, *keys.secrets_of(order.env), *own])
            order = replace(order, files={**order.files, masking.FILE: text})
        self._inner.start(order)

    def screens(self, names: Sequence[str], lines: int = 0) -> Mapping[str, str]:
        mask = self._known.mask()
        return {name: mask(text) for name, text in self._inner.screens(names, lines).items()}


class MaskedRepos(_Wrapped):
    """Repositories whose commits and diffs are shown without secrets; what is in them stays."""

    def patch(self, path: Path, fork_point: str, limit: int, head: str = "") -> str:
        return self._known(self._inner.patch(path, fork_point, limit, head))

    def patch_of(self, repo: Path, change: Change, limit: int) -> str:
        return self._known(self._inner.patch_of(repo, change, limit))

    def commits(self, repo: Path, base: str, head: str, limit: int) -> Sequence[Commit]:
        mask = self._known.mask()
        return [
            replace(one, subject=mask(one.subject), body=mask(one.body))
            for one in self._inner.commits(repo, base, head, limit)
        ]

    def subject(self, path: Path, commit: str) -> str:
        return self._known(self._inner.subject(path, commit))


class MaskedSignals(_Wrapped):
    """Signal files, whose reasons agents write."""

    def crashed(self, folder: Path) -> Sequence[Crash]:
        return [replace(one, why=self._known(one.why)) for one in self._inner.crashed(folder)]

    def sent_back(self, folder: Path) -> Sequence[SentBack]:
        return [replace(one, why=self._known(one.why)) for one in self._inner.sent_back(folder)]


class MaskedChecks(_Wrapped):
    """Commands of validations, which keep no secret of what they print."""

    def run(self, check: Check, goes_on: Callable[[], bool]) -> Checked:
        known = self._known.mask(fresh=True).secrets
        found = self._inner.run(replace(check, secrets=[*check.secrets, *known]), goes_on)
        return cast("Checked", found)
