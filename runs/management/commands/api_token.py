"""`./lab manage api_token`: makes a personal token of the HTTP API and prints it, once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs.models import ApiToken
from runs.people import api_tokens
from runs.wiring import lab

LONGEST_DAYS = 3650


class Command(BaseCommand):
    help = "Makes a personal token for the HTTP API and prints it. It cannot be shown again."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="whose token it is; it never allows more than they may")
        parser.add_argument("--name", required=True, help="what the token is for")
        parser.add_argument("--scope", default="look", help="look (the default) or act")
        parser.add_argument(
            "--days", default="", help="how many days it is valid; left out: for good"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        user, scope = _user(options["user"]), _scope(options["scope"])
        name, days = _name(options["name"]), _days(options["days"])
        outside = lab()
        expires_at = outside.now() + timedelta(days=days) if days else None
        try:
            _, text = api_tokens.make(outside, user, name, scope, expires_at)
        except api_tokens.NameTaken as error:
            text = f"{user} has a token called {name} already: revoke it, or choose another name. No token was made."
            raise CommandError(text) from error
        self.stdout.write(text)
        if scope is ApiToken.Scope.ACT and not user.has_perm("runs.act"):
            self.stderr.write(
                f"{user} may only look for now, and so this token may not act either."
            )


def _user(name: str) -> User:
    found = User.objects.filter(username=name).first() if _is_clean(name) else None
    if found is None:
        raise CommandError(f"There is no user {_shown(name)}. No token was made.")
    if not found.is_active:
        raise CommandError(f"{found} is not let in any more. No token was made.")
    return found


def _scope(text: str) -> ApiToken.Scope:
    try:
        return ApiToken.Scope(text)
    except ValueError as error:
        raise CommandError(f"A token may look or act, not {_shown(text)}.") from error


def _name(text: str) -> str:
    name = text.strip()
    if not name or len(name) > 100 or not _is_clean(name):
        raise CommandError("Give the token a name of 1 to 100 letters. No token was made.")
    return name


def _days(text: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:9]) <= LONGEST_DAYS:
        raise CommandError(f"Write --days as a number from 1 to {LONGEST_DAYS}. No token was made.")
    return int(text)


def _is_clean(text: str) -> bool:
    return text.isprintable()


def _shown(text: str) -> str:
    """What was typed, fit for one line."""
    return ascii(text[:60])
