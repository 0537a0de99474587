"""What agents and people wrote, as HTML: Markdown, terminals, diffs, words. Nothing of it can act."""

from __future__ import annotations

import time
from datetime import timedelta
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.core.history_ports import Change
from runs.pulls import diff, diff_rows
from runs.web import code, markdown, palette, terminal, words

EVIL = "<script>alert('x')</script><img src=x onerror=alert(1)> \"quoted\" $(reboot)"


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, list[tuple[str, str | None]]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, attrs))


def tags(html: str) -> list[tuple[str, list[tuple[str, str | None]]]]:
    parser = _Tags()
    parser.feed(html)
    return parser.seen


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(EVIL, id="raw html"),
        pytest.param("[a](javascript:alert(1)) <javascript:alert(1)>", id="script link"),
        pytest.param("[a](data:text/html;base64,PHNjcmlwdD4=)", id="data link"),
        pytest.param("![x](https://example.org/track.png)", id="image"),
        pytest.param('[a](https://example.org "onclick=alert(1)")', id="title"),
        pytest.param("```html\n<script>alert(1)</script>\n```", id="code"),
        pytest.param("| a |\n|:-:|\n| b |", id="aligned table"),
    ],
)
def test_markdown_lets_no_script_style_or_image_through(text: str) -> None:
    for tag, attributes in tags(markdown.render(text)):
        assert tag not in ("script", "img", "style", "iframe")
        for name, value in attributes:
            assert not name.startswith("on")
            assert name != "style"
            assert not (value or "").startswith(("javascript:", "data:"))


def test_markdown_keeps_what_people_write() -> None:
    html = markdown.render(
        "# Title\n\n- one\n- **two**\n\n`code` ~~old~~\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    )
    for piece in (
        "<h1>Title</h1>",
        "<li>one</li>",
        "<strong>two</strong>",
        "<code>code</code>",
        "<s>old</s>",
        "<td>1</td>",
    ):
        assert piece in html


def test_markdown_shows_lists_of_tasks_as_boxes() -> None:
    html = markdown.render("- [x] done\n- [ ] open\n- [y] text\n\n[x] no list")
    boxes = [dict(attributes) for tag, attributes in tags(html) if tag == "input"]
    assert [one["aria-label"] for one in boxes] == ["done", "open"]
    assert [("checked" in one, "disabled" in one) for one in boxes] == [(True, True), (False, True)]
    assert "[y] text" in html and "[x] no list" in html
    assert not [one for one in tags(markdown.render('- <input type="text">')) if one[0] == "input"]


def test_very_long_markdown_is_cut_and_says_so() -> None:
    html = markdown.render("word " * 100_000)
    assert len(html) < 2 * markdown.LIMIT
    assert "left out" in html


def test_a_terminal_shows_markup_as_text() -> None:
    html = terminal.render(f"\x1b[31m{EVIL}\x1b[0m")
    assert [tag for tag, _ in tags(html)] == ["span"]
    assert "&lt;script&gt;" in html


@pytest.mark.parametrize(
    ("screen", "classes"),
    [
        pytest.param("\x1b[31mx", "ansi31", id="16 colours"),
        pytest.param("\x1b[38;5;123mx", "ansi38-123", id="256 colours"),
        pytest.param("\x1b[38;2;255;0;0mx", "ansi38-196", id="true colour"),
        pytest.param("\x1b[48:2::255:0:0mx", "ansi48-196", id="true colour with colons"),
        pytest.param("\x1b[38;2;128;128;128mx", "ansi38-244", id="true grey"),
        pytest.param("\x1b[38;2;999;0;0mx", "ansi38-196", id="impossible colour"),
        pytest.param("\x1b[4:3mx", "ansi4", id="curly underline"),
        pytest.param("\x1b[1;32mx", "ansi1 ansi32", id="bold green"),
    ],
)
def test_colours_become_classes_that_the_style_sheet_knows(screen: str, classes: str) -> None:
    html = terminal.render(screen)
    assert f'<span class="{classes}">x</span>' in html.replace("\n", "")
    css = palette.terminal_css()
    for name in classes.split():
        assert f".{name}" in css


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("\x1b]0;title\x07", id="window title"),
        pytest.param("\x1b]8;;https://example.org\x1b\\", id="link"),
        pytest.param("\x1b[2J\x1b[H\x1b[3A", id="cursor"),
        pytest.param("\x1bPq#0\x1b\\", id="sixel"),
        pytest.param("\x07\x08\x00", id="loose control characters"),
    ],
)
def test_other_control_sequences_leave_no_trace(code: str) -> None:
    assert terminal.render(f"one {code}two") == "one two"


@given(
    st.text(
        alphabet=st.sampled_from("\x1b[]()0123456789;:mKJ<>\"'&=ab \n\r\x07\\38;2"), max_size=200
    )
)
def test_no_output_of_an_agent_makes_anything_but_coloured_spans(screen: str) -> None:
    for tag, attributes in tags(terminal.render(screen)):
        assert tag == "span"
        assert all(name == "class" for name, _ in attributes)


def test_a_terminal_shows_the_end_of_a_long_output() -> None:
    html = terminal.render("\n".join(f"line {n}." for n in range(5000)))
    assert "line 4999." in html
    assert html.count("\n") < terminal.LINES


def test_the_style_sheets_are_what_the_palette_makes() -> None:
    assert (palette.STATIC / "terminal.css").read_text() == palette.terminal_css()
    assert (palette.STATIC / "code.css").read_text() == palette.code_css()


def test_every_terminal_colour_can_be_read() -> None:
    for colour in palette.table():
        assert palette.contrast(palette.readable(colour), palette.GROUND) >= 4.5


PATCH = """diff --git a/app.py b/app.py
index 1..2 100644
--- a/app.py
+++ b/app.py
@@ -1,2 +1,3 @@ def f():
 import os
-print("<b>old</b>")
+print("<b>new</b>")
+x = 1
"""


def test_a_patch_becomes_numbered_highlighted_escaped_lines() -> None:
    (file,) = diff.files([Change("app.py", "M", 2, 1)], PATCH)
    assert [line.kind for line in file.lines] == ["hunk", "", "minus", "plus", "plus"]
    assert [(line.old, line.new) for line in file.lines[1:]] == [
        (1, 1),
        (2, None),
        (None, 2),
        (None, 3),
    ]
    assert "<b>" not in "".join(line.html for line in file.lines)
    assert 'class="kn"' in file.lines[1].html


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param("", id="none"),
        pytest.param(PATCH[:-30], id="cut in a line"),
        pytest.param(PATCH[:60], id="cut in the head"),
        pytest.param("nonsense <script>", id="nonsense"),
        pytest.param(PATCH.replace("@@ -1,2 +1,3 @@", "@@ -1,9 +1,9 @@"), id="wrong counts"),
        pytest.param(PATCH.replace("import os", "x\x00\x1b\x0c\u2028y"), id="odd characters"),
    ],
)
def test_an_odd_patch_still_lists_the_files(patch: str) -> None:
    found = diff.files([Change("app.py", "M", 2, 1), Change("new.txt", "?", None, None)], patch)
    assert [file.change.path for file in found] == ["app.py", "new.txt"]
    assert "<script>" not in "".join(line.html for file in found for line in file.lines)


def test_a_huge_patch_is_cut() -> None:
    body = "".join(f"+line {n}\n" for n in range(9000))
    patch = f"diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -0,0 +1,9000 @@\n{body}"
    (file,) = diff.files([Change("a.txt", "A", 9000, 0)], patch)
    assert file.is_cut
    assert len(file.lines) == diff.LINES


def test_a_diff_that_was_shown_before_is_shown_again_at_once() -> None:
    body = "".join(f"-old = {n}\n+new = {n}\n" for n in range(1000))
    patch = f"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,1000 +1,1000 @@\n{body}"
    change = Change("a.py", "M", 1000, 1000)
    began = time.thread_time()
    first = diff.file(change, patch, 1)
    by_hand = time.thread_time() - began
    took = []
    for _ in range(5):
        began = time.thread_time()
        again = diff.file(change, patch, 1)
        took.append(time.thread_time() - began)
    assert len(again.rows) > 100_000
    assert min(took) < by_hand / 4
    assert again.lines == first.lines
    other = diff.file(change, patch.replace("new = 7\n", "new = 8\n"), 1)
    assert other.lines != first.lines


@pytest.mark.parametrize(
    ("old", "new", "marked"),
    [
        ("a = 1", "a = 2", ["1", "2"]),
        ("call(x)", "call(x, y)", ["", ", y"]),
        ("nothing alike", "=====", []),
        ("", "x", []),
    ],
)
def test_what_changed_within_a_line_stands_out(old: str, new: str, marked: list[str]) -> None:
    found = diff_rows.marks([("minus", old), ("plus", new)])
    assert [text[slice(*found[n])] for n, text in enumerate((old, new)) if n in found] == marked
    assert diff_rows.marks([("minus", old), ("plus", new), ("plus", "more")]) == {}


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_code_makes_anything_but_coloured_spans(one: str, other: str) -> None:
    texts = [text.replace("\n", "").replace("\r", "") for text in (one, other)]
    marks = diff_rows.marks([("minus", texts[0]), ("plus", texts[1])])
    for path in ("a.py", "a.html", "a.unknown"):
        for line in code.lines(texts, path, marks):
            for tag, attributes in tags(line):
                assert tag in ("span", "mark")
                assert all(name == "class" for name, _ in attributes)


@pytest.mark.row("X-15", level="pure")
@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3600, "0 s"), (0, "0 s"), (59, "59 s"), (60, "1 min"), (3599, "59 min"), (3600, "1 h"), (3900, "1 h 5 min"),
     (36_300, "10 h"), (86_400, "1 day"), (200_000, "2 days")],
)  # fmt: skip
def test_a_length_of_time_is_never_negative_and_short_to_read(seconds: int, text: str) -> None:
    assert words.duration(timedelta(seconds=seconds)) == text
