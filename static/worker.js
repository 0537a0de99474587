/* The service worker. It keeps the offline page and what that page needs, and nothing that could be old:
   every page comes from labsite or is replaced by the one that says it cannot be reached.
   `LAB` is written by the script that loads this one. */
"use strict";

const KEPT = `lab-${LAB.version}`;

async function keep() {
  const cache = await caches.open(KEPT);
  await cache.addAll(LAB.files.map((url) => new Request(url, { credentials: "omit", cache: "reload" })));
  await self.skipWaiting();
}

async function takeOver() {
  const old = (await caches.keys()).filter((name) => name.startsWith("lab-") && name !== KEPT);
  await Promise.all(old.map((name) => caches.delete(name)));
  await self.registration.navigationPreload?.enable();
  await self.clients.claim();
}

/* A page, or the one that says that there is none. It answers 503, as nobody is there to say more. */
async function page(event) {
  try {
    return (await event.preloadResponse) || (await fetch(event.request));
  } catch {
    const found = await caches.match(LAB.offline);
    return found ? new Response(found.body, { status: 503, headers: found.headers }) : Response.error();
  }
}

const fileOf = async (request) => {
  try {
    return await fetch(request);
  } catch {
    return (await caches.match(request)) || Response.error();
  }
};

self.addEventListener("install", (event) => event.waitUntil(keep()));
self.addEventListener("activate", (event) => event.waitUntil(takeOver()));
self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET") return;
  if (request.mode === "navigate") event.respondWith(page(event));
  else if (LAB.files.includes(new URL(request.url).pathname)) event.respondWith(fileOf(request));
});

/* ---- pushes: shown, answered for, and acted on ---- */

const OFFLINE = "This device is offline. Nothing was changed; open labsite to see how things stand.";
const UNKNOWN = "labsite did not answer. It is not known whether it was done; open labsite to see how things stand.";

/* Tells labsite what became of a push, by the id that came with it. It may get lost: nothing rests on it. */
const answer = (id, what) =>
  id && fetch(LAB.receipt, { method: "POST", body: new URLSearchParams({ id, what }) }).catch(() => {});

async function show(told) {
  await self.registration.showNotification(told.title || "labsite", {
    body: told.body || "",
    tag: told.tag || "labsite",
    renotify: true,
    icon: LAB.icon,
    badge: LAB.badge,
    timestamp: told.at,
    data: told,
    actions: (told.acts || []).map(({ act, label }) => ({ action: act, title: label })),
  });
}

async function take(event) {
  const told = event.data?.json() ?? {};
  const pages = await self.clients.matchAll({ type: "window" });
  pages.forEach((page) => page.postMessage("news"));
  // Said once it is on the screen: a device that may not show it any more has not delivered it.
  await show(told);
  await answer(told.receipt, "delivered");
  await remember().catch(() => {});
}

/* The act of a button, done once; what came of it takes the place of the notification. */
async function act(told, chosen) {
  // What was sent may have arrived, though no answer came back.
  let said = { text: self.navigator.onLine ? UNKNOWN : OFFLINE, url: told.url };
  try {
    const done = await fetch(chosen.url, { method: "POST", headers: { Accept: "application/json" } });
    said = await done.json();
  } catch {
    // As said above.
  }
  await self.registration.showNotification(told.title, {
    body: said.text,
    tag: told.tag,
    icon: LAB.icon,
    badge: LAB.badge,
    data: { url: said.url || told.url },
  });
}

async function open(url) {
  const address = new URL(url || LAB.scope, self.location.origin);
  if (address.origin !== self.location.origin) return;
  const pages = await self.clients.matchAll({ type: "window" });
  const found = pages.find((page) => new URL(page.url).pathname === address.pathname);
  await (found ? found.focus() : self.clients.openWindow(address.href));
}

/* ---- a browser renews its subscription by itself: labsite is told, or its pushes would end unseen ---- */

const OWN = "device";
const plain = (buffer) =>
  btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
const keysOf = (one) => {
  const [p256dh, auth] = ["p256dh", "auth"].map((name) => plain(one.getKey(name)));
  return { endpoint: one.endpoint, p256dh, auth };
};

/* Some browsers do not say which subscription has ended: the last one that brought a push is kept. */
async function remember() {
  const now = await self.registration.pushManager.getSubscription();
  if (now) await (await caches.open(OWN)).put("/device", new Response(JSON.stringify(keysOf(now))));
}

async function renew(event) {
  const kept = await caches.match("/device", { cacheName: OWN });
  const old = event.oldSubscription ? keysOf(event.oldSubscription) : kept && (await kept.json());
  const options = event.oldSubscription?.options;
  const found = event.newSubscription || (await self.registration.pushManager.getSubscription()) ||
    (options && (await self.registration.pushManager.subscribe(options)));
  if (!old || !found) return;
  const body = new URLSearchParams({ ...keysOf(found), old: old.endpoint, old_auth: old.auth });
  const answer = await fetch(LAB.renew, { method: "POST", body });
  if (answer.ok) await remember();
}

self.addEventListener("pushsubscriptionchange", (event) => event.waitUntil(renew(event)));
self.addEventListener("push", (event) => event.waitUntil(take(event)));
self.addEventListener("notificationclick", (event) => {
  const { notification, action } = event, told = notification.data || {};
  const chosen = (told.acts || []).find((one) => one.act === action);
  notification.close();
  event.waitUntil(Promise.all([answer(told.receipt, "seen"), chosen ? act(told, chosen) : open(told.url)]));
});
self.addEventListener("notificationclose", (event) => {
  event.waitUntil(Promise.resolve(answer(event.notification.data?.receipt, "seen")));
});
