"""Secrets that labsite knows are taken out of texts, however they are written there."""

from __future__ import annotations

import base64
import json
import sys
import time
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.core import masking
from runs.core.masking import HIDDEN

KEY = "sk-ant-api03-Qw3rTy/abc+defGHIJKL0123456789_zzzXYZ-aa"
ODD = 'p$(a)[s]*w"o\\r.d^|100%25&x'
PEM = """-----BEGIN PRIVATE KEY-----
MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj
MzEfYyjiWA4R4/M2bS1GB4t7NXp98C3SC6dVMvDuictGeurT8jNbvJZHtCSuYEvu
-----END PRIVATE KEY-----
"""


def _wrapped(text: str, width: int, after: str = "\n") -> str:
    return after.join(text[at : at + width] for at in range(0, len(text), width))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(KEY, id="alone"),
        pytest.param(f"ANTHROPIC_API_KEY={KEY}\nPATH=/bin", id="in an environment"),
        pytest.param(f"x{KEY}y", id="inside a word"),
        pytest.param(f"{KEY}{KEY}", id="twice"),
        pytest.param(json.dumps(KEY).replace("/", "\\/"), id="slashes escaped"),
        pytest.param(KEY.replace("-", "\\u002d"), id="as JSON may escape it"),
        pytest.param(KEY.replace("-", "\\\\u002D"), id="as JSON in JSON may escape it"),
        pytest.param(quote(KEY, safe=""), id="in a URL"),
        pytest.param(f"\x1b[31m{KEY[:9]}\x1b[0m\x1b[1;38;5;12m{KEY[9:]}\x1b[m", id="coloured"),
        pytest.param(_wrapped(KEY, 20), id="broken over lines"),
        pytest.param(_wrapped(KEY, 7, "  │\r\n│   "), id="broken inside a frame"),
        pytest.param(_wrapped(KEY, 9, "   \n\n     ⎿  "), id="broken and padded"),
        pytest.param(json.dumps(_wrapped(KEY, 9, " \n   ")), id="broken inside JSON"),
        pytest.param(_wrapped(KEY, 3, "\u200b"), id="invisible letters in it"),
        pytest.param(_wrapped(KEY, 3, "\x00"), id="zeros in it"),
        pytest.param(_wrapped(KEY, 5, "\x1b]8;;x\x07"), id="links of a terminal in it"),
        pytest.param(KEY[:30] + "…", id="cut short"),
        pytest.param(_wrapped(KEY, 20, "    \n".ljust(90)), id="broken by a program that indents"),
        *(
            pytest.param(
                base64.b64encode(b"user:xy"[:n] + KEY.encode() + b"!!"[:m]).decode(), id=f"{n}{m}"
            )
            for n in range(4)
            for m in range(3)
        ),
    ],
)
def test_a_secret_is_found_however_it_is_written(text: str) -> None:
    hidden = masking.mask([KEY])(f"before {text} after")
    assert HIDDEN in hidden
    assert hidden.startswith("before ")
    assert hidden.endswith(" after")
    for part in (KEY[4:24], KEY[20:40], base64.b64encode(KEY.encode()).decode()[8:30]):
        assert part not in masking._plain(hidden)[0]


@pytest.mark.parametrize("secret", [ODD, "pässwörd-schlüssel-1", "a\\nb\\tcdefgh", "x" * 8 + "\\"])
@pytest.mark.parametrize(
    "written", [str, json.dumps, quote, lambda s: json.dumps({"a": json.dumps(s)})]
)
def test_letters_that_mean_something_elsewhere_are_letters(secret, written) -> None:  # type: ignore[no-untyped-def]
    text = f"x={written(secret)}"
    if secret.endswith("\\") and written is not str:
        pytest.skip("the end of an escaped text cannot be told from an escaped end")
    assert secret[2:] not in masking.mask([secret])(text)
    assert HIDDEN in masking.mask([secret])(text)


def test_a_key_of_several_lines_is_found_line_by_line() -> None:
    hide = masking.mask([PEM])
    for text in (PEM, json.dumps(PEM), PEM.replace("\n", "\n    "), PEM.splitlines()[2]):
        assert "MzEfYyji" not in hide(text)
    assert hide("-----BEGIN PRIVATE KEY-----") == "-----BEGIN PRIVATE KEY-----"


def test_of_secrets_that_hold_one_another_nothing_is_left() -> None:
    inner, outer = "hunter2-abcdef", "xx-hunter2-abcdef-and-more-0123456789"
    for known in ([inner, outer], [outer, inner]):
        hide = masking.mask(known)
        assert hide(f"<{outer}>") == f"<{HIDDEN}>"
        assert hide(f"<{inner}>") == f"<{HIDDEN}>"
    overlap = masking.mask(["abcdefghij", "ghijklmnop"])
    assert overlap("<abcdefghijklmnop>") == f"<{HIDDEN}>"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing to see",
        "true",
        "sk-ant-api03-another-key-that-nobody-knows-0123456789",
        KEY[:10],
        "the function lab_redact_everything_that_is_long_enough is called",
        "a\n\n   b \x1b[31mc\x1b[0m %20 \\u0041 &amp;",
    ],
)
def test_other_texts_are_given_back_as_they_are(text: str) -> None:
    assert masking.mask([KEY, PEM, ODD])(text) is text
    assert masking.NOTHING(text) is text


def test_a_short_value_is_no_secret() -> None:
    assert masking.mask(["true", "1234567", ""])("it is true: 1234567") == "it is true: 1234567"


def test_tokens_that_labsite_makes_are_known_by_their_form() -> None:
    token = f"lab_{'Ab3-_' * 8}xyz"
    for text in (token, f"Bearer {token}", f"\x1b[1m{token[:9]}\x1b[0m{token[9:]}"):
        assert "b3-_Ab3-_" not in masking.NOTHING(text)


@pytest.mark.parametrize("before", ["%", "%4", "\\", "\\u00", "\\u0", "&", "&am", "C:\\"])
@pytest.mark.parametrize(
    "secret",
    [
        "00000000",
        "beefcafe-1",
        "4142434445",
        "nT0ken-of-me",
        "t0ken-of-me",
        "p;abcdefgh",
        "amp;abcdef",
    ],
)
def test_what_stands_before_a_secret_does_not_swallow_its_beginning(
    before: str, secret: str
) -> None:
    hidden = masking.mask([secret])(f"{before}{secret}")
    assert secret[2:] not in hidden
    assert hidden[0] == before[0]


def test_a_text_that_ends_inside_a_secret_is_known() -> None:
    hide = masking.mask([KEY, "another-secret"])
    for text in (KEY[:9], f"x {KEY[:-1]}\n", f"{KEY[:9]}\x1b[0m\n   ", "a\nanother-s\n"):
        assert hide.is_begun(text)
    for text in ("", "x", KEY, f"{KEY}\n", f"{KEY[:9]} x", KEY[:3]):
        assert not hide.is_begun(text)
    assert not masking.NOTHING.is_begun("x")


def test_colours_and_lines_around_a_secret_stay() -> None:
    text = f"\x1b[2mKEY=\x1b[31m{KEY[:20]}\x1b[0m\n  {KEY[20:]}\x1b[0m\nnext"
    assert masking.mask([KEY])(text) == f"\x1b[2mKEY=\x1b[31m{HIDDEN}\x1b[0m\n  \x1b[0m\nnext"


@pytest.mark.parametrize(
    "line",
    [
        json.dumps({"type": "user", "text": f"KEY={KEY}\n", KEY: [1, None, {"x": KEY}]}),
        '{"type":"user","text":"KEY=' + KEY.replace("-", "\\u002d").replace("/", "\\/") + '"}',
        '{"broken": "' + KEY,
        '{"broken": "' + KEY.replace("-", "\\u002d"),
        '{"deep":' * 2000 + f'"{KEY}"' + "}" * 2000,
        f"plain {KEY}",
    ],
)
def test_a_line_is_masked_and_stays_what_it_was(line: str) -> None:
    hidden = masking.mask([KEY]).line(line.encode())
    assert KEY[4:24] not in masking._plain(hidden.decode())[0]
    assert HIDDEN.encode() in hidden
    if line.startswith('{"type"'):
        assert json.loads(hidden)["text"].strip() == f"KEY={HIDDEN}"


def test_a_line_without_a_secret_stays_byte_for_byte() -> None:
    for raw in (b"\xff\xfe\x00", b'{"a": "\\ud800"}', b"", '{"a":  "ü"}'.encode()):
        assert masking.mask([KEY]).line(raw) is raw


@settings(derandomize=True)
@given(st.text(), st.text(min_size=8).filter(lambda one: len(one.strip()) >= 8), st.text())
def test_whatever_is_around_it_nothing_of_it_stays(before: str, secret: str, after: str) -> None:
    hide = masking.mask([secret])
    for known in hide.secrets:
        assert known not in hide(f"{before}{known}{after}").replace(HIDDEN, "")


@pytest.mark.parametrize(
    "text",
    [
        *(" " * 250_000, "\\" * 250_000, " \\" * 125_000, "\x1b]" * 125_000, "\x1b[" * 125_000),
        *("│ " * 125_000, "\\n" * 125_000, "\n \\" * 80_000, "%" * 250_000, "lab_" * 60_000),
        *(KEY[:19] * 10_000, "A" * 250_000),
    ],
)
def test_no_text_takes_long(text: str) -> None:
    began = time.process_time()
    masking.mask([KEY, "A" * 40, "B" * 19 + "C"])(text + "x")
    assert time.process_time() - began < 5


_BETWEEN = st.sampled_from(
    [
        "",
        "",
        "",
        "\n",
        "  \n   ",
        "\x1b[31m",
        "\x1b[0m",
        " │\r\n│ ",
        "\u200b",
        "\\n",
        "\\\\n   ",
        "\x00",
    ]
)
_WRITTEN = st.sampled_from(
    [
        lambda one: one,
        lambda one: f"\\u{ord(one):04x}",
        lambda one: f"%{ord(one):02X}",
        lambda one: f"\\\\u{ord(one):04X}",
    ]
)


@settings(derandomize=True)
@given(st.data(), st.sampled_from([KEY, "hunter2-Qw3rTy", "Zz9" * 20]), st.text(max_size=20))
def test_noise_and_escapes_in_any_order_hide_no_secret(data, secret, around) -> None:  # type: ignore[no-untyped-def]
    hide = masking.mask([secret])
    letters = [data.draw(_WRITTEN)(one) + data.draw(_BETWEEN) for one in secret[:-1]]
    text = f"{around}|{''.join(letters)}{secret[-1]}|{around}"
    hidden = hide(text)
    assert HIDDEN in hidden
    assert secret not in masking._plain(hidden)[0]
    assert hide(hidden) == hidden


def test_a_long_run_of_backslashes_is_read_in_few_steps() -> None:
    steps = 0

    def count(*_: object) -> None:
        nonlocal steps
        steps += 1

    mask = masking.mask([KEY, "\\" * 9 + "end"])
    for text in ("\\" * 100_001, "\\" * 100_000 + " ", "x" + "\\" * 99_999 + "A"):
        sys.setprofile(count)
        try:
            assert mask(text) == text
        finally:
            sys.setprofile(None)
    assert steps < 1000


def test_secrets_of_files_give_way_to_all_others() -> None:
    many = [f"value-of-a-file-{number:05}" for number in range(3000)]
    hide = masking.mask(["sh0rt-pw"], many)
    assert hide("<sh0rt-pw>") == f"<{HIDDEN}>"
    # A launcher is given these and what its run has of its own.
    whole = masking.mask([*hide.secrets, "own-t0kn"])
    assert whole("<own-t0kn> <sh0rt-pw>") == f"<{HIDDEN}> <{HIDDEN}>"
    assert len(whole.secrets) == masking.MOST - masking.ROOM + 1
