/* Screens of sessions: the live one, which the server sends as changes, and a recorded one, replayed.
   Lines come as HTML that the server made and escaped; nothing of the agent is read here. */
(() => {
  "use strict";

  const RETRY = 2000;
  const POLL = 4000;
  const IDLE = 1;            // seconds: a pause that is longer than that is skipped
  const CALM = 1500;         // milliseconds between two changes for whoever wants little motion
  const find = (id) => document.getElementById(id);
  const screen = () => find("screen");

  function apply(into, changes) {
    for (const [at, gone, put] of changes) {
      for (let n = 0; n < gone; n += 1) into.children[at]?.remove();
      const before = into.children[at] ?? null;
      for (const html of put) {
        const line = document.createElement("div");
        line.innerHTML = html;
        into.insertBefore(line, before);
      }
    }
  }

  /* ---- how it is looked at: size and wrapping stay as they were chosen ---- */

  const KEY = "lab-screen";
  const looks = { zoom: 0, wrap: false };
  try { Object.assign(looks, JSON.parse(localStorage.getItem(KEY) ?? "{}")); } catch { /* as it is */ }

  function look() {
    screen()?.style.setProperty("--zoom", String(1.15 ** looks.zoom));
    screen()?.classList.toggle("wrap", looks.wrap);
    document.querySelectorAll("[data-wrap]").forEach((one) => one.setAttribute("aria-pressed", String(looks.wrap)));
  }

  document.addEventListener("click", ({ target }) => {
    const button = target.closest?.("[data-zoom], [data-wrap]");
    if (!button) return;
    if (button.dataset.zoom) looks.zoom = Math.max(-6, Math.min(8, looks.zoom + Number(button.dataset.zoom)));
    else looks.wrap = !looks.wrap;
    try { localStorage.setItem(KEY, JSON.stringify(looks)); } catch { /* for this page alone */ }
    look();
  });

  /* ---- the live screen ---- */

  let socket = null;
  let opened = 0;

  function show(into, news) {
    const isAtEnd = into.scrollHeight - into.scrollTop - into.clientHeight < 12;
    if (news.all) into.replaceChildren();
    apply(into, news.d);
    into.dataset.mark = news.mark;
    const none = find("screen-none");
    if (none && into.children.length) none.hidden = true;
    if (isAtEnd && news.d.length) into.scrollTop = into.scrollHeight;
  }

  const isWanted = () => screen()?.dataset.screen && !document.hidden;

  function listen() {
    if (!isWanted()) { socket?.close(); socket = null; return; }
    if (socket || Date.now() - opened < RETRY) return;
    opened = Date.now();
    const { protocol, host } = location;
    const start = `${protocol === "https:" ? "wss" : "ws"}://${host}`;
    const one = new WebSocket(`${start}/ws/screen/term:${screen().dataset.screen}`);
    socket = one;
    one.onopen = () => one.send(JSON.stringify({ last: 0, mark: screen()?.dataset.mark ?? "" }));
    one.onmessage = ({ data }) => { if (isWanted()) show(screen(), JSON.parse(data)); };
    one.onclose = () => { if (socket === one) socket = null; };
  }

  async function poll() {
    if (!isWanted() || socket?.readyState === WebSocket.OPEN) return;
    const into = screen();
    try {
      const answer = await fetch(`${into.dataset.url}?mark=${encodeURIComponent(into.dataset.mark)}`);
      if (answer.status === 200 && !answer.redirected) show(into, await answer.json());
    } catch { /* it is asked again */ }
  }

  /* ---- the replay ---- */

  function player() {
    const box = find("replay");
    if (!box) return;
    const [bar, time, play, speed, skip, note] =
      ["at", "time", "play", "speed", "skip", "note"].map((name) => find(`replay-${name}`));
    const began = Number(box.dataset.began);
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)");
    let part = null, next = 0, timer = 0, asked = 0;

    const clock = (seconds) => {
      const whole = Math.floor(seconds), two = (n) => String(n).padStart(2, "0");
      return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
    };

    function tell(seconds) {
      bar.value = String(seconds);
      time.textContent = `${clock(Number(bar.value))} of ${clock(Number(bar.max))}`;
      bar.setAttribute("aria-valuetext", time.textContent);
    }

    async function load(seconds) {
      const number = asked += 1;
      const answer = await fetch(`${box.dataset.part}?at=${seconds}`);
      if (!answer.ok) throw new Error(String(answer.status));
      const found = await answer.json();
      return number === asked ? found : null;
    }

    function draw(found, at) {
      part = found;
      next = 0;
      screen().replaceChildren();
      apply(screen(), [[0, 0, part.lines]]);
      while (next < part.frames.length && part.frames[next][0] <= at) step();
    }

    /* What went off the top is not on the screen any more. */
    function step() {
      apply(screen(), part.frames[next][1]);
      while (screen().children.length > Math.max(1, part.rows)) screen().firstElementChild.remove();
      next += 1;
    }

    async function seek(seconds) {
      tell(seconds);
      const at = began + seconds;
      try {
        const isHere = part && at >= part.at && (part.next === null || at < part.next);
        const found = isHere ? part : await load(seconds);
        if (found) draw(found, at);
        note.textContent = "";
      } catch {
        stop();
        note.textContent = "This part could not be loaded. The recording is not touched; try again.";
      }
    }

    const upcoming = () => part?.frames[next]?.[0] ?? part?.next ?? null;

    async function forward() {
      if (!part) await seek(Number(bar.value));
      const at = upcoming();
      if (at === null) { stop(); note.textContent = "End of the recording."; return false; }
      const isHole = next >= part.frames.length && part.hole;
      const why = part.hole === "gap"
        ? "Nothing was recorded for a while before this." : "The recording is cut before this.";
      if (next < part.frames.length) { step(); tell(at - began); note.textContent = ""; }
      else await seek(at - began + 0.0005);
      if (isHole) note.textContent = why;
      return true;
    }

    async function back() {
      const now = began + Number(bar.value);
      if (!part) await seek(Number(bar.value));
      const times = [part.at, ...part.frames.map(([at]) => at)].filter((at) => at < now - 0.0005);
      await seek(Math.max(0, (times.at(-1) ?? part.at - 0.01) - began + 0.0005));
    }

    function stop() {
      clearTimeout(timer);
      timer = 0;
      play.textContent = "Play";
    }

    async function run() {
      if (!part) await seek(Number(bar.value));
      const at = upcoming();
      if (at === null || !timer) { if (at === null) await forward(); return; }
      const gap = Math.max(0, at - began - Number(bar.value));
      const idle = skip.checked ? Math.min(gap, IDLE) : gap;
      const wait = isCalm.matches ? CALM : 1000 * idle / Number(speed.value);
      timer = setTimeout(async () => { if (await forward()) await run(); }, wait);
    }

    play.addEventListener("click", async () => {
      if (timer) return stop();
      if (Number(bar.value) >= Number(bar.max) - 0.1) await seek(0);
      timer = -1;
      play.textContent = "Pause";
      await run();
    });
    find("replay-after").addEventListener("click", () => { stop(); forward(); });
    find("replay-before").addEventListener("click", () => { stop(); back(); });
    bar.addEventListener("input", () => seek(Number(bar.value)));
    document.addEventListener("click", (event) => {
      const link = event.target.closest?.("[data-seek]");
      if (!link || event.metaKey || event.ctrlKey) return;
      event.preventDefault();
      history.replaceState(null, "", link.href);
      seek(Number(link.dataset.seek));
      screen().scrollIntoView({ block: "nearest" });
    });
    tell(Number(bar.value));
  }

  look();
  player();
  listen();
  setInterval(listen, 250);
  setInterval(poll, POLL);
  document.addEventListener("visibilitychange", listen);
  document.addEventListener("htmx:after:swap", () => { look(); listen(); });
})();
