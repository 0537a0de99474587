"""README.md and docs/ say what is true."""

from __future__ import annotations

import re
import subprocess

import pytest

from runs.forges.hook_rules import EVENTS
from tests.house.product import ROOT
from tests.rows import LEVELS, PAGE, Marks, Row, problems, read, report

README = (ROOT / "README.md").read_text()
ENVIRONMENT = re.compile(
    r"env\.(?:text|flag|number|words)\(\s*\"([A-Z_]+)\"|environ(?:ment)?(?:\.get)?[(\[]\s*\"([A-Z_]+)\""
)
# The last two are what labsite gives to its demo agent.
OTHERS = {"XDG_STATE_HOME", "LAB_ISSUE", "LAB_BRANCH"}


def _settings() -> set[str]:
    """Every variable that the product reads from its own environment."""
    found: set[str] = set()
    for folder in ("labsite", "runs/demo"):
        for path in (ROOT / folder).rglob("*.py"):
            for names in ENVIRONMENT.findall(path.read_text()):
                found |= {name for name in names if name}
    found |= {
        f"LAB_{name}" for name in re.findall(r"\bLAB_([A-Z_]+)", (ROOT / "lab").read_text())
    } - {"LAB_"}
    return found - OTHERS - {"DJANGO_SETTINGS_MODULE"}


def test_every_setting_is_in_the_readme_and_nothing_else() -> None:
    told = set(re.findall(r"^\| `((?:LAB|DEMO)_[A-Z_]+)` \|", README, re.MULTILINE))
    assert told == _settings()


def test_every_link_and_path_of_the_readme_exists() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


@pytest.mark.quick("one call of the usage, in milliseconds")
@pytest.mark.real
def test_the_operators_page_names_only_what_there_is() -> None:
    """Variables, commands of `lab`, commands of Django, links."""
    page = (ROOT / "docs" / "operating.md").read_text()
    assert "(docs/operating.md)" in README
    told = set(re.findall(r"\bLAB_[A-Z_]+", page))
    assert told <= _settings() | {"LAB_"}
    assert "LAB_BEHIND_PROXY" in told
    usage = subprocess.run(
        [ROOT / "lab", "help"], capture_output=True, text=True, check=True
    ).stdout
    known = set(re.findall(r"\./lab (\w+)", usage))
    commands = set(re.findall(r"(?:\./|app/)lab ([a-z]+)", page))
    assert {"up", "doctor", "backup", "restore", "manage"} <= commands <= known
    from django.core.management import get_commands

    assert set(re.findall(r"manage ([a-z_]+)", page)) <= set(get_commands())
    for target in re.findall(r"\]\(([^)#]+)\)", page):
        assert (ROOT / "docs" / target).exists(), target
    for path in re.findall(r"(?<![\w/])(?:tests|docs|runs|labsite)/[\w/.]+\.\w+", page):
        assert (ROOT / path).exists(), path


def test_the_operators_page_quotes_what_the_product_says() -> None:
    """Log lines to watch for, and keys of the health page."""
    sources = "\n".join(
        path.read_text() for room in ("runs", "labsite") for path in (ROOT / room).rglob("*.py")
    )
    page = (ROOT / "docs" / "operating.md").read_text()
    for words in (
        "tick was cut short",
        "a part of the product did not answer",
        "is_late",
        "age_seconds",
    ):
        assert words in page, words
        assert words in sources, words


def test_decisions_are_numbered_without_a_gap() -> None:
    numbers = sorted(int(path.name[:4]) for path in (ROOT / "docs" / "decisions").glob("*.md"))
    assert numbers == [*range(1, len(numbers) + 1)]


def test_no_document_names_a_path_of_a_machine_or_a_package_index() -> None:
    for path in [ROOT / "README.md", ROOT / "constraints.txt", *(ROOT / "docs").rglob("*.md")]:
        text = path.read_text()
        assert not re.search(r"/(?:root|home/(?!me)|work|tmp)/|index-url|find-links", text), path


def test_the_page_lists_the_rows_of_the_issue() -> None:
    rows, partly = read(PAGE.read_text())
    ids = [row.id for row in rows]
    lab = [*range(1, 79), 128, 130, 131, 132, 134, 135, 136]
    others = ["C-03", *(f"X-{n:02}" for n in (5, 6, 7, 8, 10, 12, 13, 14, 15, 16, 17, 18))]
    assert ids[: len(lab) + 13] == [*(f"LAB-{n:02}" for n in lab), *others]
    assert {row.level for row in rows} <= set(LEVELS)
    assert all(partly.values())


ROWS = [Row("LAB-01", "real", "one"), Row("LAB-02", "contract", "two")]


@pytest.mark.parametrize(
    ("shown", "partly", "said"),
    [
        pytest.param(
            {"LAB-01": [("real", "a")], "LAB-02": [("browser", "b")]},
            {},
            [],
            id="stronger levels count",
        ),
        pytest.param(
            {"LAB-01": [("contract", "a")], "LAB-02": [("contract", "b")]},
            {},
            ["LAB-01: asked at real, shown only at contract"],
            id="weaker ones do not",
        ),
        pytest.param({"LAB-01": [("real", "a")]}, {}, ["LAB-02: no test shows it"], id="unmarked"),
        pytest.param(
            {
                "LAB-01": [("real", "a")],
                "LAB-02": [("pure", "b"), ("real", "c")],
                "LAB-99": [("real", "d")],
            },
            {"LAB-98": "why"},
            [
                "LAB-99: marked by d, but not a row of docs/rows.md",
                "LAB-98: partly shown, but not a row of docs/rows.md",
            ],
            id="unknown rows",
        ),
    ],
)
def test_page_and_marks_are_compared_row_by_row(
    shown: dict[str, list[tuple[str, str]]], partly: dict[str, str], said: list[str]
) -> None:
    assert problems(ROWS, partly, Marks(shown)) == said


def test_a_row_that_is_listed_twice_is_a_mistake() -> None:
    shown = {"LAB-01": [("real", "a")], "LAB-02": [("contract", "b")]}
    assert problems([*ROWS, ROWS[0]], {}, Marks(shown)) == ["LAB-01: listed 2 times"]


def test_the_report_names_row_level_and_test_and_what_is_missing() -> None:
    lines = report(
        ROWS, {"LAB-02": "because"}, Marks({"LAB-02": [("contract", "tests/x.py::test_y")]})
    )
    assert "LAB-02  (asked: contract)  two  PARTLY SHOWN" in lines
    assert "    contract tests/x.py::test_y" in lines
    assert "    LAB-02: because" in lines
    assert "    LAB-01: no test shows it" in lines
    assert lines[-1] == "1 of 2 rows are shown, 1 of them partly."


@pytest.mark.parametrize("kind", list(EVENTS))
def test_the_guide_names_every_event_that_a_webhook_needs(kind: str) -> None:
    guide = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
    assert [name for name in EVENTS[kind] if f"*{name}*" not in guide] == []


MAPS = ("docs/architecture.md", "CONTRIBUTING.md")
_PLACE = re.compile(r"`((?:[\w.-]+/)*[\w.-]+\.(?:py|js|md|toml)|(?:[\w.-]+/)+)(?::(\w+))?`")


@pytest.mark.parametrize("page", MAPS)
def test_every_place_on_the_map_is_there(page: str) -> None:
    """`file.py:name` is a function or class of that file, `folder/` a folder; links lead somewhere."""
    text = (ROOT / page).read_text()
    places = _PLACE.findall(text)
    assert len(places) > 20
    assert [place for place in places if not _is_there(*place)] == []
    named = re.findall(r"(?<![\w/.])(?:tests|docs|runs|labsite)/[\w/.]+\.\w+", text)
    assert [path for path in named if not (ROOT / path).exists()] == []
    folder = (ROOT / page).parent
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (folder / target).exists(), target


def _is_there(path: str, name: str) -> bool:
    if "/" not in path and any(ROOT.glob(f"runs/*/{path}")):
        return True  # a file of any room
    place = ROOT / path
    if not name:
        return place.exists()
    made = rf"^(?:(?:async )?def|class) {name}\b"
    return place.is_file() and re.search(made, place.read_text(), re.MULTILINE) is not None


def test_each_map_has_a_number_for_each_step() -> None:
    """The life of a tick, of a click and of a push are told in at most twelve steps each."""
    text = (ROOT / "docs/architecture.md").read_text()
    for life in ("a tick", "a click", "a push"):
        steps = re.search(rf"## The life of {life}\n(.*?)\n## ", text, re.DOTALL)
        assert steps is not None
        assert 5 <= len(re.findall(r"^\d+\. ", steps.group(1), re.MULTILINE)) <= 12
