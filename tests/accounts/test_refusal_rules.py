"""What a program's own error means for its account, and how long to wait: one table a rule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from runs.accounts import hold_rules, refusal_rules, resets
from runs.core.states import Outcome, RunState, Trouble
from runs.lifecycle.verdict import RunFacts, verdict

NOW = datetime(2026, 11, 22, 3, 0, tzinfo=UTC)
N, LIMIT, OVER, LOGIN, CREDIT, MODEL = (
    Trouble.NONE,
    Trouble.LIMIT,
    Trouble.OVERLOAD,
    Trouble.LOGIN,
    Trouble.CREDIT,
    Trouble.MODEL,
)


def _at(day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 11, day, hour, minute, tzinfo=UTC)


SAID = [
    # What Claude Code 2.1.197 printed as its result.
    pytest.param("API Error: Request rejected (429) · Claude AI usage limit reached|1795361991", 429, "", LIMIT, id="claude: usage limit"),
    pytest.param("API Error: Request rejected (429) · This request would exceed your account's rate limit. Please try again later.", 429, "", LIMIT, id="claude: rate limit"),
    pytest.param("You've hit your session limit · resets 3am (UTC)", None, "", LIMIT, id="claude: session limit"),
    pytest.param("You've hit your weekly limit · resets Nov 24, 3am (Europe/Berlin)", 429, "", LIMIT, id="claude: weekly limit"),
    pytest.param("API Error: 500 Internal server error. This is a server-side issue, usually temporary — try again in a moment.", 500, "", OVER, id="claude: 500"),
    pytest.param("API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment.", 529, "", OVER, id="claude: 529"),
    pytest.param("API Error: 529 Overloaded.", None, "", OVER, id="claude: status in the words"),
    pytest.param("Invalid API key · Fix external API key", 401, "", LOGIN, id="claude: invalid key"),
    pytest.param("Invalid API key · Please run /login", None, "", LOGIN, id="claude: please log in"),
    pytest.param("Failed to authenticate. API Error: 401 OAuth token has expired.", 401, "", LOGIN, id="claude: token expired"),
    pytest.param("Credit balance is too low", 400, "", CREDIT, id="claude: credit"),
    pytest.param("API Error: 402 Your account has no credit", 402, "", CREDIT, id="claude: 402"),
    pytest.param("You've hit your monthly spend limit. Run /usage-credits to manage your limit", 429, "", CREDIT, id="claude: spend limit"),
    pytest.param("Failed to authenticate. API Error: 403 Your account does not have access to this model", 403, "", MODEL, id="claude: 403 model"),
    pytest.param("There's an issue with the selected model (claude-opus-4-8[1m]). It may not exist or you may not have access to it.", 404, "", MODEL, id="claude: 404 model"),
    pytest.param("Failed to authenticate. API Error: 403 Request not allowed", 403, "", LOGIN, id="claude: other 403"),
    pytest.param("Rate limited", None, "rate_limit", LIMIT, id="claude hook: kind"),
    pytest.param("", None, "server_error", OVER, id="claude hook: server error"),
    pytest.param("", None, "invalid_request", N, id="claude hook: invalid request"),
    pytest.param("API Error: 400 prompt is too long: 210000 tokens > 200000 maximum", 400, "", N, id="the issue's own: too long"),
    pytest.param("API Error: 413 Request too large", 413, "", N, id="the issue's own: too large"),
    pytest.param("Reached maximum number of turns (40)", None, "", N, id="out of turns"),
    pytest.param("Reached maximum budget ($0.05)", None, "", N, id="out of budget"),
    pytest.param("API Error: 400 messages.3: rate limit is not a valid role", 400, "", N, id="limit in a bad request"),
    pytest.param("API Error: 404 tool for usage limit not found", 404, "", N, id="limit in a missing thing"),
    pytest.param("No conversation found with session ID: 1111", None, "", N, id="no session"),
    pytest.param("API Error: Unable to connect to API (ECONNREFUSED)", None, "", OVER, id="no network"),
    # What Codex 0.169.0 printed as turn.failed.
    pytest.param("exceeded retry limit, last status: 429 Too Many Requests", None, "", LIMIT, id="codex: 429"),
    pytest.param("You\u2019ve hit your usage limit. Try again later.", None, "", LIMIT, id="codex: usage limit"),
    pytest.param("You\u2019ve hit your usage limit. Upgrade to Pro or try again at 3:05 PM.", None, "", LIMIT, id="codex: usage limit with time"),
    pytest.param("Quota exceeded. Check your plan and billing details.", None, "", CREDIT, id="codex: quota"),
    pytest.param("insufficient_quota: You exceeded your current quota", 429, "", CREDIT, id="codex: insufficient quota"),
    pytest.param("We\u2019re currently experiencing high demand, which may cause temporary errors.", None, "", OVER, id="codex: 500"),
    pytest.param("Selected model is at capacity. Please try a different model.", None, "", OVER, id="codex: 503 is no refused model"),
    pytest.param("unexpected status 401 Unauthorized: Incorrect API key provided: sk-x., url: http://x", None, "", LOGIN, id="codex: 401"),
    pytest.param("unexpected status 402 Payment Required: Payment required", None, "", CREDIT, id="codex: 402"),
    pytest.param("Project `p` does not have access to model `gpt-5`", None, "", MODEL, id="codex: model"),
    pytest.param("The model claude-2.1 is deprecated and no longer answers", 404, "", MODEL, id="model: deprecated"),
    pytest.param("API Error: 400 The model `gpt-4-0314` has been retired.", 400, "", MODEL, id="model: retired"),
    pytest.param("model claude-opus-9 is not available in your region", 403, "", MODEL, id="model: not available"),
    pytest.param("The model 'o1' was discontinued", None, "", MODEL, id="model: discontinued"),
    pytest.param("API Error: 400 tools.3: this field is deprecated", 400, "", N, id="a deprecated field is no model"),
    pytest.param("unexpected status 404 Not Found: no such page", None, "", N, id="codex: 404"),
    pytest.param("stream disconnected before completion: error sending request", None, "", OVER, id="codex: no network"),
    pytest.param("", None, "", N, id="nothing said"),
    pytest.param("validation failed: 429 tests", None, "", N, id="a number alone"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "status", "kind", "expected"), SAID)
def test_an_error_is_told_to_be_the_accounts_or_not(words, status, kind, expected):
    found = refusal_rules.refused(words, status, now=NOW, kind=kind)
    assert (found.trouble if found else Trouble.NONE) is expected


RESETS = [
    pytest.param("usage limit reached|1795361991", datetime.fromtimestamp(1795361991, UTC), id="epoch"),
    pytest.param("You've hit your limit · resets 5am (UTC)", _at(22, 5), id="5am"),
    pytest.param("You've hit your limit · resets 5:30pm (UTC)", _at(22, 17, 30), id="5:30pm"),
    pytest.param("hit your limit · resets 12am (UTC)", _at(23, 0), id="midnight is the next one"),
    pytest.param("hit your limit · resets 6am (Europe/Berlin)", _at(22, 5), id="named zone"),
    pytest.param("hit your limit · resets 6am (Nowhere/Land)", None, id="unknown zone"),
    pytest.param("hit your limit · resets 6am (UTC+2)", _at(22, 4), id="east of Greenwich"),
    pytest.param("hit your limit · resets 6am (UTC-03:30)", _at(22, 9, 30), id="west, with minutes"),
    pytest.param("hit your limit · resets 6am (Etc/GMT+5)", _at(22, 11), id="west, as POSIX names it"),
    pytest.param("hit your limit · resets 6am (UTC+25)", None, id="no such distance"),
    pytest.param("try again at 6:00 AM GMT.", _at(22, 6), id="zone without brackets"),
    pytest.param("resets 2026-11-27T03:00:00Z", _at(27, 3), id="a whole moment"),
    pytest.param("resets at 2026-11-27T03:00:00.25+02:00", _at(27, 1) + timedelta(seconds=0.25), id="a whole moment, east"),
    pytest.param("Try again at 2026-11-27 03:00", _at(27, 3), id="a whole moment without a zone"),
    pytest.param("resets at 2026-13-41T03:00:00Z", None, id="no such moment"),
    pytest.param("hit your limit · resets Nov 24, 3am (UTC)", _at(24, 3), id="a day"),
    pytest.param("try again at Nov 24th, 2026 3:05 PM.", _at(24, 14, 5), id="codex: a day, machine's zone"),
    pytest.param("limit · resets Jan 2, 3am (UTC)", datetime(2027, 1, 2, 3, tzinfo=UTC), id="next year"),
    pytest.param("or try again at 3:05 PM.", _at(22, 14, 5), id="codex: time in the machine's zone"),
    pytest.param("try again at 3:59 AM.", _at(22, 2, 59), id="a minute ago is over, not tomorrow"),
    pytest.param("try again in 2 days 3 hours.", NOW + timedelta(days=2, hours=3), id="length in words"),
    pytest.param("Please try again in 1.2s.", NOW + timedelta(seconds=1.2), id="seconds"),
    pytest.param("Please try again in 250ms", NOW + timedelta(milliseconds=250), id="milliseconds"),
    pytest.param("resets in 3h 20m", NOW + timedelta(hours=3, minutes=20), id="short units"),
    pytest.param("Try again later.", None, id="later"),
    pytest.param("resets at 99:99pm", None, id="no time"),
    pytest.param("resets Foo 41, 3am", None, id="no day"),
    pytest.param("try again in 99999999999999999999 days", None, id="absurd"),
    pytest.param("try again in 9000000 days", None, id="out of the calendar"),
    pytest.param("at 3 of 7 limits", None, id="a bare number"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "expected"), RESETS)
def test_the_time_of_a_reset_is_read_from_words(words, expected):
    assert resets.told(words, NOW, ZoneInfo("Europe/Berlin")) == expected


MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
UNTIL = [
    pytest.param(LIMIT, NOW + 2 * HOUR, 1, NOW + 2 * HOUR + MINUTE, id="known reset and a minute"),
    pytest.param(LIMIT, NOW - MINUTE, 1, NOW + 5 * MINUTE, id="reset in the past"),
    pytest.param(LIMIT, NOW, 1, NOW + 5 * MINUTE, id="reset right now"),
    pytest.param(LIMIT, NOW + timedelta(days=30), 1, NOW + 5 * MINUTE, id="absurdly far"),
    pytest.param(LIMIT, NOW + timedelta(days=7), 1, NOW + timedelta(days=7) + MINUTE, id="a week"),
    pytest.param(LIMIT, None, 1, NOW + 5 * MINUTE, id="unknown"),
    pytest.param(LIMIT, None, 2, NOW + 10 * MINUTE, id="unknown again"),
    pytest.param(LIMIT, None, 99, NOW + HOUR, id="capped"),
    pytest.param(OVER, None, 1, NOW + MINUTE, id="overload"),
    pytest.param(OVER, None, 50, NOW + 30 * MINUTE, id="overload for long"),
    pytest.param(LOGIN, None, 1, NOW + 15 * MINUTE, id="log-in"),
    pytest.param(CREDIT, None, 9, NOW + 6 * HOUR, id="credit for long"),
    pytest.param(MODEL, None, 0, NOW + 30 * MINUTE, id="model"),
    pytest.param(LIMIT, NOW + MINUTE, 3, NOW + 2 * MINUTE, id="known and tried"),
    pytest.param(LIMIT, NOW + MINUTE, 5, NOW + HOUR, id="known and of no help"),
]  # fmt: skip


@pytest.mark.parametrize(("trouble", "reset", "tries", "expected"), UNTIL)
def test_how_long_an_agent_is_held(trouble, reset, tries, expected):
    assert hold_rules.until(trouble, reset, tries, NOW) == expected


HELD = [
    pytest.param("limit", NOW + MINUTE, True, id="held"),
    pytest.param("limit", NOW, False, id="over"),
    pytest.param("", None, False, id="never"),
    pytest.param("limit", NOW + timedelta(days=30), False, id="by a clock that was wrong"),
]


@pytest.mark.parametrize(("hold", "until", "expected"), HELD)
def test_a_hold_lasts_until_its_time(hold, until, expected):
    assert hold_rules.is_held(hold, until, NOW) is expected


RESUMED = [
    pytest.param(
        ["claude", "--session-id", "{session}", "--model", "{model}", "{prompt}"],
        ["claude", "--resume", "{session}", "--model", "{model}", "{prompt}"],
        id="claude",
    ),
    pytest.param(
        ["/x/bin/claude", "-p", "--verbose", "{prompt}"],
        ["/x/bin/claude", "--resume", "{session}", "-p", "--verbose", "{prompt}"],
        id="claude print",
    ),
    pytest.param(
        ["codex", "exec", "--json", "-c", "a=b", "{prompt}"],
        ["codex", "exec", "--json", "-c", "a=b", "resume", "{session}", "{prompt}"],
        id="codex exec",
    ),
    pytest.param(["codex", "{prompt}"], None, id="codex on a screen"),
    pytest.param(["aider", "--message", "{prompt}"], None, id="another program"),
    pytest.param([], None, id="nothing"),
]


@pytest.mark.parametrize(("argv", "expected"), RESUMED)
def test_the_argument_list_that_goes_on(argv, expected):
    assert hold_rules.resume_argv(argv) == expected


BUDGET = 50 * MINUTE
JUDGED = [
    pytest.param(RunFacts(True, False, MINUTE, BUDGET, trouble=LIMIT), Outcome.SUCCEEDED, id="delivered beats all"),
    pytest.param(RunFacts(False, False, MINUTE, BUDGET, trouble=LIMIT), RunState.HELD, id="ended in trouble"),
    pytest.param(RunFacts(False, True, MINUTE, BUDGET, trouble=OVER), RunState.HELD, id="its turn ended in trouble"),
    pytest.param(RunFacts(False, True, BUDGET, BUDGET, trouble=OVER), RunState.HELD, id="trouble at the last moment"),
    pytest.param(RunFacts(False, False, MINUTE, BUDGET), Outcome.DIED, id="dead without trouble"),
    pytest.param(RunFacts(False, True, BUDGET, BUDGET), Outcome.TIMED_OUT, id="time is up"),
    pytest.param(RunFacts(False, True, MINUTE, BUDGET), None, id="at work"),
    pytest.param(RunFacts(None, False, MINUTE, BUDGET, trouble=LIMIT), None, id="delivery not known"),
    pytest.param(RunFacts(False, None, MINUTE, BUDGET, trouble=LIMIT), None, id="session not known"),
    pytest.param(RunFacts(False, False, MINUTE, BUDGET, was_interrupted=True, trouble=LIMIT), Outcome.INTERRUPTED, id="aborted"),
    pytest.param(RunFacts(False, True, MINUTE, BUDGET, was_interrupted=True, trouble=LIMIT), None, id="being aborted"),
]  # fmt: skip


@pytest.mark.parametrize(("facts", "expected"), JUDGED)
def test_a_run_whose_agent_was_turned_away_is_held(facts, expected):
    assert verdict(facts) == expected
