"""The house keeps its shape: rooms, sizes, partials, nothing inline, no path or host of a machine."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections import Counter
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.real,
    pytest.mark.quick("asks git for the files of the tree, in milliseconds"),
]

ROOT = Path(__file__).resolve().parent.parent
RUNS = ROOT / "runs"
LONG, MOST_LONG, LONGEST = 500, 0, 800  # a whole job has at most so many lines
# Rooms with more files than a newcomer can take in at once; each number only ever falls.
MOST_FILES = {
    "core": 22,
    "forges": 29,
    "groups": 35,
    "lifecycle": 23,
    "people": 25,
    "validation": 23,
}
JOINED = {"runs.apps", "runs.check_tags"}
WIDEST = 120  # columns of a page's files
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
PARTIALS = [path for path in TEMPLATES if path.name.startswith("_")]


def _tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        [
            "git",
            "-C",
            str(ROOT),
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "--",
            *patterns,
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).is_file()]


def test_no_module_is_too_long():
    modules = [
        p for p in _tracked("*.py") if "migrations" not in p.parts and "tests" not in p.parts
    ]
    assert len(modules) > 80
    lines = {str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in modules}
    assert [name for name, count in lines.items() if count > LONGEST] == []
    assert len([name for name, count in lines.items() if count > LONG]) <= MOST_LONG


def test_a_room_holds_twenty_files_at_most():
    counts = Counter(p.parent.name for p in _tracked("runs/*/*.py") if p.parent.parent == RUNS)
    for name in ("management", "migrations"):
        counts.pop(name)
    too_many = {room: n - 1 for room, n in counts.items() if n - 1 > MOST_FILES.get(room, 20)}
    assert too_many == {}


def test_every_module_has_one_place_in_the_order_of_imports():
    """A module that no layer names may import anything: add a new one to its layer in pyproject."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    placed = Counter(name for layer in layers for name in re.split(r"[\s:|]+", layer) if name)
    modules = {
        ".".join(p.relative_to(ROOT).with_suffix("").parts)
        for p in [*_tracked("runs/*.py")]
        if p.name != "__init__.py"
    }
    known = {
        module
        for module in modules
        if module.startswith(("runs.migrations.", "runs.demo.")) or module in JOINED
    }
    unplaced = {
        module
        for module in modules - known
        if sum(n for name, n in placed.items() if f"{module}.".startswith(f"{name}.")) != 1
    }
    assert unplaced == set()
    assert {name for name in placed if name.startswith("runs.") and not _is_there(name)} == set()


def _is_there(module: str) -> bool:
    path = ROOT.joinpath(*module.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def test_no_room_is_called_utils():
    names = {p.stem for p in _tracked("*.py")}
    assert not names & {
        "utils",
        "util",
        "helpers",
        "helper",
        "services",
        "signals",
        "constants",
        "misc",
        "common",
    }


@pytest.mark.parametrize("pattern", ["templates/*.html", "static/*.css", "static/*.js"])
def test_no_file_of_a_page_is_wider_than_120_columns(pattern):
    files = _tracked(pattern)
    assert len(files) > 2
    assert _too_wide(files) == []


def test_no_template_indents_text_that_a_browser_shows_as_typed():
    """Indentation is taken away when a template is read, there too."""
    typed = re.compile(r"<(pre|textarea)\b[^>]*>((?:(?!</\1>).)*)", re.DOTALL)
    wrong = [
        str(path.relative_to(ROOT))
        for path in TEMPLATES
        for text in typed.finditer(path.read_text())
        if re.search(r"\n[ \t]", text[2])
    ]
    assert wrong == []


def _too_wide(pages: list[Path]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}"
        for path in pages
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > WIDEST
    ]


def test_every_partial_is_used():
    sources = [*TEMPLATES, *_tracked("runs/*.py")]
    text = "\n".join(path.read_text() for path in sources)
    names = [str(path.relative_to(ROOT / "templates").with_suffix("")) for path in PARTIALS]
    assert [name for name in names if not re.search(rf"[\"']{name}(\.html)?[\"']", text)] == []


def test_templates_stand_in_a_room_except_what_django_asks_for_by_name():
    flat = [path.name for path in TEMPLATES if path.parent == ROOT / "templates"]
    assert flat == ["403.html", "404.html", "500.html", "503.html"]


@pytest.mark.parametrize(
    "template", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT / "templates"))
)
def test_no_template_holds_inline_style_or_script(template):
    text = template.read_text()
    assert not re.search(r"\sstyle\s*=", text)
    assert not re.search(r"\son[a-z]+\s*=", text)
    assert not re.search(r"<script(?![^>]*\bsrc=)", text)
    # A file that is kept and opened offline has its style in it.
    assert "<style" not in text or template.name == "receipt.html"


def test_processes_start_in_the_shell_and_the_supervisor_only():
    allowed = {
        "runs/machine/shell.py",
        "labsite/supervisor.py",
        "runs/demo/agent.py",
        "bench",
        "tests",
        "labctl",
    }
    wrong = [
        str(p.relative_to(ROOT))
        for p in _tracked("*.py")
        if re.search(r"^\s*(import subprocess|from subprocess)", p.read_text(), re.MULTILINE)
        and not any(str(p.relative_to(ROOT)).startswith(room) for room in allowed)
    ]
    assert wrong == []


def test_no_third_party_code_and_no_machine_is_named():
    hosts = re.compile(r"/root/|/work/|pypi\.org/simple|index-url", re.IGNORECASE)
    wrong = [
        str(p.relative_to(ROOT))
        for p in _tracked(
            "*.py", "*.md", "*.txt", "*.toml", "*.html", "*.css", "*.js", "lab", ".ci/run"
        )
        if p.name not in ("test_rooms.py", "test_documents.py") and hosts.search(p.read_text())
    ]
    assert wrong == []
    assert not [p for p in _tracked("static/*") if "htmx" in p.name or p.name.endswith(".min.js")]


# Beside the rooms: other parts of the product, whole stories, and what tests are made with.
BESIDE_ROOMS = {"baddays", "house", "labctl", "ops", "story", "trackers", "walk", "world"}


def test_tests_lie_in_the_rooms_that_they_are_about():
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}
    rooms = {path.parent.name for path in RUNS.glob("*/__init__.py")}
    assert folders - rooms - BESIDE_ROOMS == set()
