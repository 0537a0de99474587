"""What was typed, how a thing fits it, and in which order what fits is shown."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runs.search import rules
from runs.search.rules import Fit, Hit, Kind
from tests.fakes import START


@pytest.mark.parametrize(
    ("typed", "terms", "number", "kind", "beside"),
    [
        pytest.param("", (), None, None, (), id="nothing"),
        pytest.param("  Retry  the\tUpload ", ("retry", "the", "upload"), None, None, ("retry", "the", "upload"), id="words"),
        pytest.param("#7", ("#7",), 7, None, (), id="a number with its sign"),
        pytest.param("run 12", ("run", "12"), 12, Kind.RUN, (), id="a number of a kind"),
        pytest.param("pr #3", ("pr", "#3"), 3, Kind.PULL, (), id="a pull request"),
        pytest.param("billing 7", ("billing", "7"), 7, None, ("billing",), id="a number in a project"),
        pytest.param("7 retries", ("7", "retries"), None, None, ("7", "retries"), id="a number that is no key"),
        pytest.param("99999999999", ("99999999999",), None, None, ("99999999999",), id="larger than a column holds"),
        pytest.param("٧", ("٧",), None, None, ("٧",), id="digits of another script"),
        pytest.param("a\0b", ("a", "b"), None, None, ("a", "b"), id="a letter that no text holds"),
        pytest.param("a b c d e f g h", tuple("abcdef"), None, None, tuple("abcdef"), id="at most six terms"),
    ],
)  # fmt: skip
def test_what_was_typed_is_read(
    typed: str,
    terms: tuple[str, ...],
    number: int | None,
    kind: Kind | None,
    beside: tuple[str, ...],
) -> None:
    asked = rules.read(typed)
    assert (asked.terms, asked.number, asked.kind, asked.beside) == (terms, number, kind, beside)


ISSUE = Hit(Kind.ISSUE, "Retry the upload", key="7", words="#7", note="billing")
RUN = Hit(
    Kind.RUN, "Run 7: Mend it", key="7", words="mend it #12 12 afk/12", note="demo, issue 12, died"
)
PAUSE = Hit(Kind.ACT, "Turn off automatic work in demo", words="pause project", sends=())


@pytest.mark.parametrize(
    ("hit", "typed", "found"),
    [
        pytest.param(ISSUE, "7", Fit.EXACT, id="its key"),
        pytest.param(ISSUE, "#7", Fit.EXACT, id="its key with the sign"),
        pytest.param(ISSUE, "issue 7", Fit.EXACT, id="its key and kind"),
        pytest.param(ISSUE, "billing 7", Fit.EXACT, id="its project and key"),
        pytest.param(ISSUE, "retry the upload", Fit.EXACT, id="its whole title"),
        pytest.param(ISSUE, "retry th", Fit.PREFIX, id="how its title begins"),
        pytest.param(ISSUE, "upl retr", Fit.WORD, id="how its words begin, in any order"),
        pytest.param(ISSUE, "billing retry", Fit.INSIDE, id="its project and a word"),
        pytest.param(ISSUE, "pload", Fit.INSIDE, id="the middle of a word"),
        pytest.param(ISSUE, "upload fast", None, id="not every word"),
        pytest.param(ISSUE, "8", None, id="another key"),
        pytest.param(ISSUE, "run 7", None, id="the key of another kind"),
        pytest.param(ISSUE, "demo 7", None, id="the key in another project"),
        pytest.param(ISSUE, "", Fit.PREFIX, id="nothing typed"),
        pytest.param(RUN, "run 7", Fit.EXACT, id="a run by its number"),
        pytest.param(RUN, "12", Fit.WORD, id="a run by its issue"),
        pytest.param(PAUSE, "pause demo", Fit.WORD, id="an act by another word for it"),
    ],
)
def test_how_a_thing_fits(hit: Hit, typed: str, found: Fit | None) -> None:
    assert rules.fit(hit, rules.read(typed)) is found


def test_the_better_fit_is_first_then_places_then_the_newest_and_acts_last() -> None:
    def hit(title: str, days: int | None = None, kind: Kind = Kind.ISSUE, key: str = "") -> Hit:
        return Hit(kind, title, key=key, at=None if days is None else START - timedelta(days=days))

    rows = [
        hit("Start retry", kind=Kind.ACT),
        hit("Slow retry of old", 9),
        hit("Slow retry of new", 1),
        hit("Retry page", kind=Kind.PAGE),
        hit("Retry queue", 5),
        hit("Noretry", 0),
        hit("retry", 99),
        hit("Nothing of it", 0),
    ]
    found = rules.ranked(rows, rules.read("retry"))
    assert [one.title for one in found] == [
        *("retry", "Retry page", "Retry queue", "Slow retry of new", "Slow retry of old"),
        *("Start retry", "Noretry"),
    ]


def test_no_kind_pushes_all_others_off_the_list() -> None:
    many = [Hit(Kind.RUN, f"Mend {n}", at=START) for n in range(50)]
    found = rules.ranked([*many, Hit(Kind.ISSUE, "To mend", at=START)], rules.read("mend"))
    assert [one.kind for one in found] == [Kind.RUN] * rules.MOST_OF_A_KIND + [Kind.ISSUE]


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("billing retries", {"billing": {1}, "retries": set()}),
        ("b 7", {"b": {1, 3}, "7": set()}),
        ("stop billing", {"billing": {1}}),
        ("", {}),
    ],
)
def test_a_term_may_name_projects(typed: str, found: dict[str, set[int]]) -> None:
    names = [(1, "Billing"), (2, "demo"), (3, "bank")]
    assert rules.named(rules.read(typed), names) == found
