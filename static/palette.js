/* The palette: Search as a dialog over any page, opened with Ctrl K or `/`. The server renders the list. */
(() => {
  "use strict";

  const PAUSE = 100;  // milliseconds after a key before the server is asked
  const SILENT = "labsite did not answer. Type on, or open the page Search.";

  let wanted = null;
  let asking = null;
  let shown = null;   // what the list on screen was asked for

  const box = () => document.getElementById("palette");
  const field = () => box().querySelector("input");
  const list = () => document.getElementById("palette-list");
  const options = () => [...list().children];
  const chosen = () => list().querySelector("[aria-selected=true]");

  function open() {
    if (!box() || document.querySelector("dialog[open]")) return;
    box().showModal();
    field().select();
    ask();
  }

  function choose(option) {
    const before = chosen();
    before?.setAttribute("aria-selected", "false");
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    if (option) field().setAttribute("aria-activedescendant", option.id);
    else field().removeAttribute("aria-activedescendant");
  }

  function step(by) {
    const all = options();
    if (all.length) choose(all[(all.indexOf(chosen()) + by + all.length) % all.length]);
  }

  function say(text) {
    document.getElementById("palette-said").textContent = text;
  }

  async function ask() {
    const typed = field().value;
    asking?.abort();
    asking = new AbortController();
    try {
      const address = `${box().dataset.search}?q=${encodeURIComponent(typed)}`;
      const answer = await fetch(address, { headers: { "X-Lab-Part": "1" }, signal: asking.signal });
      if (answer.redirected) return ended();
      if (!answer.ok) return say(SILENT);
      show(typed, await answer.text());
    } catch (error) {
      if (error.name !== "AbortError") say(SILENT);
    }
  }

  function ended() {
    box().close();
    document.dispatchEvent(new CustomEvent("lab:ended"));
    document.dispatchEvent(new CustomEvent("lab:ask"));
  }

  function show(typed, html) {
    list().innerHTML = html;
    shown = typed;
    const count = options().length;
    field().setAttribute("aria-expanded", String(count > 0));
    choose(options()[0]);
    say(count ? `${count} result${count === 1 ? "" : "s"}` : "Nothing fits. Titles and numbers are looked for.");
  }

  /* An act is sent through the page's own form, as its button would be; one that ends something asks on a page. */
  function follow(option, isElsewhere) {
    if (!option) return;
    const { url, sends } = option.dataset;
    if (sends === undefined) {
      if (isElsewhere) window.open(url, "_blank", "noopener");
      else location.assign(url);
      return;
    }
    const form = document.getElementById("act");
    form.action = url;
    for (const [name, value] of JSON.parse(sends)) {
      form.append(Object.assign(document.createElement("input"), { type: "hidden", name, value }));
    }
    box().close();
    form.requestSubmit();
  }

  async function enter(isElsewhere) {
    clearTimeout(wanted);
    if (shown !== field().value) await ask();
    if (shown === field().value) follow(chosen(), isElsewhere);
  }

  function keyed(event) {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
      event.preventDefault();
      return box()?.open ? box().close() : open();
    }
    if (!box()?.open || event.isComposing) return;
    const isElsewhere = event.ctrlKey || event.metaKey;
    const acts = { ArrowDown: () => step(1), ArrowUp: () => step(-1), Enter: () => enter(isElsewhere) };
    if (!acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  }

  document.addEventListener("keydown", keyed);
  document.addEventListener("lab:palette", open);
  document.addEventListener("input", ({ target }) => {
    if (!target.closest("#palette")) return;
    clearTimeout(wanted);
    wanted = setTimeout(ask, PAUSE);
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-palette]");
    if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      return open();
    }
    if (event.target === box()) return box().close();
    follow(event.target.closest?.("#palette [role=option]"), event.ctrlKey || event.metaKey);
  });
})();
