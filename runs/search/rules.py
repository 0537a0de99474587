"""What was typed, and how well something fits it. One order for the page and the palette."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum, StrEnum

LONGEST, MOST_TERMS = 100, 6
MOST, MOST_OF_A_KIND = 30, 8
LARGEST = 2**31 - 1  # what a column of numbers holds


class Kind(StrEnum):
    """What was found, by the word that stands beside it."""

    PROJECT = "project"
    PAGE = "page"
    ISSUE = "issue"
    RUN = "run"
    PULL = "pull request"
    PERSON = "person"
    ACT = "act"


KIND_WORDS = {
    "issue": Kind.ISSUE,
    "issues": Kind.ISSUE,
    "run": Kind.RUN,
    "runs": Kind.RUN,
    "pr": Kind.PULL,
    "pull": Kind.PULL,
    "project": Kind.PROJECT,
}


VERBS = frozenset({"start", "stop"})


class Fit(IntEnum):
    """How something fits, the best first."""

    EXACT = 0
    PREFIX = 1
    WORD = 2
    INSIDE = 3


@dataclass(frozen=True, slots=True)
class Asked:
    """What was typed: in small letters, its terms, and the number that it ends with.

    `kind` is what "run 7" asks for; the word counts as a term like any other too.
    """

    text: str = ""
    terms: tuple[str, ...] = ()
    number: int | None = None
    kind: Kind | None = None

    @property
    def sought(self) -> tuple[str, ...]:
        """The terms that titles are to hold: "stop retries" is about something called retries."""
        return self.terms[1:] if len(self.terms) > 1 and self.terms[0] in VERBS else self.terms

    @property
    def beside(self) -> tuple[str, ...]:
        """The terms without the number and the word that says of what it is."""
        named = self.terms[:-1] if self.number is not None else self.terms
        return tuple(term for term in named if self.kind is None or KIND_WORDS.get(term) is None)


@dataclass(frozen=True, slots=True)
class Hit:
    """Something that was found. `page` and `ids` say where it is, else `address` does.

    `key` is its number, `words` by what else it is found, `note` stands beside its title.
    `sends` is what an act posts there; None for what is only opened.
    """

    kind: Kind
    title: str
    page: str = ""
    ids: tuple[int, ...] = ()
    address: str = ""
    key: str = ""
    words: str = ""
    note: str = ""
    at: datetime | None = None
    sends: tuple[tuple[str, str], ...] | None = None


def read(typed: str) -> Asked:
    """What was typed, cut to what is looked for; letters that no text holds are left out."""
    clean = "".join(c if c.isprintable() else " " for c in typed[:LONGEST]).casefold()
    terms = tuple(clean.split())[:MOST_TERMS]
    last = terms[-1].removeprefix("#") if terms else ""
    is_number = last.isascii() and last.isdigit() and len(last) < 11 and int(last) <= LARGEST
    number = int(last) if is_number else None
    named = [KIND_WORDS[term] for term in terms[:-1] if term in KIND_WORDS]
    kind = named[0] if number is not None and named else None
    return Asked(" ".join(terms), terms, number, kind)


def fit(hit: Hit, asked: Asked) -> Fit | None:
    """How a thing fits what was typed; None when it does not."""
    title, around = hit.title.casefold(), f"{hit.title} {hit.words} {hit.note}".casefold()
    if asked.number is not None and hit.key == str(asked.number):
        is_meant = asked.kind in (None, hit.kind)
        if is_meant and all(term in around for term in asked.beside):
            return Fit.EXACT
    if asked.text == title:
        return Fit.EXACT
    if title.startswith(asked.text):
        return Fit.PREFIX
    if not all(term in around for term in asked.terms):
        return None
    begins = re.split(r"[^\w#]+", f"{title} {hit.words.casefold()}")
    is_word = all(any(word.startswith(term) for word in begins) for term in asked.terms)
    return Fit.WORD if is_word else Fit.INSIDE


def ranked(hits: Iterable[Hit], asked: Asked) -> Sequence[Hit]:
    """What fits, the best first: exact, prefix, word, inside; then places, the newest, and acts.

    At most so many of a kind and in all. With nothing typed everything fits.
    """
    found = [(how, hit) for hit in hits if (how := fit(hit, asked)) is not None]
    found.sort(key=_order)
    counts: dict[Kind, int] = {}
    kept = []
    for _, hit in found:
        counts[hit.kind] = counts.get(hit.kind, 0) + 1
        if counts[hit.kind] <= MOST_OF_A_KIND:
            kept.append(hit)
    return kept[:MOST]


def _order(one: tuple[Fit, Hit]) -> tuple[int, bool, float, str, str]:
    how, hit = one
    newest = float("-inf") if hit.at is None else -hit.at.timestamp()
    return (int(how), hit.kind is Kind.ACT, newest, hit.kind.value, hit.title.casefold())


def named(asked: Asked, names: Collection[tuple[int, str]]) -> Mapping[str, frozenset[int]]:
    """The projects that each term names by how their names begin: in "billing retries" the first."""
    return {
        term: frozenset(pk for pk, name in names if name.casefold().startswith(term))
        for term in asked.sought
    }
