"""Whether the service behind an agent refuses it for its account's sake. Pure.

Only what the program itself says of a failed call is asked here: the words of its error and the
status of the answer. What an agent, a tool or a repository says about limits never comes here.
Measured with Claude Code 2.1.197 and Codex 0.169.0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from runs.accounts import resets
from runs.core.states import AgentState, Trouble


@dataclass(frozen=True, slots=True)
class Refused:
    """A trouble of the account, what was said of it, and until when; None: nobody said when."""

    trouble: Trouble
    words: str
    until: datetime | None = None


# What the words say for certain, whatever the status is: the first that fits counts.
_CERTAIN: tuple[tuple[Trouble, re.Pattern[str]], ...] = (
    (Trouble.OVERLOAD, re.compile(r"\bat capacity\b|high demand|\boverloaded", re.IGNORECASE)),
    (
        Trouble.MODEL,
        re.compile(
            r"not have access to (?:this |the |that )?model|issue with the selected model"
            r"|model_not_found|\bmodel\b.{1,80}(?:does not exist|is not supported|\b(?:is|was|has been|are) "
            r"(?:deprecated|retired|decommissioned|discontinued|(?:not|no longer) (?:available|supported)))"
            r"|^\W*(?:API Error: 404 )?model: \S+$",
            re.IGNORECASE,
        ),
    ),
    (
        Trouble.CREDIT,
        re.compile(
            r"credit balance is too low|insufficient_quota|quota exceeded|exceeded your current quota"
            r"|out of (?:usage )?credits|out of usage\b|spend(?:ing)? (?:limit|cap)|payment required",
            re.IGNORECASE,
        ),
    ),
)
_KINDS: Mapping[str, Trouble] = {
    "rate_limit": Trouble.LIMIT,
    "overloaded": Trouble.OVERLOAD,
    "server_error": Trouble.OVERLOAD,
    "authentication_failed": Trouble.LOGIN,
    "oauth_org_not_allowed": Trouble.LOGIN,
    "billing_error": Trouble.CREDIT,
    "model_not_found": Trouble.MODEL,
}
# What the words say where there is no status, or one that says nothing by itself.
_WORDS: tuple[tuple[Trouble, re.Pattern[str]], ...] = (
    (
        Trouble.LIMIT,
        re.compile(
            r"hit your .{0,40}limit|usage limit|\brate.?limit|limit reached|too many requests",
            re.IGNORECASE,
        ),
    ),
    (
        Trouble.LOGIN,
        re.compile(
            r"please run /login|not logged in|(?:invalid|incorrect) api key|invalid x-api-key"
            r"|oauth token|codex login|failed to authenticate|token (?:has |is )?expired"
            r"|could not be refreshed|log ?in again",
            re.IGNORECASE,
        ),
    ),
    (
        Trouble.OVERLOAD,
        re.compile(
            r"server-side issue|internal server error|temporarily unavailable|unable to connect to"
            r"|connection (?:error|refused)|econn(?:refused|reset)|enotfound|etimedout"
            r"|error sending request|stream disconnected",
            re.IGNORECASE,
        ),
    ),
)
_STATUS = re.compile(r"\b(?:status:?|API Error:) (\d{3})\b|\((\d{3})\)", re.IGNORECASE)
_SILENT = (None, 400, 404)  # a status that does not say by itself whose trouble it is
_STATES = {Trouble.LIMIT: AgentState.RATE_LIMITED, Trouble.LOGIN: AgentState.NEEDS_LOGIN}


def refused(
    words: str,
    status: int | None = None,
    *,
    now: datetime,
    kind: str = "",
    until: datetime | None = None,
    zone: tzinfo = UTC,
) -> Refused | None:
    """What a program's own error means for its account; None: it is no trouble of the account.

    `kind` is the program's own name of the error, `until` a reset that it told elsewhere. A
    refused model is none of the log-in, and no credit is no limit, whatever the status is.
    """
    trouble = of(words, status, kind)
    if trouble is Trouble.NONE:
        return None
    at = until if until is not None else resets.told(words, now, zone)
    return Refused(trouble, words, at)


def of(words: str, status: int | None = None, kind: str = "") -> Trouble:
    """The trouble alone."""
    said = words.replace("\u2019", "'")
    status = status if status is not None else status_in(said)
    if status is None or status >= 400:
        for trouble, pattern in _CERTAIN:
            if pattern.search(said) and _may_be(trouble, status):
                return trouble
    found = _of_status(status) or _KINDS.get(kind, Trouble.NONE)
    if found or status not in _SILENT:
        return found
    return _of_words(said) if status is None else Trouble.NONE


def state(trouble: Trouble) -> AgentState | None:
    """What an agent is shown to wait for; None: nothing more than that it failed."""
    return _STATES.get(trouble)


def status_in(words: str) -> int | None:
    """The status of an answer that stands in the words of an error."""
    found = _STATUS.search(words)
    number = int(found[1] or found[2]) if found else 0
    return number if 400 <= number < 600 else None


def _may_be(trouble: Trouble, status: int | None) -> bool:
    """A server that says something of a model or of money in a status of its own is overloaded."""
    return trouble is Trouble.OVERLOAD or status is None or status < 500


def _of_status(status: int | None) -> Trouble:
    if status is None:
        return Trouble.NONE
    if status >= 500:
        return Trouble.OVERLOAD
    known = {401: Trouble.LOGIN, 402: Trouble.CREDIT, 403: Trouble.LOGIN, 429: Trouble.LIMIT}
    return known.get(status, Trouble.NONE)


def _of_words(said: str) -> Trouble:
    return next((trouble for trouble, pattern in _WORDS if pattern.search(said)), Trouble.NONE)
