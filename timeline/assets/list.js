// All sessions, newest first.

import { get } from "./api.js";
import { OPEN, STATUS, badge, clock, duration, el, tokens, when } from "./dom.js";

const EVERY_MS = 2000;
const PAGE = 50;
const HOURS = 24;

export async function list(frame, { connected }) {
  const wish = { status: "", agent: "", text: "" };
  let sessions = [];
  let pages = 1;
  let chosen = -1;
  let timer = null;
  let left = false;

  const choose = (name, label, values) => el("label", {}, label, " ", el("select", {
    name, onchange: (event) => { wish[name] = event.target.value; pages = 1; again(); },
  }, el("option", { value: "" }, "all"), values.map((value) => el("option", { value }, value.replace("_", " ").toLowerCase()))));
  const search = el("input", {
    type: "search", placeholder: "id, agent, error, question", "aria-label": "Search in these sessions",
    oninput: () => { wish.text = search.value.toLowerCase(); draw(); },
  });
  const agents = choose("agent", "Agent", []);
  const histogram = el("div", { class: "histogram" });
  const body = el("tbody");
  const more = el("button", { type: "button", class: "more", onclick: () => { pages += 1; again(); } }, "Older sessions");
  const count = el("p", { class: "faint", role: "status" });
  frame.append(
    el("div", { class: "bar" }, el("h1", {}, "Sessions"), el("span", { class: "grow" }),
      choose("status", "Status", Object.keys(STATUS)), agents, search),
    histogram,
    el("table", { class: "sessions" },
      el("thead", {}, el("tr", {}, ["Status", "Agent", "Began", "Took", "Used", "What stands out"].map((name) => el("th", { scope: "col" }, name)))),
      body),
    el("div", { class: "bar" }, count, more));

  async function refresh() {
    clearTimeout(timer);
    const query = new URLSearchParams({ limit: PAGE * pages });
    for (const name of ["status", "agent"]) if (wish[name]) query.set(name, wish[name]);
    try {
      ({ sessions } = await get(`/api/sessions?${query}`));
      connected(true);
      draw();
    } catch (error) {
      if (error.status) throw error;
      connected(false);
    } finally {
      if (!left) timer = setTimeout(tick, EVERY_MS);
    }
  }

  /** Nobody looks at a hidden page. */
  function tick() {
    if (document.hidden) timer = setTimeout(tick, EVERY_MS);
    else again();
  }

  /** Once the list is there, a refusal is a bad connection: the next look may be answered. */
  function again() {
    refresh().catch(() => connected(false));
  }

  function shown() {
    const words = (session) => [session.session_id, session.agent, session.error, session.open_question?.prompt].join(" ").toLowerCase();
    return sessions.filter((session) => words(session).includes(wish.text));
  }

  function draw() {
    const found = shown();
    const isNew = [...new Set(sessions.map((session) => session.agent).filter(Boolean))].sort();
    const select = agents.querySelector("select");
    for (const name of isNew) {
      if (![...select.options].some((option) => option.value === name)) select.append(el("option", { value: name }, name));
    }
    body.replaceChildren(...found.map(row));
    if (found.length === 0) {
      body.append(el("tr", {}, el("td", { colSpan: 6, class: "empty" },
        sessions.length === 0 ? el("span", {}, "No session yet. Start one: ", el("code", {}, "daybook trigger --agent checkup")) : "None of these sessions fits.")));
    }
    count.textContent = `${found.length} of the newest ${sessions.length} sessions of the last seven days`;
    more.hidden = sessions.length < PAGE * pages;
    mark();
    drawHistogram(found);
  }

  function row(session, index) {
    const href = `#/session/${encodeURIComponent(session.session_id)}`;
    return el("tr", { "data-index": index, onclick: () => { location.hash = href; } },
      el("td", {}, badge(session.status)),
      el("td", {}, session.agent ?? "—"),
      el("td", {}, el("a", { href, title: session.session_id }, when(session.initiated_at))),
      el("td", { class: "figure" }, duration(session.elapsed_ms)),
      el("td", { class: "figure" }, tokens(session.tokens, session.usd)),
      el("td", { class: "line" }, line(session)));
  }

  /** What somebody has to know of it in one line. */
  function line(session) {
    if (session.open_question) return el("span", { class: "warn" }, `asks: ${session.open_question.prompt}`);
    if (session.asleep_until) return el("span", { class: "faint" }, `sleeps until ${clock(session.asleep_until)}`);
    if (session.error) return el("span", { class: "bad" }, session.error);
    const result = session.result ?? {};
    const said = ["root_cause", "summary", "verdict", "recommendation", "answer"].map((name) => result[name]).find((value) => typeof value === "string");
    return el("span", { class: "faint" }, said ?? (OPEN.includes(session.status) ? `${session.steps} steps so far` : `${session.steps} steps`));
  }

  /** How many sessions began in each of the last hours, those that went wrong on top. */
  function drawHistogram(found) {
    const hour = 3600e3;
    const now = Math.floor(Date.now() / hour);
    const bins = Array.from({ length: HOURS }, (_, index) => ({ hour: now - HOURS + 1 + index, good: 0, bad: 0 }));
    for (const session of found) {
      const bin = bins[Math.floor(Date.parse(session.initiated_at) / hour) - now + HOURS - 1];
      if (bin) bin[STATUS[session.status]?.[1] === "bad" ? "bad" : "good"] += 1;
    }
    const most = Math.max(1, ...bins.map((bin) => bin.good + bin.bad));
    histogram.replaceChildren(...bins.map((bin) => {
      const at = new Date(bin.hour * hour);
      const column = el("div", { class: "column", title: `${at.getHours()}:00 · ${bin.good + bin.bad} sessions, ${bin.bad} went wrong` });
      for (const tone of ["bad", "good"]) {
        const part = el("div", { class: tone });
        part.style.height = `${(bin[tone] / most) * 100}%`;
        column.append(part);
      }
      return column;
    }));
    histogram.setAttribute("role", "img");
    const bad = bins.reduce((sum, bin) => sum + bin.bad, 0);
    histogram.setAttribute("aria-label", `Sessions of the last ${HOURS} hours by the hour; ${bad} went wrong`);
  }

  function mark() {
    const rows = [...body.querySelectorAll("tr[data-index]")];
    chosen = Math.min(chosen, rows.length - 1);
    rows.forEach((item, index) => item.classList.toggle("chosen", index === chosen));
    rows[chosen]?.scrollIntoView({ block: "nearest" });
  }

  function key(name) {
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[name];
    if (step) {
      chosen = Math.max(0, chosen + step);
      mark();
    } else if (name === "Enter" && chosen >= 0) {
      body.querySelectorAll("tr[data-index]")[chosen]?.querySelector("a")?.click();
    } else if (name === "/") search.focus();
    else return false;
    return true;
  }

  await refresh();
  return { key, leave: () => { left = true; clearTimeout(timer); } };
}
