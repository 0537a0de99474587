/* What the pages need beside htmx: the rhythm of refreshes, ticking times, the socket and the terminal. */
(() => {
  "use strict";

  const FAST = 1000;          // while something starts, and after an action
  const FAST_FOR = 10000;
  const LOGGED_OUT = 4401;    // why the server closes a socket
  const GONE = 4404;
  const TOO_MANY = 4429;
  const MUCH_LATER = 1e9;
  const LEAVING = 30000;      // how long the page that an act leads to may take to come
  const SELDOM = 60000;       // while it is pushed to: a socket may not notice that its network is gone
  const TOGETHER = 500;       // what happens within this is asked for once

  const body = () => document.body;
  const all = (selector, root = document) => root.querySelectorAll(selector);

  /* ---- the product's clock: ages do not depend on the browser's own (X-15) ---- */

  let ahead = 0;
  const now = () => Date.now() - ahead;

  function words(milliseconds) {
    const seconds = Math.max(0, Math.floor(milliseconds / 1000));
    if (seconds < 60) return `${seconds} s`;
    const minutes = Math.floor(seconds / 60);
    if (minutes < 60) return `${minutes} min`;
    const hours = Math.floor(minutes / 60);
    if (hours < 24) return minutes % 60 && hours < 10 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
    const days = Math.floor(hours / 24);
    return days === 1 ? "1 day" : `${days} days`;
  }

  const toMinute = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  const toDay = { day: "numeric", month: "short" };
  const clockFormat = new Intl.DateTimeFormat(undefined, { ...toMinute, second: "2-digit" });
  const hourFormat = new Intl.DateTimeFormat(undefined, toMinute);
  const momentFormat = new Intl.DateTimeFormat(undefined, { ...toDay, year: "numeric", ...toMinute });
  const shortFormat = new Intl.DateTimeFormat(undefined, { ...toDay, ...toMinute });
  const fullFormat = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

  function write(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }

  function tell(element) {
    const moment = new Date(element.dateTime);
    const age = now() - moment.getTime();
    if (element.hasAttribute("data-since")) write(element, words(age));
    else if (element.hasAttribute("data-ago")) write(element, `${words(age)} ago`);
    else if (element.hasAttribute("data-hour")) write(element, hourFormat.format(moment));
    else if (element.hasAttribute("data-clock")) write(element, clockFormat.format(moment));
    else if (element.hasAttribute("data-moment")) {
      const isThisYear = moment.getFullYear() === new Date(now()).getFullYear();
      write(element, (isThisYear ? shortFormat : momentFormat).format(moment));
    } else return;
    if (!element.title) element.title = fullFormat.format(moment);
  }

  function tick() {
    all("time[datetime]").forEach(tell);
    all("progress[data-start]").forEach((meter) => {
      const used = Math.max(0, Math.min(meter.max, Math.floor((now() - Date.parse(meter.dataset.start)) / 1000)));
      if (meter.value !== used) meter.value = used;
      meter.classList.toggle("low", used >= meter.max * 0.8);
    });
  }

  /* ---- refreshes (LAB-130) ---- */

  const running = new Set();
  let fastUntil = 0;
  let last = 0;
  let loaded = 0;
  let isOut = false;
  let leftAt = 0;

  const hurry = () => { fastUntil = Date.now() + FAST_FOR; };
  const isBusy = () => Date.now() < fastUntil || document.querySelector("[data-busy]") !== null;
  const asks = () => document.getElementById("live")?.dataset.asks ?? "";

  /* By the clock only what nobody pushes: a screen, and all of it while there is no socket or the
     last refresh failed. */
  function period() {
    if (isBusy()) return FAST;
    if (link.isLive && !link.trouble && asks() !== "screen") return SELDOM;
    return 1000 * (Number(body().dataset.refresh) || 4);
  }
  /* An act leads to another page, or may: until that is here, nothing brings this one back. */
  const isLeaving = () => Date.now() - leftAt < LEAVING || [...running].some(isAct);
  const isAct = (ctx) => ctx.request.method !== "GET";
  const mayRefresh = () =>
    !document.hidden && !isOut && !isLeaving() && running.size === 0 && document.querySelector("[data-armed]") === null;

  function beat() {
    const live = document.getElementById("live");
    if (!live || Date.now() - last < period() || !mayRefresh()) return;
    last = Date.now();
    htmx.trigger(live, "lab:refresh");
  }

  /* What nobody pushes, since it is elsewhere: asked for seldom, and only while somebody looks. */
  const asked = new Map();

  function askAgain() {
    if (document.hidden || isOut || running.size > 0) return;
    all("[data-again]").forEach((part) => {
      if (Date.now() - (asked.get(part.id) ?? loaded) < 1000 * Number(part.dataset.again)) return;
      asked.set(part.id, Date.now());
      htmx.trigger(part, "lab:again");
    });
  }

  /* ---- the banner ---- */

  function note(text, level = "error", press = null) {
    seen = "";
    const banner = document.getElementById("banner");
    if (!banner) return;
    const box = document.createElement("div");
    box.className = `banner ${level}`;
    box.setAttribute("role", level === "error" ? "alert" : "status");
    const dot = document.createElement("span");
    dot.className = "dot";
    const said = document.createElement("p");
    said.textContent = text;
    const close = document.createElement("button");
    close.type = "button";
    close.className = "btn quiet small";
    close.dataset.dismiss = "";
    close.textContent = "Dismiss";
    box.append(dot, said, press ?? close);
    banner.replaceChildren(box);
    // Whoever types is not moved away from it: this one stays in sight by itself.
    if (press) box.dataset.stays = "";
    else show();
  }

  /* Pressed far down the page, the answer would otherwise be out of sight. Each note comes into view once. */
  let seen = "";

  function show() {
    const box = document.querySelector("#banner .banner");
    const said = box?.textContent ?? "";
    if (box && said !== seen && box.getBoundingClientRect().top < 0) box.scrollIntoView({ block: "start" });
    seen = said;
  }

  const isRefresh = (context) => context?.sourceElement?.id === "live";
  const isUnasked = (context) => isRefresh(context) || context?.sourceElement?.hasAttribute("data-again");

  function unanswered(context) {
    if (isUnasked(context)) return state({ trouble: "not reachable, trying again" });
    note("labsite did not answer. Whether it was done is not known: look at the page before you try again.");
  }

  function refused(context) {
    const status = context.response.status;
    if (status === 401) return loggedOut(context);
    if (isUnasked(context)) return state({ trouble: `refresh failed (${status}), trying again` });
    if (/<hx-partial/i.test(context.text || "")) return;
    if (status === 403) {
      note(
        "labsite did not trust this request; the page may be too old. " +
          "Nothing was changed. Reload the page and try again.",
      );
    } else if (status === 404) {
      note("That is no longer there. Nothing was changed. Reload the page.");
    } else {
      note(
        `labsite answered with an error (${status}). ` +
          "It is in the log; running agents are not touched. Look at the page before you try again.",
      );
    }
  }

  /* ---- the link: what the socket says, and what became of the last refresh ---- */

  const link = { isLive: false, text: "connecting", trouble: "" };
  let connection = null;
  let newest = null;
  let frames = 0;

  function state(news) {
    Object.assign(link, news);
    const tone = link.trouble ? "bad" : link.isLive ? "live" : "";
    all("#link-state .dot, .side .brand .dot").forEach((dot) => { dot.className = `dot ${tone}`.trim(); });
    const shown = document.getElementById("link-state");
    if (shown) write(shown.lastElementChild, link.trouble || link.text);
  }

  function opened(event) {
    connection = event.detail.connection;
    connection.socket.send(JSON.stringify({ last: newest }));
    state({ isLive: true, text: "live", trouble: "" });
    // What changed before it opened and no entry tells, nobody will push.
    soon();
  }

  function closed(event) {
    const { code } = event.detail;
    if (code === LOGGED_OUT) return loggedOut();
    if (!isOut) state({ isLive: false, text: document.hidden ? "paused" : "reconnecting" });
    if (code !== GONE && code !== TOO_MANY) return;
    event.detail.connection.config.reconnect = false;
    if (code === TOO_MANY) return state({ text: "refreshing by itself: too many pages are open" });
    state({ text: "not connected" });
    note("What this page shows is no longer there.");
  }

  function heard(event) {
    const id = event.detail.message.json?.id;
    if (Number.isInteger(id) && id > (newest ?? -1)) newest = id;
    frames += 1;
    state({ trouble: "" });
    const parts = [...(event.detail.message.json?.content ?? "").matchAll(/hx-target="#([\w-]+)"/g)];
    // Each look of the worker changes its age, and nothing else of a quiet page.
    if (parts.length && parts.every(([, name]) => name === "tick-age")) return;
    if (asks()) soon();
    news();
  }

  let asking = null;

  /* A refresh that is due by what was heard, not by the clock. */
  function soon() {
    asking ??= setTimeout(() => { asking = null; last = 0; beat(); }, TOGETHER);
  }

  const news = () => document.dispatchEvent(new CustomEvent("lab:news"));

  /* ---- the log-in may end while a page is open; `again.js` asks for it on the page itself ---- */

  function loggedOut(context) {
    isOut = true;
    patience(MUCH_LATER);
    state({ isLive: false, text: "logged out", trouble: "" });
    document.dispatchEvent(new CustomEvent("lab:ended"));
    if (context && context.request.method !== "GET") document.dispatchEvent(new CustomEvent("lab:ask"));
  }

  function loggedIn({ detail: { text } }) {
    isOut = false;
    patience();
    if (text) return note(text);
    document.getElementById("banner")?.replaceChildren();
    last = 0;
    // The socket was opened by the old log-in. One that was closed opens again when the page is seen.
    if (connection?.socket?.readyState === WebSocket.OPEN) connection.socket.close();
    else document.dispatchEvent(new Event("visibilitychange"));
  }

  function patience(delay = 500) {
    if (!connection) return;
    clearTimeout(connection.timer);
    connection.config.reconnectDelay = delay;
    connection.config.reconnectMaxDelay = delay === MUCH_LATER ? delay : htmx.config.ws.reconnectMaxDelay;
  }

  /* What was asked for before a frame came may show how things were before it. */
  function dropOlder(event) {
    const { ctx } = event.detail;
    if (!isRefresh(ctx) || (ctx.frames === frames && !isLeaving())) return;
    event.preventDefault();
    ctx.isDropped = true;
    if (!ctx.response.raw.bodyUsed) ctx.response.raw.body?.cancel();
  }

  /* Its tag must not stay: the frame holds fewer parts than the answer did, and 304 would follow for ever. */
  function forgetDropped(ctx) {
    if (!ctx.isDropped || !ctx.sourceElement._htmx) return;
    ctx.sourceElement._htmx.ptag = ctx.request.headers["HX-PTag"];
  }

  /* ---- morphs: unchanged times are left alone, so that nothing flickers; and what nobody asked for
     leaves alone what somebody edits, and a form with the words on what was wrong with it ---- */

  let isUnaskedSwap = false;

  function isEdited(field) {
    if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
    if (field.tagName !== "SELECT") return "defaultValue" in field && field.value !== field.defaultValue;
    const chosen = [...field.options].filter((option) => option.defaultSelected);
    return field.value !== (chosen[0] ?? field.options[0])?.value;
  }

  const TOLD = ["data-since", "data-ago", "data-clock", "data-moment"];

  const isInUse = (form) =>
    form.contains(document.activeElement) ||
    form.querySelector("[aria-invalid], .error, .field-error") !== null ||
    [...form.elements].some(isEdited);

  const hasLostForm = (oldNode, newNode) =>
    [...oldNode.querySelectorAll("form")].some(
      (form) => isInUse(form) && !newNode.querySelector(`form#${CSS.escape(form.id)}`),
    );

  htmx.registerExtension("lab", {
    htmx_before_morph_node(_element, { oldNode, newNode }) {
      if (isUnaskedSwap && oldNode.tagName === "FORM" && isInUse(oldNode)) return false;
      if (isUnaskedSwap && oldNode.id && hasLostForm(oldNode, newNode)) return false;
      if (oldNode.tagName !== "TIME" || !newNode.dateTime) return true;
      const isAlike = (name) => oldNode.hasAttribute(name) === newNode.hasAttribute(name);
      return oldNode.dateTime !== newNode.dateTime || !TOLD.every(isAlike);
    },
  });

  /* ---- the terminal follows only a reader who is at its end ---- */

  const followed = new WeakMap();
  const isAtEnd = (screen) => screen.scrollHeight - screen.scrollTop - screen.clientHeight < 12;
  const remember = () => all("[data-follow]").forEach((screen) => followed.set(screen, isAtEnd(screen)));
  const follow = () => all("[data-follow]").forEach((screen) => {
    if (followed.get(screen) ?? true) screen.scrollTop = screen.scrollHeight;
  });

  /* ---- wiring ---- */

  const on = (name, act) => document.addEventListener(name, act);

  // A pressed button that belongs to a form sends the form; htmx leaves out what the button says.
  on("htmx:config:request", ({ detail: { ctx } }) => {
    const button = ctx.sourceElement, body = ctx.request.body;
    if (body instanceof FormData && button.matches("button[name][form]")) body.set(button.name, button.value);
  });
  on("htmx:before:request", ({ detail: { ctx } }) => {
    running.add(ctx);
    ctx.frames = frames;
    if (isAct(ctx)) { hurry(); seen = ""; }
  });
  on("htmx:finally:request", ({ detail: { ctx } }) => {
    running.delete(ctx);
    forgetDropped(ctx);
    if (isAct(ctx)) { hurry(); last = Date.now(); }
    if (ctx.hx?.redirect) leftAt = Date.now();
    if (isUnasked(ctx) && ctx.response?.status < 400) state({ trouble: "" });
    if (isRefresh(ctx) && ctx.response?.status === 200) news();
  });
  on("htmx:response:error", ({ detail: { ctx } }) => refused(ctx));
  on("htmx:error", ({ detail: { ctx } }) => { if (ctx && !ctx.response) unanswered(ctx); });
  on("htmx:before:response", dropOlder);
  on("htmx:before:swap", ({ detail: { ctx } }) => { isUnaskedSwap = isUnasked(ctx) || ctx.sourceElement === body(); });
  on("htmx:before:swap", dropOlder);
  on("htmx:before:swap", remember);
  on("htmx:after:swap", () => { tick(); follow(); show(); });
  on("htmx:after:ws:connection", opened);
  on("htmx:ws:close", closed);
  on("htmx:before:ws:message", heard);
  on("visibilitychange", beat);
  window.addEventListener("pageshow", () => { leftAt = 0; });
  on("lab:out", ({ detail: { text, press } }) => note(text, "error", press));
  on("lab:in", loggedIn);
  // Also where a socket has not noticed yet: what is asked now fails, and says so.
  ["online", "offline"].forEach((change) => window.addEventListener(change, () => { last = 0; }));
  // A toggle does not bubble, and only opening asks for anything.
  document.addEventListener("toggle", ({ target }) => {
    if (target.open && target.matches("details[data-opens]")) target.dispatchEvent(new CustomEvent("lab:opened"));
  }, true);

  /* The tab one is on, in sight; the style sheet says the same, but once, and not every browser knows it yet. */
  let wide = 0;

  function toTab() {
    if (innerWidth === wide) return;  // a phone's bars come and go
    wide = innerWidth;
    all(".tabs [aria-current]").forEach((tab) => {
      const bar = tab.parentElement;
      bar.scrollLeft = tab.offsetLeft - (bar.clientWidth - tab.offsetWidth) / 2;
    });
  }

  /* A form that came back may be longer than the screen: to the first field that is wrong. */
  function toWrong() {
    if (!document.querySelector("[autofocus]")) document.querySelector("main form.fields [aria-invalid=true]")?.focus();
  }

  window.addEventListener("resize", toTab);
  on("DOMContentLoaded", () => {
    if (body().dataset.now) ahead = Date.now() - Number(body().dataset.now);
    if (body().dataset.last) newest = Number(body().dataset.last);
    loaded = last = Date.now();
    tick();
    follow();
    toTab();
    toWrong();
    setInterval(tick, 1000);
    setInterval(beat, 250);
    setInterval(askAgain, 1000);
  });
})();
