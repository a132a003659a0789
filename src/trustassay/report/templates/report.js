// Search, order, filters, groups, keys and theme. The page is complete without this script.
(() => {
  "use strict";
  const byId = (id) => document.getElementById(id);
  const list = byId("list");
  const search = byId("search");
  const verdict = byId("verdict");
  const order = byId("order");
  const problems = byId("problems");
  const rated = byId("rated"); // only where ratings were joined to the answers
  const filters = byId("filters"); // only where the input has columns to filter by
  const selects = Array.from(filters?.querySelectorAll("select") ?? []);
  const by = byId("by");

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
    const groups = (name.dataset.groups ?? "").split(" ");
    const outcome = name.dataset.outcome;
    return { element, line, place, position, link: name.id, id, scores, verdicts, groups, outcome, problem, isRated, rating, text: null };
  });

  // --- What is searched --------------------------------------------------------------------

  // The texts of the sample, not the words that a metric puts around them. On a long page it takes
  // a second to read them, so they are read while the page is idle, a few at a time.
  const around = ".badge, .chip, .why, .because, .numbers, h3";
  const textOf = (element) => {
    const parts = Array.from(element.querySelectorAll("bdi, .rendered"));
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

  // How many of the answers have each outcome, most first: "5 not supported, 2 supported".
  const outcomesOf = (some) => {
    const counts = new Map();
    for (const { outcome } of some) {
      if (outcome) counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
    }
    const sorted = Array.from(counts).sort(([, a], [, b]) => b - a);
    return sorted.map(([word, times]) => `${count(times)} ${word}`).join(", ");
  };

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
        selects.every((select, place) => !select.value || row.groups[place] === select.value) &&
        terms.every((term) => row.text.includes(term));
      // Setting what is set already would cost a layout of the whole list.
      if (row.element.hidden === fits) row.element.hidden = !fits;
      left += fits;
    }
    byId("nothing").hidden = left > 0 || rows.length === 0;
    const outcomes = outcomesOf(shown());
    byId("found").textContent =
      (left === rows.length
        ? `All ${count(left)} listed answers shown`
        : `${count(left)} of ${count(rows.length)} listed answers shown`) + (outcomes ? `: ${outcomes}.` : ".");
    const used = selects.filter((select) => select.value);
    byId("clear").hidden = left === rows.length && used.length === 0;
    if (filters) filters.firstElementChild.dataset.used = used.length || "";
    byId("nothing").textContent =
      problems.checked && !search.value && !verdict.value && !rated?.checked && used.length === 0
        ? byId("nothing").dataset.noneFlagged
        : "No listed answer matches the search and the filters.";
  };

  const clear = () => {
    if (!search.value) return;
    search.value = "";
    changed();
  };

  const clearAll = () => {
    for (const field of [search, verdict, ...selects]) field.value = "";
    for (const field of [problems, rated]) if (field) field.checked = false;
    changed();
  };

  // --- The address: what is searched and filtered, so that a link keeps it ------------------

  // After "#" in the address: q=..., verdict=..., order=..., look=1, rated=1, by=COLUMN, and
  // column.NAME=VALUE for each filter. The place of an answer, id=..., comes first.
  const labelOf = (select) => select.selectedOptions[0].dataset.label;
  const stateOf = () => {
    const state = new URLSearchParams();
    if (search.value) state.set("q", search.value);
    if (verdict.value) state.set("verdict", verdict.value);
    if (order.value !== "need") state.set("order", order.value);
    if (problems.checked) state.set("look", "1");
    if (rated?.checked) state.set("rated", "1");
    for (const select of selects) if (select.value) state.set(`column.${select.dataset.name}`, labelOf(select));
    if (by && byId("columns").open) state.set("by", by.selectedOptions[0].text);
    return state.toString();
  };

  const linkedNow = () => location.hash.slice(1).split("&").find((part) => part.startsWith("id="));
  const keep = (link = linkedNow()) => {
    const address = [link, stateOf()].filter(Boolean).join("&");
    // An empty address would leave "#" behind, and move the page to its top.
    history.replaceState(null, "", address ? `#${address}` : location.pathname + location.search);
  };

  // Set the fields that the address names, and return whether it names any: a link to a place alone
  // changes no filter.
  const restore = () => {
    const state = new URLSearchParams(location.hash.slice(1));
    const names = Array.from(state.keys()).filter((name) => /^(?:q|verdict|order|look|rated|by|column\..*)$/.test(name));
    if (names.length === 0) return false;
    search.value = state.get("q") ?? "";
    verdict.value = state.get("verdict") ?? "";
    order.value = state.get("order") ?? "need";
    problems.checked = state.has("look");
    if (rated) rated.checked = state.has("rated");
    for (const select of selects) {
      const label = state.get(`column.${select.dataset.name}`);
      const option = Array.from(select.options).find((one) => one.dataset.label === label);
      select.value = label !== null && option ? option.value : "";
    }
    const group = by && Array.from(by.options).find((one) => one.text === state.get("by"));
    if (group) {
      by.value = group.value;
      byId("columns").open = true;
    }
    // What a link of another page names, and this one does not have, is no choice.
    for (const field of [verdict, order]) if (field.selectedIndex < 0) field.selectedIndex = 0;
    return true;
  };

  const KEEP_AFTER_MS = 250;
  let keeping = 0;
  const changed = () => {
    narrow();
    keep();
  };

  // --- Groups: one column at a time, and its values as filters ------------------------------

  const showColumn = () => {
    for (const section of document.querySelectorAll("section.column")) {
      section.hidden = section.dataset.column !== by.value;
    }
  };

  const filterBy = (group) => {
    const [column, value] = group.split(":");
    selects[column].value = value;
    filters.open = true;
    changed();
    byId("answers").focus({ preventScroll: true });
    byId("answers").scrollIntoView({ behavior: "instant" });
  };

  const offerGroups = () => {
    for (const heading of document.querySelectorAll("th[data-group]")) {
      const button = document.createElement("button");
      button.type = "button";
      button.title = "Show these answers";
      button.append(...heading.childNodes);
      button.addEventListener("click", () => filterBy(heading.dataset.group));
      heading.append(button);
    }
    by.parentElement.hidden = false;
    by.addEventListener("change", () => {
      showColumn();
      keep();
    });
    byId("columns").firstElementChild.addEventListener("click", () => setTimeout(keep));
    showColumn();
    filters.hidden = false;
    filters.open = matchMedia("(min-width: 40rem)").matches || selects.some((select) => select.value);
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
    // What is filtered stands behind the place.
    const hash = location.hash.slice(1).split("&")[0];
    if (!hash) return;
    const linked = byLink.get(decoded(hash));
    const target = linked?.element ?? byId(hash);
    if (!target) {
      if (hash.startsWith("id=")) byId("found").textContent = "The linked answer is not listed on this page.";
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
    if (row.element.open) keep(row.link);
    else if (linkedNow() === row.link) keep("");
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
    restore();
    if (by) offerGroups();
    search.addEventListener("input", () => {
      narrow();
      // Not for each letter: browsers refuse an address that changes too often.
      clearTimeout(keeping);
      keeping = setTimeout(keep, KEEP_AFTER_MS);
    });
    for (const field of [verdict, problems, rated, ...selects]) field?.addEventListener("change", changed);
    order.addEventListener("change", () => {
      arrange();
      keep();
    });
    byId("clear").addEventListener("click", clearAll);
    for (const row of rows) row.line.addEventListener("click", () => setTimeout(() => named(row)));
    addEventListener("hashchange", () => {
      if (restore()) {
        if (by) showColumn();
        narrow();
        arrange();
      }
      reveal();
    });
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
