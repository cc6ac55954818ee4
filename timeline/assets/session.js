// One session: its records on an axis of time, the agent's graph with the path taken, the open question, and any record.

import { get, path, post, watch } from "./api.js";
import { OPEN, badge, duration, el, number, readable, svg, tokens, when } from "./dom.js";

const ROW_PX = 26;
/** Rows that are drawn above and below those in sight. */
const SPARE = 12;
const ZOOM_MAX = 4096;
const LIVE_MS = 1000;

export async function session(frame, id, { place, connected }) {
  let shown = null;
  let chosen = null;
  let zoom = 1;
  let origin = 0;
  let unwatch = null;
  let ticking = null;
  let left = false;

  const head = el("section", { class: "head" });
  const acts = el("p", { class: "acts" });
  const question = el("section", { class: "question", "aria-live": "polite" });
  const result = el("section", { class: "result" });
  const axis = el("div", { class: "axis", "aria-hidden": "true" });
  const rows = el("div", { class: "rows", role: "presentation" });
  const scroll = el("div", { class: "scroll", tabIndex: 0, role: "listbox", "aria-label": "Records, in the order of time" }, rows);
  const graph = el("section", { class: "graph" });
  const record = el("aside", { class: "record", "aria-label": "The chosen record" });
  const said = el("p", { class: "faint", role: "status" });
  record.hidden = true;
  scroll.addEventListener("scroll", drawRows, { passive: true });
  scroll.addEventListener("keydown", (event) => {
    if (["ArrowDown", "ArrowUp"].includes(event.key) && key(event.key)) { event.preventDefault(); event.stopPropagation(); }
  });
  const tools = el("div", { class: "bar" }, el("h2", {}, "Timeline"), el("span", { class: "grow" }),
    el("button", { type: "button", onclick: () => key("-"), "aria-label": "Zoom out" }, "−"),
    el("button", { type: "button", onclick: () => key("0") }, "All"),
    el("button", { type: "button", onclick: () => key("+"), "aria-label": "Zoom in" }, "+"));
  frame.append(head, acts, question, el("div", { class: "columns" },
    el("section", { class: "timeline" }, tools, axis, scroll, said), record), result, graph);
  place.append(" / ", el("code", {}, id));
  const resized = new ResizeObserver(drawRows);
  resized.observe(scroll);

  async function refresh() {
    shown = await get(path(id, "/timeline"));
    shown.at = performance.now();
    draw();
  }

  function draw() {
    drawHead();
    drawQuestion();
    drawResult();
    drawGraph();
    drawRows();
    const isOpen = OPEN.includes(shown.session.status);
    clearTimeout(ticking);
    if (isOpen && !left) ticking = setTimeout(draw, LIVE_MS);
  }

  /** The axis of a running session grows with the clock. */
  function span() {
    const { waterfall, session } = shown;
    const grown = OPEN.includes(session.status) ? performance.now() - shown.at : 0;
    return Math.max(1, waterfall.span_ms + grown);
  }

  // --- what stands above ---

  function drawHead() {
    const { session, waterfall } = shown;
    const isOpen = OPEN.includes(session.status);
    const elapsed = session.elapsed_ms === null ? null : session.elapsed_ms + (isOpen ? performance.now() - shown.at : 0);
    const facts = [session.incident_state, `${session.steps} steps`, duration(elapsed), tokens(session.tokens, session.usd),
      waterfall.lanes.filter((lane) => lane.epoch).length > 1 ? `${waterfall.lanes.filter((lane) => lane.epoch).length} claims` : ""];
    head.replaceChildren(...[
      el("h1", {}, badge(session.status), " ", session.agent ?? "no agent"),
      el("p", {}, "began ", when(session.initiated_at), ...facts.filter(Boolean).map((fact) => ` · ${fact}`)),
      session.error ? el("p", { class: "bad text" }, session.error, session.error_category ? ` [${session.error_category}]` : "") : null,
      session.asleep_until ? el("p", { class: "warn" }, "sleeps until ", when(session.asleep_until)) : null,
    ].filter(Boolean));
    drawActs();
  }

  /** Only when they change: a button that is made anew every second loses the keyboard's focus. */
  function drawActs() {
    const { status } = shown.session;
    if (acts.dataset.status === status) return;
    acts.dataset.status = status;
    const act = (name, words) => el("button", { type: "button", onclick: () => send(name, {}) }, words);
    acts.replaceChildren(...[
      OPEN.includes(status) ? act("cancel", "Cancel this session") : null,
      ["FAILED", "TIMED_OUT"].includes(status) ? act("resume", "Resume from its last step") : null,
    ].filter(Boolean));
  }

  async function send(what, body) {
    said.className = "faint";
    said.textContent = "sending …";
    try {
      await post(path(id, `/${what}`), body);
      said.textContent = { cancel: "The cancellation is on record.", resume: "It goes on.", answer: "The answer is on record." }[what];
      await refresh();
      if (what === "resume") listen();
      return true;
    } catch (error) {
      said.className = "bad";
      said.textContent = error.message;
      return false;
    }
  }

  // --- the open question ---

  function drawQuestion() {
    const open = shown.session.open_question;
    if (!open) {
      question.replaceChildren();
      question.dataset.id = "";
      return;
    }
    // What somebody types is not taken away by news.
    if (question.dataset.id === String(open.question_id)) return;
    question.dataset.id = open.question_id;
    const words = el("input", { id: "words", "aria-label": "Words or reason", placeholder: "a reason, or what you want to say" });
    const edited = el("textarea", { id: "arguments", rows: 6, spellcheck: false, "aria-label": "Arguments as JSON" });
    edited.value = JSON.stringify(open.arguments ?? {}, null, 2);
    const wrong = el("p", { class: "bad", role: "alert" });
    const decide = async (decision) => {
      const body = { question_id: open.question_id, decision };
      if (decision === "say") body.text = words.value;
      else if (words.value) body.reason = words.value;
      if (decision === "edit") {
        try { body.arguments = JSON.parse(edited.value); } catch (error) {
          wrong.textContent = `The arguments are no JSON: ${error.message}`;
          return;
        }
      }
      wrong.textContent = "";
      if (!await send("answer", body)) wrong.textContent = said.textContent;
    };
    const button = (decision, label, tone) => open.choices.includes(decision)
      ? el("button", { type: "button", class: tone, onclick: () => decide(decision) }, label) : null;
    question.replaceChildren(...[
      el("h2", {}, "A person is asked"),
      el("p", { class: "text" }, open.prompt),
      open.justification ? el("p", { class: "faint text" }, open.justification) : null,
      open.tool ? el("div", { class: "call" }, el("p", {}, "would run ", el("code", {}, open.tool)),
        open.choices.includes("edit") ? edited : el("pre", {}, JSON.stringify(open.arguments ?? {}, null, 2))) : null,
      words,
      el("p", { class: "acts" }, button("approve", "Approve", "good"), button("reject", "Reject", "bad"),
        button("edit", "Approve as edited"), button("say", "Say")),
      wrong,
      el("p", { class: "faint" }, "expires ", when(open.expires_at)),
    ].filter(Boolean));
  }

  function drawResult() {
    const value = shown.session.result;
    const text = JSON.stringify(value);
    if (result.dataset.text === text) return;
    result.dataset.text = text;
    result.replaceChildren(...(value ? [el("h2", {}, "Result"), readable(value)] : []));
  }

  // --- the rows ---

  /** Where a moment stands, in per cent of the axis. */
  const x = (ms) => ((ms / span()) * zoom - origin * zoom) * 100;

  function drawAxis() {
    const all = span() / zoom;
    const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 72e5, 216e5, 864e5, 1728e5, 6048e5];
    // A tick's words take about 70 pixels.
    const most = Math.max(2, Math.min(8, Math.floor((axis.firstChild?.clientWidth ?? 0) / 70)));
    const step = steps.find((ms) => all / ms <= most) ?? all / most;
    const from = Math.ceil((origin * span()) / step) * step;
    const ticks = [];
    for (let ms = from; ms <= origin * span() + all; ms += step) {
      const tick = el("span", {}, ms === 0 ? "0" : `+${duration(ms)}`);
      tick.style.left = `${x(ms)}%`;
      ticks.push(tick);
    }
    axis.replaceChildren(el("div", { class: "scale" }, ticks));
  }

  function drawRows() {
    if (!shown) return;
    drawAxis();
    const { waterfall } = shown;
    const first = Math.max(0, Math.floor(scroll.scrollTop / ROW_PX) - SPARE);
    const last = Math.min(waterfall.rows.length, Math.ceil((scroll.scrollTop + scroll.clientHeight) / ROW_PX) + SPARE);
    rows.style.height = `${waterfall.rows.length * ROW_PX}px`;
    rows.replaceChildren(...waterfall.rows.slice(first, last).map((row, index) => drawRow(row, first + index)));
    scroll.setAttribute("aria-activedescendant", chosen === null ? "" : `row-${chosen}`);
  }

  function drawRow(row, index) {
    const { waterfall } = shown;
    const lane = waterfall.lanes[row.lane];
    const bar = el("span", { class: `bar-${row.kind === "event" ? "event" : "step"} ${row.tone}` });
    const left = x(row.from_ms);
    bar.style.left = `${left}%`;
    if (row.kind !== "event") bar.style.width = `${Math.max(0, x(row.to_ms) - left)}%`;
    const track = el("span", { class: "track" });
    for (const wait of waterfall.waits) {
      if (wait.seq !== row.seq) continue;
      const gap = el("span", { class: "gap", title: `waited ${duration(wait.to_ms - wait.from_ms)} for ${wait.of === "answer" ? "an answer" : "a time"}` });
      gap.style.left = `${x(wait.from_ms)}%`;
      gap.style.width = `${Math.max(0, x(wait.is_over ? wait.to_ms : span()) - x(wait.from_ms))}%`;
      track.append(gap);
    }
    track.append(bar);
    const name = row.kind === "event" ? row.name : `#${row.seq} ${row.name}`;
    const skew = row.skew_ms ? ` · clock ${row.skew_ms > 0 ? "ahead" : "behind"} by ${duration(Math.abs(row.skew_ms))}` : "";
    const notes = [row.to_ms > row.from_ms ? duration(row.to_ms - row.from_ms) : "", row.tokens ? `${number(row.tokens)} tokens` : ""].filter(Boolean).join(" · ");
    const item = el("div", {
      class: `row ${row.kind === "event" ? "event" : "step"} ${row.tone}${index === chosen ? " chosen" : ""}${row.beside ? " beside" : ""}`,
      id: `row-${index}`, role: "option", "aria-selected": String(index === chosen),
      "aria-setsize": waterfall.rows.length, "aria-posinset": index + 1,
      title: row.more ?? row.what, onclick: () => open(index),
    },
    el("span", { class: "who" }, lane.epoch && lane.epoch > 1 ? `${lane.name} ${lane.epoch}` : lane.name),
    el("span", { class: "name" }, name),
    el("span", { class: "what" }, row.what, row.more ? ` — ${row.more}` : "", skew),
    track,
    el("span", { class: "notes" }, notes));
    item.style.top = `${index * ROW_PX}px`;
    return item;
  }

  async function open(index) {
    chosen = Math.max(0, Math.min(index, shown.waterfall.rows.length - 1));
    const row = shown.waterfall.rows[chosen];
    if (!row) return;
    const top = chosen * ROW_PX;
    if (top < scroll.scrollTop) scroll.scrollTop = top;
    if (top + ROW_PX > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = top + ROW_PX - scroll.clientHeight;
    drawRows();
    record.hidden = false;
    const title = row.kind === "event" ? row.name : `Step ${row.seq} · ${row.name}`;
    const close = el("button", { type: "button", onclick: () => key("Escape"), "aria-label": "Close the record" }, "×");
    record.replaceChildren(el("div", { class: "bar" }, el("h2", {}, title), el("span", { class: "grow" }), close), el("p", { class: "faint" }, "fetching …"));
    try {
      const found = await get(path(id, `/record?sk=${encodeURIComponent(row.sk)}`));
      if (shown.waterfall.rows[chosen]?.sk !== row.sk) return;
      drawRecord(record.firstChild, row, found);
    } catch (error) {
      record.lastChild.textContent = error.message;
    }
  }

  function drawRecord(bar, row, found) {
    const { outcome, detail, call, hash, sk, ...rest } = found;
    const payload = outcome ?? detail;
    const facts = { when: found.finished_at ?? found.timestamp, took: row.to_ms > row.from_ms ? duration(row.to_ms - row.from_ms) : null,
      kind: rest.kind, effect: rest.effect, writer: rest.writer, claim: rest.epoch, error: rest.error_message,
      tokens: rest.tokens ? tokens(rest.tokens, rest.usd) || null : null, key: sk, hash };
    record.replaceChildren(bar,
      row.more ? el("p", { class: `text ${row.tone}` }, row.more) : "",
      call ? el("div", {}, el("h3", {}, `Call of ${call.tool}`), el("pre", {}, JSON.stringify(call.arguments, null, 2))) : "",
      payload === null || payload === undefined ? "" : el("div", {}, el("h3", {}, "What it holds"), el("pre", { tabIndex: 0 }, JSON.stringify(payload, null, 2))),
      el("h3", {}, "Record"), readable(facts));
  }

  // --- the graph ---

  function drawGraph() {
    const drawn = shown.graph;
    const text = JSON.stringify(drawn);
    if (!drawn || graph.dataset.text === text) return;
    graph.dataset.text = text;
    const [w, h, gx, gy] = [132, 34, 44, 22];
    const layers = Math.max(...drawn.nodes.map((node) => node.layer)) + 1;
    const places = Math.max(...drawn.nodes.map((node) => node.place)) + 1;
    const at = (node) => [node.layer * (w + gx) + 8, node.place * (h + gy) + 18];
    const [width, height] = [layers * (w + gx) - gx + 16, places * (h + gy) + 34];
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
      "aria-label": `The agent's graph; visited: ${drawn.nodes.filter((node) => node.visits).map((node) => `${node.name} ${node.visits} times`).join(", ")}` });
    for (const edge of [...drawn.edges].sort((a, b) => a.taken - b.taken)) {
      const [from, to] = [drawn.nodes[edge.from], drawn.nodes[edge.to]];
      const [[fx, fy], [tx, ty]] = [at(from), at(to)];
      const isBack = to.layer <= from.layer;
      const d = from === to
        ? `M ${fx + w * 0.4} ${fy + h} C ${fx + w * 0.3} ${fy + h + 20}, ${fx + w * 0.7} ${fy + h + 20}, ${fx + w * 0.6} ${fy + h}`
        : from.layer === to.layer
        ? `M ${fx + w / 2} ${ty > fy ? fy + h : fy} L ${tx + w / 2} ${ty > fy ? ty : ty + h}`
        : isBack
        ? `M ${fx + w / 2} ${fy + h} C ${fx + w / 2} ${fy + h + 34}, ${tx + w / 2} ${ty + h + 34}, ${tx + w / 2} ${ty + h}`
        : `M ${fx + w} ${fy + h / 2} C ${fx + w + gx / 2} ${fy + h / 2}, ${tx - gx / 2} ${ty + h / 2}, ${tx} ${ty + h / 2}`;
      picture.append(svg("path", { d, class: edge.taken ? "edge taken" : "edge" }));
    }
    for (const node of drawn.nodes) {
      const [nx, ny] = at(node);
      picture.append(svg("g", { class: `node${node.visits ? " visited" : ""}${node.is_newest ? " newest" : ""}` },
        svg("rect", { x: nx, y: ny, width: w, height: h, rx: 6 }),
        svg("text", { x: nx + w / 2, y: ny + h / 2 + 4, "text-anchor": "middle" }, node.visits > 1 ? `${node.name} ×${node.visits}` : node.name)));
    }
    graph.replaceChildren(el("h2", {}, "The agent's graph"), el("div", { class: "picture", tabIndex: 0 }, picture));
  }

  // --- keys and news ---

  function key(name) {
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[name];
    if (step) {
      open(chosen === null ? 0 : chosen + step);
      return true;
    }
    const room = 1 - 1 / zoom;
    if (name === "+" || name === "=") zoom = Math.min(ZOOM_MAX, zoom * 2);
    else if (name === "-" || name === "−") zoom = Math.max(1, zoom / 2);
    else if (name === "0") { zoom = 1; origin = 0; }
    else if (name === "ArrowRight") origin = Math.min(room, origin + 0.25 / zoom);
    else if (name === "ArrowLeft") origin = Math.max(0, origin - 0.25 / zoom);
    else if (name === "Escape" && !record.hidden) { record.hidden = true; chosen = null; }
    else if (name === "Escape") location.hash = "#/";
    else return false;
    // What is chosen stays in sight.
    const row = chosen === null ? null : shown.waterfall.rows[chosen];
    if (row && ["+", "=", "-"].includes(name)) origin = row.from_ms / span() - 0.5 / zoom;
    origin = Math.max(0, Math.min(1 - 1 / zoom, origin));
    drawRows();
    return true;
  }

  function listen() {
    unwatch?.();
    unwatch = watch(id, {
      connected,
      changed: () => refresh().then(() => connected(true), () => connected(false)),
      progressed: (news) => {
        const share = news.total ? `${Math.round((100 * news.progress) / news.total)} %` : String(news.progress ?? "");
        said.className = "faint";
        said.textContent = ["running", news.tool, share, news.message].filter(Boolean).join(" · ");
      },
    });
  }

  await refresh();
  if (OPEN.includes(shown.session.status)) listen();
  return { key, leave: () => { left = true; clearTimeout(ticking); unwatch?.(); resized.disconnect(); } };
}
