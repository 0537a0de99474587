"""The `lab` script, in a copy of its own folder, with stand-ins for the programs that it calls."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.house.product import LAB, ROOT, lab
from tests.patience import PATIENCE

pytestmark = [
    pytest.mark.real,
    pytest.mark.quick("the door of every command, shown in milliseconds"),
]

GOOD_PYTHON = '#!/bin/sh\ncase "$*" in *version_info\\[:2\\]*) echo 3.12;; esac\n'
SAYS_WHAT_IT_GOT = (
    '#!/bin/sh\ncase "$1" in -c) exit 0;; esac\necho "$@"\nenv | grep ^LAB_ | sort\nexit 0\n'
)


@dataclass
class Clone:
    """A clone with its own PATH."""

    root: Path
    tools: Path
    log: Path

    def tool(self, name: str, text: str) -> None:
        path = self.tools / name
        path.unlink(missing_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def run(self, *argv: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.root / "lab", *argv],
            env={"PATH": str(self.tools), "HOME": str(self.root), **more},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    """A clone on a machine that has a shell and a few tools, and nothing of Python."""
    root, tools = tmp_path / "clone", tmp_path / "tools"
    root.mkdir()
    tools.mkdir()
    for name in ("lab", "constraints.txt", "requirements.txt", "requirements-test.txt"):
        shutil.copy(ROOT / name, root / name)
    for name in (
        "sh",
        "cat",
        "cksum",
        "dirname",
        "env",
        "grep",
        "id",
        "ln",
        "mkdir",
        "readlink",
        "rm",
        "sed",
        "sleep",
        "sort",
    ):
        (tools / name).symlink_to(shutil.which(name) or "/nowhere")
    return Clone(root, tools, tmp_path / "uv.log")


def _with_uv(clone: Clone) -> Clone:
    """A machine with a good Python, and a `uv` that notes its calls and makes a stand-in venv."""
    clone.tool("python3", GOOD_PYTHON)
    (clone.tools / "chmod").symlink_to(shutil.which("chmod") or "/nowhere")
    clone.tool(
        "uv",
        f"""#!/bin/sh
echo "$*" >>{clone.log}
[ "$1" = venv ] || exit 0
mkdir -p {clone.root}/.venv/bin
cat >{clone.root}/.venv/bin/python <<'END'
{SAYS_WHAT_IT_GOT}END
chmod +x {clone.root}/.venv/bin/python
""",
    )
    return clone


def _calls(clone: Clone) -> list[str]:
    return [line.split(" --quiet")[0] for line in clone.log.read_text().splitlines()]


def test_a_python_that_is_too_old_is_named(clone: Clone) -> None:
    clone.tool("python3", '#!/bin/sh\n[ "$1" = --version ] || exit 1\necho Python 3.9.2\n')
    done = clone.run("up")
    assert done.returncode == 1
    assert "3.11 or newer" in done.stderr
    assert "Python 3.9.2" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_machine_without_python_is_told_what_to_install(clone: Clone) -> None:
    done = clone.run("up")
    assert done.returncode == 1
    assert "no python3" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_missing_venv_module_names_its_package(clone: Clone) -> None:
    clone.tool("python3", GOOD_PYTHON + 'case "$*" in *ensurepip*) exit 1;; esac\n')
    done = clone.run("up")
    assert done.returncode == 1
    assert "python3.12-venv" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_newer_python_beside_an_old_one_is_found(clone: Clone) -> None:
    _with_uv(clone)
    clone.tool("python3", "#!/bin/sh\nexit 1\n")
    clone.tool("python3.12", GOOD_PYTHON)
    assert clone.run("manage", "check").returncode == 0
    assert f"--python {clone.tools}/python3.12" in clone.log.read_text()


def test_packages_are_installed_once_and_again_when_their_versions_change(clone: Clone) -> None:
    _with_uv(clone)
    first, second = clone.run("up"), clone.run("up", "--port", "1")
    assert first.returncode == second.returncode == 0, first.stderr
    assert first.stdout.split() == [f"{clone.root}/manage.py", "up"]
    assert "Installing" in first.stderr
    assert second.stderr == ""
    assert second.stdout.split() == [f"{clone.root}/manage.py", "up", "--port", "1"]
    assert _calls(clone) == ["venv", "pip install"]
    with (clone.root / "constraints.txt").open("a") as constraints:
        constraints.write("another==1.0\n")
    clone.run("up")
    assert _calls(clone) == ["venv", "pip install", "pip install"]


def test_an_interrupted_installation_is_done_again(clone: Clone) -> None:
    _with_uv(clone)
    uv = (clone.tools / "uv").read_text()
    clone.tool("uv", uv.replace('[ "$1" = venv ] || exit 0', '[ "$1" = venv ] || exit 3'))
    done = clone.run("up")
    assert done.returncode == 1
    assert "could not be installed" in done.stderr
    clone.tool("uv", uv)
    assert clone.run("up").returncode == 0
    assert _calls(clone) == ["venv", "pip install", "pip install"]


def test_a_broken_virtual_environment_is_made_anew(clone: Clone) -> None:
    _with_uv(clone)
    clone.run("up")
    clone.tool("../clone/.venv/bin/python", "#!/bin/sh\nexit 1\n")
    assert clone.run("up").returncode == 0
    assert _calls(clone) == ["venv", "pip install"] * 2


def test_a_lock_of_a_dead_installer_does_not_block(clone: Clone) -> None:
    _with_uv(clone)
    (clone.root / ".venv.lock").symlink_to("999999999")
    assert clone.run("up").returncode == 0
    assert not (clone.root / ".venv.lock").is_symlink()


def test_tests_get_their_packages_and_never_the_operators_settings(clone: Clone) -> None:
    _with_uv(clone)
    for name in ("git", "tmux", "chromium"):
        clone.tool(name, "#!/bin/sh\n")
    clone.tool("getconf", "#!/bin/sh\necho 2\n")
    done = clone.run("test", "-k", "some words", LAB_STATE_DIR="/home/op/state", LAB_HTTPS="1")
    assert done.returncode == 0, done.stderr
    parallel = "-n 5 --dist loadfile --no-loadscope-reorder"
    assert done.stdout.splitlines() == [f"-m pytest {parallel} -k some words"]


@pytest.mark.parametrize("words", ["", "--long", "--long --part 2/4", "--long --touched"])
def test_without_names_of_tests_a_suite_runs(clone: Clone, words: str) -> None:
    _with_uv(clone)
    for name in ("git", "tmux", "chromium"):
        clone.tool(name, "#!/bin/sh\n")
    done = clone.run("test", *words.split())
    (said,) = done.stdout.splitlines()
    assert re.fullmatch(r"-m tests\.run_suite --cores \d+ ?(.*)", said)[1] == words
    assert "requirements-test.txt" in clone.log.read_text()


def test_tests_name_a_missing_program(clone: Clone) -> None:
    _with_uv(clone)
    done = clone.run("test")
    assert done.returncode == 1
    assert "The tests need git" in done.stderr.splitlines()[-1]


def test_a_browser_is_fetched_when_the_machine_has_none(clone: Clone) -> None:
    _with_uv(clone)
    for name in ("git", "tmux"):
        clone.tool(name, "#!/bin/sh\n")
    clone.tool("id", "#!/bin/sh\necho 1000\n")
    done = clone.run("test")
    assert done.returncode == 0
    assert "-m playwright install chromium" in done.stderr
    clone.tool("id", "#!/bin/sh\necho 0\n")
    clone.tool("apt-get", f"#!/bin/sh\necho apt-get $* >>{clone.log}\n")
    clone.run("test")
    assert "apt-get install -y -qq chromium" in clone.log.read_text()


def test_an_unknown_command_prints_the_usage(clone: Clone) -> None:
    done = clone.run("dance")
    assert done.returncode == 2
    assert "usage: ./lab up" in done.stderr
    assert clone.run("help").stdout == done.stderr


def test_it_works_from_another_folder_through_a_link_with_a_relative_state_folder(
    tmp_path: Path,
) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "control-room"
    link.symlink_to(os.path.relpath(LAB, link.parent))
    code = "from django.conf import settings; print(settings.STATE_DIR)"
    done = lab(
        "manage",
        "shell",
        "--no-imports",
        "-v",
        "0",
        "-c",
        code,
        state=Path("own/state"),
        cwd=tmp_path,
        program=link,
    )
    assert done.stdout.strip() == str(tmp_path / "own" / "state"), done.stderr
