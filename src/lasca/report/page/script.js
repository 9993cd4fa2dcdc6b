"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const PAGE = 25;
  const byId = (id) => document.getElementById(id);

  /** Make an element; text is always text, never markup. */
  function make(tag, className, ...children) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    for (const child of children) element.append(child);
    return element;
  }
  const text = (value) => make("bdi", "", value);
  const percent = (share) => `${Math.round(100 * share)} %`;

  function chip(code) {
    const element = make("span", `chip ${data.styles[code].kind}`, text(data.labels[code]));
    element.style.setProperty("--h", data.styles[code].hue);
    return element;
  }

  function candidates(row) {
    const most = Math.max(...row.c.map(([, weight]) => Math.abs(weight)), 1e-9);
    const list = make("ul", "candidates");
    for (const [code, weight] of row.c) {
      const bar = make("span", "weight");
      bar.style.setProperty("--w", `${(100 * Math.abs(weight)) / most}%`);
      bar.style.setProperty("--h", data.styles[code].hue);
      const shown = data.probability ? percent(weight) : weight.toFixed(2);
      list.append(make("li", data.styles[code].kind, chip(code), bar, make("span", "value", shown)));
    }
    return list;
  }

  function votes(row) {
    const groups = new Map();
    for (const [annotator, code] of row.v) {
      if (!groups.has(code)) groups.set(code, []);
      groups.get(code).push(annotator);
    }
    const ordered = [...groups].sort((a, b) => b[1].length - a[1].length || a[0] - b[0]);
    const list = make("ul", "votes");
    for (const [code, people] of ordered) {
      const item = make("li", "", chip(code), " ");
      people.sort((a, b) => data.reliability[b] - data.reliability[a]);
      people.forEach((annotator, i) => {
        const name = make("span", "who", text(data.names[annotator]));
        name.title = `reliability ${percent(data.reliability[annotator])}`;
        item.append(i ? ", " : "", name);
      });
      list.append(item);
    }
    if (row.m) list.append(make("li", "muted", `and ${row.m} more`));
    return list;
  }

  function verdict(row) {
    const line = make("p", "verdict", "inferred ", chip(row.z), ` ${percent(row.q)}`);
    if (row.g !== undefined) line.append(" · gold ", chip(row.g));
    line.append(" · ", make("span", "where", text(row.i), `, token ${row.p}`));
    return line;
  }

  function item(row) {
    const sentence = make("p", "sentence", text(row.b), make("mark", "", text(row.t)), text(row.a));
    sentence.dir = "auto";
    const score = make("span", "score", data.probability ? percent(row.s) : row.s.toFixed(2));
    score.title = data.probability ? "probability of two readings" : "ambiguity score";
    return make("li", "token", score, make("div", "body", sentence, candidates(row), votes(row), verdict(row)));
  }

  /* --- the list of ambiguous tokens: filter, search, show more ------------------------------------------------- */
  const list = byId("tokens"), pair = byId("pair"), search = byId("search"), more = byId("more"), found = byId("found");
  const haystack = data.rows.slice(0, data.listed).map((row) =>
    [row.b + row.t + row.a, row.i, ...row.v.map(([a]) => data.names[a])].join(" ").toLowerCase());
  let matches = [], shown = 0;

  function showMore(n) {
    for (const index of matches.slice(shown, shown + n)) list.append(item(data.rows[index]));
    shown = Math.min(shown + n, matches.length);
    more.hidden = shown >= matches.length;
    found.textContent = matches.length
      ? `${matches.length.toLocaleString("en")} found, ${shown.toLocaleString("en")} shown`
      : "nothing found";
  }

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    matches = [];
    for (let i = 0; i < data.listed; i++) {
      const right = !pair.value || data.rows[i].k === pair.value;
      if (right && words.every((word) => haystack[i].includes(word))) matches.push(i);
    }
    list.replaceChildren();
    shown = 0;
    showMore(pair.value || words.length ? PAGE : data.first);
  }

  byId("filters").hidden = !data.listed;
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  pair.addEventListener("change", filter);
  search.addEventListener("input", filter);
  more.addEventListener("click", () => {
    const first = shown;
    showMore(PAGE);
    const next = list.children[first];
    if (next) { next.tabIndex = -1; next.focus({ preventScroll: true }); }
  });
  filter();

  /* --- examples of confused labels ----------------------------------------------------------------------------- */
  const examples = byId("examples");
  const pairButtons = document.querySelectorAll("button[data-pair]");

  function showExamples(key) {
    const codes = key.split("-").map(Number);
    const rows = data.examples[key] || [];
    const heading = make("h3", "", "Examples: ", chip(codes[0]), " or ", chip(codes[1]));
    const shownRows = make("ol", "tokens");
    for (const index of rows) shownRows.append(item(data.rows[index]));
    const all = make("button", "", "Show all in the list");
    all.type = "button";
    all.addEventListener("click", () => {
      pair.value = key;
      search.value = "";
      filter();
      byId("ambiguous").scrollIntoView();
      pair.focus({ preventScroll: true });
    });
    const known = [...pair.options].some((option) => option.value === key);
    examples.replaceChildren(heading, rows.length ? shownRows : make("p", "muted", "There is no example on this page."));
    if (known) examples.append(make("p", "", all));
  }

  for (const button of pairButtons) {
    button.addEventListener("click", () => {
      const was = button.getAttribute("aria-pressed") === "true";
      for (const other of pairButtons) {
        other.setAttribute("aria-pressed", String(!was && other.dataset.pair === button.dataset.pair));
      }
      if (was) examples.replaceChildren();
      else showExamples(button.dataset.pair);
    });
  }

  /* --- tables that sort ---------------------------------------------------------------------------------------- */
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = head.querySelector("button");
      if (!button) return;
      button.addEventListener("click", () => {
        const numeric = head.classList.contains("n");
        const before = head.getAttribute("aria-sort");
        const falling = before ? before === "ascending" : numeric;
        const value = (row) => row.cells[column].dataset.sort;
        const rows = [...table.tBodies[0].rows].sort((a, b) => {
          const order = numeric ? Number(value(a)) - Number(value(b)) : value(a).localeCompare(value(b), "en", { numeric: true });
          return falling ? -order : order;
        });
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", falling ? "descending" : "ascending");
        table.tBodies[0].append(...rows);
      });
    });
  }

  /* --- from a dot to its row ----------------------------------------------------------------------------------- */
  for (const point of document.querySelectorAll(".point")) {
    point.addEventListener("click", () => {
      const row = byId(`annotator-${point.dataset.row}`);
      for (const other of document.querySelectorAll("tr.chosen")) other.classList.remove("chosen");
      row.classList.add("chosen");
      row.scrollIntoView({ block: "center" });
    });
  }

  /* --- light and dark, where am I, print ----------------------------------------------------------------------- */
  const theme = byId("theme"), root = document.documentElement;
  const isDark = () => root.dataset.theme === "dark"
    || (!root.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  const nameTheme = () => { theme.textContent = isDark() ? "Light" : "Dark"; theme.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`); };
  theme.hidden = false;
  theme.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; nameTheme(); });
  nameTheme();

  const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.hash.slice(1), a]));
  const visible = new Set();
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) visible[entry.isIntersecting ? "add" : "delete"](entry.target.id);
    const current = [...links.keys()].find((id) => visible.has(id));
    for (const [id, link] of links) {
      if (id === current) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
    }
  }, { rootMargin: "-15% 0px -60% 0px" });
  for (const id of links.keys()) watcher.observe(byId(id));

  const opened = [];
  addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details:not([open])")) { details.open = true; opened.push(details); }
  });
  addEventListener("afterprint", () => { for (const details of opened.splice(0)) details.open = false; });
})();
