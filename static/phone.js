/* The service worker of every page, and how many things need somebody: in the title and in the tab's icon. */
(() => {
  "use strict";

  const PAUSE = 3000;   // at most one question in so many milliseconds
  const COUNT = /^\(\d+\) /;

  let asked = 0;
  let waiting = null;

  function show(count) {
    const bare = document.title.replace(COUNT, "");
    const title = count ? `(${count}) ${bare}` : bare;
    if (document.title !== title) document.title = title;
    const icon = document.getElementById("tab-icon");
    const address = `${icon.href.split("?")[0]}?n=${count}`;
    if (icon.href !== address) icon.href = address;
  }

  async function ask() {
    waiting = null;
    asked = Date.now();
    try {
      const answer = await fetch(document.body.dataset.needs, { headers: { Accept: "application/json" } });
      if (answer.ok && !answer.redirected) show((await answer.json()).count);
    } catch {
      // The page itself says when labsite cannot be reached.
    }
  }

  function soon() {
    if (waiting || document.hidden) return;
    waiting = setTimeout(ask, Math.max(0, asked + PAUSE - Date.now()));
  }

  document.addEventListener("DOMContentLoaded", () => {
    const { worker, needs } = document.body.dataset;
    if (worker && "serviceWorker" in navigator) navigator.serviceWorker.register(worker).catch(() => {});
    if (!needs) return;
    if (!document.getElementById("tab-icon").href.includes("?")) soon();
    document.addEventListener("lab:news", soon);
    document.addEventListener("visibilitychange", soon);
    navigator.serviceWorker?.addEventListener("message", ({ data }) => { if (data === "news" && !waiting) ask(); });
  });
})();
