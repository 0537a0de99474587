/* Keyboard shortcuts of single keys, which somebody may turn off. Never while somebody types. */
(() => {
  "use strict";

  const KEPT = "lab-keys";
  const SOON = 1500;  // milliseconds for the key after `g`
  const ROWS = "main :is(tbody tr, .queue > li, .parked > li, .found > li, .feed > li, .commits > li, .run, .need)";
  const OPENS = "a[href], button, summary";

  let goes = 0;

  const stored = () => { try { return localStorage.getItem(KEPT); } catch { return null; } };
  const isOff = () => document.documentElement.dataset.keys === "off";

  function turn(isOn) {
    document.documentElement.dataset.keys = isOn ? "on" : "off";
    try { localStorage.setItem(KEPT, isOn ? "on" : "off"); } catch { /* it holds for this page then */ }
  }

  const isTyping = ({ target }) =>
    target.isContentEditable ||
    target.closest?.("input:not([type=checkbox], [type=radio]), textarea, select, [role=combobox], .term") !== null;

  const isShown = (element) => element.checkVisibility();

  /* ---- rows ---- */

  function step(by) {
    const rows = [...document.querySelectorAll(ROWS)].filter((row) => isShown(row) && opens(row));
    const at = rows.findIndex((row) => row.contains(document.activeElement));
    const next = at === -1 ? (by > 0 ? 0 : rows.length - 1) : at + by;
    if (rows[next]) opens(rows[next]).focus();
  }

  const opens = (row) => [...row.querySelectorAll(OPENS)].find(isShown);

  function pick() {
    const mark = document.activeElement?.closest(ROWS)?.querySelector("input[data-pick]");
    if (mark) mark.click();
  }

  /* ---- going, and the sheet ---- */

  function go(key) {
    const address = JSON.parse(document.body.dataset.go ?? "{}")[key];
    if (address) location.assign(address);
    return Boolean(address);
  }

  async function sheet() {
    const box = document.getElementById("keys");
    if (!box) return;
    try {
      const answer = await fetch(box.dataset.sheet, { headers: { "X-Lab-Part": "1" } });
      if (!answer.ok || answer.redirected) throw new Error("no sheet");
      box.querySelector("[data-body]").innerHTML = await answer.text();
      show();
      if (!document.querySelector("dialog[open]")) box.showModal();
    } catch {
      location.assign(box.dataset.sheet);
    }
  }

  const show = () => document.querySelectorAll("[data-keys-switch]").forEach((mark) => { mark.checked = !isOff(); });

  const ACTS = {
    "/": () => document.dispatchEvent(new CustomEvent("lab:palette")),
    "?": sheet,
    j: () => step(1),
    k: () => step(-1),
    x: pick,
    g: () => { goes = Date.now() + SOON; },
  };

  function keyed(event) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (isOff() || isTyping(event) || document.querySelector("dialog[open]")) return;
    const isGoing = Date.now() < goes;
    goes = 0;
    if (isGoing && go(event.key)) return event.preventDefault();
    if (!Object.hasOwn(ACTS, event.key)) return;
    event.preventDefault();
    ACTS[event.key]();
  }

  document.documentElement.dataset.keys = stored() === "off" ? "off" : "on";
  document.addEventListener("keydown", keyed);
  document.addEventListener("DOMContentLoaded", show);
  document.addEventListener("change", ({ target }) => {
    if (target.matches("[data-keys-switch]")) turn(target.checked);
  });
  document.addEventListener("click", ({ target }) => {
    const box = target.closest?.("dialog#keys");
    if (box && (target === box || target.closest("[data-close]"))) box.close();
  });
})();
