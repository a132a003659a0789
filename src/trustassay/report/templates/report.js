// Search, order, filter, keys and theme. The page is complete without this script.
(() => {
  "use strict";
  const byId = (id) => document.getElementById(id);
  const list = byId("list");
  const search = byId("search");
  const verdict = byId("verdict");
  const order = byId("order");
  const problems = byId("problems");
  const rated = byId("rated"); // only where ratings were joined to the answers

  // --- What is known of each answer, read from the page once -------------------------------

  const rows = Array.from(list.querySelectorAll(":scope > details"), (element) => {
    const line = element.firstElementChild;
    const scores = [];
    const verdicts = [];
    for (const badge of line.querySelectorAll(".badge")) {
      const metric = Number(badge.dataset.metric ?? -1);
      if (badge.dataset.score !== undefined) scores[metric] = Number(badge.dataset.score);
      if (badge.dataset.verdict !== undefined) verdicts.push(`${metric}:${badge.dataset.verdict}`);
    }
    const problem = "problem" in element.dataset;
    const isRated = "rated" in element.dataset;
    const rating = element.dataset.rating === undefined ? undefined : Number(element.dataset.rating);
    const name = line.querySelector(".id");
    const id = name.textContent;
    const place = Number(name.dataset.place);
    const position = Number(element.id.slice(1));
    return { element, line, place, position, link: name.id, id, scores, verdicts, problem, isRated, rating, text: null };
  });

  // --- What is searched --------------------------------------------------------------------

  // The texts of the sample, not the words that a metric puts around them. On a long page it takes
  // a second to read them, so they are read while the page is idle, a few at a time.
  const around = ".badge, .chip, .why, .because, .numbers, h3";
  const textOf = (element) => {
    const parts = Array.from(element.querySelectorAll("bdi"));
    return parts
      .filter((part) => !part.parentElement.closest(around))
      .map((part) => part.textContent)
      .join("\n")
      .toLowerCase();
  };

  const READ_AT_ONCE_MS = 40;
  const inOrder = [...rows];
  let textsRead = 0;
  const readTexts = () => {
    const end = performance.now() + READ_AT_ONCE_MS;
    while (textsRead < inOrder.length && performance.now() < end) {
      const row = inOrder[textsRead];
      row.text = textOf(row.element);
      textsRead += 1;
    }
    return textsRead === inOrder.length;
  };

  const whenIdle = window.requestIdleCallback ?? ((work) => setTimeout(work, 50));
  const readWhenIdle = () => {
    if (!readTexts()) whenIdle(readWhenIdle);
  };

  // --- Search and filter -------------------------------------------------------------------

  const count = (n) => n.toLocaleString("en");
  const shown = () => rows.filter((row) => !row.element.hidden);

  let waiting = 0;
  const narrow = () => {
    clearTimeout(waiting);
    const terms = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (terms.length > 0 && !readTexts()) {
      byId("found").textContent = "Searching …";
      waiting = setTimeout(narrow);
      return;
    }
    let left = 0;
    for (const row of rows) {
      const fits =
        (!problems.checked || row.problem) &&
        (!rated?.checked || row.isRated) &&
        (!verdict.value || row.verdicts.includes(verdict.value)) &&
        terms.every((term) => row.text.includes(term));
      // Setting what is set already would cost a layout of the whole list.
      if (row.element.hidden === fits) row.element.hidden = !fits;
      left += fits;
    }
    byId("nothing").hidden = left > 0 || rows.length === 0;
    byId("found").textContent =
      left === rows.length
        ? `All ${count(left)} listed answers shown.`
        : `${count(left)} of ${count(rows.length)} listed answers shown.`;
    byId("nothing").textContent =
      problems.checked && !search.value && !verdict.value && !rated?.checked
        ? byId("nothing").dataset.noneFlagged
        : "No answer matches the search and the filters.";
  };

  const clear = () => {
    if (!search.value) return;
    search.value = "";
    narrow();
  };

  const offerVerdicts = () => {
    const found = new Map();
    for (const row of rows) {
      for (const value of row.verdicts) found.set(value, (found.get(value) ?? 0) + 1);
    }
    const names = Array.from(document.querySelectorAll("section.metric > .counts > .key"), (name) => name.textContent);
    for (const [value, times] of [...found].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const split = value.indexOf(":");
      const metric = Number(value.slice(0, split));
      const of = names.length > 1 && names[metric] ? `, ${names[metric]}` : "";
      verdict.append(new Option(`${value.slice(split + 1)}${of} (${count(times)})`, value));
    }
  };

  // --- Order -------------------------------------------------------------------------------

  const collator = new Intl.Collator("en", { numeric: true });

  // An answer without a number comes last, whichever way the others are ordered.
  const byNumber = (of, sign) => (a, b) => {
    const [x, y] = [of(a), of(b)];
    if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
    return sign * (x - y);
  };

  const arrange = () => {
    const [kind, way] = order.value.split(":");
    const compare =
      kind === "need"
        ? () => 0
        : kind === "position"
          ? (a, b) => a.position - b.position
        : kind === "id"
          ? (a, b) => collator.compare(a.id, b.id)
          : byNumber(
              kind === "rating" ? (row) => row.rating : (row) => row.scores[Number(kind)],
              way === "up" ? 1 : -1,
            );
    rows.sort((a, b) => compare(a, b) || a.place - b.place);
    list.append(...rows.map((row) => row.element));
  };

  // --- Keys --------------------------------------------------------------------------------

  const step = (by) => {
    const lines = shown();
    const here = document.activeElement.closest?.("#list > details");
    const at = lines.findIndex((row) => row.element === here);
    const next = lines[at < 0 ? (by > 0 ? 0 : lines.length - 1) : at + by];
    if (!next) return;
    next.line.focus({ preventScroll: true });
    next.line.scrollIntoView({ block: "center", behavior: "instant" });
  };

  const keys = {
    "/": () => search.focus(),
    j: () => step(1),
    k: () => step(-1),
    Escape: clear,
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const typing = event.target.matches?.("input[type=search], select, textarea");
    const act = keys[event.key];
    if (!act || (typing && event.key !== "Escape")) return;
    event.preventDefault();
    act();
  });

  // --- Links: to an answer by its id, and to places inside what is closed ------------------

  const decoded = (text) => {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  };
  const byLink = new Map(rows.map((row) => [decoded(row.link), row]));

  // The bar above the list covers what is below it, and is as high as its lines.
  const tools = byId("tools");
  const measure = () => {
    const sticks = getComputedStyle(tools).position === "sticky";
    document.documentElement.style.setProperty("--bar", `${sticks ? tools.offsetHeight : 0}px`);
  };

  const FRAMES = 3; // what scrolls into view is laid out only then, and may move the target
  const goTo = (target, frames = FRAMES) => {
    target.scrollIntoView({ block: "start", behavior: "instant" });
    if (frames > 0) requestAnimationFrame(() => goTo(target, frames - 1));
  };

  const reveal = () => {
    const hash = location.hash.slice(1);
    if (!hash) return;
    const linked = byLink.get(decoded(hash));
    const target = linked?.element ?? byId(hash);
    if (!target) {
      if (hash.startsWith("id=")) byId("found").textContent = "The answer of this link is not listed on this page.";
      return;
    }
    for (let element = target; element; element = element.parentElement) {
      if (element.localName !== "details") continue;
      element.hidden = false;
      element.open = true;
    }
    goTo(target);
  };

  // An answer that is opened can be linked to: the address names it.
  const named = (row) => {
    if (row.element.open) history.replaceState(null, "", `#${row.link}`);
  };

  // --- Print: all answers that need a look are open ----------------------------------------

  let opened = [];
  addEventListener("beforeprint", () => {
    const closed = document.querySelectorAll("details.fold:not([open]), details.answer[data-problem]:not([open])");
    opened = Array.from(closed);
    for (const element of opened) element.open = true;
  });
  addEventListener("afterprint", () => {
    for (const element of opened) element.open = false;
    opened = [];
  });

  // --- Theme -------------------------------------------------------------------------------

  const theme = byId("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
  const nameTheme = () => {
    theme.textContent = isDark() ? "Light theme" : "Dark theme";
  };
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
  });
  dark.addEventListener("change", nameTheme);
  nameTheme();
  theme.hidden = false;

  // --- Start -------------------------------------------------------------------------------

  if (rows.length > 0) {
    offerVerdicts();
    search.addEventListener("input", narrow);
    verdict.addEventListener("change", narrow);
    problems.addEventListener("change", narrow);
    rated?.addEventListener("change", narrow);
    order.addEventListener("change", arrange);
    for (const row of rows) row.line.addEventListener("click", () => setTimeout(() => named(row)));
    addEventListener("hashchange", reveal);
    narrow();
    if (order.value !== "need") arrange();
    tools.hidden = false;
    measure();
    new ResizeObserver(measure).observe(tools);
    reveal();
    addEventListener("load", reveal);
    whenIdle(readWhenIdle);
  }
})();
