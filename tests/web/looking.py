"""How a page looks: one way for all tests to find what axe complains of, what is cut, what is too small."""

from __future__ import annotations

import os
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

# Names a folder to keep pictures of the pages in, for people who look at them.
PICTURES = os.environ.get("TEST_PICTURES", "")

DESK, PHONE = 1440, 390

TOO_WIDE = """() => document.documentElement.scrollWidth <= innerWidth ? [] :
  [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1
    && !e.closest(".term, .table-scroll, .code-scroll, .hide, .skip")).map(e => e.outerHTML.slice(0, 100))"""
TOO_SMALL = """() => [...document.querySelectorAll("a.btn, button, select, input, summary, .nav.main a")]
  .filter(e => e.offsetParent && e.getBoundingClientRect().height < 43.5).map(e => e.outerHTML.slice(0, 100))"""
# A column that is too narrow for a short word breaks it into letters.
BROKEN = """() => [...document.querySelectorAll(".table td")].slice(0, 300).filter(cell => {
    const words = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), range = document.createRange();
    while (words.nextNode()) for (const found of words.currentNode.data.matchAll(/(?<!\\S)[^\\s/.-]{3,12}(?!\\S)/g)) {
      range.setStart(words.currentNode, found.index);
      range.setEnd(words.currentNode, found.index + found[0].length);
      if (new Set([...range.getClientRects()].map(box => Math.round(box.top))).size > 1) return true;
    }
    return false; }).map(cell => cell.outerHTML.slice(0, 100))"""
# A link in a row may be smaller than a button, and what cuts it off counts too.
TOO_THIN = """() => [...document.querySelectorAll("main a:not(.btn, .prose a, .term a)")].filter(e => {
    const box = e.offsetParent?.closest(".hide") ? null : e.parentElement, own = e.getBoundingClientRect().height;
    const cut = box && getComputedStyle(box).overflowY !== "visible" ? box.clientHeight : own;
    return e.offsetParent && Math.min(own, cut) < 24; }).map(e => e.outerHTML.slice(0, 100))"""
TAB_UNSEEN = """() => [...document.querySelectorAll(".tabs [aria-current]")].filter(tab => {
    const bar = tab.parentElement.getBoundingClientRect(), own = tab.getBoundingClientRect();
    return own.width < bar.width && (own.left < bar.left - 1 || own.right > bar.right + 1);
  }).map(tab => tab.outerHTML.slice(0, 100))"""
# With a finger a row of these lists is pressed anywhere.
NOT_WHOLE = """() => document.querySelector("dialog[open]") ? [] : [...document.querySelectorAll(
    ".run, .queue > li, .found > li, #history-rows tbody tr")].filter(row => {
    const link = row.querySelector(".title > a, .what > a, td.wide > a"), box = row.getBoundingClientRect();
    if (!link || !row.offsetParent || box.top < 0 || box.bottom > innerHeight - 80) return false;
    const spots = [[box.left + 4, box.top + 4], [box.right - 4, box.bottom - 4]];
    return spots.some(([x, y]) => !document.elementFromPoint(x, y)?.closest("a, button, label, input"));
  }).map(row => row.outerHTML.slice(0, 100))"""


AXE = Axe().axe_script
# How colours contrast is most of axe's work, and grows with the page. So it is measured where it can
# be otherwise than it was: of rows and entries of one template those with an element, or one in a
# place or a colour, that none before it had; on the narrower page what the wide one did not show, and
# what has other colours or another size of letters there. Every other rule is asked of all.
VIOLATIONS = """async ([rules, isNarrower]) => {
  const contrast = "color-contrast", only = values => ({runOnly: {type: "rule", values}});
  const ask = async (context, options) =>
    (await axe.run(context, {resultTypes: ["violations"], ...options})).violations;
  const look = element => {
    const style = getComputedStyle(element);
    return [style.color, style.backgroundColor, style.opacity, parseFloat(style.fontSize) > 18].join();
  };

  const kinds = new Set(), alike = [];
  for (const one of document.querySelectorAll("details.operation, tr:not(.operation *)")) {
    const own = [one, ...one.querySelectorAll("*")].map(e => [
      ...[e.parentElement, e].map(element => element.tagName + "." + element.className),
      e.checkVisibility(), look(e)].join(" > "));
    if (own.every(kind => kinds.has(kind))) alike.push(one);
    own.forEach(kind => kinds.add(kind));
  }

  const shown = [...document.querySelectorAll("body *")].filter(e => e.checkVisibility());
  const scheme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const measured = (window.measured ??= {})[scheme] ??= new WeakMap();
  const others = new Set(isNarrower ? shown.filter(e => measured.get(e) !== look(e)) : [document.body]);
  const fresh = [...others].filter(e => !others.has(e.parentElement));
  if (!isNarrower) shown.forEach(e => measured.set(e, look(e)));

  const found = await ask(document, rules.length ? only(rules.filter(rule => rule !== contrast))
    : {rules: {[contrast]: {enabled: false}}});
  if (fresh.length && (!rules.length || rules.includes(contrast))) {
    alike.forEach(one => { one.style.display = "none"; });  // what is not there takes axe no time
    found.push(...await ask({include: fresh}, only([contrast])));
    alike.forEach(one => { one.style.display = ""; });
  }
  return found.map(one => [one.id, one.nodes.slice(0, 3).map(node => node.html)]);
}"""


def look(
    page: Page, name: str, scheme: str, width: int, *rules: str, is_narrower: bool = False
) -> list[object]:
    """What is wrong with the page that is open, once all of it is there; of axe only these rules.

    A narrower page was looked at before as a wide one, in the same scheme.

    After a press that leads to another page, wait for something that only the other one has:
    until its answer came, the page that is open is the one before.
    """
    page.wait_for_load_state()
    page.emulate_media(reduced_motion="reduce")  # else a colour may be on its way to another one
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    found = page.evaluate(VIOLATIONS, [rules, is_narrower])
    wrong: list[object] = [(name, width, scheme, *one) for one in found]
    wrong += [(name, "too wide", one) for one in page.evaluate(TOO_WIDE)]
    wrong += [(name, "word broken", one) for one in page.evaluate(BROKEN)]
    if width < 600:
        wrong += [(name, "too small", one) for one in page.evaluate(TOO_SMALL)]
        wrong += [(name, "too thin", one) for one in page.evaluate(TOO_THIN)]
        wrong += [(name, "not whole", one) for one in page.evaluate(NOT_WHOLE)]
        wrong += [(name, "tab unseen", one) for one in page.evaluate(TAB_UNSEEN)]
    picture(page, f"{name}-{scheme}")
    return wrong


def picture(page: Page, name: str) -> None:
    """Keep a picture of the whole page that is open, where somebody asked for pictures."""
    if PICTURES:
        width = (page.viewport_size or {"width": 0})["width"]
        path = Path(PICTURES) / f"{name.replace(' ', '-')}-{width}.png"
        page.screenshot(path=path, full_page=True)


def looks(page: Page, name: str) -> list[object]:
    """`look` at the open page light and dark, on a desk and on a phone: it is loaded but once.

    What a page holds depends on neither, and in the dark only colours differ. The width comes
    back as it was.
    """
    before = page.viewport_size
    wrong: list[object] = []
    for width in (DESK, PHONE):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme="light", reduced_motion="reduce")
        wrong += look(page, name, "light", width, is_narrower=width == PHONE)
        page.emulate_media(color_scheme="dark", reduced_motion="reduce")
        colours = ("color-contrast", "link-in-text-block")
        wrong += look(page, name, "dark", width, *colours, is_narrower=width == PHONE)
    assert before is not None
    page.set_viewport_size(before)
    return wrong
