/* Turning on this device: the browser asks its person, subscribes, and the form is sent with what it says. */
(() => {
  "use strict";

  const NO_PUSH = "This browser takes no notifications here. It needs https or localhost, and on an iPhone labsite " +
    "has to be on the home screen.";
  const DENIED = "This browser does not show notifications of labsite. Allow them in its settings for this page.";
  const FAILED = "This browser could not reach its push service. Nothing was stored; try again.";

  const hex = (bytes) => [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const plain = (buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));

  async function subscribed(key) {
    const registration = await navigator.serviceWorker.ready;
    const options = { userVisibleOnly: true, applicationServerKey: bytes(key) };
    const before = await registration.pushManager.getSubscription();
    if (!before) return registration.pushManager.subscribe(options);
    const known = before.options.applicationServerKey;
    if (known && plain(known) === key) return before;
    await before.unsubscribe();  // of another labsite at this address, whose pushes nobody signs any more
    return registration.pushManager.subscribe(options);
  }

  async function turnOn(event) {
    event.preventDefault();
    const form = event.target, said = document.getElementById("device-said");
    const say = (text) => { said.textContent = text; said.hidden = false; };
    if (!("serviceWorker" in navigator) || !("PushManager" in window)) return say(NO_PUSH);
    if ((await Notification.requestPermission()) !== "granted") return say(DENIED);
    try {
      const found = await subscribed(form.dataset.key);
      form.elements.endpoint.value = found.endpoint;
      form.elements.p256dh.value = plain(found.getKey("p256dh"));
      form.elements.auth.value = plain(found.getKey("auth"));
    } catch {
      return say(FAILED);
    }
    form.submit();
  }

  /* Which of the devices of the list this browser is. */
  async function mark() {
    const rows = document.querySelectorAll("[data-device]");
    if (!rows.length || !("serviceWorker" in navigator) || !window.crypto?.subtle) return;
    const registration = await navigator.serviceWorker.getRegistration();
    const found = await registration?.pushManager?.getSubscription();
    if (!found) return;
    const digest = hex(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(found.endpoint)));
    for (const row of rows) row.querySelector("[data-this-device]").hidden = row.dataset.device !== digest;
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.getElementById("device-form")?.addEventListener("submit", turnOn);
    mark().catch(() => {});
  });
  document.addEventListener("htmx:after:swap", () => mark().catch(() => {}));
})();
