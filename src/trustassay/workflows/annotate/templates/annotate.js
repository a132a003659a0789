// Keys, and ratings that are sent again until the server has stored them. The page works without.
(() => {
  "use strict";
  const RETRY_MS = 1500;
  const fault = document.getElementById("fault");
  const view = () => document.getElementById("view");
  let busy = false;

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
        if (response.ok || response.status < 500) return { ok: response.ok, text };
        say(`Not stored: ${text} It is sent again.`);
      } catch {
        say("Not stored yet: the server does not answer. It is sent again; leave this page open.");
      }
      await wait(RETRY_MS);
    }
  };

  const show = (html) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    const open = new Set(Array.from(document.querySelectorAll("details[open]"), (e) => e.className));
    view().replaceWith(document.adoptNode(page.getElementById("view")));
    for (const fold of document.querySelectorAll("details")) fold.open = open.has(fold.className);
    restore();
    const current = document.querySelector(".one.current");
    if (current?.previousElementSibling) current.scrollIntoView({ block: "nearest" });
    else window.scrollTo(0, 0);
    document.getElementById("question").focus({ preventScroll: true });
  };

  document.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (busy) return;
    busy = true;
    const button = event.submitter;
    const url = button?.getAttribute("formaction") ?? event.target.getAttribute("action");
    const body = new URLSearchParams(new FormData(event.target, button));
    const kept = draft();
    view().setAttribute("aria-busy", "true");
    const { ok, text } = await send(url, body);
    busy = false;
    view().removeAttribute("aria-busy");
    if (!ok) {
      say(`Not stored: ${text}`);
      return;
    }
    say("");
    if (!url.endsWith("/undo")) sessionStorage.removeItem(kept);
    show(text);
  });

  // --- Keys ----------------------------------------------------------------------------------

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
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
