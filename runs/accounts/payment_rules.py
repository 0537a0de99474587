"""Which account pays for an agent's work: a key in its environment, or the log-in of its program. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

# What each program asks its service with before it looks at its log-in, in its own order.
# https://docs.claude.com/en/docs/claude-code/iam ; of Codex a session was tried (decision 31).
KEYS: Mapping[str, tuple[str, ...]] = {
    "claude": ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY"),
    "codex": ("CODEX_API_KEY",),
}
INHERITED = (
    "{key} pays, with which labsite was started: it outranks a log-in. To have the log-in pay, write "
    '"{key}": "" into the environment of this profile, or start labsite without it.'
)


@dataclass(frozen=True, slots=True)
class PaymentFacts:
    """The argument list of an agent, and which variables its sessions find.

    `own` are set by its profile, `inherited` by the environment in which labsite was started;
    those that the profile leaves out are in neither.
    """

    argv: Sequence[str]
    own: Collection[str] = ()
    inherited: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Payment:
    """Who pays, as a sentence; empty where nothing is known. `is_odd`: perhaps nobody wants it so."""

    text: str = ""
    is_odd: bool = False
    key: str = ""


def list_keys(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the variables that a program prefers to its log-in; none of a program nobody knows."""
    return KEYS.get(PurePath(argv[0]).name, ()) if argv else ()


def describe_payment(facts: PaymentFacts) -> Payment:
    """Return which account an agent's sessions use."""
    keys = list_keys(facts.argv)
    for key in keys:
        if key in facts.own:
            return Payment(f"{key} of this profile pays.", key=key)
        if key in facts.inherited:
            return Payment(INHERITED.format(key=key), is_odd=True, key=key)
    return Payment("The account that is logged in pays." if keys else "")
