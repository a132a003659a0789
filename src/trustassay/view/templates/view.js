// What the pages can do with a script: a theme, keys, parts that are loaded later, and parts that
// follow what changes on disk. Without it the pages are complete; links lead to the parts.
(() => {
  "use strict";
  const FOLLOW_MS = 2000;
  const base = document.body.dataset.base;
  const byId = (id) => document.getElementById(id);

  // --- What is wrong -------------------------------------------------------------------------

  const fault = byId("fault");
  const say = (text) => {
    if (fault.textContent !== text) fault.textContent = text;
    fault.hidden = !text;
  };

  // --- Theme ---------------------------------------------------------------------------------

  const theme = byId("theme");
  const preferred = matchMedia("(prefers-color-scheme: dark)");
  const name = () => localStorage.getItem("theme") ?? (preferred.matches ? "dark" : "light");
  const paint = () => {
    document.documentElement.dataset.theme = name();
    theme.textContent = name() === "dark" ? "Light theme" : "Dark theme";
  };
  theme.addEventListener("click", () => {
    localStorage.setItem("theme", name() === "dark" ? "light" : "dark");
    paint();
  });
  preferred.addEventListener("change", paint);
  paint();
  theme.hidden = false;

  // --- Parts from other pages ----------------------------------------------------------------

  const parsed = async (address) => {
    const response = await fetch(address);
    return new DOMParser().parseFromString(await response.text(), "text/html");
  };
  const load = async (section) => {
    section.setAttribute("aria-busy", "true");
    try {
      const page = await parsed(section.dataset.load);
      const part = page.querySelector("main .part, main .error");
      section.querySelector("h2").after(part ?? "There is nothing to show.");
      section.querySelector(":scope > p")?.remove();
    } catch {
      say("The server does not answer. Start the command again.");
    }
    section.removeAttribute("aria-busy");
  };
  const loadParts = () => {
    for (const section of document.querySelectorAll("[data-load]")) {
      const link = section.querySelector(":scope > p a");
      link.addEventListener("click", (event) => {
        event.preventDefault();
        load(section);
      });
      if (section.dataset.later === undefined) load(section);
    }
  };
  document.addEventListener("shown", loadParts); // a rating was sent, and its page came back
  loadParts();

  // --- Following what changes ----------------------------------------------------------------

  const live = () => byId("live");
  const busy = () => live().contains(document.activeElement) && document.activeElement.matches("input, select, textarea");
  let known = null;
  const follow = async () => {
    if (document.hidden) return;
    try {
      const asked = new URLSearchParams({ run: live().dataset.follow });
      const response = await fetch(`${base}/state?${asked}`);
      if (!response.ok) throw new Error(response.status);
      const { version } = await response.json();
      say("");
      if (known === null) known = version;
      if (version === known || busy()) return;
      const focused = document.activeElement?.getAttribute("href");
      const opened = [...live().querySelectorAll("details")].map((one) => one.open);
      live().replaceWith((await parsed(location.href)).getElementById("live"));
      [...live().querySelectorAll("details")].forEach((one, place) => (one.open = opened[place] ?? one.open));
      if (focused) [...live().querySelectorAll("a")].find((one) => one.getAttribute("href") === focused)?.focus();
      known = version;
    } catch {
      say("The server does not answer. Start the command again; this page then continues by itself.");
    }
  };
  if (live()) {
    follow();
    setInterval(follow, FOLLOW_MS);
  }

  // --- Keys ----------------------------------------------------------------------------------

  const rows = () => [...document.querySelectorAll(".answered h2 a, .runs th a")];
  const go = (rel) => document.querySelector(`a[rel=${rel}]`)?.click();
  const step = (by) => {
    const links = rows();
    const at = links.indexOf(document.activeElement);
    const next = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by];
    if (next) next.focus();
    else go(by > 0 ? "next" : "prev");
  };
  const needing = () => {
    const links = rows();
    const at = links.indexOf(document.activeElement);
    const next = links.slice(at + 1).find((one) => one.closest("[data-problem]"));
    if (next) next.click();
    else go("next");
  };
  const one = document.querySelector(".answer.whole");
  const KEYS = {
    j: () => (one ? go("next") : step(1)),
    k: () => (one ? go("prev") : step(-1)),
    o: () => (one ? go("next") : needing()),
    u: () => document.querySelector(".where a:last-of-type")?.click(),
    "/": () => document.querySelector("input[type=search]")?.focus(),
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target.matches("input, select, textarea")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (!Object.hasOwn(KEYS, event.key)) return;
    event.preventDefault();
    KEYS[event.key]();
  });
})();
