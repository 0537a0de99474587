/* Carries a question from labsite to the device that holds a passkey, and its answer back. */
(() => {
  "use strict";

  const FAILED = {
    NotAllowedError: "No passkey was used. Try again, or use your password.",
    InvalidStateError: "This device has a passkey for you here already.",
    SecurityError: "This browser allows no passkeys at this address.",
    AbortError: "No passkey was used. Try again, or use your password.",
  };
  const SILENT = "labsite did not answer. Look at the page before you try again.";

  const bytes = (text) =>
    Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (one) => one.charCodeAt(0));
  const text = (buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  const known = (list) => (list || []).map((one) => ({ ...one, id: bytes(one.id) }));

  /* The words of the protocol, as the browser wants them and as labsite reads them. */
  const toCreate = (options) => ({
    ...options,
    challenge: bytes(options.challenge),
    user: { ...options.user, id: bytes(options.user.id) },
    excludeCredentials: known(options.excludeCredentials),
  });
  const toGet = (options) => ({
    ...options,
    challenge: bytes(options.challenge),
    allowCredentials: known(options.allowCredentials),
  });

  function written(credential) {
    const given = credential.response;
    const response = { clientDataJSON: text(given.clientDataJSON) };
    for (const part of ["attestationObject", "authenticatorData", "signature", "userHandle"]) {
      if (given[part]) response[part] = text(given[part]);
    }
    if (given.getTransports) response.transports = given.getTransports();
    return JSON.stringify({
      id: credential.id,
      rawId: text(credential.rawId),
      type: credential.type,
      clientExtensionResults: {},
      authenticatorAttachment: credential.authenticatorAttachment,
      response,
    });
  }

  class Refused extends Error {}

  async function post(address, form, more = {}) {
    const body = new URLSearchParams(new FormData(form));
    body.delete("password");
    for (const [name, value] of Object.entries(more)) body.set(name, value);
    const answer = await fetch(address, { method: "POST", body, headers: { Accept: "application/json" } });
    if (answer.redirected) { location.assign(answer.url); return null; }
    const said = await answer.json().catch(() => ({}));
    if (!answer.ok) {
      const text = `labsite answered with an error (${answer.status}). Reload the page and try again.`;
      throw new Refused(said.text || text);
    }
    return said;
  }

  async function use(button) {
    const form = button.form;
    const { question, answer, passkey } = button.dataset;
    if (passkey === "add" && !form.reportValidity()) return;
    const options = await post(question, form);
    if (!options) return;
    const credential = passkey === "add"
      ? await navigator.credentials.create({ publicKey: toCreate(options) })
      : await navigator.credentials.get({ publicKey: toGet(options) });
    const done = await post(answer, form, { answer: written(credential) });
    if (done) location.assign(done.next);
  }

  function say(button, words) {
    const place = document.getElementById("passkey-said");
    place.textContent = words;
    place.hidden = !words;
  }

  async function pressed(event) {
    const button = event.target.closest("button[data-passkey]");
    if (!button || button.getAttribute("aria-disabled") === "true") return;
    event.preventDefault();
    say(button, "");
    button.setAttribute("aria-disabled", "true");
    try {
      await use(button);
    } catch (wrong) {
      say(button, wrong instanceof Refused ? wrong.message : FAILED[wrong.name] || SILENT);
    } finally {
      button.removeAttribute("aria-disabled");
    }
  }

  document.addEventListener("click", pressed);
  document.addEventListener("DOMContentLoaded", () => {
    if (window.PublicKeyCredential) return;
    document.querySelectorAll("button[data-passkey]").forEach((button) => {
      button.disabled = true;
      say(button, "This browser knows no passkeys.");
    });
  });
})();
