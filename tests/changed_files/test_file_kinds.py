"""Code or docs, by the path of a changed file."""

from __future__ import annotations

import pytest

from runs.changed_files import file_kinds
from runs.changed_files.file_kinds import FileKind


@pytest.mark.row("MALA-V-84", level="pure")
@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("src/app.py", "code"),
        ("src/notes.md", "code"),
        ("src/scripts/x", "code"),
        ("tests/data/one.bin", "code"),
        ("commands/go", "code"),
        ("pyproject.toml", "code"),
        ("web/uv.lock", "code"),
        ("uv.lock", "code"),
        (".env", "code"),
        (".env.example", "code"),
        ("deploy/.env.template", "code"),
        ("bin/run.sh", "code"),
        ("a.YML", "code"),
        (".github/workflows/ci.yaml", "code"),
        ("data.json", "code"),
        ("README.md", "docs"),
        ("docs/index.rst", "docs"),
        ("notes.txt", "docs"),
        ("src", "docs"),
        ("source/x", "docs"),
        ("environment", "docs"),
        ("main.go", "docs"),
        ("logo.svg", "docs"),
        ("", "docs"),
    ],
)
def test_the_kind_of_a_file(path: str, kind: str) -> None:
    assert file_kinds.kind_of(path) == kind


@pytest.mark.row("MALA-V-83", level="pure")
def test_each_changed_file_is_labelled() -> None:
    paths = ["README.md", "src/app.py"]
    assert file_kinds.labels(paths) == [
        {"path": "README.md", "label": "docs"},
        {"path": "src/app.py", "label": "code"},
    ]
    assert file_kinds.has_code(paths)
    assert not file_kinds.has_code(["README.md"])
    assert list(FileKind) == ["code", "docs"]


@pytest.mark.row("MALA-V-85", level="pure")
def test_where_not_all_files_are_kept_code_is() -> None:
    """Whether code has changed is asked of what is kept."""
    docs = [f"docs/{number}.md" for number in range(10)]
    assert file_kinds.first(["src/app.py", *docs], 3) == ["docs/0.md", "docs/1.md", "src/app.py"]
    assert file_kinds.first({"b", "src/a", "a"}, 3) == ["a", "b", "src/a"]
