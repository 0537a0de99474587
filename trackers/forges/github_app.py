"""GitHub Apps: exchanges the App's key for tokens of an installation, kept until they expire."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

import jwt

from trackers.account import Account, Purpose
from trackers.errors import NotFound, NotUnderstood, Refused
from trackers.forges import reading
from trackers.forges.repository import GITHUB, Repository
from trackers.http.client import Client

RENEWED_BEFORE = timedelta(minutes=5)
# GitHub takes ten minutes at most; clocks may differ by a minute either way.
JWT_SECONDS = 480
SKEW_SECONDS = 60
OF_GIT = ("contents", "workflows")  # without the second git may not push files of workflows


@dataclass(frozen=True, slots=True)
class InstallationToken:
    """A token of an installation, and what the installation may."""

    token: str = field(repr=False)
    until: datetime
    permissions: Mapping[str, Any]


class AppTokens:
    """Tokens of installations, in memory only. Thread-safe; one is requested at a time."""

    def __init__(self, client: Client, now: Callable[[], datetime]) -> None:
        self._client = client
        self._now = now
        self._bought: dict[tuple[str, ...], InstallationToken] = {}
        self._lock = threading.RLock()  # a narrow token is bought with the help of the whole one

    def ready(self, account: Account) -> Account:
        """The account with a token that is good for some minutes. Raises TrackerErrors."""
        if not account.app_id:
            return account
        return replace(account, token=self.bought(account).token)

    def bought(self, account: Account) -> InstallationToken:
        """The installation's token. Raises TrackerErrors."""
        return self._kept(_key(account), lambda: self._buy(account))

    def for_git(self, account: Account, owner: str, name: str) -> InstallationToken:
        """A token for the contents of one repository and for nothing else. Raises TrackerErrors."""
        key = (*_key(account), f"{owner}/{name}")
        return self._kept(key, lambda: self._buy_for_git(account, Repository("", owner, name)))

    def drop(self, account: Account) -> None:
        """Forget a token that GitHub did not accept."""
        with self._lock:
            self._bought.pop(_key(account), None)

    def _kept(
        self, key: tuple[str, ...], buy: Callable[[], InstallationToken]
    ) -> InstallationToken:
        with self._lock:
            found = self._bought.get(key)
            if found is None or found.until - self._now() <= RENEWED_BEFORE:
                found = self._bought[key] = buy()
            return found

    def _buy_for_git(self, account: Account, repository: Repository) -> InstallationToken:
        """By the number of the repository, since its name in an address may be an older one."""
        whole = self.bought(account)
        may = {name: whole.permissions[name] for name in OF_GIT if name in whole.permissions}
        if "contents" not in may:
            raise Refused(
                f"GitHub App {account.app_id} may not see the files of {repository}. Give it the "
                "permission “Contents: read and write”, and accept that in its installation."
            )
        try:
            answer = self._client.call(
                replace(account, token=whole.token),
                "GET",
                repository.path(),
                purpose=Purpose.READ,
                headers=GITHUB.headers,
            )
        except NotFound as error:
            raise Refused(
                f"{account.host} does not show {repository} to GitHub App {account.app_id}. "
                "Is it among those of its installation?"
            ) from error
        except Refused as error:
            if error.status == 401:
                self.drop(account)
            raise
        number = reading.value(answer.data, "id")
        if type(number) is not int:
            raise NotUnderstood(f"{account.host} told no number of {repository}.")
        return self._buy(account, {"repository_ids": [number], "permissions": may})

    def _buy(
        self, account: Account, narrowed: Mapping[str, Any] = MappingProxyType({})
    ) -> InstallationToken:
        installation = account.app_installation
        if not (installation.isascii() and installation.isdigit()):
            raise Refused("The installation of the GitHub App has to be a number.")
        # Without its installation the App itself is a credential with a quota of its own.
        app = replace(account, token=self._signed(account), app_installation="")
        answer = self._client.call(
            app,
            "POST",
            f"/app/installations/{installation}/access_tokens",
            purpose=Purpose.WRITE,
            json=dict(narrowed),
            headers=GITHUB.headers,
            expect=(201, 401, 404, 422),
        )
        if answer.status == 401:
            raise Refused(
                f"{account.host} does not accept the key of GitHub App {account.app_id}: "
                f"{reading.error_text(answer.data)}. A new private key can be made on the App's page.",
                401,
            )
        if answer.status == 404:
            raise Refused(
                f"{account.host} knows no installation {installation} of GitHub App "
                f"{account.app_id}. Its number is at the end of the address of the installation.",
                404,
            )
        if answer.status == 422:
            raise Refused(
                f"{account.host} gives GitHub App {account.app_id} no token for that: "
                f"{reading.error_text(answer.data)}. Is the repository among those of its installation?",
                422,
            )
        token, until = reading.text(answer.data, "token"), reading.moment(answer.data, "expires_at")
        if not token or until is None:
            raise NotUnderstood(f"{account.host} gave no token to GitHub App {account.app_id}.")
        permissions = reading.value(answer.data, "permissions")
        return InstallationToken(
            token, until, permissions if isinstance(permissions, Mapping) else {}
        )

    def _signed(self, account: Account) -> str:
        """The JWT by which the App authenticates."""
        at = int(self._now().timestamp())
        claims = {"iat": at - SKEW_SECONDS, "exp": at + JWT_SECONDS, "iss": account.app_id}
        try:
            return jwt.encode(claims, account.app_key, algorithm="RS256")
        except (jwt.PyJWTError, ValueError, TypeError, AttributeError):
            # Without the cause: its frames hold the key.
            raise Refused(
                f"The private key of GitHub App {account.app_id} cannot be read. It is the whole "
                "text of the .pem file, with its first and last line."
            ) from None


def _key(account: Account) -> tuple[str, ...]:
    secret = hashlib.sha256(account.app_key.encode()).hexdigest()
    return account.api, account.app_id, account.app_installation, secret
