"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const PAGE = 200, POLL = 4000;
  let items = [], total = 0, audits = 0, at = 0, current = null, reading = [], active = 0, votes = false, version = 0, busy = false, state = null;

  /** Make an element; text is always text, never markup. */
  function make(tag, className, ...children) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    for (const child of children) element.append(child);
    return element;
  }

  async function ask(what, values = {}) {
    const answer = await fetch(`api/${what}?${new URLSearchParams({ who: who(), ...values })}`);
    return open(answer);
  }
  async function send(what, body) {
    const answer = await fetch(`api/${what}`, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ who: who(), ...body }),
    });
    return open(answer);
  }
  async function open(answer) {
    if (answer.ok) return answer.json();
    let words = `${answer.status}`;
    try { words = (await answer.json()).error || words; } catch { /* plain text */ }
    throw new Error(words);
  }
  const who = () => byId("who").value.trim() || "reviewer";

  function notice(words) {
    byId("notice").textContent = words;
    byId("notice").hidden = !words;
  }

  /* --- the queue ----------------------------------------------------------------------------------------------- */
  async function load(keep) {
    const found = await ask("queue", { first: 0, n: PAGE, words: byId("search").value, second: byId("second").checked ? "1" : "0" });
    items = found.items; total = found.total; audits = found.audits; version = found.version;
    counted(total - audits, audits);
    const place = keep ? items.findIndex((item) => item.item === keep) : -1;
    at = Math.max(place, 0);
    list();
    await show();
  }

  function counted(plain, audits) {
    const parts = [plain ? `${plain.toLocaleString("en")} to decide` : "", audits ? `${audits.toLocaleString("en")} drawn at random` : ""];
    byId("count").textContent = parts.filter(Boolean).join(", ");
  }

  function list() {
    byId("queue").replaceChildren(...items.map((item) => {
      const row = make("li", "", make("bdi", "", item.words), make("small", "", item.why));
      row.addEventListener("click", () => { at = items.indexOf(item); here(); show(); });
      return row;
    }));
    here();
  }

  /** Say which row is at hand, and nothing else: to make all rows anew takes longer than a decision may. */
  function here() {
    for (const row of byId("queue").querySelectorAll("[aria-current]")) row.removeAttribute("aria-current");
    const row = byId("queue").children[at];
    if (!row) return;
    row.setAttribute("aria-current", "true");
    byId("queue").scrollTop = Math.max(row.offsetTop - byId("queue").offsetTop - 80, 0);
  }

  function drop(names) {  // an item and an audit of the same place are twins: who answered one is not asked the other
    const twins = names.map((name) => (name.startsWith("audit ") ? name.slice(6) : `audit ${name}`));
    const gone = new Set([...names, ...twins.filter((name) => items.some((item) => item.item === name))]);
    [...byId("queue").children].forEach((row, i) => { if (gone.has(items[i].item)) row.remove(); });
    items = items.filter((item) => !gone.has(item.item));
    total = Math.max(total - gone.size, 0);
    audits = Math.max(audits - [...gone].filter((name) => name.startsWith("audit ")).length, 0);
    counted(total - audits, audits);
    at = Math.min(at, Math.max(items.length - 1, 0));
    here();
  }

  async function show() {
    const chosen = items[at];
    byId("card").hidden = !chosen;
    byId("end").hidden = Boolean(chosen);
    current = null;
    byId("card").setAttribute("aria-busy", String(Boolean(chosen)));
    byId("again").hidden = !state || !(state.open + state.audits);
    if (!chosen) return;
    const found = await ask("item", { item: chosen.item, votes: votes ? "1" : "0" });
    if (!items[at] || items[at].item !== chosen.item) return;
    current = { ...found, glued: new Set(found.glued), wordless: found.tokens.every((token) => token === "_") };
    reading = found.candidates[0].spans.map((span) => [...span]);
    active = 0;
    byId("missed").checked = false;
    byId("rest").hidden = !found.rest;
    for (const key of document.querySelectorAll(".actions button[data-key] kbd")) key.hidden = Boolean(labelled(key.textContent));
    byId("type").replaceChildren(...found.types.map((name) => { const option = make("option", "", name || "span"); option.value = name; return option; }));
    draw();
    byId("card").setAttribute("aria-busy", String(busy));
  }

  const QUESTIONS = {
    label: "Which label?", borders: "Where does it begin and end?", whether: "Is this a span?", reading: "Which reading?",
    missed: "Was a span missed here?", audit: "Is this right?",
  };

  function words(spans) {
    if (!spans.length) return current.scheme ? "none" : "–";
    if (current.wordless || !current.scheme) return spans.map(([, , kind]) => kind || "span").join("; ");
    const type = (kind, i) => (i && spans[i - 1][2] === kind ? "" : `${kind || "span"}: `);  // named where it changes
    const text = (start, stop) => current.tokens.slice(start, stop).map((token, i) => (i ? blank(start + i) : "") + token).join("");
    return spans.map(([start, stop, kind], i) => type(kind, i) + text(start, stop)).join("; ");
  }
  const blank = (i) => (current.glued.has(i) ? "" : " ");  // as the text had it
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

  function draw() {
    byId("reason").textContent = current.why;
    const here = current.gain - current.elsewhere;
    byId("gain").textContent = current.audit ? "" : `about ${here.toFixed(2)} errors here`;
    byId("alike").textContent = current.alike ? `· may settle ${current.elsewhere.toFixed(1)} more in ${current.alike} alike` : "";
    byId("question").textContent = QUESTIONS[current.question] || "Which reading?";
    const sentence = byId("sentence");
    sentence.replaceChildren();
    let open = null;
    if (current.wordless) sentence.append(make("mark", "active", make("bdi", "", current.words)));  // the file had no words
    else current.tokens.forEach((token, i) => {
      const k = reading.findIndex(([start, stop]) => start <= i && i < stop);
      const asked = i > current.start && i < current.stop && !open && k < 0;  // what is asked about is one stretch, not words
      if (i) (open && k >= 0 && reading[k][0] < i ? open : sentence).append(asked ? make("span", "area", blank(i)) : blank(i));
      if (k >= 0) {
        if (reading[k][0] === i) { open = make("mark", k === active ? "active" : ""); sentence.append(make("bdi", "", open)); }
        open.append(make("bdi", "", token));
        if (reading[k][1] === i + 1) open.append(make("small", "", reading[k][2] || "span"));
      } else {
        open = null;
        sentence.append(make("bdi", i >= current.start && i < current.stop ? "area" : "", token));
      }
    });
    sentence.classList.toggle("more", sentence.scrollHeight > sentence.clientHeight + 4);
    const first = sentence.querySelector("mark, .area");
    const line = parseFloat(getComputedStyle(sentence).lineHeight);  // no line is cut in half
    if (first) sentence.scrollTop = Math.max(Math.round((first.offsetTop - sentence.offsetTop) / line) - 2, 0) * line;
    byId("candidates").replaceChildren(...current.candidates.map((candidate) => {
      const button = make("button", "", make("kbd", "", candidate.key), " ", make("bdi", "", words(candidate.spans)));
      button.type = "button";
      if (same(candidate.spans, reading)) button.setAttribute("aria-current", "true");
      if (candidate.votes) {
        const said = candidate.votes.length ? candidate.votes.join(", ") : "nobody";
        button.append(make("span", "said", `${said} · model ${Math.round(100 * candidate.probability)} %`));
      }
      button.addEventListener("click", () => decide([candidate.spans]));
      return make("li", "", button);
    }));
    const taken = words(reading);
    byId("taken").textContent = taken.length > 60 ? `${taken.slice(0, 59)}…` : taken;
    for (const button of document.querySelectorAll("#edit button, [data-key='0']")) button.hidden = !current.scheme;  // every token has one label
    document.querySelector("[data-key=a]").hidden = current.candidates.length < 2;
    byId("both").textContent = current.candidates.slice(0, 2).map((candidate) => candidate.key).join(" and ");
    document.querySelector("[data-key=b]").hidden = !current.alike;
    byId("type").value = (reading[active] || proposed())[2];
  }

  function progress(found) {
    state = found;
    if (!byId("search").value && !byId("second").checked) counted(found.open, found.audits);  // as the head of the page has it
    byId("title").textContent = found.title ?? byId("title").textContent;
    const share = found.decided / Math.max(found.decided + found.open, 1);
    byId("bar").style.width = `${100 * share}%`;
    const errors = `about ${Math.round(found.errors).toLocaleString("en")} error${Math.round(found.errors) === 1 ? "" : "s"}`;
    const parts = [`${found.decided.toLocaleString("en")} decided`, `${found.open.toLocaleString("en")} open`];
    // where nothing is open, what is left is a guess about what nobody asks about: only the audit can tell
    parts.push(...(found.open ? [`${errors} left`, `the next removes about ${found.gain.toFixed(1)}`] : [`${errors} expected in what nobody looked at; the audit measures them`]));
    if (found.audited) parts.push(`${found.audited} audited` +
      (found.waiting ? ` (${found.waiting} count once the skipped one before, last in the list, is answered)` : ""));
    if (found.second.areas) parts.push(`second opinions ${found.second.same}/${found.second.areas} agree`);
    if (found.refit) parts.push("refitting …");
    else if (found.version > 1) parts.push(`ranked anew ${found.version - 1}×`);
    byId("progress").textContent = parts.join(" · ");
    const changed = found.changed;
    byId("changes").hidden = !changed.areas;
    byId("changed").replaceChildren(...changed.examples.map((one) =>
      make("li", "", make("bdi", "", one.word), ` ${one.before} → ${one.after} `, make("small", "", make("bdi", "", one.sequence)))));
    if (found.failed) notice(`The refit failed: ${found.failed}`);
  }

  /* --- deciding ------------------------------------------------------------------------------------------------ */
  function working(on) {  // keys pressed meanwhile are for a card nobody has seen: they are not taken
    busy = on;
    byId("card").setAttribute("aria-busy", String(on));
  }

  async function decide(readings, alike = []) {
    if (!current || busy) return;
    working(true);
    try {
      const body = { item: current.item, readings, votes, alike, missed: byId("missed").checked };
      const answer = await send("decide", body);
      notice("");
      drop([current.item, ...alike]);
      progress({ ...answer.state, title: undefined });
      if (answer.state.version !== version || (items.length < 20 && total > items.length)) await load();
      else await show();
    } catch (error) { notice(`Not taken: ${error.message}`); }
    working(false);
  }

  async function undo() {
    if (busy) return;
    working(true);
    try {
      const answer = await send("undo", {});
      notice(answer.items.length ? `Taken back: ${answer.items.length}` : "There is nothing to take back");
      progress({ ...answer.state, title: undefined });
      await load(answer.items[0]);
    } catch (error) { notice(error.message); }
    working(false);
  }

  async function forAll() {
    const mine = reading.map((span) => [...span]);
    const others = (await ask("alike", { item: current.item })).items;
    if (!others.length) { notice("There is nothing alike"); return; }
    byId("others").replaceChildren(...others.map((one) => make("li", "", make("bdi", "", `${one.before} `), make("strong", "", make("bdi", "", one.words)), make("bdi", "", ` ${one.after}`))));
    byId("all-title").textContent = `${words(mine)} – the same for these ${others.length}?`;
    const dialog = byId("all");
    dialog.returnValue = "";
    dialog.onclose = () => { if (dialog.returnValue === "yes") decide([mine], others.map((one) => one.item)); };
    dialog.showModal();
    dialog.querySelector("button").focus();  // a list that scrolls would take the focus, and with it the keys
  }

  /** What is asked about as a span: marked where nothing is, to be moved and named from there. */
  function proposed() {
    const known = current.candidates.flatMap((candidate) => candidate.spans)[0];
    return [current.start, current.stop, known ? known[2] : byId("type").value];
  }
  function begin() {
    reading = [proposed()];
    active = 0;
  }

  function move(left, step) {
    if (!current.scheme) return;
    if (!reading.length) { begin(); draw(); return; }
    const span = reading[active];
    const before = reading[active - 1], after = reading[active + 1];
    if (left) {
      const to = span[0] + step;
      if (to >= (before ? before[1] : 0) && to < span[1]) span[0] = to;
    } else {
      const to = span[1] + step;
      if (to <= (after ? after[0] : current.tokens.length) && to > span[0]) span[1] = to;
    }
    draw();
  }

  /** A label that is a letter (answers A, B, C) is taken by it: there the key does nothing else. */
  function labelled(key) {
    if (!current || current.scheme || !/^\p{L}$/u.test(key)) return undefined;
    return current.types.find((name) => name === key) ?? current.types.find((name) => name.toLowerCase() === key.toLowerCase());
  }

  function press(key, shift) {
    const left = key.startsWith("S-") || (shift && key.startsWith("Arrow"));
    const name = key.replace("S-", "");
    if (name === "?" ) { byId("help").showModal(); return true; }
    if (name === "/") { byId("search").focus(); return true; }
    if (name === "u" || name === "U") { undo(); return true; }
    if (!current) return false;
    if (name === "Enter") decide([reading]);
    else if (/^[0-9]$/.test(name)) {
      const chosen = current.candidates.find((candidate) => candidate.key === name);
      if (chosen) decide([chosen.spans]);
      else if (name === "0") { if (current.scheme) decide([[]]); else notice("Every token has a label here"); }
    }
    else if (name === "ArrowLeft") move(left, -1);
    else if (name === "ArrowRight") move(left, 1);
    else if (name === ",") { active = reading.length ? (active + 1) % reading.length : 0; draw(); }
    else if (name === "t" || name === "T") { byId("type").focus(); }
    else if (name === "a" || name === "A") {
      const both = current.candidates.slice(0, 2).map((candidate) => candidate.spans);
      if (both.length === 2) decide(both); else notice("There is one reading only");
    }
    else if (name === "s" || name === "S") decide([]);
    else if (name === "b" || name === "B") forAll();
    else if (name === "j" || name === "J" || name === "k" || name === "K") {
      const step = name.toLowerCase() === "j" ? 1 : -1;
      at = Math.min(Math.max(at + step, 0), items.length - 1);
      here(); show();
    }
    else if (name === "v" || name === "V") { votes = !votes; const kept = reading, place = active; show().then(() => { reading = kept; active = place; draw(); }); }
    else if (name === "m" || name === "M") { if (current.rest) byId("missed").checked = !byId("missed").checked; }
    else return false;
    return true;
  }

  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const typing = event.target.closest("input:not([type=checkbox]), select");
    if (typing) {
      if (event.key === "Escape" || event.key === "Enter") { typing.blur(); byId("main").focus(); event.preventDefault(); }
      return;
    }
    if (event.key === "Enter" && event.target.closest("button, a")) return;
    const label = labelled(event.key);
    if (label) decide([[[current.start, current.stop, label]]]);
    else if (press(event.key, event.shiftKey)) event.preventDefault();
  });
  for (const button of document.querySelectorAll("button[data-key]")) {
    button.addEventListener("click", () => { press(button.dataset.key, false); byId("main").focus({ preventScroll: true }); });
  }
  byId("type").addEventListener("change", () => {
    if (!current) return;
    const kind = byId("type").value;
    if (!reading.length) begin();
    reading[active][2] = kind;
    draw();
  });
  addEventListener("resize", () => { if (current) draw(); });  // what is asked stays in sight
  byId("find").addEventListener("submit", (event) => event.preventDefault());
  byId("search").addEventListener("input", () => load().catch((error) => notice(error.message)));
  byId("second").addEventListener("change", () => load().catch((error) => notice(error.message)));
  byId("who").addEventListener("change", () => { sessionStorage.setItem("who", byId("who").value); load(); });

  setInterval(async () => {
    if (busy || document.hidden) return;
    try {
      const before = state ? state.decided + state.audited : 0;
      const found = await ask("state");
      progress(found);
      const moved = found.version !== version || found.decided + found.audited !== before;  // ranked anew, or somebody else decided
      if (moved && !busy && !byId("second").checked && !document.querySelector("dialog[open]")) {
        const kept = current && current.item, mine = reading, place = active;
        await load(kept);
        if (current && current.item === kept) { reading = mine; active = place; draw(); }
        else if (kept) notice("Somebody else decided that one meanwhile; this is the next");
      }
    } catch (error) { notice(`The server does not answer: ${error.message}`); }
  }, POLL);

  byId("who").value = sessionStorage.getItem("who") || "reviewer";
  byId("main").focus({ preventScroll: true });
  Promise.all([ask("state").then(progress), load()]).catch((error) => notice(error.message));
})();
