"""Kept answers: whole or not there, bounded, and nobody else's to read."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from trackers.http.cache import MOST_EACH, AnswerCache, CachedAnswer

ONE = CachedAnswer({"If-None-Match": '"a"'}, {"link": "<x>"}, b'[{"number": 1}]')


def key(name: object) -> str:
    return AnswerCache.key(str(name))


def test_an_answer_survives_a_restart(tmp_path: Path):
    AnswerCache(tmp_path / "kept").put(key(1), ONE)
    assert AnswerCache(tmp_path / "kept").get(key(1)) == ONE
    assert AnswerCache(tmp_path / "kept").get(key(2)) is None


def test_nobody_else_can_read_it(tmp_path: Path):
    AnswerCache(tmp_path / "kept").put(key(1), ONE)
    assert stat.S_IMODE((tmp_path / "kept").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "kept" / key(1)).stat().st_mode) == 0o600


def test_without_a_folder_nothing_is_kept():
    cache = AnswerCache(None)
    cache.put(key(1), ONE)
    assert cache.get(key(1)) is None
    cache.drop(key(1))
    cache.clear()


def test_every_cut_and_every_changed_byte_makes_it_no_answer(tmp_path: Path):
    cache = AnswerCache(tmp_path)
    cache.put(key(1), ONE)
    path = tmp_path / key(1)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert cache.get(key(1)) is None
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert cache.get(key(1)) in (None, ONE), place  # a blank of the first line may change
    path.write_bytes(whole)
    assert cache.get(key(1)) == ONE


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]\n",
        b"null\n",
        b"\xff\xfe",
        b"{}\n{}",
        b'{"version": 1}\n',
        b"[" * 100_000,
        b'{"version": 1, "ask_with": {"a": 1}, "headers": {}, "seal": ""}\n',
    ],
)
def test_a_file_that_is_something_else_is_no_answer(tmp_path: Path, text: bytes):
    (tmp_path / key(1)).write_bytes(text)
    assert AnswerCache(tmp_path).get(key(1)) is None


def test_a_folder_in_its_place_is_no_answer_and_no_error(tmp_path: Path):
    (tmp_path / key(1)).mkdir()
    cache = AnswerCache(tmp_path)
    assert cache.get(key(1)) is None
    cache.put(key(1), ONE)
    cache.drop(key(1))


def test_a_disk_that_takes_nothing_is_no_error(tmp_path: Path):
    (tmp_path / "file").write_text("")
    cache = AnswerCache(tmp_path / "file" / "kept")
    cache.put(key(1), ONE)
    assert cache.get(key(1)) is None


def test_the_answers_not_asked_for_longest_go_first(tmp_path: Path):
    cache = AnswerCache(tmp_path, most_files=10)
    for number in range(10):
        cache.put(key(number), ONE)
        used_at = tmp_path.stat().st_mtime - 1000 + number
        os.utime(tmp_path / key(number), (used_at, used_at))
    cache.get(key(0))
    cache.put(key(10), ONE)
    kept = {number for number in range(11) if cache.get(key(number))}
    assert {0, 10} <= kept
    assert 1 not in kept
    assert len(kept) == 9


def test_it_never_grows_beyond_its_bounds(tmp_path: Path):
    big = CachedAnswer(ONE.ask_with, {}, os.urandom(10_000))
    cache = AnswerCache(tmp_path, most_files=50, most_total=200_000)
    for number in range(300):
        cache.put(key(number), big)
        files = list(tmp_path.iterdir())
        assert len(files) <= 50
        assert sum(path.stat().st_size for path in files) <= 220_000


def test_an_answer_that_is_replaced_for_ever_fills_nothing(tmp_path: Path):
    cache = AnswerCache(tmp_path, most_files=20)
    cache.put(key("other"), ONE)
    for _ in range(100):
        cache.put(key(1), ONE)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([key(1), key("other")])


def test_what_was_not_asked_for_in_a_month_goes_at_the_next_start(tmp_path: Path):
    cache = AnswerCache(tmp_path)
    cache.put(key(1), ONE)
    os.utime(tmp_path / key(1), (1_000_000, 1_000_000))
    AnswerCache(tmp_path).put(key(2), ONE)
    assert [path.name for path in tmp_path.iterdir()] == [key(2)]


def test_an_answer_too_big_to_keep_is_not_kept(tmp_path: Path):
    AnswerCache(tmp_path / "kept").put(
        key(1), CachedAnswer(ONE.ask_with, {}, b" " * (MOST_EACH + 1))
    )
    assert not (tmp_path / "kept").exists()


def test_all_of_it_can_be_forgotten(tmp_path: Path):
    cache = AnswerCache(tmp_path)
    for number in range(5):
        cache.put(key(number), ONE)
    cache.clear()
    assert list(tmp_path.iterdir()) == []


def test_threads_and_processes_that_write_at_once_leave_a_whole_answer(tmp_path: Path):
    caches = [AnswerCache(tmp_path, most_files=30) for _ in range(4)]
    wrong = []

    def work(number: int) -> None:
        for turn in range(60):
            mine = CachedAnswer({"If-None-Match": f'"{number}"'}, {}, str(number).encode() * 5000)
            caches[number].put(key(turn % 40), mine)
            found = caches[number].get(key(turn % 40))
            if found and found.body != found.ask_with["If-None-Match"].strip('"').encode() * 5000:
                wrong.append(found)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(list(tmp_path.iterdir())) <= 60
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
