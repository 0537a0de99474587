"""That a look at a page finds faint words wherever they are, though most is measured only once."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.web.looking import looks

FAINT = "color: #ccc"
PAGE = """<!doctype html><html lang="en"><title>t</title><style>
  body { background: #fff; color: #000 } .a { display: none } b { font-weight: normal }
  @media (max-width: 600px) { .a { display: block } %(phone)s }
  @media (prefers-color-scheme: dark) { %(dark)s }
</style><main><h1>Title</h1><p class="a">%(a)s</p><p class="b">words</p>
<table><tbody>%(rows)s</tbody></table></main>"""
ROW = "<tr><td>words</td></tr>"


@pytest.fixture
def found(browser: Browser):  # type: ignore[no-untyped-def]
    """What is wrong with the page with these parts, as pairs of a width and a scheme."""

    def look(**parts: str) -> list[tuple[int, str]]:
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.set_content(PAGE % {"phone": "", "dark": "", "a": "words", "rows": ROW * 30, **parts})
        wrong = looks(page, "page")
        page.close()
        assert all(one[3] == "color-contrast" for one in wrong), wrong
        return [(one[1], one[2]) for one in wrong]

    return look


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({}, []),
        ({"a": f'<b style="{FAINT}">only a phone shows this</b>'}, [(390, "light"), (390, "dark")]),
        ({"phone": f".b {{ {FAINT} }}"}, [(390, "light"), (390, "dark")]),
        ({"phone": "main { background: #222 }"}, [(390, "light"), (390, "dark")]),
        ({"dark": f".b {{ {FAINT} }}"}, [(1440, "dark")]),
        ({"rows": ROW * 30 + f'<tr><td style="{FAINT}">faint</td></tr>'}, [(1440, "light"), (1440, "dark")]),
        ({"rows": ROW * 30 + f'<tr><td><i style="{FAINT}">faint</i></td></tr>'}, [(1440, "light"), (1440, "dark")]),
        ({"rows": ROW * 30, "dark": f"tr:last-child {{ {FAINT} }}"}, [(1440, "dark")]),
    ],
)  # fmt: skip
def test_faint_words_are_found(found, parts, expected) -> None:  # type: ignore[no-untyped-def]
    assert found(**parts) == expected
