// Ratings that are sent again until the server has stored them, their keys, and what they say of
// all answers. Without a script the forms work as forms do.
(() => {
  "use strict";
  const RETRY_MS = 1500;
  const SOON_MS = 300;
  const LATER_MS = 4000;
  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const main = () => document.querySelector("main");
  const say = (text) => {
    const fault = document.getElementById("fault");
    fault.textContent = text;
    fault.hidden = !text;
  };

  // --- Drafts of notes survive a reload ------------------------------------------------------

  const draft = (form) => `note ${form.getAttribute("action")}`;
  const restore = () => {
    for (const note of document.querySelectorAll("[data-rate] textarea")) note.value = sessionStorage.getItem(draft(note.form)) ?? note.value;
  };
  document.addEventListener("input", ({ target }) => {
    if (target.matches("[data-rate] textarea")) sessionStorage.setItem(draft(target.form), target.value);
  });

  // --- Sending -------------------------------------------------------------------------------

  // Only what the server has answered counts as stored. The same request is harmless: it names the
  // answer that it is about.
  const send = async (url, body) => {
    for (;;) {
      try {
        const response = await fetch(url, { method: "POST", body });
        const text = await response.text();
        if (response.status < 500) return { ok: response.ok, url: response.url, text };
        say(`Not stored: ${text} Trying again; leave this page open.`);
      } catch {
        say("Not stored yet: the server does not answer. Trying again; leave this page open.");
      }
      await wait(RETRY_MS);
    }
  };

  // What was marked stays where it was on the screen; what was rated begins anew.
  const marks = (what) => [...document.querySelectorAll(`.marks ${what}`)];
  const show = (html, url, form) => {
    const [place, top] = [marks("form").indexOf(form), window.scrollY];
    const opened = marks("details").map((one) => one.open);
    const page = new DOMParser().parseFromString(html, "text/html");
    remember(page.getElementById("promise"));
    const fresh = [...page.querySelector("main").children].filter((one) => one.id !== "fault");
    main().replaceChildren(document.getElementById("fault"), ...fresh.map((one) => document.adoptNode(one)));
    for (const part of ["h1", ".where"]) document.querySelector(part).replaceWith(document.adoptNode(page.querySelector(part)));
    document.title = page.title;
    history.replaceState(null, "", url);
    restore();
    marks("details").forEach((one, at) => (one.open ||= opened[at] ?? false));
    document.querySelector("h1").tabIndex = -1;
    const next = marks("form")[place]?.querySelector("button") ?? document.querySelector("h1");
    next.focus({ preventScroll: true });
    window.scrollTo(0, place < 0 ? 0 : top);
    document.dispatchEvent(new Event("shown"));
    follow();
  };

  let busy = false;
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.matches("[data-rate]")) return;
    event.preventDefault();
    if (busy) return;
    busy = true;
    main().setAttribute("aria-busy", "true");
    const { ok, url, text } = await send(form.action, new URLSearchParams(new FormData(form, event.submitter)));
    main().removeAttribute("aria-busy");
    busy = false;
    say(ok ? "" : `Not stored: ${text}`);
    if (!ok) return;
    sessionStorage.removeItem(draft(form));
    show(text, url, form);
  });

  // --- What the ratings say of all answers ---------------------------------------------------

  const promise = () => document.getElementById("promise");
  let asking = null;
  let now = "";
  let before = "";
  // The interval before the last rating stands beside that of now, so that one sees it shrink.
  const remember = (part) => {
    const interval = part?.querySelector("[data-interval]")?.dataset.interval;
    if (!interval) return;
    if (interval !== now) [before, now] = [now, interval];
    if (before) part.querySelector("[data-before]").textContent = `Before the last rating: ${before}.`;
  };
  const follow = () => {
    clearTimeout(asking);
    if (promise()) asking = setTimeout(ask, "computing" in promise().dataset ? SOON_MS : LATER_MS);
  };
  const ask = async () => {
    try {
      const response = document.hidden ? null : await fetch(promise().dataset.promise);
      if (response?.ok && promise()) {
        const page = new DOMParser().parseFromString(await response.text(), "text/html");
        const fresh = page.getElementById("promise");
        const opened = promise().querySelector("details")?.open ?? false;
        remember(fresh);
        if (fresh.innerHTML !== promise().innerHTML) promise().replaceWith(document.adoptNode(fresh));
        const fold = promise().querySelector("details");
        if (fold) fold.open = opened;
      }
    } catch {
      // The server is down: a rating that is sent then says so.
    }
    follow();
  };

  // --- Keys ----------------------------------------------------------------------------------

  document.addEventListener("keydown", (event) => {
    if (busy || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (event.target.matches("input, select, textarea")) return;
    const folded = (one) => (one.matches("summary") ? one.parentElement.parentElement : one).closest("details:not([open])");
    const seen = (one) => !one.disabled && !folded(one);
    const note = [...document.querySelectorAll("[data-rate] textarea")].find(seen);
    const found = [...document.querySelectorAll("main [data-keys]")].find((one) => seen(one) && one.dataset.keys.split(" ").includes(event.key));
    if (!found && !(event.key === "m" && note)) return;
    event.preventDefault();
    if (found) found.click();
    else note.focus();
  });

  remember(promise());
  restore();
  follow();
})();
