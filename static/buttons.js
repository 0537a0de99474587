/* Small manners of what can be pressed: a press that counts, a second press to confirm, copying, menus. */
(() => {
  "use strict";

  const ARMED_FOR = 5000;     // an armed button lapses
  const TOLD_FOR = 10000;     // what was done is told as long
  const STEADY = 4;           // pixels between press and release; more is a drag
  const PRESSABLE = "a[href], button, summary, label, input";

  const all = (selector) => document.querySelectorAll(selector);

  const lapses = new WeakMap();

  function disarm(button) {
    clearTimeout(lapses.get(button));
    if (!button.hasAttribute("data-armed")) return;
    button.textContent = button.dataset.armed;
    button.removeAttribute("data-armed");
  }

  function arm(button) {
    button.dataset.armed = button.textContent;
    button.textContent = button.dataset.confirm;
    lapses.set(button, setTimeout(() => disarm(button), ARMED_FOR));
  }

  /* Before htmx and before the form hear of it: the first press only arms. */
  function pressed(event) {
    const button = event.target.closest?.("button[data-confirm]");
    all("[data-armed]").forEach((other) => { if (other !== button) disarm(other); });
    if (!button) return;
    if (button.hasAttribute("data-armed")) return disarm(button);
    event.preventDefault();
    event.stopImmediatePropagation();
    arm(button);
  }

  /* A page that moves between press and release (an answer's banner comes in above) would swallow
     the click, or a finger would press what came under it. It goes to what was pressed. */
  let hold = null;

  function held(event) {
    const target = event.button === 0 ? event.target.closest?.(PRESSABLE) : null;
    hold = target ? { target, x: event.clientX, y: event.clientY } : null;
  }

  function released(event) {
    const { target, x, y } = hold ?? {};
    hold = null;
    if (!target || event.detail === 0 || event.target.closest?.(PRESSABLE) === target) return;
    if (Math.hypot(event.clientX - x, event.clientY - y) > STEADY) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (target.isConnected) target.dispatchEvent(new MouseEvent("click", event));
  }

  async function copy(button) {
    const source = document.querySelector(button.dataset.copy);
    if (!source) return;
    try {
      await navigator.clipboard.writeText(source.textContent);
      said(button, "Copied");
    } catch {
      getSelection().selectAllChildren(source);
      said(button, document.execCommand("copy") ? "Copied" : "Selected");
    }
  }

  function said(button, text) {
    button.dataset.said ??= button.textContent;
    button.textContent = text;
    setTimeout(() => { button.textContent = button.dataset.said; }, 2000);
  }

  function clicked(event) {
    const button = event.target.closest?.("button, summary");
    all("details.menu[open]").forEach((menu) => {
      if (!menu.contains(event.target) || button?.closest(".list")) menu.open = false;
    });
    if (!button) return;
    if (button.hasAttribute("data-dismiss")) button.closest(".banner").remove();
    if (button.dataset.copy) copy(button);
  }

  /* ---- rows that are chosen for one act ---- */

  function picked({ target }) {
    const marks = [...all("input[data-pick]")];
    if (target.matches("[data-pick-all]")) marks.forEach((mark) => { mark.checked = target.checked; });
    else if (!target.matches("[data-pick]")) return;
    all("[data-pick-all]").forEach((whole) => { whole.checked = marks.every((mark) => mark.checked); });
  }

  function keyed(event) {
    if (event.key !== "Escape") return;
    all("[data-armed]").forEach(disarm);
    all("details.menu[open]").forEach((menu) => { menu.open = false; menu.querySelector("summary").focus(); });
  }

  /* ---- what was done is told for a while; what went wrong stays until somebody dismisses it ---- */

  const told = new WeakMap();

  function fade() {
    all("#banner .banner:is(.success, .info)").forEach((box) => {
      const known = told.get(box);
      const isRead = document.hidden || box.matches(":hover, :focus-within");
      if (!known || known.text !== box.textContent || isRead) told.set(box, { text: box.textContent, at: Date.now() });
      else if (Date.now() - known.at > TOLD_FOR) box.remove();
    });
  }

  /* ---- a pressed button that the answer took away leaves the focus to what was said of it ---- */

  let lost = null;

  function leave({ detail: { ctx } }) {
    const button = ctx.sourceElement;
    if (ctx.request.method === "GET" || document.activeElement !== button) return;
    lost = { button, around: [] };
    for (let one = button.parentElement; one; one = one.parentElement) if (one.id) lost.around.push(one.id);
  }

  function find() {
    if (!lost || document.activeElement !== document.body || lost.button.isConnected) return;
    const around = lost.around.map((id) => document.getElementById(id)).find((one) => one?.querySelector("h1, h2"));
    const target =
      document.querySelector("#banner .banner") ??
      around?.querySelector("h1, h2") ??
      document.querySelector("h1");
    lost = null;
    if (!target) return;
    target.tabIndex = -1;
    target.focus({ preventScroll: true });
  }

  document.addEventListener("htmx:before:request", leave);
  document.addEventListener("htmx:after:swap", find);
  setInterval(fade, 1000);
  document.addEventListener("pointerdown", held, true);
  document.addEventListener("click", released, true);
  document.addEventListener("click", pressed, true);
  document.addEventListener("click", clicked);
  document.addEventListener("keydown", keyed);
  document.addEventListener("change", picked);
})();
