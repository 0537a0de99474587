/* Logging in again on the page itself, when the log-in has expired: what was typed there stays. */
(() => {
  "use strict";

  const OUT = "You are logged out. What you typed on this page is kept: log in again and go on.";
  const OTHER = "You are logged in as somebody else now. Copy what you still need from this page, then reload it.";
  const SILENT = "labsite did not answer. What you typed is kept; try again.";

  let isOut = false;

  const address = () => document.body.dataset.again;
  const dialog = () => document.getElementById("again");

  /* The log-in ended: the page keeps what it shows, and says how to go on. */
  function out() {
    if (isOut || !address()) return;
    isOut = true;
    const press = Object.assign(document.createElement("button"), {
      type: "button",
      className: "btn small",
      textContent: "Log in",
    });
    press.addEventListener("click", ask);
    document.dispatchEvent(new CustomEvent("lab:out", { detail: { text: OUT, press } }));
  }

  async function fetched(body) {
    const answer = await fetch(address(), body ? { method: "POST", body } : {});
    const is = (kind) => answer.headers.get("Content-Type")?.startsWith(kind);
    if (is("application/json")) return { here: await answer.json() };
    const hasForm = answer.ok || answer.status === 401 || answer.status === 429;
    if (is("text/html") && hasForm) return { form: await answer.text() };
    return { wrong: is("text/plain") ? await answer.text() : SILENT };
  }

  /* The form in a dialog above the page, or straight on when another tab has logged in already. */
  async function ask() {
    if (dialog()?.open) return;
    const { here, form, wrong } = await fetched().catch(() => ({ wrong: SILENT }));
    if (here) return back(here);
    if (wrong) return document.dispatchEvent(new CustomEvent("lab:out", { detail: { text: wrong } }));
    const box = dialog() ?? document.body.appendChild(Object.assign(document.createElement("dialog"), { id: "again" }));
    box.setAttribute("aria-labelledby", "again-title");
    if (!box.open) box.showModal();
    show(box, form);
  }

  function show(box, form) {
    box.innerHTML = form;
    const name = box.querySelector("[name=username]");
    if (!name.value) name.value = document.body.dataset.user;
    box.querySelector("[name=password]").focus();
  }

  async function send(event) {
    const box = dialog();
    event.preventDefault();
    event.stopImmediatePropagation();
    const { here, form, wrong } = await fetched(new FormData(event.target)).catch(() => ({ wrong: SILENT }));
    if (here) return back(here);
    if (form) return show(box, form);
    const said =
      box.querySelector("[role=alert]") ?? box.querySelector("form").appendChild(document.createElement("p"));
    said.className = "error";
    said.setAttribute("role", "alert");
    said.textContent = wrong;
  }

  /* Every form of the page gets the token of the new log-in; the old one would be refused. */
  function back({ name, token }) {
    dialog()?.remove();
    isOut = false;
    document.querySelectorAll("input[name=csrfmiddlewaretoken]").forEach((input) => { input.value = token; });
    document.body.setAttribute("hx-headers:inherited", JSON.stringify({ "X-CSRFToken": token }));
    const text = name === document.body.dataset.user ? "" : OTHER;
    document.dispatchEvent(new CustomEvent("lab:in", { detail: { text } }));
  }

  /* Another tab may have logged in meanwhile. */
  async function look() {
    if (!isOut || document.hidden) return;
    const { here } = await fetched().catch(() => ({}));
    if (here && isOut) back(here);
  }

  function submitted(event) {
    if (event.target.closest("#again")) return send(event);
    if (!isOut) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    ask();
  }

  document.addEventListener("submit", submitted, true);
  document.addEventListener("click", ({ target }) => { if (target.closest("#again [data-close]")) dialog().close(); });
  document.addEventListener("lab:ended", out);
  document.addEventListener("lab:ask", ask);
  document.addEventListener("visibilitychange", look);
  window.addEventListener("focus", look);
})();
