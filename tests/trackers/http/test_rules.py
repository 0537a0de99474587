"""What an answer means, row by row."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.trackers.http.forge import START, http_date
from trackers.account import Purpose
from trackers.errors import (
    NotFound,
    NotUnderstood,
    RateLimited,
    Refused,
    TrackerError,
    Unreachable,
)
from trackers.http import rules
from trackers.http.rules import Meaning, Reply, Trouble, Verdict

IN_5 = str(int((START + timedelta(minutes=5)).timestamp()))
AGO_5 = str(int((START - timedelta(minutes=5)).timestamp()))
NEXT_YEAR = str(int((START + timedelta(days=365)).timestamp()))


def minutes(number: float) -> Verdict:
    return Verdict(Meaning.LIMITED, timedelta(minutes=number))


BLIND = Verdict(Meaning.LIMITED, timedelta(seconds=60), is_blind=True)


@pytest.mark.parametrize(
    ("status", "expect", "meaning"),
    [
        pytest.param(200, (200,), Meaning.FINE, id="as hoped"),
        pytest.param(404, (200, 404), Meaning.FINE, id="a 404 that was expected"),
        pytest.param(403, (204, 403), Meaning.FINE, id="a 403 that was expected"),
        pytest.param(201, (200,), Meaning.STRANGE, id="another success than hoped for"),
        pytest.param(202, (200,), Meaning.STRANGE, id="not done yet"),
        pytest.param(304, (200,), Meaning.UNCHANGED, id="304"),
        pytest.param(301, (200,), Meaning.MOVED, id="301"),
        pytest.param(302, (200,), Meaning.MOVED, id="302"),
        pytest.param(307, (200,), Meaning.MOVED, id="307"),
        pytest.param(308, (200,), Meaning.MOVED, id="308"),
        pytest.param(300, (200,), Meaning.STRANGE, id="300"),
        pytest.param(400, (200,), Meaning.REFUSED, id="400"),
        pytest.param(401, (200,), Meaning.REFUSED, id="401"),
        pytest.param(403, (200,), Meaning.REFUSED, id="403"),
        pytest.param(404, (200,), Meaning.MISSING, id="404"),
        pytest.param(405, (200,), Meaning.REFUSED, id="405"),
        pytest.param(408, (200,), Meaning.UNREACHABLE, id="408"),
        pytest.param(409, (200,), Meaning.REFUSED, id="409"),
        pytest.param(410, (200,), Meaning.MISSING, id="410"),
        pytest.param(422, (200,), Meaning.REFUSED, id="422"),
        pytest.param(423, (200,), Meaning.REFUSED, id="423"),
        pytest.param(429, (200,), Meaning.LIMITED, id="429"),
        pytest.param(451, (200,), Meaning.REFUSED, id="451"),
        pytest.param(500, (200,), Meaning.UNREACHABLE, id="500"),
        pytest.param(503, (200,), Meaning.UNREACHABLE, id="503"),
        pytest.param(599, (200,), Meaning.UNREACHABLE, id="599"),
    ],
)
def test_what_a_status_means(status: int, expect: tuple[int, ...], meaning: Meaning):
    assert rules.verdict(Reply(status), expect, START).meaning is meaning


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        pytest.param(Reply(403), None, id="403 alone is no access"),
        pytest.param(
            Reply(403, {"x-ratelimit-remaining": "4000", "x-ratelimit-reset": IN_5}, "No rights"),
            None,
            id="403 with quota left is no access",
        ),
        pytest.param(
            Reply(403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": IN_5}),
            minutes(5),
            id="nothing remains: until the reset",
        ),
        pytest.param(
            Reply(429, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": IN_5}),
            minutes(5),
            id="the same as 429",
        ),
        pytest.param(
            Reply(403, {"x-ratelimit-remaining": "0"}), BLIND, id="nothing remains, no reset"
        ),
        pytest.param(
            Reply(403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "soon"}),
            BLIND,
            id="nothing remains, a reset that is no number",
        ),
        pytest.param(
            Reply(403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": AGO_5}),
            BLIND,
            id="our clock is ahead, theirs is not told",
        ),
        pytest.param(
            Reply(
                403,
                {
                    "x-ratelimit-remaining": "0",
                    "x-ratelimit-reset": AGO_5,
                    "date": http_date(START - timedelta(minutes=15)),
                },
            ),
            minutes(10),
            id="our clock is ahead, theirs is told",
        ),
        pytest.param(
            Reply(403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": NEXT_YEAR}),
            minutes(60),
            id="an absurd reset is an hour",
        ),
        pytest.param(
            Reply(403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "9" * 14}),
            minutes(60),
            id="a reset beyond the calendar is an hour",
        ),
        pytest.param(
            Reply(429, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "120"}),
            minutes(2),
            id="a reset in seconds, as some proxies tell it",
        ),
        pytest.param(Reply(403, {"retry-after": "120"}), minutes(2), id="403 with seconds"),
        pytest.param(Reply(429, {"retry-after": "120"}), minutes(2), id="429 with seconds"),
        pytest.param(Reply(503, {"retry-after": "120"}), minutes(2), id="503 with seconds"),
        pytest.param(
            Reply(429, {"retry-after": http_date(START + timedelta(minutes=3))}),
            minutes(3),
            id="429 with a date",
        ),
        pytest.param(
            Reply(
                429,
                {
                    "retry-after": http_date(START + timedelta(days=2, minutes=3)),
                    "date": http_date(START + timedelta(days=2)),
                },
            ),
            minutes(3),
            id="a date on a clock that is two days ahead",
        ),
        pytest.param(
            Reply(429, {"retry-after": http_date(START - timedelta(minutes=3))}),
            Verdict(Meaning.LIMITED, timedelta(seconds=1)),
            id="a date that is past",
        ),
        pytest.param(
            Reply(429, {"retry-after": "0"}),
            Verdict(Meaning.LIMITED, timedelta(seconds=1)),
            id="no time at all is a second",
        ),
        pytest.param(Reply(429, {"retry-after": "86400"}), minutes(60), id="a day is an hour"),
        pytest.param(Reply(429, {"retry-after": "9" * 40}), minutes(60), id="an absurd number"),
        pytest.param(Reply(429, {"retry-after": "-5"}), BLIND, id="less than nothing"),
        pytest.param(Reply(429, {"retry-after": "later"}), BLIND, id="neither number nor date"),
        pytest.param(Reply(429), BLIND, id="429 without anything"),
        pytest.param(
            Reply(403, {}, "You have exceeded a secondary rate limit. Please wait"),
            BLIND,
            id="a secondary limit by its text",
        ),
        pytest.param(
            Reply(403, {}, "You have triggered an abuse detection mechanism."),
            BLIND,
            id="its older text",
        ),
        pytest.param(
            Reply(403, {}, "Maximum number of login attempts exceeded. Please try again later."),
            BLIND,
            id="too many wrong tokens, of whomever",
        ),
        pytest.param(
            Reply(403, {"retry-after": "30"}, "You have exceeded a secondary rate limit"),
            Verdict(Meaning.LIMITED, timedelta(seconds=30)),
            id="a secondary limit with seconds",
        ),
        pytest.param(
            Reply(
                403, {"x-ratelimit-remaining": "4000"}, "You have exceeded a secondary rate limit"
            ),
            BLIND,
            id="a secondary limit while the primary has room",
        ),
        pytest.param(
            Reply(404, {"retry-after": "30", "x-ratelimit-remaining": "0"}),
            None,
            id="a 404 is never a limit",
        ),
        pytest.param(Reply(422, {}, "API rate limit exceeded"), None, id="nor is a 422"),
    ],
)
def test_a_limit_is_told_apart_from_no_access(reply: Reply, found: Verdict | None):
    verdict = rules.verdict(reply, (200,), START)
    if found is None:
        assert verdict.meaning in (Meaning.REFUSED, Meaning.MISSING)
    else:
        assert verdict == found


RATES = {
    "x-ratelimit-limit": "5000",
    "x-ratelimit-remaining": "4321",
    "x-ratelimit-used": "679",
    "x-ratelimit-reset": IN_5,
    "x-ratelimit-resource": "core",
}


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        pytest.param(RATES, (5000, 4321, 679, 300, "core"), id="all five"),
        pytest.param(
            {name: RATES[name] for name in list(RATES)[:2]} | {"x-ratelimit-reset": IN_5},
            (5000, 4321, 679, 300, "core"),
            id="the three that are needed",
        ),
        pytest.param({**RATES, "x-ratelimit-resource": "search"}, (5000, 4321, 679, 300, "search"), id="another resource"),
        pytest.param({**RATES, "x-ratelimit-reset": AGO_5}, (5000, 4321, 679, 0, "core"), id="a reset that is past"),
        pytest.param({**RATES, "x-ratelimit-reset": NEXT_YEAR}, (5000, 4321, 679, 3600, "core"), id="an absurd reset"),
        pytest.param({**RATES, "x-ratelimit-reset": "90"}, (5000, 4321, 679, 90, "core"), id="a reset in seconds"),
        pytest.param({}, None, id="a forge without limits"),
        pytest.param({**RATES, "x-ratelimit-limit": "0"}, None, id="a limit that is switched off"),
        pytest.param({**RATES, "x-ratelimit-remaining": "many"}, None, id="no number"),
        pytest.param({**RATES, "x-ratelimit-remaining": "-1"}, None, id="less than nothing"),
        pytest.param({**RATES, "x-ratelimit-reset": ""}, None, id="no reset"),
    ],
)  # fmt: skip
def test_rate_headers_are_read(headers: dict[str, str], told: tuple[object, ...] | None):
    quota = rules.quota(headers, START)
    found = quota and (
        quota.limit,
        quota.remaining,
        quota.used,
        quota.reset_in.total_seconds(),
        quota.resource,
    )
    assert found == told


@pytest.mark.parametrize(
    ("method", "heard", "tries", "again"),
    [
        *(
            pytest.param(method, Reply(502), 0, True, id=f"{method} after 502")
            for method in ("GET", "HEAD", "PUT", "DELETE")
        ),
        *(
            pytest.param(method, heard, 0, False, id=f"{method} never: {heard}")
            for method in ("POST", "PATCH")
            for heard in (Reply(500), Reply(503), Trouble.UNREACHED, Trouble.DROPPED)
        ),
        pytest.param("GET", Reply(502), 1, True, id="a second time"),
        pytest.param("GET", Reply(502), 2, False, id="never a third"),
        pytest.param("GET", Reply(501), 0, False, id="501 does not pass"),
        pytest.param("GET", Reply(429), 0, False, id="a limit is obeyed"),
        pytest.param("GET", Reply(503, {"retry-after": "1"}), 0, False, id="also as 503"),
        pytest.param("GET", Reply(404), 0, False, id="404"),
        pytest.param("GET", Reply(200), 0, False, id="200"),
        pytest.param("GET", Trouble.UNREACHED, 0, True, id="not reached"),
        pytest.param("GET", Trouble.DROPPED, 0, True, id="broke off"),
        pytest.param("GET", Trouble.SLOW, 0, False, id="slow: the time is used up"),
        pytest.param("GET", Trouble.BUSY, 0, False, id="our own queue"),
        pytest.param("GET", Trouble.UNTRUSTED, 0, False, id="a certificate stays what it is"),
        pytest.param("GET", Trouble.TOO_BIG, 0, False, id="as big the next time"),
    ],
)
def test_what_is_sent_again(method: str, heard: Reply | Trouble, tries: int, again: bool):
    assert rules.may_repeat(method, heard, tries) is again


def test_waits_between_tries_double_and_differ():
    assert [rules.repeat_wait(tries, 1.0) for tries in (0, 1)] == [0.25, 0.5]
    assert [rules.repeat_wait(tries, 0.0) for tries in (0, 1)] == [0.125, 0.25]


def test_everything_a_tick_asks_ends_before_the_tick_does():
    for purpose in Purpose:
        assert rules.seconds(purpose) < 10 or purpose is Purpose.WRITE


@pytest.mark.parametrize(
    ("headers", "ask_with"),
    [
        pytest.param({"etag": '"a"'}, {"If-None-Match": '"a"'}, id="an ETag"),
        pytest.param({"etag": 'W/"a b"'}, {"If-None-Match": 'W/"a b"'}, id="a weak one"),
        pytest.param({"etag": '"a"\r\nX: y'}, {}, id="one that would be two headers"),
        pytest.param({"etag": '"ü"'}, {}, id="one with letters that headers do not hold"),
        pytest.param({"etag": '"' + "a" * 600 + '"'}, {}, id="an endless one"),
        pytest.param({"etag": ""}, {}, id="an empty one"),
        pytest.param(
            {"etag": '"a"', "cache-control": "private, no-store"}, {}, id="not to be kept"
        ),
        pytest.param(
            {"last-modified": http_date(START), "date": http_date(START + timedelta(hours=1))},
            {"If-Modified-Since": http_date(START)},
            id="a time that is long ago",
        ),
        pytest.param(
            {"last-modified": http_date(START), "date": http_date(START + timedelta(seconds=2))},
            {},
            id="a time that is now: a second change could hide in it",
        ),
        pytest.param({"last-modified": http_date(START)}, {}, id="no clock to compare with"),
        pytest.param({"last-modified": "yesterday", "date": http_date(START)}, {}, id="no time"),
        pytest.param(
            {"etag": '"a"', "last-modified": http_date(START)},
            {"If-None-Match": '"a"'},
            id="the ETag counts",
        ),
    ],
)
def test_what_a_later_call_asks_with(headers: dict[str, str], ask_with: dict[str, str]):
    assert rules.validators(headers) == ask_with


@pytest.mark.parametrize(
    ("trouble", "error"),
    [
        (Trouble.UNREACHED, Unreachable),
        (Trouble.NO_WAY, Unreachable),
        (Trouble.SLOW, Unreachable),
        (Trouble.DROPPED, Unreachable),
        (Trouble.BUSY, Unreachable),
        (Trouble.UNTRUSTED, Refused),
        (Trouble.TOO_BIG, NotUnderstood),
        (Trouble.GARBLED, NotUnderstood),
    ],
)
def test_each_trouble_has_its_error(trouble: Trouble, error: type[TrackerError]):
    found = rules.trouble(trouble, "forge.example (GET /x)")
    assert type(found) is error
    assert str(found) == f"forge.example (GET /x) {trouble.value}."


@pytest.mark.parametrize(
    ("meaning", "reply", "error", "text"),
    [
        (Meaning.REFUSED, Reply(401, {}, "Bad credentials"), Refused, "does not accept the token (401): Bad credentials."),
        (Meaning.REFUSED, Reply(403, {}, "No"), Refused, "does not allow that to this account (403): No."),
        (Meaning.REFUSED, Reply(422), Refused, "did not accept that (422)."),
        (Meaning.MISSING, Reply(404), NotFound, "knows no such thing, or does not show it to this account (404)."),
        (Meaning.UNREACHABLE, Reply(500), Unreachable, "answered 500."),
        (Meaning.MOVED, Reply(301), Refused, "was moved. Set up its new address (301)."),
        (Meaning.STRANGE, Reply(202), NotUnderstood, "answered 202, which labsite does not understand."),
        (Meaning.LIMITED, Reply(429, {}, "Slow down"), RateLimited, "asks to wait (429): Slow down."),
    ],
)  # fmt: skip
def test_errors_say_who_what_and_why(
    meaning: Meaning, reply: Reply, error: type[TrackerError], text: str
):
    found = rules.error(Verdict(meaning), reply, "forge.example (GET /x)", START)
    assert type(found) is error
    assert str(found) == f"forge.example (GET /x) {text}"
    if isinstance(found, RateLimited):
        assert found.until == START


@pytest.mark.parametrize(
    ("token", "is_fit"),
    [("ghp_abc", True), ("a.b-c_d~+/=", True), ("", False), ("a b", False), ("a\n", False), ("ä", False), ("a\0", False)],
)  # fmt: skip
def test_a_token_that_cannot_be_a_header_is_known_beforehand(token: str, is_fit: bool):
    assert rules.is_fit_token(token) is is_fit
