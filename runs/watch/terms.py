"""Reads what a person typed for a new watch session; the command and the page say the same words."""

from __future__ import annotations

from runs.watch.session import VALIDATE_EVERY, Terms

LIMIT, EVERY = "max-issues", "validate-every"


class WrongTerms(ValueError):
    """One of the numbers cannot be used; `field` names it (MALA-W-40 to 43)."""

    def __init__(self, field: str) -> None:
        self.field = field
        self.text = f"Error: --{field} must be at least 1"
        super().__init__(self.text)


def read_terms(is_watching: bool, limit: str | None, every: str | None) -> Terms:
    """The terms of a session that a person opens. Raises WrongTerms.

    Nothing typed means no limit (MALA-W-44), and a validation after every ten issues while it
    watches, at the end alone when it does not (MALA-W-29, C-27).
    """
    default = VALIDATE_EVERY if is_watching else None
    return Terms(is_watching, _number(LIMIT, limit), _number(EVERY, every) or default)


def _number(field: str, text: str | None) -> int | None:
    if text is None or not text.strip():
        return None
    try:
        number = int(text.strip())
    except ValueError:
        raise WrongTerms(field) from None
    if number < 1 or number > MOST:
        raise WrongTerms(field)
    return number


MOST = 1_000_000
