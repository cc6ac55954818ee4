// The list of sessions, newest first, with filters and a histogram.

import { get } from "./api.js";
import { OPEN, STATUS, badge, clock, duration, el, needs, number, tokens, when } from "./dom.js";

const EVERY_MS = 2000;
const PAGE = 50;
const HOUR_MS = 3600e3;
const COUNT_MS = 10000;
/** Time ranges; the stack's own default is seven days. */
const SPANS = [["", "last 7 days", null], ["1h", "last hour", HOUR_MS], ["24h", "last 24 hours", 24 * HOUR_MS]];
const FILTERS = ["status", "agent", "text", "span", "since", "until"];
/** Delay after a keystroke before the search text is sent. */
const PAUSE_MS = 250;

export async function list(frame, _, { connected, query }) {
  const wish = Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? ""]));
  const marked = new Set();
  /** Rendered rows of the loaded sessions, by session id. */
  const drawn = new Map();
  let newest = [];
  let older = [];
  /** The stack's cursor to the next older page. */
  let next = null;
  let chosen = -1;
  let head = null;
  let timer = null;
  let counting = null;
  let pause = null;
  let left = false;

  const choose = (name, label, values) => el("label", {}, label, " ", el("select", {
    name, onchange: (event) => wishFor({ [name]: event.target.value, ...(name === "span" ? { since: "", until: "" } : {}) }),
  }, values.map(([value, words]) => el("option", { value, selected: value === wish[name] }, words))));
  const search = el("input", {
    type: "search", placeholder: "id, title, agent, error, question", "aria-label": "Search these sessions", value: wish.text,
    oninput: () => { draw(); clearTimeout(pause); pause = setTimeout(typed, PAUSE_MS); }, onblur: typed,
  });
  const known = wish.agent ? [["", "all"], [wish.agent, wish.agent]] : [["", "all"]];
  const agents = choose("agent", "Agent", known);
  const span = choose("span", "Time range", SPANS);
  const hour = el("button", { type: "button", onclick: () => wishFor({ since: "", until: "" }) });
  const histogram = el("div", { class: "histogram", role: "group", "aria-label": "Sessions in the last 24 hours, by hour" });
  const body = el("tbody");
  const more = el("button", { type: "button", class: "more", onclick: () => further().catch(() => connected(false)) }, "Older sessions");
  const both = el("a", { class: "both", hidden: true }, "Compare selected");
  const count = el("p", { class: "faint", role: "status" });
  frame.append(
    el("div", { class: "bar" }, el("h1", {}, "Sessions"), el("span", { class: "grow" }), hour, span,
      choose("status", "Status", [["", "all"], ...Object.keys(STATUS).map((status) => [status, status.replace("_", " ").toLowerCase()])]), agents, search),
    histogram,
    el("table", { class: "sessions" },
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, el("span", { class: "unseen" }, "Compare")),
        ["Status", "Agent", "Started", "Duration", "Tokens and cost", "Finding"].map((name) => el("th", { scope: "col" }, name)))),
      body),
    el("div", { class: "bar" }, count, both, more));

  /** Runs when the search field loses focus: the address is updated before another view replaces it. */
  function typed() {
    clearTimeout(pause);
    if (search.value !== wish.text) wishFor({ text: search.value });
  }

  /** Keeps the filters in the address, so that reloads and links restore them. */
  function wishFor(change) {
    Object.assign(wish, change);
    span.querySelector("select").value = wish.span;
    older = [];
    next = null;
    const kept = new URLSearchParams(FILTERS.filter((name) => wish[name]).map((name) => [name, wish[name]]));
    history.replaceState(null, "", kept.size ? `#/?${kept}` : "#/");
    again();
  }

  function ask(after) {
    const asked = new URLSearchParams({ limit: PAGE });
    for (const name of ["status", "agent", "text", "since", "until"]) if (wish[name]) asked.set(name, wish[name]);
    const [, , back] = SPANS.find(([name]) => name === wish.span) ?? SPANS[0];
    if (back && !wish.since) asked.set("since", new Date(Date.now() - back).toISOString());
    if (after) asked.set("after", after);
    return get(`/api/sessions?${asked}`);
  }

  async function refresh() {
    clearTimeout(timer);
    const asked = JSON.stringify(wish);
    try {
      const found = await ask();
      connected(true);
      // The filters have changed since the request: discard the response.
      if (asked !== JSON.stringify(wish)) return;
      newest = found.sessions;
      const first = newest[0]?.session_id ?? "";
      if (first !== head) count24();
      head = first;
      if (older.length === 0) next = found.more ?? null;
      draw();
    } catch (error) {
      if (error.status) throw error;
      connected(false);
    } finally {
      if (!left) timer = setTimeout(tick, EVERY_MS);
    }
  }

  async function further() {
    const found = await ask(next);
    older = older.concat(found.sessions);
    next = found.more ?? null;
    draw();
  }

  /** Skips the refresh while the page is hidden. */
  function tick() {
    if (document.hidden) timer = setTimeout(tick, EVERY_MS);
    else again();
  }

  /** Once the list is shown, a refusal counts as a connection problem: the next request may succeed. */
  function again() {
    refresh().catch(() => connected(false));
  }

  /** The newest page is refreshed; older pages stay as they were fetched. */
  function loaded() {
    const ids = new Set(newest.map((session) => session.session_id));
    return newest.concat(older.filter((session) => !ids.has(session.session_id)));
  }

  function shown() {
    const text = search.value.toLowerCase();
    const words = (session) => [session.session_id, session.title, session.agent, session.error, session.open_question?.prompt].join(" ").toLowerCase();
    const until = wish.until ? Date.parse(wish.until) : Infinity;
    return loaded().filter((session) => words(session).includes(text) && Date.parse(session.initiated_at) <= until);
  }

  function draw() {
    const found = shown();
    const sessions = loaded();
    const isNew = [...new Set(sessions.map((session) => session.agent).filter(Boolean))].sort();
    const select = agents.querySelector("select");
    for (const name of isNew) {
      if (![...select.options].some((option) => option.value === name)) select.append(el("option", { value: name }, name));
    }
    // The focused checkbox or link keeps the focus.
    const held = document.activeElement?.closest("tr[data-id]");
    const [heldId, heldTag] = [held?.dataset.id, document.activeElement?.tagName];
    const wanted = found.map(made);
    const known = new Set(sessions.map((session) => session.session_id));
    for (const id of drawn.keys()) if (!known.has(id)) drawn.delete(id);
    const stays = new Set(wanted);
    for (const item of [...body.children]) if (!stays.has(item)) item.remove();
    wanted.forEach((item, index) => { if (body.children[index] !== item) body.insertBefore(item, body.children[index] ?? null); });
    if (held) [...body.querySelectorAll("tr[data-id]")].find((item) => item.dataset.id === heldId)?.querySelector(heldTag)?.focus();
    if (found.length === 0) {
      body.append(el("tr", {}, el("td", { colSpan: 7, class: "empty" },
        sessions.length === 0 && !FILTERS.some((name) => wish[name])
          ? el("span", {}, "No sessions yet. Start one: ", el("code", {}, "daybook trigger")) : "No matching sessions.")));
    }
    hour.hidden = !wish.since;
    hour.textContent = wish.since ? `× ${clock(wish.since)} to ${clock(wish.until)}` : "";
    count.textContent = `${number(found.length)} of the newest ${number(sessions.length)} sessions`;
    more.hidden = next === null;
    pair();
    mark();
  }

  /** Reuses unchanged rows: a row that is replaced while a mouse button is down gets no click. */
  function made(session) {
    const text = JSON.stringify(session);
    const known = drawn.get(session.session_id);
    if (known?.text === text) return known.item;
    const item = row(session);
    drawn.set(session.session_id, { text, item });
    return item;
  }

  function row(session) {
    const id = session.session_id;
    const href = `#/session/${encodeURIComponent(id)}`;
    const box = el("input", { type: "checkbox", checked: marked.has(id), "aria-label": `Compare session ${id}`, onchange: () => toggle(id) });
    return el("tr", { "data-id": id, onclick: (event) => { if (!event.target.closest("input")) location.hash = href; } },
      el("td", { class: "pick" }, box),
      el("td", {}, badge(session.status)),
      el("td", {}, session.agent ?? "—"),
      el("td", {}, el("a", { href, title: id }, when(session.initiated_at))),
      el("td", { class: "figure" }, duration(session.elapsed_ms)),
      el("td", { class: "figure" }, tokens(session.tokens, session.usd)),
      el("td", { class: "line" }, session.title ? el("strong", {}, session.title, " ") : null,
        session.fallback ? el("span", { class: "warn" }, session.fallback.message, " ") : null, line(session)));
  }

  /** Keeps the last two selected sessions. */
  function toggle(id) {
    if (!marked.delete(id)) marked.add(id);
    if (marked.size > 2) marked.delete(marked.values().next().value);
    for (const item of body.querySelectorAll("tr[data-id]")) item.querySelector("input").checked = marked.has(item.dataset.id);
    pair();
  }

  function pair() {
    both.hidden = marked.size !== 2;
    if (!both.hidden) both.href = `#/compare/${[...marked].map(encodeURIComponent).join("/")}`;
  }

  /** The session's finding, in one line. */
  function line(session) {
    if (session.open_question) return el("span", { class: "warn" }, `asks: ${session.open_question.prompt}`);
    if (session.needs_version) return el("span", { class: "warn" }, needs(session.needs_version));
    if (session.asleep_until) return el("span", { class: "faint" }, `sleeping until ${clock(session.asleep_until)}`);
    if (session.error) return el("span", { class: "bad" }, session.error);
    const said = [session.verdict, session.summary].filter(Boolean).join(": ");
    return el("span", { class: "faint" }, said || (OPEN.includes(session.status) ? `${session.steps} steps so far` : `${session.steps} steps`));
  }

  /** Draws the sessions started in each of the last 24 hours, failures on top; a click filters by one hour. */
  async function count24() {
    clearTimeout(counting);
    try {
      drawHistogram((await get("/api/histogram")).buckets);
    } catch { /* The list reports connection problems. */ }
    clearTimeout(counting);
    if (!left) counting = setTimeout(() => (document.hidden ? (counting = setTimeout(count24, COUNT_MS)) : count24()), COUNT_MS);
  }

  function drawHistogram(buckets) {
    const bins = buckets.map(({ from, to, began, ended }) => {
      const bad = (ended.FAILED ?? 0) + (ended.TIMED_OUT ?? 0);
      return { since: from, until: to, began, bad, good: Math.max(0, began - bad) };
    });
    const most = Math.max(1, ...bins.map((bin) => bin.good + bin.bad));
    const held = [...histogram.children].indexOf(document.activeElement);
    histogram.replaceChildren(...bins.map((bin) => {
      const words = `${clock(bin.since)} · ${number(bin.began)} sessions started, ${number(bin.bad)} failed`;
      const column = el("button", { type: "button", class: "column", title: words, "aria-label": words,
        disabled: bin.began === 0, onclick: () => wishFor({ since: bin.since, until: bin.until, span: "" }) });
      for (const tone of ["bad", "good"]) {
        const part = el("span", { class: tone });
        part.style.height = `${(bin[tone] / most) * 100}%`;
        column.append(part);
      }
      return column;
    }));
    histogram.children[held]?.focus();
  }

  function mark() {
    const rows = [...body.querySelectorAll("tr[data-id]")];
    chosen = Math.min(chosen, rows.length - 1);
    rows.forEach((item, index) => item.classList.toggle("chosen", index === chosen));
    rows[chosen]?.scrollIntoView({ block: "nearest" });
  }

  function key(name) {
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[name];
    const row = chosen >= 0 ? body.querySelectorAll("tr[data-id]")[chosen] : null;
    if (step) {
      chosen = Math.max(0, chosen + step);
      mark();
    } else if (name === "Enter" && row) row.querySelector("a")?.click();
    else if (name === "x" && row) toggle(row.dataset.id);
    else if (name === "c" && !both.hidden) location.hash = both.hash;
    else if (name === "/") search.focus();
    else return false;
    return true;
  }

  await refresh();
  return { key, leave: () => { left = true; [timer, pause, counting].forEach(clearTimeout); } };
}
