// The list of sessions, newest first: search, facets, a histogram, and actions on selected rows.

import { get, path, post, watchList } from "./api.js";
import { OPEN, STATUS, age, askToCancel, badge, button, clock, dollars, duration, el, needs, number, titled, tokens, verdictBadge, visible, worded } from "./dom.js";
import { asked, parameters, parsed, written } from "./filter.js";
import { again, offers } from "./start.js";

const PAGE = 50;
const COUNT_MS = 10_000;
/** Time ranges; the stack's own default is seven days. */
const SPANS = [["", "last 7 days"], ["1h", "last hour"], ["24h", "last 24 hours"], ["30d", "last 30 days"], ["90d", "last 90 days"]];
/** Delay after a keystroke before the search is sent. */
const PAUSE_MS = 300;
const SAVED = "views";
const STATUSES = Object.keys(STATUS);

export async function list(frame, _, { connected, query }) {
  let wish = asked(query);
  const marked = new Set();
  /** Sessions by id: those of the stream, and older ones. */
  const known = new Map();
  /** Rendered rows by session id. */
  const drawn = new Map();
  let order = [];
  let older = [];
  /** The stack's cursor to the next older page. */
  let next = null;
  let searched = 0;
  let chosen = -1;
  let unwatch = null;
  let isRead = false;
  /** Whether the user has asked for older sessions. */
  let isPaged = false;
  let [ticking, counting, pause] = [null, null, null];
  let left = false;

  const search = el("input", {
    type: "search", placeholder: "Search, or tool:get_iam_state status:failed since:7d", "aria-label": "Search these sessions", value: wish, spellcheck: false,
    oninput: () => { clearTimeout(pause); pause = setTimeout(typed, PAUSE_MS); }, onblur: typed,
  });
  const span = el("select", { name: "span", "aria-label": "Time range", onchange: () => change({ since: span.value, until: "" }) },
    SPANS.map(([value, words]) => el("option", { value }, words)), el("option", { value: "other", hidden: true }, "this time"));
  const facets = el("div", { class: "facets", role: "group", "aria-label": "Filters" });
  const histogram = el("div", { class: "histogram", role: "group", "aria-label": "Sessions in the last 24 hours, by hour" });
  const body = el("tbody");
  const more = button("Older sessions", () => further().catch(() => connected(false)), { class: "more" });
  const said = el("p", { class: "faint", role: "status" });
  const count = el("p", { class: "faint", role: "status" });
  const both = el("a", { class: "button", hidden: true }, "Compare selected");
  const picked = el("div", { class: "bar picked", hidden: true, role: "group", "aria-label": "Selected sessions" });
  const heads = [["", ""], ["Session", ""], ["Run", ""], ["Verdict", ""], ["Agent", ""], ["Age", "figure"], ["Duration", "figure"], ["Cost", "figure"]];
  frame.append(
    el("div", { class: "bar" }, el("h1", {}, "Sessions"), el("div", { class: "search" }, search), span,
      button("Save this view", save, { class: "quiet" })),
    facets, histogram,
    el("table", { class: "sessions" },
      el("thead", {}, el("tr", {}, heads.map(([words, kind]) => el("th", { scope: "col", class: kind || undefined }, words || el("span", { class: "unseen" }, "Select"))))),
      body),
    el("div", { class: "bar" }, count, said, more), picked);

  // --- what is asked for ---

  /** Sends what was typed; also when the search field loses focus, so that the address is right before another view replaces it. */
  function typed() {
    clearTimeout(pause);
    if (search.value.trim() !== wish) wishFor(search.value.trim());
  }

  function change(fields) {
    wishFor(written({ ...parsed(search.value), ...fields }));
  }

  /** Keeps the query in the address, so that reloads and links restore it. */
  function wishFor(text) {
    wish = text;
    if (search.value.trim() !== text) search.value = text;
    history.replaceState(null, "", text ? `#/?${new URLSearchParams({ q: text })}` : "#/");
    known.clear();
    [order, older, next, isPaged] = [[], [], null, false];
    follow();
  }

  function follow() {
    unwatch?.();
    isRead = false;
    const sent = wish;
    unwatch = watchList(parameters(wish, PAGE), { connected, changed: (news) => { if (sent === wish) take(news); } });
    drawFacets();
  }

  function take({ sessions, order: ids, more: cursor, searched: examined }) {
    const first = order[0];
    for (const session of sessions) known.set(session.session_id, { ...session, read_at: Date.now() });
    if (ids) {
      // What newer sessions push off a full page stays before older ones. What no longer matches goes.
      const newest = new Set(ids);
      const last = known.get(ids.at(-1))?.initiated_at;
      const pushed = !isPaged || ids.length < PAGE ? [] : order.filter((id) => !newest.has(id) && known.get(id).initiated_at <= last);
      older = pushed.concat(older.filter((id) => !newest.has(id)));
      order = ids;
      const kept = new Set([...order, ...older, ...marked]);
      for (const id of known.keys()) if (!kept.has(id)) known.delete(id);
    }
    if (older.length === 0) next = cursor ?? null;
    [isRead, searched] = [true, examined];
    if (order[0] !== first) count24();
    draw();
  }

  async function further() {
    const sent = parameters(wish, PAGE);
    sent.set("after", next);
    const found = await get(`/api/sessions?${sent}`);
    for (const session of found.sessions) known.set(session.session_id, { ...session, read_at: Date.now() });
    older = older.concat(found.sessions.map((session) => session.session_id));
    [next, isPaged] = [found.more ?? null, true];
    draw();
  }

  const shown = () => [...new Set([...order, ...older])].map((id) => known.get(id)).filter(Boolean);

  // --- facets: counts among the sessions that are shown ---

  function drawFacets() {
    const fields = parsed(wish);
    const sessions = shown();
    const counted = (name, pick) => {
      const counts = new Map();
      for (const session of sessions) { const value = pick(session); if (value) counts.set(value, (counts.get(value) ?? 0) + 1); }
      if (fields[name] && !counts.has(fields[name])) counts.set(fields[name], 0);
      return [...counts].sort(([a], [b]) => (a < b ? -1 : 1));
    };
    const facet = (name, label, values, words) => (values.length ? el("div", {}, el("span", { class: "name" }, label),
      values.map(([value, n]) => {
        const isOn = fields[name]?.toLowerCase() === value.toLowerCase();
        return el("button", { type: "button", class: "chip", "data-facet": `${name}:${value}`, "aria-pressed": String(isOn),
          onclick: () => change({ [name]: isOn ? "" : value }) }, isOn ? "× " : "", words(value), el("span", { class: "count" }, number(n)));
      })) : null);
    const plain = (value) => value;
    const of = fields.status?.includes(",") ? [] : counted("status", (session) => session.status);
    of.sort(([a], [b]) => STATUSES.indexOf(a) - STATUSES.indexOf(b));
    const held = document.activeElement?.dataset?.facet;
    const views = saved().map(({ name, q }) => el("span", {}, el("a", { class: "chip", href: `#/?${new URLSearchParams({ q })}` }, name),
      button("×", () => { keep(saved().filter((view) => view.q !== q)); drawFacets(); }, { class: "quiet icon", "aria-label": `Forget the view ${name}` })));
    facets.replaceChildren(...[facet("status", "Run", of, worded), facet("verdict", "Verdict", counted("verdict", (session) => session.verdict), plain),
      facet("agent", "Agent", counted("agent", (session) => session.agent), plain),
      fields.until ? el("div", {}, el("button", { type: "button", class: "chip", "aria-pressed": "true", onclick: () => change({ since: "", until: "" }) },
        `× ${clock(fields.since)} to ${clock(fields.until)}`)) : null,
      views.length ? el("div", {}, el("span", { class: "name" }, "Views"), views) : null].filter(Boolean));
    if (held) [...facets.querySelectorAll("[data-facet]")].find((item) => item.dataset.facet === held)?.focus();
    const since = fields.until ? "other" : fields.since ?? "";
    span.value = SPANS.some(([value]) => value === since) ? since : "other";
  }

  function saved() {
    try { return JSON.parse(localStorage.getItem(SAVED)) ?? []; } catch { return []; }
  }

  function keep(views) {
    localStorage.setItem(SAVED, JSON.stringify(views.slice(-12)));
  }

  /** A view is its query; it stays in this browser. */
  function save() {
    if (!wish) { tell("Search or filter first: a view is a query with a name."); return; }
    keep([...saved().filter(({ q }) => q !== wish), { name: wish, q: wish }]);
    drawFacets();
  }

  // --- rows ---

  function draw() {
    const sessions = shown();
    drawFacets();
    // The focused checkbox or link keeps the focus.
    const held = document.activeElement?.closest("tr[data-id]");
    const [heldId, heldTag] = [held?.dataset.id, document.activeElement?.tagName];
    const wanted = sessions.map(made);
    const ids = new Set(sessions.map((session) => session.session_id));
    for (const id of drawn.keys()) if (!ids.has(id)) drawn.delete(id);
    const stays = new Set(wanted);
    for (const item of [...body.children]) if (!stays.has(item)) item.remove();
    wanted.forEach((item, index) => { if (body.children[index] !== item) body.insertBefore(item, body.children[index] ?? null); });
    if (held) [...body.querySelectorAll("tr[data-id]")].find((item) => item.dataset.id === heldId)?.querySelector(heldTag)?.focus();
    if (sessions.length === 0 && isRead) {
      body.append(el("tr", {}, el("td", { colSpan: 8, class: "empty" },
        wish ? ["No matching sessions", next ? ` among the newest ${number(searched)}. Search older ones below.` : ` among ${number(searched)} searched.`]
          : el("div", {}, el("p", {}, "No sessions yet. Run one of these, or ", el("code", {}, "daybook trigger"), ":"), offers()))));
    }
    count.textContent = sessions.length ? `${number(sessions.length)} sessions${next === null ? "" : ", and there are older ones"}` : "";
    more.hidden = next === null;
    for (const id of marked) if (!known.has(id)) marked.delete(id);
    pick();
    mark();
    tick();
  }

  /** Reuses unchanged rows: a row that is replaced while a mouse button is down gets no click. */
  function made(session) {
    const { read_at: _at, ...rest } = session;
    const text = JSON.stringify(rest);
    const found = drawn.get(session.session_id);
    if (found?.text === text) return found.item;
    const item = row(session);
    drawn.set(session.session_id, { text, item });
    return item;
  }

  function row(session) {
    const id = session.session_id;
    const href = `#/session/${encodeURIComponent(id)}`;
    const box = el("input", { type: "checkbox", checked: marked.has(id), "aria-label": `Select session ${id}`, onchange: () => toggle(id) });
    return el("tr", { "data-id": id, onclick: (event) => { if (!event.target.closest("input, a")) location.hash = href; } },
      el("td", { class: "pick" }, box),
      el("td", { class: "line" }, el("a", { href, title: id }, titled(session)), el("span", { class: "note" }, note(session))),
      el("td", {}, badge(session.status)),
      el("td", {}, session.verdict ? verdictBadge(session.verdict, session.verdict_tone) : ""),
      el("td", {}, session.agent ?? "—"),
      el("td", { class: "figure age", title: session.initiated_at ?? "" }, age(session.initiated_at)),
      el("td", { class: "figure took" }, duration(session.elapsed_ms)),
      el("td", { class: "figure", title: tokens(session.tokens, session.usd) }, cost(session)));
  }

  /** The session's most important fact, in one line. */
  function note(session) {
    const fallback = session.fallback ? el("span", { class: "warn" }, session.fallback.message, " ") : null;
    if (session.open_question) return el("span", { class: "warn" }, `asks: ${session.open_question.prompt}`);
    if (session.needs_version) return el("span", { class: "warn" }, needs(session.needs_version));
    if (session.asleep_until) return el("span", { class: "faint" }, `sleeping until ${clock(session.asleep_until)}`);
    if (session.error) return el("span", { class: session.status === "CANCELLED" ? "faint" : "bad" }, session.error);
    const steps = `${session.steps} ${session.steps === 1 ? "step" : "steps"}${OPEN.includes(session.status) ? " so far" : ""}`;
    return el("span", { class: "faint" }, fallback, session.summary || steps);
  }

  function cost({ tokens: used, usd }) {
    const all = used.input + used.output + used.unsettled;
    return usd > 0 ? dollars(usd) : all ? `${number(all)} tokens` : "";
  }

  /** Ages, and the durations of open sessions, go on without a redraw. */
  function tick() {
    clearTimeout(ticking);
    const now = Date.now();
    for (const item of body.querySelectorAll("tr[data-id]")) {
      const session = known.get(item.dataset.id);
      if (!session) continue;
      put(item.querySelector(".age"), age(session.initiated_at, now));
      if (OPEN.includes(session.status) && session.elapsed_ms !== null) put(item.querySelector(".took"), duration(session.elapsed_ms + now - session.read_at));
    }
    if (!left) ticking = setTimeout(tick, 1000);
  }

  function put(cell, words) {
    if (cell.textContent !== words) cell.textContent = words;
  }

  // --- selected rows ---

  function toggle(id) {
    if (!marked.delete(id)) marked.add(id);
    for (const item of body.querySelectorAll("tr[data-id]")) item.querySelector("input").checked = marked.has(item.dataset.id);
    pick();
  }

  function pick() {
    const ids = [...marked];
    both.hidden = ids.length !== 2;
    if (ids.length > 2) { both.hidden = false; both.textContent = `Compare ${ids.length}`; } else both.textContent = "Compare selected";
    if (!both.hidden) both.href = `#/compare/${ids.map(encodeURIComponent).join("/")}`;
    const text = ids.map((id) => `${id} ${known.get(id).status}`).join();
    picked.hidden = ids.length === 0;
    if (picked.dataset.text === text) return;
    picked.dataset.text = text;
    const open = ids.filter((id) => OPEN.includes(known.get(id).status));
    picked.replaceChildren(...[el("strong", {}, `${ids.length} selected`), both,
      button("Run again", () => each("started again", ids, (id) => again(id, crypto.randomUUID()))),
      open.length ? button(`Cancel ${open.length} open`, () => askToCancel(open.length === 1 ? "Cancel this session?" : `Cancel ${open.length} sessions?`,
        (body) => each("cancelled", open, (id) => post(path(id, "/cancel"), body))), { class: "danger" }) : null,
      button("Export as JSON", () => exported(ids).catch((error) => tell(error.message, true))),
      button("Clear", () => { marked.clear(); draw(); for (const box of body.querySelectorAll("input")) box.checked = false; }, { class: "quiet" })].filter(Boolean));
  }

  async function each(done, ids, act) {
    const failed = [];
    for (const id of ids) await act(id).catch((error) => failed.push(error.message));
    tell(`${ids.length - failed.length} ${done}${failed.length ? `; ${failed.length} not: ${failed[0]}` : ""}`, failed.length > 0);
  }

  function tell(words, isBad = false) {
    said.className = isBad ? "bad" : "faint";
    said.textContent = visible(words);
  }

  async function exported(ids) {
    const all = [];
    for (const id of ids) all.push(await get(path(id)));
    const address = URL.createObjectURL(new Blob([JSON.stringify(all, null, 2)], { type: "application/json" }));
    el("a", { href: address, download: "sessions.json" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  }

  // --- the histogram ---

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
    const held = [...histogram.querySelectorAll(".column")].indexOf(document.activeElement);
    const columns = bins.map((bin) => {
      const words = `${clock(bin.since)} · ${number(bin.began)} sessions started, ${number(bin.bad)} failed`;
      const column = el("button", { type: "button", class: "column", title: words, "aria-label": words,
        disabled: bin.began === 0, onclick: () => change({ since: bin.since, until: bin.until }) });
      for (const tone of ["bad", "good"]) {
        const part = el("span", { class: tone });
        part.style.height = `${(bin[tone] / most) * 100}%`;
        column.append(part);
      }
      return column;
    });
    const hour = (at) => new Date(at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
    const labels = bins.filter((_, index) => index % 6 === 0).map((bin) => el("span", {}, hour(bin.since)));
    const began = bins.reduce((sum, bin) => sum + bin.began, 0);
    histogram.replaceChildren(el("div", { class: "columns24" }, columns),
      el("div", { class: "hours" }, labels, el("span", {}, `now · ${number(began)} started in 24 hours, at most ${number(most)} an hour`)));
    histogram.querySelectorAll(".column")[held]?.focus();
  }

  // --- keyboard ---

  function mark() {
    const rows = [...body.querySelectorAll("tr[data-id]")];
    chosen = Math.min(chosen, rows.length - 1);
    rows.forEach((item, index) => item.classList.toggle("chosen", index === chosen));
  }

  function key(name) {
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[name];
    const row = chosen >= 0 ? body.querySelectorAll("tr[data-id]")[chosen] : null;
    if (step) {
      chosen = Math.max(0, chosen + step);
      mark();
      body.querySelectorAll("tr[data-id]")[chosen]?.scrollIntoView({ block: "nearest" });
    } else if (name === "Enter" && row) row.querySelector("a")?.click();
    else if (name === "x" && row) toggle(row.dataset.id);
    else if (name === "c" && !both.hidden) location.hash = both.hash;
    else if (name === "/") search.focus();
    else return false;
    return true;
  }

  // The first read tells whether the stack answers at all.
  await get("/api/sessions?limit=1");
  follow();
  count24();
  return {
    key,
    go: (_rest, text) => { const other = asked(new URLSearchParams(text)); if (other !== wish) wishFor(other); return true; },
    leave: () => { left = true; unwatch?.(); [ticking, pause, counting].forEach(clearTimeout); },
  };
}
