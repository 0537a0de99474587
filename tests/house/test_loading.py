"""What every start of a program pays, whoever waits for it."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest
from django.contrib.auth.models import Permission

from runs.management import tables
from tests.house.product import environment, lab
from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parent.parent.parent
TOLD = """
import gc, sys
print(gc.isenabled(), gc.get_freeze_count() > 50_000, len(gc.get_objects()), "redis" in sys.modules)
print(sys.getswitchinterval())
"""


def run_script(script: str, state: Path) -> str:
    """Run a script in a Python of its own on that state folder, and return what it printed.

    Raises:
        AssertionError: it failed; says what it wrote about that.
    """
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=environment(state) | {"DJANGO_SETTINGS_MODULE": "labsite.settings"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.real
@pytest.mark.parametrize(
    "loading",
    [
        pytest.param("from labsite import loading; loading.set_up()", id="commands and worker"),
        pytest.param("import labsite.asgi", id="web"),
    ],
)
def test_the_collector_leaves_alone_what_was_loaded_and_goes_on_with_the_rest(
    loading: str, tmp_path: Path
) -> None:
    printed = run_script(f"{loading}\n{TOLD}", tmp_path)

    is_on, is_most_left_alone, looked_at, has_redis, seconds = printed.split()
    assert has_redis == "False"  # one machine needs none
    assert (is_on, is_most_left_alone) == ("True", "True")
    assert int(looked_at) < 10_000
    assert float(seconds) == 0.0005  # threads wait for each other no longer than that


def test_preparing_what_is_ready_loads_no_page_and_builds_no_old_models(used: Path) -> None:
    script = (
        "import sys, manage\n"
        "assert manage.main(['manage.py', 'prepare']) == 0\n"
        "print(*sorted(sys.modules))"
    )
    printed = run_script(script, used)

    loaded = printed.split()
    assert "runs.sweep" in loaded
    assert {"django.core.management.commands.migrate", "runs.migrations.0093_hosts"} & {
        *loaded
    } == set()
    assert not [name for name in loaded if name.startswith(("runs.web.", "ninja", "pydantic"))]


def test_the_web_process_loads_the_api_once_a_program_asks_and_nothing_that_it_never_uses(
    used: Path,
) -> None:
    script = (
        "import sys, labsite.web.bounds, labsite.asgi\n"
        "from django.test import Client\n"
        "from django.urls import reverse\n"
        "assert Client().get('/login/', headers={'host': 'localhost'}).status_code == 200\n"
        "print(*sys.modules)\n"
        "print(reverse('runs:api:openapi'), 'runs.api.api' in sys.modules)"
    )
    printed = run_script(script, used)
    loaded, asked = (line.split() for line in printed.splitlines())

    assert "runs.lifecycle.views" in loaded
    at_rest_unused = {"ninja", "pydantic", "runs.api.api", "runs.api.asked", "pygments", "yaml"}
    assert (at_rest_unused | {"rich", "OpenSSL", "psycopg", "redis"}) & {*loaded} == set()
    assert asked == ["/api/v1/openapi.json", "True"]


@pytest.mark.real
def test_a_web_server_at_rest_is_not_woken_for_a_log_that_nobody_reads(
    tmp_path: Path,
) -> None:
    script = (
        "from labsite.web import bounds\n"
        "from twisted.internet.task import Clock\n"
        "factory = bounds.BoundedFactory(None)\n"
        "factory.reactor = Clock()\n"
        "factory.startFactory()\n"
        "print(len(factory.reactor.getDelayedCalls()))\n"
        "factory.stopFactory()\n"
    )
    printed = run_script(script, tmp_path)

    assert printed == "0\n"


@pytest.mark.real
def test_optional_packages_are_left_out_of_one_import_and_there_again_afterwards(
    tmp_path: Path,
) -> None:
    script = (
        "import sys\n"
        "from labsite.loading import without\n"
        "with without('wave', 'sys'):\n"
        "    try:\n"
        "        import wave\n"
        "    except ImportError:\n"
        "        print('left out')\n"
        "import wave\n"
        "print(wave.__name__, sys.modules['sys'] is sys)"
    )
    printed = run_script(script, tmp_path)

    assert printed.split("\n") == ["left out", "wave True", ""]


@pytest.mark.real
def test_methods_of_a_dataclass_that_are_made_later_are_those_it_always_has(
    tmp_path: Path,
) -> None:
    script = (
        "import copy\n"
        "from dataclasses import FrozenInstanceError, dataclass, replace\n"
        "from labsite.loading import undisturbed\n"
        "def made():\n"
        "    @dataclass(frozen=True, slots=True)\n"
        "    class A:\n"
        "        x: int\n"
        "    @dataclass(frozen=True)\n"
        "    class B:\n"
        "        x: int\n"
        "    @dataclass(frozen=True)\n"
        "    class C(B):\n"
        "        y: int = 2\n"
        "    return A, B, C\n"
        "def told(A, B, C):\n"
        "    for one in (A(1), C(1), B(1), A(2)):\n"
        "        for change in (lambda: setattr(one, 'x', 5), lambda: delattr(one, 'x')):\n"
        "            try:\n"
        "                change()\n"
        "            except FrozenInstanceError as error:\n"
        "                yield str(error)\n"
        "        yield repr(one), one == type(one)(1), one == B(1), hash(one), one.__repr__.__name__\n"
        "    yield replace(C(1), y=3), copy.deepcopy(A(1)), {A(1): 4}[A(1)], A.__eq__.__qualname__\n"
        "with undisturbed():\n"
        "    later = made()\n"
        "assert later[1].__eq__.__code__.co_filename != made()[1].__eq__.__code__.co_filename\n"
        "assert str([*told(*later)]) == str([*told(*made())])\n"
        "assert later[1].__eq__.__code__.co_filename == made()[1].__eq__.__code__.co_filename\n"
    )
    run_script(script, tmp_path)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="needs glibc")
def test_what_a_fork_makes_lies_on_pages_of_its_own(used: Path) -> None:
    script = (
        "import ctypes, os, re, sys\n"
        "from labsite import forking\n"
        "forking.load({})\n"
        "library = ctypes.CDLL(None)\n"
        "library.malloc.restype = ctypes.c_void_p\n"
        "library.free.argtypes = [ctypes.c_void_p]\n"
        "library.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]\n"
        "pieces = [library.malloc(200) for _ in range(40_000)]\n"
        "for piece in pieces[::20]:\n"  # one gap a page
        "    library.free(piece)\n"
        "def copied():\n"
        "    text = open('/proc/self/smaps_rollup').read()\n"
        "    return int(re.search(r'^Private_Dirty: +([0-9]+) kB', text, re.MULTILINE)[1])\n"
        "for n in (1, 2):\n"
        "    if os.fork() == 0:\n"
        "        for _ in range(2_000):\n"
        "            library.memset(library.malloc(200), 1, 200)\n"
        "        print(copied(), flush=True)\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
        "    forking.load_parts(())\n"
    )
    printed = run_script(script, used)

    without, filled = (int(line) for line in printed.split())
    assert filled < without - 5_000  # kB, for 400 kB of content


@pytest.mark.real
def test_a_process_lets_go_of_libraries_that_it_has_read_and_goes_on(used: Path) -> None:
    script = (
        "import re\n"
        "from labsite import forking, loading\n"
        "forking.load({})\n"
        "def of_files():\n"
        "    text = open('/proc/self/smaps_rollup').read()\n"
        "    return int(re.search(r'^Pss_File: +([0-9]+) kB', text, re.MULTILINE)[1])\n"
        "before = of_files()\n"
        "loading.drop_libraries()\n"
        "print(before, of_files())\n"
        "import hashlib, sqlite3, ssl\n"
        "from cryptography.fernet import Fernet\n"
        "key = Fernet(Fernet.generate_key())\n"
        "assert key.decrypt(key.encrypt(b'kept')) == b'kept'\n"
        "assert sqlite3.connect(':memory:').execute('SELECT 1').fetchall() == [(1,)]\n"
        "assert hashlib.sha256(b'a').hexdigest().startswith('ca97')\n"
    )
    printed = run_script(script, used)

    before, after = (int(size) for size in printed.split())
    assert after < before / 2  # of what is left here; other programs may have read most of it, too


def test_an_origin_that_cannot_be_meant_stops_the_start(used: Path) -> None:
    done = lab("manage", "prepare", state=used, LAB_TRUSTED_ORIGINS="lab.example.org")

    assert done.returncode == 1
    assert "CSRF_TRUSTED_ORIGINS" in done.stderr


@pytest.mark.django_db
def test_permissions_that_an_interrupted_start_left_out_are_made_by_the_next() -> None:
    every = set(Permission.objects.values_list("codename", flat=True))
    Permission.objects.filter(codename="change_run").delete()

    tables.bring_up_to_date()

    assert set(Permission.objects.values_list("codename", flat=True)) == every
