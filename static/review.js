/* Reviewing a diff: filter the tree, comment by a line's number, step from file to file. All of it works without. */
(() => {
  "use strict";

  const one = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  /* ---- the tree ---- */

  function narrow(field) {
    const text = field.value.trim().toLowerCase();
    const tree = one(field.dataset.filter);
    all("li[data-path]", tree).forEach((line) => { line.hidden = !line.dataset.path.toLowerCase().includes(text); });
    all("li:not([data-path])", tree).forEach((folder) => {
      folder.hidden = !all("li[data-path]", folder).some((line) => !line.hidden);
    });
  }

  /* ---- a comment on a line ---- */

  const dock = () => one(".dock");

  function aim(cell) {
    all(".diff td.n.aim").forEach((other) => other.classList.remove("aim"));
    cell?.classList.add("aim");
  }

  function write(cell) {
    const form = dock();
    const file = cell.closest(".file");
    if (!form || !file) return;
    const row = cell.parentElement;
    const isFirst = all("td.n", row)[0] === cell;
    one("#line-file").value = file.id.replace("file-", "");
    one("#line-side").value = isFirst ? "old" : "new";
    one("#line-number").value = cell.textContent;
    aim(cell);
    form.classList.add("is-docked");
    one("textarea", form).focus({ preventScroll: true });
  }

  function undock() {
    aim(null);
    dock()?.classList.remove("is-docked");
  }

  /* ---- from file to file ---- */

  function step(by) {
    const heads = all(".review .file > summary, .review-alone .file > summary");
    const at = heads.findIndex((head) => head.getBoundingClientRect().top > 9);
    const here = at === -1 ? heads.length : at;
    const current = heads.indexOf(document.activeElement);
    const next = current === -1 ? (by > 0 ? here : here - 1) : current + by;
    const head = heads[Math.max(0, Math.min(heads.length - 1, next))];
    if (!head) return;
    head.parentElement.scrollIntoView({ block: "start" });
    head.focus({ preventScroll: true });
  }

  function keyed(event) {
    if (event.key === "Escape") return undock();
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
    if (document.documentElement.dataset.keys === "off") return;
    if (event.key === "n") step(1);
    if (event.key === "p") step(-1);
  }

  function opened() {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const file = target && target.closest("details.file");
    if (!file) return;
    file.open = true;
    target.scrollIntoView({ block: "start" });
  }

  document.addEventListener("input", (event) => {
    if (event.target.matches?.("[data-filter]")) narrow(event.target);
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest?.("[data-undock]")) return undock();
    const cell = event.target.closest?.(".review .diff td.n");
    if (cell && cell.textContent) write(cell);
  });
  document.addEventListener("keydown", keyed);
  document.addEventListener("htmx:after:swap", () => {
    if (!one("#line-form [aria-invalid]") && !one("#line-form textarea")?.value) undock();
  });
  window.addEventListener("hashchange", opened);
  document.addEventListener("DOMContentLoaded", () => {
    document.documentElement.classList.add("has-script");
    if (one(".tree") && matchMedia("(max-width: 60rem)").matches) one(".tree").open = false;
    opened();
  });
})();
