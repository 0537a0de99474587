"""What labsite holds as secret, as one mask for all that is kept or shown of output.

It is made of the values of all profiles' environments (`runs.secrets.keys` says which of them are
secrets), of the environment that agents inherit, the tokens and webhook secrets of projects, the
credentials of forges, the files of projects, the addresses of notices and of the ping, the key of pushes, the database's password and
SECRET_KEY. Tokens of runs and of people are stored as hashes; they are known by their form.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import Error
from django.db.models import Model, QuerySet

from runs.core import encrypted, masking
from runs.core.database import prepared
from runs.core.masking import Mask
from runs.models import (
    AgentProfile,
    Forge,
    NoticeAddress,
    Project,
    ProjectFile,
    PushKeys,
    RetiredFile,
    Settings,
)
from runs.secrets import keys

logger = logging.getLogger(__name__)

AGE = 5.0
WORD = 12

_File = type[ProjectFile | RetiredFile]
_Mark = tuple[_File, int, datetime]
_KINDS: tuple[_File, ...] = (ProjectFile, RetiredFile)


class Known:
    """The mask of this process, read again after some seconds, or when a secret was stored here."""

    def __init__(
        self, environ: Mapping[str, str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._inherited = frozenset(keys.secrets_of(environ))
        self._mask: Mask | None = None
        self._held: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
        # By file and when it was changed: each is decrypted and read once.
        self._files: dict[_Mark, frozenset[str]] = {}
        self._read_at = 0.0
        self._writes = -1

    def __call__(self, text: str) -> str:
        return self.mask()(text)

    def mask(self, *, fresh: bool = False) -> Mask:
        """What takes the secrets out of texts. A database that does not answer changes nothing."""
        is_old = self._clock() - self._read_at >= AGE or self._writes != encrypted.writes()
        if self._mask is None or is_old or fresh:
            self._read()
        assert self._mask is not None  # noqa: S101
        return self._mask

    def _read(self) -> None:
        writes, now = encrypted.writes(), self._clock()
        try:
            held = self._inherited.union(_held())
            of_files = frozenset[str]().union(*self._of_files())
        except Error as error:
            if self._mask is None:
                raise
            logger.warning("secrets were not read", extra={"error": type(error).__name__})
            return
        if self._mask is None or (held, of_files) != self._held:
            self._mask, self._held = masking.mask(held, of_files), (held, of_files)
            masking.remember(self._mask)
            if len(held) + len(of_files) > masking.MOST - masking.ROOM:
                logger.warning("some values of projects' files may be shown: there are too many")
        self._writes, self._read_at = writes, now

    def _of_files(self) -> Collection[frozenset[str]]:
        """Return the secrets in the files of projects, each file's in a set.

        Retired ones are read last, so that one that is replaced meanwhile is among them.
        """
        found: dict[_Mark, frozenset[str]] = {}
        for model in _KINDS:
            marks = {(model, *mark) for mark in _columns(model, "pk", "changed_at").rows()}
            found |= {mark: self._files[mark] for mark in marks & self._files.keys()}
            fresh = [pk for _, pk, _ in marks - self._files.keys()]
            for row in model.objects.filter(pk__in=fresh) if fresh else ():
                found[model, row.pk, row.changed_at] = frozenset(keys.of_file(row.content))
        self._files = found
        return found.values()


@prepared
def _columns(_now: datetime, model: type[Model], *names: str) -> QuerySet[Any, Any]:
    """Some columns of all rows of a model, which each start of a session asks for."""
    return model._default_manager.order_by().values_list(*names)


def _held() -> Iterator[str]:
    for (env,) in _columns(AgentProfile, "env").rows():
        yield from keys.secrets_of(env)
    projects = _columns(Project, "token", "hook_secret", "url", "source").rows()
    for token, hook_secret, *places in projects:
        yield from (*_typed(token), *_typed(hook_secret))
        for place in places:
            yield from keys.of_url(place)
    for (credential,) in _columns(Forge, "credential").rows():
        for name in ("token", "app_key"):
            yield from _typed(credential.get(name, ""))
    yield from _of_notices()
    yield settings.SECRET_KEY
    yield from _typed(settings.DATABASES["default"].get("PASSWORD") or "")


def _of_notices() -> Iterator[str]:
    """Addresses of notices, that of the ping and the key of pushes."""
    for model, name in ((NoticeAddress, "url"), (PushKeys, "private"), (Settings, "ping_url")):
        for (url,) in _columns(model, name).rows():
            yield from keys.of_address(str(url))


def _typed(value: object) -> Iterator[str]:
    """What somebody gave as a secret is one, but a common word would be hidden in every sentence."""
    if not (str(value).isalpha() and len(str(value)) < WORD):
        yield str(value)
