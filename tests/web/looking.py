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
# A link in a row may be smaller than a button, and what cuts it off counts too.
TOO_THIN = """() => [...document.querySelectorAll("main a:not(.btn, .prose a, .term a)")].filter(e => {
    const box = e.offsetParent?.closest(".hide") ? null : e.parentElement, own = e.getBoundingClientRect().height;
    const cut = box && getComputedStyle(box).overflowY !== "visible" ? box.clientHeight : own;
    return e.offsetParent && Math.min(own, cut) < 24; }).map(e => e.outerHTML.slice(0, 100))"""


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
    if width < 600:
        wrong += [(name, "too small", one) for one in page.evaluate(TOO_SMALL)]
        wrong += [(name, "too thin", one) for one in page.evaluate(TOO_THIN)]
    if PICTURES:
        path = Path(PICTURES) / f"{name.replace(' ', '-')}-{width}-{scheme}.png"
        page.screenshot(path=path, full_page=True)
    return wrong


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
