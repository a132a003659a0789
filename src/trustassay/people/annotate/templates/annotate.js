// Keys, and ratings that are sent again until the server has stored them. The page works without.
(() => {
  "use strict";
  const RETRY_MS = 1500;
  const fault = document.getElementById("fault");
  const view = () => document.getElementById("view");
  let busy = false;

  // --- One tab of a rater writes -------------------------------------------------------------

  const SIGN_MS = 5000;
  const elsewhere = document.getElementById("elsewhere");
  // A reload goes on with its name; a copy of the tab does not, since the name is kept only then.
  let tab = sessionStorage.getItem("tab") ?? Math.random().toString(36).slice(2);
  sessionStorage.removeItem("tab");
  const home = location.pathname;

  const lose = (lost) => {
    elsewhere.hidden = !lost;
    view().inert = lost;
  };
  const claim = async (more = {}) => {
    try {
      const body = new URLSearchParams({ tab, ...more });
      const { status } = await fetch(`${home}/tab`, { method: "POST", body });
      if (status === 409) lose(true);
      return status === 204;
    } catch {
      return false; // the server is down: a rating is sent again and says so
    }
  };
  let taking = false;
  document.getElementById("take").addEventListener("click", async () => {
    taking = await claim({ take: "1" });
    if (taking) location.reload(); // the other tab may have gone on
  });
  const sign = () => elsewhere.hidden && claim();
  setInterval(sign, SIGN_MS);
  document.addEventListener("visibilitychange", () => document.hidden || sign());
  addEventListener("pagehide", () => {
    sessionStorage.setItem("tab", tab);
    // While this tab reloads to go on, the other one may not take its place.
    if (!taking) navigator.sendBeacon(`${home}/tab`, new URLSearchParams({ tab, leave: "1" }));
  });
  addEventListener("pageshow", (event) => {
    sessionStorage.removeItem("tab");
    if (event.persisted) location.reload();
    else sign();
  });

  const say = (text) => {
    fault.textContent = text;
    fault.hidden = !text;
  };

  // --- Drafts of notes survive a reload ------------------------------------------------------

  const draft = () => `note ${location.pathname} ${view().querySelector("[name=step]")?.value}`;
  const note = () => document.getElementById("note");
  const restore = () => {
    const kept = sessionStorage.getItem(draft());
    if (note() && kept !== null) note().value = kept;
  };
  document.addEventListener("input", (event) => {
    if (event.target === note()) sessionStorage.setItem(draft(), note().value);
  });

  // --- Sending -------------------------------------------------------------------------------

  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

  // Only what the server has answered counts as stored; until then the same request is repeated,
  // which is harmless: it names the answer that it is about.
  const send = async (url, body) => {
    for (;;) {
      try {
        const response = await fetch(url, { method: "POST", body });
        const text = await response.text();
        if (response.ok || response.status < 500) return { ok: response.ok, status: response.status, url: response.url, text };
        say(`Not stored: ${text} Trying again.`);
      } catch {
        say("Not stored yet: the server does not answer. Trying again; keep this page open.");
      }
      await wait(RETRY_MS);
    }
  };

  const folds = new Map(); // what the rater opened or folded stays so at the next answer
  document.addEventListener("click", (event) => {
    const fold = event.target.closest?.("summary")?.parentElement;
    if (fold) folds.set(fold.className, !fold.open);
  });

  const show = (html) => {
    const step = () => view().querySelector("[name=step]")?.value;
    const former = step();
    const page = new DOMParser().parseFromString(html, "text/html");
    view().replaceWith(document.adoptNode(page.getElementById("view")));
    for (const fold of document.querySelectorAll("details")) fold.open = folds.get(fold.className) ?? fold.open;
    restore();
    document.querySelector(".scale.active")?.scrollIntoView({ block: "nearest" });
    const current = document.querySelector(".one.current");
    if (current?.previousElementSibling) current.scrollIntoView({ block: "nearest" });
    else window.scrollTo(0, 0);
    // Of the same answer the next scale is read out, else the next question.
    const next = former && former === step() ? ".several .active h2" : "#question";
    (document.querySelector(next) ?? document.getElementById("question")).focus({ preventScroll: true });
  };

  document.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (busy || view().inert) return;
    busy = true;
    const button = event.submitter;
    const url = button?.getAttribute("formaction") ?? event.target.getAttribute("action");
    const body = new URLSearchParams(new FormData(event.target, button));
    const kept = draft();
    view().setAttribute("aria-busy", "true");
    body.set("tab", tab);
    const { ok, status, url: next, text } = await send(url, body);
    busy = false;
    view().removeAttribute("aria-busy");
    if (status === 409) {
      say("");
      lose(true);
      return;
    }
    if (!ok) {
      say(`Not stored: ${text}`);
      return;
    }
    say("");
    if (!url.endsWith("/undo")) sessionStorage.removeItem(kept);
    history.replaceState(null, "", next); // a reload shows the same again
    show(text);
  });

  // --- Keys ----------------------------------------------------------------------------------

  document.addEventListener("keydown", (event) => {
    if (view().inert || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (event.target === note()) {
      if (event.key === "Escape") note().blur();
      return;
    }
    if (event.key === "n" && note()) {
      event.preventDefault();
      note().focus();
      return;
    }
    const found = Array.from(document.querySelectorAll("[data-keys]")).find((element) =>
      element.dataset.keys.split(" ").includes(event.key),
    );
    if (found && !found.disabled) {
      event.preventDefault();
      found.click();
    }
  });

  restore();
})();
