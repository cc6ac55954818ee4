// Shows one session: conclusion, open question, timeline, the selected record, both graphs with the path taken,
// usage and runs.

import { get, path, post, watch } from "./api.js";
import { badgeOf, coded, conclusion as concluded } from "./conclusion.js";
import { OPEN, badge, duration, el, needs, number, readable, tokens, visible, when } from "./dom.js";
import { picture } from "./picture.js";
import { drawRecord } from "./record.js";
import { ledger, runs } from "./tables.js";

const ROW_PX = 26;
/** The shortest bar, as the style sheet has it. */
const BAR_PX = 3;
/** Rows that are drawn above and below the visible ones. */
const SPARE = 12;
const ZOOM_MAX = 4096;
/** Longer sessions are verified on request only: verification reads every payload. */
const VERIFIED_STEPS = 2000;
const LIVE_MS = 1000;
/** How long the buttons of a new question do nothing: a click on the previous question must not answer it. */
const UNREAD_MS = 700;
/** Where an argument came from, and why that is not certain, in words. */
const ORIGINS = {
  person: "a person's words", input: "the session's input", program: "the program", tool: "a tool's answer",
  model: "the model's invention", undetermined: "not determined",
};
const WHY = {
  ambiguous: ", too weak a match to tell", none: ", found nowhere in the session", not_searched: ", too much to search",
};

export async function session(frame, [id, ...wanted], { place, connected }) {
  let shown = null;
  let chosen = null;
  let cited = null;
  let zoom = 1;
  let origin = 0;
  let unwatch = null;
  let ticking = null;
  let left = false;
  /** Whether the timeline follows the newest row: until the user scrolls away or opens a record. */
  let follows = true;

  const head = el("section", { class: "head" });
  const acts = el("p", { class: "acts" });
  const question = el("section", { class: "question", "aria-live": "polite" });
  const conclusion = el("section", { class: "conclusion", "aria-label": "Conclusion" });
  const result = el("section", { class: "panel result" });
  const axis = el("div", { class: "axis", "aria-hidden": "true" });
  const rows = el("div", { class: "rows", role: "presentation" });
  const scroll = el("div", { class: "scroll", tabIndex: 0, role: "listbox", "aria-label": "Records, in order of time" }, rows);
  const graphs = el("section", { class: "graphs", "aria-label": "Paths taken" });
  const spent = el("div", { class: "graphs" });
  const seal = el("p", { class: "faint seal", role: "status" });
  const record = el("aside", { class: "record", "aria-label": "Selected record" });
  const said = el("p", { class: "faint", role: "status" });
  record.hidden = true;
  scroll.addEventListener("scroll", () => {
    follows = scroll.scrollTop + scroll.clientHeight >= scroll.scrollHeight - ROW_PX;
    moveRows();
  }, { passive: true });
  scroll.addEventListener("keydown", (event) => {
    if (["ArrowDown", "ArrowUp"].includes(event.key) && key(event.key)) { event.preventDefault(); event.stopPropagation(); }
  });
  const tools = el("div", { class: "bar" }, el("h2", {}, "Timeline"), el("span", { class: "grow" }),
    el("button", { type: "button", onclick: () => key("-"), "aria-label": "Zoom out" }, "−"),
    el("button", { type: "button", onclick: () => key("0") }, "All"),
    el("button", { type: "button", onclick: () => key("+"), "aria-label": "Zoom in" }, "+"));
  frame.append(head, seal, acts, question, conclusion, el("div", { class: "columns" },
    el("section", { class: "timeline" }, tools, axis, scroll, said), record), result, graphs, spent);
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
    drawOnce(conclusion, [shown.failure, shown.conclusion, shown.citations], conclude);
    drawOnce(result, [shown.session.result], results);
    drawOnce(graphs, [shown.machine, shown.graph], pictures);
    drawOnce(spent, [shown.ledger, shown.runs, shown.lease], () => [ledger(shown.ledger), runs(shown.runs, shown.lease, shown.machine)]);
    drawRows();
    if (!OPEN.includes(shown.session.status)) offerVerifying();
    const isOpen = OPEN.includes(shown.session.status);
    clearTimeout(ticking);
    if (isOpen && !left) ticking = setTimeout(draw, LIVE_MS);
  }

  /** The length of the axis, in milliseconds; it grows while the session is open. */
  function span() {
    const { waterfall, session } = shown;
    const grown = OPEN.includes(session.status) ? performance.now() - shown.at : 0;
    return Math.max(1, waterfall.span_ms + grown);
  }

  // --- header ---

  function drawHead() {
    const { session, waterfall } = shown;
    const isOpen = OPEN.includes(session.status);
    const elapsed = session.elapsed_ms === null ? null : session.elapsed_ms + (isOpen ? performance.now() - shown.at : 0);
    const facts = [session.version ? `version ${session.version}` : "", `${session.steps} steps`, duration(elapsed), tokens(session.tokens, session.usd),
      waterfall.lanes.filter((lane) => lane.epoch).length > 1 ? `${waterfall.lanes.filter((lane) => lane.epoch).length} claims` : ""];
    head.replaceChildren(...[
      el("h1", {}, badge(session.status), " ", shown.conclusion?.verdict ? [badgeOf(shown.conclusion.verdict), " "] : null,
        session.agent ?? "no agent", session.title ? el("span", { class: "faint" }, ` ${session.title}`) : null),
      el("p", {}, "started ", when(session.initiated_at), ...facts.filter(Boolean).map((fact) => ` · ${fact}`)),
      session.error && !shown.failure ? el("p", { class: "bad text" }, session.error) : null,
      session.fallback ? el("p", { class: "warn" }, session.fallback.message) : null,
      session.asleep_until ? el("p", { class: "warn" }, "sleeping until ", when(session.asleep_until)) : null,
      session.needs_version ? el("p", { class: "warn" }, needs(session.needs_version)) : null,
    ].filter(Boolean));
    drawActs();
  }

  /** Redraws the buttons only when they change: a replaced button loses the keyboard focus. */
  function drawActs() {
    const { status } = shown.session;
    // A verdict is final: only an open session without a running workflow can be resumed.
    const isLeft = OPEN.includes(status) && shown.machine && shown.machine.status !== "RUNNING";
    const lacking = shown.session.needs_version;
    const text = `${status} ${isLeft} ${lacking?.registered}`;
    if (acts.dataset.text === text) return;
    acts.dataset.text = text;
    const act = (name, words) => el("button", { type: "button", onclick: () => send(name, {}) }, words);
    acts.replaceChildren(...[
      OPEN.includes(status) ? act("cancel", "Cancel session") : null,
      isLeft ? act("resume", "Resume: its workflow has stopped") : null,
      lacking ? act("resume", `Try again with version ${lacking.version}`) : null,
      ...(lacking?.registered ?? []).map((version) =>
        el("button", { type: "button", onclick: () => send("resume", { as_version: version }) }, `Continue with version ${version}`)),
      el("a", { href: `#/compare/${encodeURIComponent(id)}/before` }, "Compare with previous run"),
    ].filter(Boolean));
  }

  /** Redraws a section only when its data change, so that focus and scroll position stay. */
  function drawOnce(frame, data, make) {
    const text = JSON.stringify(data);
    if (frame.dataset.text === text) return;
    frame.dataset.text = text;
    frame.replaceChildren(...make().filter(Boolean));
  }

  // --- conclusion ---

  function conclude() {
    return [...(shown.failure ? failed(shown.failure) : []), ...(shown.conclusion ? concluded(shown.conclusion, citation) : [])];
  }

  function failed({ title, what, at, next, session }) {
    const category = shown.session.error_category ?? "";
    return [
      el("h2", {}, title, !["", "unknown"].includes(category) ? el("code", { class: "tag" }, category) : null),
      el("p", { class: "text what bad" }, what),
      session ? el("p", {}, "The other session: ", el("a", { href: `#/session/${encodeURIComponent(session)}` }, session)) : null,
      at ? el("p", {}, "Where: ", link(at.sk, "", at.name)) : null,
      next.length ? el("h3", {}, "What to do next") : null,
      next.length ? el("ol", {}, next.map((text) => el("li", { class: "text" }, coded(text)))) : null,
    ];
  }

  function citation(claim) {
    const found = claim && shown.citations?.find((known) => known.claim === claim);
    return found ? link(`STEP#${String(found.seq).padStart(8, "0")}`, found.pointer, `→ step ${found.seq}`) : null;
  }

  /** A link to a record, and to a part of it. */
  function link(sk, pointer, words) {
    return el("a", { class: "cite", href: `#/session/${encodeURIComponent(id)}/${encodeURIComponent(sk)}${pointer.split("/").map(encodeURIComponent).join("/")}` }, words);
  }

  function results() {
    const value = shown.session.result;
    if (!value) return [];
    return [el("details", { open: !shown.conclusion }, el("summary", {}, el("h2", {}, "Result")), readable(value))];
  }

  function pictures() {
    const { machine, graph } = shown;
    const notes = [
      machine?.status && machine.status !== "RUNNING" ? `execution ${machine.status.toLowerCase()}` : "",
      machine?.executions > 1 ? `${machine.executions} executions` : "", machine?.is_cut ? "newest states only" : "",
    ].filter(Boolean).join(" · ");
    return [machine?.drawing ? picture("State machine", machine.drawing, notes) : null,
      graph ? picture("Agent graph", graph, "") : null];
  }

  /** Verifies the hash chain once; long sessions only on request. */
  function offerVerifying() {
    if (seal.dataset.asked) return;
    seal.dataset.asked = "yes";
    if (shown.session.steps <= VERIFIED_STEPS) verify();
    else seal.replaceChildren(el("button", { type: "button", onclick: verify }, "Verify the hash chain"));
  }

  async function verify() {
    seal.textContent = "verifying …";
    try {
      const found = await get(path(id, "/verify"));
      const about = `${found.records} records, ${found.state}`;
      // The words of `daybook verify`; only an anchored session is sound.
      const words = {
        damaged: "✗ damaged: verification failed",
        "not provable": `? not provable: ${[found.state, ...found.unmet].join("; ")}`,
        sound: `✓ sound: the hash chain verifies and an anchor names the verdict: ${about}`,
        consistent: `~ consistent: the hash chain verifies, without an anchor: ${about}`,
        open: `~ open: the hash chain verifies, without a verdict: ${about}`,
      };
      seal.className = found.word === "damaged" ? "bad seal" : "faint seal";
      seal.replaceChildren(words[found.word],
        ...(found.damage.length ? [el("ul", {}, found.damage.map((line) => el("li", { class: "text" }, line)))] : []));
    } catch (error) {
      seal.textContent = visible(error.message);
    }
  }

  async function send(what, body) {
    said.className = "faint";
    said.textContent = "sending …";
    try {
      await post(path(id, `/${what}`), body);
      said.textContent = { cancel: "Cancellation recorded.", resume: "Resumed.", answer: "Answer recorded." }[what];
      await refresh();
      if (what === "resume") listen();
      return true;
    } catch (error) {
      said.className = "bad";
      said.textContent = visible(error.message);
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
    // An update must not discard what the user is typing.
    if (question.dataset.id === String(open.question_id)) return;
    question.dataset.id = open.question_id;
    const words = el("input", { id: "words", "aria-label": "Reply or reason", placeholder: "a reply, or a reason" });
    const edited = el("textarea", { id: "arguments", rows: 6, spellcheck: false, "aria-label": "Arguments as JSON" });
    // The stack's text: a parsed number would be rounded.
    const asked = visible(open.arguments_text ?? "{}");
    edited.value = asked;
    const wrong = el("p", { class: "bad", role: "alert" });
    const decide = async (decision) => {
      const body = { question_id: open.question_id, digest: open.digest, decision };
      if (decision === "approve" && edited.value !== asked) {
        wrong.textContent = "The arguments were edited. Approve as edited, or restore them.";
        return;
      }
      if (decision === "say") body.text = words.value;
      else if (words.value) body.reason = words.value;
      if (decision === "edit") {
        try { body.arguments = JSON.parse(edited.value); } catch (error) {
          wrong.textContent = `The arguments are not valid JSON: ${error.message}`;
          return;
        }
      }
      wrong.textContent = "";
      if (!await send("answer", body)) wrong.textContent = said.textContent;
    };
    const offers = (decision) => open.choices.includes(decision);
    const button = (decision, label, tone) => offers(decision)
      ? el("button", { type: "button", class: tone, disabled: true, onclick: () => decide(decision) }, label) : null;
    const buttons = [button("approve", "Approve", "good"), button("reject", "Reject", "bad"),
      button("edit", "Approve as edited"), button("say", "Reply")].filter(Boolean);
    setTimeout(() => buttons.forEach((item) => { item.disabled = false; }), UNREAD_MS);
    const hasCall = open.tool || open.arguments !== undefined;
    question.replaceChildren(...[
      el("h2", {}, "Waiting for your answer"),
      el("p", { class: "text" }, visible(open.prompt)),
      open.justification ? el("p", { class: "faint text" }, visible(open.justification)) : null,
      hasCall ? el("div", { class: "call" },
        open.tool ? el("p", {}, "The agent wants to run ", el("code", {}, visible(open.tool)),
          open.server ? [" of ", el("code", {}, visible(open.server))] : null) : null,
        el("pre", { "aria-label": "Arguments" }, asked),
        offers("edit") ? edited : null) : null,
      drawnOrigins(open),
      offers("say") || offers("reject") ? words : null,
      el("p", { class: "acts" }, buttons),
      wrong,
      el("p", { class: "faint" }, "Expires ", when(open.expires_at), " · digest ", el("code", { title: open.digest }, open.digest.slice(0, 12)),
        open.tool_schema ? [" · schema ", el("code", { title: open.tool_schema }, open.tool_schema.slice(0, 12))] : null),
    ].filter(Boolean));
  }

  /** Where each argument of the call in question came from. */
  function drawnOrigins(open) {
    if (!open.origins?.length) return null;
    const at = ({ origin, step, place }) => `${ORIGINS[origin] ?? origin}${step ? ` (step ${step}, ${place})` : ""}`;
    const why = ({ origin, match }) => origin === "program" && match === "none" ? ", which set or computed it" : WHY[match] ?? "";
    const item = (found) => el("li", { class: found.allowed ? "bad" : "" },
      el("code", {}, found.pointer || "other arguments"), `: ${at(found)}${why(found)}`,
      ...(found.also ?? []).map((other) => `; ${other.match === "contains" ? "contains" : "also in"} ${at(other)}`),
      found.allowed ? `; not permitted, only from: ${found.allowed.join(", ")}` : "");
    return el("div", { class: "origins" },
      el("p", { class: "faint" }, open.origins_computed ? "Where the arguments came from (computed now, not in the record)" : "Where the arguments came from"),
      el("ul", {}, open.origins.map(item)));
  }

  // --- the rows ---

  /** The position of a time, in percent of the axis. */
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
    rows.style.height = `${waterfall.rows.length * ROW_PX}px`;
    if (follows && chosen === null && OPEN.includes(shown.session.status)) scroll.scrollTop = scroll.scrollHeight;
    rows.replaceChildren(...drawnRows(...inSight()));
    scroll.setAttribute("aria-activedescendant", chosen === null ? "" : `row-${chosen}`);
  }

  /** The half-open range of rows to draw: the visible ones and `SPARE` more on either side. */
  function inSight() {
    const first = Math.max(0, Math.floor(scroll.scrollTop / ROW_PX) - SPARE);
    return [first, Math.min(shown.waterfall.rows.length, Math.ceil((scroll.scrollTop + scroll.clientHeight) / ROW_PX) + SPARE)];
  }

  const drawnRows = (first, last) => shown.waterfall.rows.slice(first, last).map((row, index) => drawRow(row, first + index));

  /** On scroll, keeps the rows that stay visible: redrawing all of them takes longer than a frame. */
  function moveRows() {
    if (!shown) return;
    const [first, last] = inSight();
    const place = (item) => Number(item.id.slice("row-".length));
    for (const item of [...rows.children]) if (place(item) < first || place(item) >= last) item.remove();
    if (rows.childElementCount === 0) rows.append(...drawnRows(first, last));
    else {
      rows.prepend(...drawnRows(first, place(rows.firstElementChild)));
      rows.append(...drawnRows(place(rows.lastElementChild) + 1, last));
    }
  }

  function drawRow(row, index) {
    const { waterfall } = shown;
    const lane = waterfall.lanes[row.lane];
    const bar = el("span", { class: `bar-${row.kind === "event" ? "event" : "step"} ${row.tone}` });
    const left = x(row.from_ms);
    // A bar that begins at the end of the track would be invisible.
    bar.style.left = left <= 100 && row.kind !== "event" ? `min(${left}%, 100% - ${BAR_PX}px)` : `${left}%`;
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

  async function open(index, pointer = "") {
    chosen = Math.max(0, Math.min(index, shown.waterfall.rows.length - 1));
    const row = shown.waterfall.rows[chosen];
    if (!row) return;
    cited = pointer;
    remember(`/${encodeURIComponent(row.sk)}${pointer.split("/").map(encodeURIComponent).join("/")}`);
    const top = chosen * ROW_PX;
    if (top < scroll.scrollTop) scroll.scrollTop = top;
    if (top + ROW_PX > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = top + ROW_PX - scroll.clientHeight;
    drawRows();
    record.hidden = false;
    const title = row.kind === "event" ? row.name : `Step ${row.seq} · ${row.name}`;
    const shut = el("button", { type: "button", onclick: close, "aria-label": "Close the record" }, "×");
    const bar = el("div", { class: "bar" }, el("h2", {}, title), el("span", { class: "grow" }), shut);
    record.replaceChildren(bar, el("p", { class: "faint" }, "fetching …"));
    try {
      const found = await get(path(id, `/record?sk=${encodeURIComponent(row.sk)}`));
      if (shown.waterfall.rows[chosen]?.sk !== row.sk || cited !== pointer) return;
      record.replaceChildren(bar, ...drawRecord(row, found, pointer));
      reveal();
    } catch (error) {
      record.lastChild.textContent = visible(error.message);
    }
  }

  /** Scrolls to the cited part and focuses it. */
  function reveal() {
    const mark = record.querySelector("mark.cited");
    if (!mark) return;
    record.scrollIntoView({ block: "nearest" });
    mark.scrollIntoView({ block: "center" });
    mark.focus({ preventScroll: true });
  }

  function close() {
    record.hidden = true;
    chosen = null;
    cited = null;
    remember("");
    drawRows();
    scroll.focus({ preventScroll: true });
  }

  /** Keeps the open record in the address, so that reloads and links restore it; not once another view is shown. */
  function remember(rest) {
    if (frame.isConnected) history.replaceState(null, "", `#/session/${encodeURIComponent(id)}${rest}`);
  }

  /** Opens the record that the address names, at the part that it cites. */
  function go([sk, ...place]) {
    const index = sk ? shown.waterfall.rows.findIndex((row) => row.sk === sk) : -1;
    if (index >= 0) open(index, place.map((part) => `/${part}`).join(""));
    else if (sk) said.textContent = visible(`No record ${sk} in this session.`);
  }

  // --- keyboard and live updates ---

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
    else if (name === "Escape" && !record.hidden) close();
    else if (name === "Escape") location.hash = "#/";
    else return false;
    // Keep the selected row visible.
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
      isOver: () => !OPEN.includes(shown.session.status),
      changed: () => refresh().then(() => connected(true), () => connected(false)),
      progressed: (news) => {
        const share = news.total ? `${Math.round((100 * news.progress) / news.total)} %` : String(news.progress ?? "");
        said.className = "faint";
        said.textContent = visible(["running", news.tool, share, news.message].filter(Boolean).join(" · "));
      },
    });
  }

  await refresh();
  if (OPEN.includes(shown.session.status)) listen();
  go(wanted);
  return { key, go: ([other, ...rest]) => other === id && (go(rest), true), leave: () => { left = true; clearTimeout(ticking); unwatch?.(); resized.disconnect(); } };
}
