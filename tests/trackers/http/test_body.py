"""Bodies: unpacked within a bound, understood or not, and what an error says."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import pytest

from trackers.http import body
from trackers.http.rules import Trouble


def read(data: bytes, encoding: str = "", most: int = 1000, piece: int = 64) -> bytes | Trouble:
    pieces = (data[at : at + piece] for at in range(0, len(data), piece))
    return body.read(pieces, encoding, lambda: False, most)


@pytest.mark.parametrize("encoding", ["", "identity", "gzip", "x-gzip", " GZIP "])
@pytest.mark.parametrize("size", [0, 1, 999, 1000])
def test_a_body_up_to_the_bound_is_read(encoding: str, size: int):
    data = b"x" * size
    packed = gzip.compress(data) if "gzip" in encoding.lower() else data
    assert read(packed, encoding) == data


@pytest.mark.parametrize("encoding", ["", "gzip"])
@pytest.mark.parametrize("size", [1001, 5000])
def test_a_longer_one_is_not(encoding: str, size: int):
    data = b"x" * size
    assert read(gzip.compress(data) if encoding else data, encoding) is Trouble.TOO_BIG


def test_a_bomb_never_unfolds():
    bomb = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    packed = b"".join(bomb.compress(b"\0" * 2**20) for _ in range(200)) + bomb.flush()
    assert len(packed) < 300_000
    tracemalloc.start()
    try:
        assert body.read([packed], "gzip", lambda: False, 2**20) is Trouble.TOO_BIG
        assert tracemalloc.get_traced_memory()[1] < 6 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        pytest.param(b"abc", "br", id="an encoding that was not asked for"),
        pytest.param(b"abc", "gzip, gzip", id="packed twice"),
        pytest.param(b"not gzip", "gzip", id="not what it says"),
    ],
)
def test_what_cannot_be_unpacked_is_garbled(data: bytes, encoding: str):
    assert read(data, encoding) is Trouble.GARBLED


def test_a_body_that_comes_too_slowly_is_given_up():
    late = iter([False, False, True])
    assert body.read([b"a", b"b", b"c"], "", lambda: next(late), 1000) is Trouble.SLOW


@pytest.mark.parametrize(
    ("text", "data"),
    [
        pytest.param(b"", None, id="nothing"),
        pytest.param(b" \r\n", None, id="blanks"),
        pytest.param(b'{"a": [1, "x", null]}', {"a": [1, "x", None]}, id="data"),
        pytest.param(b'"\\ud83d\\ude00"', "\N{GRINNING FACE}", id="a letter in two halves"),
        pytest.param(
            b'{"a\\u0000": ["\\ud83d"]}', {"a\ufffd": ["?"]}, id="half a letter, letter 0"
        ),
    ],
)
def test_data_is_understood(text: bytes, data: object):
    assert body.understood(text) == data


@pytest.mark.parametrize(
    "text",
    [
        b"{",
        b'{"a": 1',
        b"<html>",
        b"NaN",
        b"[Infinity]",
        b"\xff",
        b"[" * 10**6,
        b"1" * 10**5,
    ],
)
def test_what_is_no_json_is_nonsense(text: bytes):
    assert body.understood(text) is body.NONSENSE


def test_what_is_deep_is_read_or_nonsense_but_no_error():
    for depth in range(100, 3000, 100):
        body.understood(b'["\\u0041",' + b"[" * depth + b"]" * depth + b"]")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param({"message": "Not Found"}, "Not Found", id="a message"),
        pytest.param(
            {"message": "Validation Failed", "errors": [{"message": "A pull request exists."}]},
            "Validation Failed A pull request exists",
            id="with the errors of GitHub",
        ),
        pytest.param({"message": "No", "errors": ["One", "One", 7]}, "No One", id="of Gitea"),
        pytest.param({"message": 7, "errors": "x"}, "", id="of wrong types"),
        pytest.param({"message": " a\n\tb\x1b[31m "}, "a b[31m", id="one line, no escapes"),
        pytest.param({"message": "x" * 999}, "x" * 300, id="not endless"),
        pytest.param({"message": "bad token s3cret!"}, "bad token [secret]!", id="no credential"),
        pytest.param(["message"], "", id="a list"),
        pytest.param(None, "", id="nothing"),
    ],
)
def test_what_an_answer_says_went_wrong(data: object, said: str):
    assert body.saying(data, "s3cret") == said
