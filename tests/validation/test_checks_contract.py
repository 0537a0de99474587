"""The commands of a project: the fake and real processes answer alike; hostile ones on real processes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from runs.core.ports import SeamError
from runs.machine import processes, shell
from runs.validation import command_runner as real_checks
from runs.validation import process_follower
from runs.validation.command_rules import Check, Checked
from runs.validation.command_runner import LocalChecks
from tests.fakes import FakeChecks
from tests.house.product import is_gone, until
from tests.late_watch import LateWatch
from tests.patience import PATIENCE

pytestmark = [pytest.mark.real, pytest.mark.quick("contract of the fake and the real processes")]

MARK = "validation-of-a-test"


def always() -> bool:
    return True


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


@pytest.fixture
def order(tmp_path: Path):  # type: ignore[no-untyped-def]
    """Makes orders for commands in one folder, marked as nobody else's."""
    (tmp_path / "tree").mkdir()
    mark = f"{MARK}-{os.getpid()}-{tmp_path.name}"

    def made(argv: list[str], seconds: float = PATIENCE, secrets: tuple[str, ...] = ()) -> Check:
        limit = timedelta(seconds=seconds)
        return Check(argv, tmp_path / "tree", tmp_path / "out", "0-1.txt", mark, limit, secrets)

    yield made
    processes.end_marked(mark)


@pytest.fixture
def local() -> LocalChecks:
    return LocalChecks({**os.environ, "LAB_SECRET_KEY": "s3cret-of-labsite"})


@pytest.fixture(params=["fake", pytest.param("real", id="processes")])
def checks(request, local):  # type: ignore[no-untyped-def]
    if request.param == "real":
        return local
    fake = FakeChecks()
    fake.programs = {"sh"}
    fake.answers["sh -c 'echo no; exit 3'"] = Checked(3, 0.1, "no\n")
    fake.answers["sh -c 'echo yes'"] = Checked(0, 0.1, "yes\n")
    return fake


def text_of(checks, check: Check, start: int = 0, limit: int = 10_000_000) -> str:  # type: ignore[no-untyped-def]
    found = checks.output(check.folder, check.name, start, limit)
    return "" if found is None else found.data.decode()


@pytest.mark.parametrize(("line", "status"), [("echo yes", 0), ("echo no; exit 3", 3)])
def test_a_command_gives_its_status_and_what_it_printed(checks, order, line, status) -> None:  # type: ignore[no-untyped-def]
    check = order(["sh", "-c", line])
    found = checks.run(check, always)
    said = "yes\n" if status == 0 else "no\n"
    assert (found.status, found.signal, found.tail, found.trouble) == (status, None, said, "")
    assert text_of(checks, check) == said
    assert text_of(checks, check, -2, 1) == said[-2]
    assert checks.output(check.folder, "0-2.txt", 0, 10) is None


def test_a_program_that_is_not_there_is_an_answer(checks, order) -> None:  # type: ignore[no-untyped-def]
    found = checks.run(order(["no-such-program-anywhere"]), always)
    assert found.status is None
    assert found.trouble == "No such file or directory"


def test_a_command_that_is_not_wanted_any_more_is_given_up(checks, order) -> None:  # type: ignore[no-untyped-def]
    found = checks.run(order(["sh", "-c", "sleep 60"]), lambda: False)
    assert found.is_given_up
    assert found.status is None


def test_ending_what_is_not_there_is_fine(checks) -> None:  # type: ignore[no-untyped-def]
    checks.end("a-mark-that-nobody-has")


def test_both_outputs_come_in_their_order_while_the_command_runs(local, order, tmp_path) -> None:  # type: ignore[no-untyped-def]
    code = (
        "import sys, time, pathlib\n"
        "print('one', flush=True); print('two', file=sys.stderr, flush=True)\n"
        "while not pathlib.Path('go').exists(): time.sleep(0.01)\n"
        "print('three')"
    )
    check = order(python(code))
    seen: list[str] = []

    def look() -> bool:
        seen.append(text_of(local, check))
        if seen[-1] == "one\ntwo\n":
            (check.cwd / "go").touch()
        return True

    found = local.run(check, look)
    assert (found.status, found.tail) == (0, "one\ntwo\nthree\n")
    assert "one\ntwo\n" in seen


def test_standard_error_may_go_into_a_file_of_its_own(local, order) -> None:  # type: ignore[no-untyped-def]
    """Both are heard, whichever is full; what is behind the end of the program is still there."""
    code = (
        "import sys\n"
        "sys.stderr.write('e' * 300_000 + 'last error\\n'); sys.stderr.flush()\n"
        "sys.stdout.write('o' * 300_000 + 'last word\\n')"
    )
    check = replace(order(python(code)), errors="0-1.err.txt")
    found = local.run(check, always)
    assert found.status == 0
    assert (found.tail[-10:], found.error_tail[-11:]) == ("last word\n", "last error\n")
    assert text_of(local, check) == "o" * 300_000 + "last word\n"
    errors = local.output(check.folder, "0-1.err.txt", 0, 10_000_000)
    assert errors.data.decode() == "e" * 300_000 + "last error\n"


def test_a_command_is_given_a_file_and_variables_and_is_spared_others(order, tmp_path) -> None:  # type: ignore[no-untyped-def]
    local = LocalChecks({**os.environ, "FORGE_TOKEN": "t", "FORGE_URL": "u", "OTHER": "o"})
    (tmp_path / "given").write_text("one\ntwo\n")
    check = replace(
        order(["sh", "-c", "cat; echo ${FORGE_TOKEN-none} ${FORGE_URL-none} $OTHER $ADDED"]),
        given=tmp_path / "given",
        env={"ADDED": "a", "FORGE_URL": "mine"},
        without=("FORGE_",),
    )
    assert local.run(check, always).tail == "one\ntwo\nnone mine o a\n"


def test_what_a_command_said_last_is_kept_however_long_this_machine_held_us_up(  # type: ignore[no-untyped-def]
    local, order, monkeypatch
) -> None:
    """It has ended before anybody hears it, and more time has passed than its pipe is waited for."""
    watch = LateWatch()
    monkeypatch.setattr(process_follower, "time", watch)
    check = order(["sh", "-c", "echo $$; while [ ! -e go ]; do sleep 0.05; done; echo last"])

    def hear(piece: bytes) -> None:
        heard.append(piece)
        if len(heard) == 1:
            (check.cwd / "go").touch()
            until(lambda: is_gone(int(piece)))
            watch.each = 2 * shell.DRAIN

    heard: list[bytes] = []
    program = shell.start(check.argv, check.cwd, {**os.environ, processes.MARKER: check.mark})
    done = process_follower.follow(program, timeout=PATIENCE, hear=hear, goes_on=always)
    assert (done.status, heard[1:]) == (0, [b"last\n"])


def test_a_command_over_its_time_is_ended_with_all_it_started(local, order) -> None:  # type: ignore[no-untyped-def]
    """One child stays in its group, one leaves it, one ignores TERM."""
    line = "sleep 661 & setsid sleep 662 & trap '' TERM; echo ready; while :; do sleep 0.1; done"
    check = order(["sh", "-c", line], seconds=0.5)
    began = time.monotonic()
    found = local.run(check, always)
    assert found.is_over_time
    assert (found.status, found.signal) == (None, None)
    assert time.monotonic() - began < PATIENCE / 2
    assert processes.marked(check.mark) == []


def test_a_child_that_stays_behind_is_ended_and_fails_nothing(local, order) -> None:  # type: ignore[no-untyped-def]
    check = order(["sh", "-c", "setsid sleep 663 & echo done"])
    began = time.monotonic()
    assert local.run(check, always).status == 0
    assert time.monotonic() - began < PATIENCE / 2
    assert processes.marked(check.mark) == []


def test_a_signal_is_told(local, order) -> None:  # type: ignore[no-untyped-def]
    found = local.run(order(python("import os; os.kill(os.getpid(), 11)")), always)
    assert (found.status, found.signal) == (None, signal.SIGSEGV)


def test_nothing_of_our_own_reaches_a_command(local, order) -> None:  # type: ignore[no-untyped-def]
    names = ("LAB_SECRET_KEY", "DJANGO_SETTINGS_MODULE", "VIRTUAL_ENV", "GIT_DIR")
    check = order(python("import os; print(dict(os.environ)); print(os.getcwd())"))
    os.environ["GIT_DIR"] = "/nowhere"
    try:
        found = LocalChecks({**os.environ, "LAB_SECRET_KEY": "s3cret"}).run(check, always)
    finally:
        del os.environ["GIT_DIR"]
    assert not any(f"'{name}'" in found.tail for name in names)
    assert "'CI': 'true'" in found.tail
    assert "'GIT_TERMINAL_PROMPT': '0'" in found.tail
    assert found.tail.endswith(f"{check.cwd}\n")


def test_nobody_answers_a_question(local, order) -> None:  # type: ignore[no-untyped-def]
    assert local.run(order(["cat"]), always).status == 0


def test_secrets_are_in_no_output(local, order) -> None:  # type: ignore[no-untyped-def]
    code = (
        "import sys, time\n"
        "sys.stdout.write('tok'); sys.stdout.flush(); time.sleep(0.2)\n"
        "print('en-of-forge and https://me:hunter2@forge.example/x')\n"
        "sys.stdout.write('y' * 200_000 + 'token-of-forge')"
    )
    check = order(python(code), secrets=("token-of-forge", "me"))
    found = local.run(check, always)
    whole = text_of(local, check)
    assert found.status == 0
    for text in (whole, found.tail):
        assert "token-of-forge" not in text
        assert "hunter2" not in text
    assert whole.startswith("[hidden] and https://[hidden]@forge.example/x\n")
    assert whole.endswith("y[hidden]")


def test_the_record_is_bounded_and_keeps_its_end(local, order, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    check = order(python("for n in range(900_000): print('line', n)\nprint('the failure')"))
    found = local.run(check, always)
    whole = text_of(local, check)
    assert found.status == 0
    assert real_checks.FULL < len(whole) < real_checks.FULL + real_checks.LAST + 1000
    assert whole.startswith("line 0\nline 1\n")
    assert "what was printed here is not kept" in whole
    assert whole.endswith("line 899999\nthe failure\n")
    assert found.tail.endswith("the failure\n")
    assert len(found.tail) == real_checks.TAIL_CHARACTERS


def test_what_is_printed_is_private(local, order) -> None:  # type: ignore[no-untyped-def]
    check = order(["sh", "-c", "echo x"])
    local.run(check, always)
    assert (check.folder / check.name).stat().st_mode & 0o777 == 0o600
    assert check.folder.stat().st_mode & 0o777 == 0o700


def test_what_lies_there_already_is_not_followed(local, order, tmp_path) -> None:  # type: ignore[no-untyped-def]
    check = order(["sh", "-c", "echo x"])
    check.folder.mkdir()
    (check.folder / check.name).symlink_to(tmp_path / "elsewhere")
    assert local.run(check, always).status == 0
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_that_cannot_be_written_is_trouble(local, order, tmp_path) -> None:  # type: ignore[no-untyped-def]
    check = order(["sh", "-c", "echo x"])
    (tmp_path / "out").write_text("a file")
    with pytest.raises(SeamError, match="could not be written"):
        local.run(check, always)


def test_a_command_of_a_killed_worker_is_found_by_its_mark(local, order) -> None:  # type: ignore[no-untyped-def]
    """What a worker that died left running is ended before the commands run again."""
    check = order(["sh", "-c", "sleep 664"])
    left = subprocess.Popen(
        ["sleep", "665"], env={**os.environ, processes.MARKER: check.mark}, start_new_session=True
    )
    child = left.pid
    deadline = time.monotonic() + PATIENCE
    while processes.marked(check.mark) != [child] and time.monotonic() < deadline:
        time.sleep(0.01)
    assert processes.marked(check.mark) == [child]
    local.end(check.mark)
    assert processes.marked(check.mark) == []
    left.wait(PATIENCE)


@pytest.fixture
def left(tmp_path: Path):  # type: ignore[no-untyped-def]
    """The file in which something that outlives its command writes its process id; ended later."""
    yield tmp_path / "pid"
    with contextlib.suppress(OSError, ValueError):
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


@pytest.mark.row("MALA-V-04", level="real")
def test_the_lock_of_a_command_is_not_held_by_what_escaped_it(local, order, left, tmp_path) -> None:  # type: ignore[no-untyped-def]
    daemon = f"env -i setsid -f sh -c 'echo $$ > {left}; exec sleep 679'"
    line = f"{daemon}; while [ ! -s {left} ]; do sleep 0.05; done"
    lock = tmp_path / "locks" / "mutex"
    first = replace(order(["sh", "-c", line]), lock=lock)
    assert local.run(first, always).status == 0
    assert not is_gone(int(left.read_text()))
    assert processes.lock_holders(lock) == []
    again = local.run(replace(order(["true"], seconds=5), lock=lock), always)
    assert (again.status, again.trouble) == (0, "")


@pytest.mark.row("MALA-V-04", level="real")
@pytest.mark.parametrize(("signed", "waits"), [(b"", 0.3), (b"1.5 mark 7\n", 1.5)])
def test_a_lock_that_is_held_for_too_long_is_trouble_that_names_its_holder(
    local, order, tmp_path, signed, waits
) -> None:  # type: ignore[no-untyped-def]
    """As of a worker that was killed, and a daemon of its command that carries no mark."""
    lock = tmp_path / "mutex"
    with lock.open("wb") as file:
        file.write(signed)
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        holder = subprocess.Popen(["sleep", "678"], pass_fds=[file.fileno()])
    try:
        began = time.monotonic()
        found = local.run(replace(order(["true"], seconds=0.3), lock=lock), always)
        assert time.monotonic() - began >= waits
        assert (found.status, found.is_given_up) == (None, False)
        assert f"process {holder.pid} (sleep)" in found.trouble
    finally:
        holder.kill()
        holder.wait()
    assert local.run(replace(order(["true"]), lock=lock), always).status == 0
