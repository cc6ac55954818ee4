// The records of a session on one time axis, with the selected record beside it. Only the rows in sight are drawn.

import { get, path } from "./api.js";
import { OPEN, button, duration, el, number, skeleton, visible } from "./dom.js";
import { drawRecord } from "./record.js";

const ROW_PX = 26;
/** The shortest bar, as the style sheet has it. */
const BAR_PX = 3;
/** Rows that are drawn above and below the visible ones. */
const SPARE = 12;
const ZOOM_MAX = 4096;
/** A wait that is longer than this share of the time at work is drawn shorter, with this share. */
const WAIT_SHARE = 0.15;
const TICKS_MS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 72e5, 216e5, 864e5, 1728e5, 6048e5];

/** Maps times to places between 0 and 1, with long waits compressed. */
function scaleOf(waits, span) {
  const long = [];
  const ordered = waits.map((wait) => [wait.from_ms, wait.is_over ? wait.to_ms : span]).sort((a, b) => a[0] - b[0]);
  const work = Math.max(1, span - ordered.reduce((sum, [from, to]) => sum + Math.max(0, to - from), 0));
  let end = 0;
  for (const [from, to] of ordered) {
    if (to - from > WAIT_SHARE * work && from >= end) { long.push([from, to]); end = to; }
  }
  const short = WAIT_SHARE * work;
  const whole = span - long.reduce((sum, [from, to]) => sum + to - from - short, 0);
  const place = (ms) => {
    let so = ms;
    for (const [from, to] of long) {
      if (ms >= to) so -= to - from - short;
      else if (ms > from) so -= (ms - from) * (1 - short / (to - from));
    }
    return so / whole;
  };
  const time = (share) => {
    let ms = share * whole;
    for (const [from, to] of long) {
      if (ms <= from) break;
      ms = ms <= from + short ? from + ((ms - from) * (to - from)) / short : ms + to - from - short;
    }
    return ms;
  };
  return { place, time, isCompressed: long.length > 0 };
}

export function timeline(id, { moved, connected }) {
  let shown = null;
  let chosen = null;
  let cited = null;
  let zoom = 1;
  let origin = 0;
  /** Whether the timeline follows the newest row: until the user scrolls away or opens a record. */
  let follows = true;
  let scale = null;
  /** The rows that the filter leaves, as indices of all rows. */
  let kept = [];

  const axis = el("div", { class: "axis", "aria-hidden": "true" });
  const rows = el("div", { class: "rows", role: "presentation" });
  const scroll = el("div", { class: "scroll", tabIndex: 0, role: "listbox", "aria-label": "Records, in order of time" }, rows);
  const record = el("aside", { class: "record", "aria-label": "Selected record" });
  const said = el("p", { class: "faint", role: "status" });
  const count = el("span", { class: "faint small-text", role: "status" });
  const search = el("input", { type: "search", placeholder: "Filter records", "aria-label": "Filter records", oninput: () => draw() });
  const all = el("input", { type: "checkbox", id: "infrastructure", onchange: () => draw() });
  record.hidden = true;
  scroll.addEventListener("scroll", () => {
    follows = scroll.scrollTop + scroll.clientHeight >= scroll.scrollHeight - ROW_PX;
    moveRows();
  }, { passive: true });
  scroll.addEventListener("keydown", (event) => {
    if (["ArrowDown", "ArrowUp"].includes(event.key) && key(event.key)) { event.preventDefault(); event.stopPropagation(); }
  });
  const element = el("div", { class: "columns" }, el("section", { class: "timeline", "aria-label": "Timeline" },
    el("div", { class: "bar" }, search, el("label", { for: "infrastructure" }, all, " infrastructure"), count, el("span", { class: "grow" }),
      button("−", () => key("-"), { class: "icon", "aria-label": "Zoom out" }), button("All", () => key("0")), button("+", () => key("+"), { class: "icon", "aria-label": "Zoom in" })),
    axis, scroll, said), record);
  const resized = new ResizeObserver(() => drawRows());
  resized.observe(scroll);

  /** Takes the newest data. */
  function update(data) {
    shown = data;
    draw();
  }

  /** The length of the axis, in milliseconds; it grows while the session is open. */
  function span() {
    const grown = OPEN.includes(shown.session.status) ? performance.now() - shown.at : 0;
    return Math.max(1, shown.waterfall.span_ms + grown);
  }

  /** The scale, kept while neither data nor time change it. */
  function scaled() {
    const now = span();
    if (scale?.of !== shown || scale.now !== now) scale = { of: shown, now, ...scaleOf(shown.waterfall.waits, now) };
    return scale;
  }

  // --- which rows ---

  /** Events of the machinery. Begin, verdict, and what went wrong always stay. */
  const isInfrastructure = (row) => row.kind === "event" && !["bad", "warn"].includes(row.tone) && !row.name.startsWith("SESSION_");

  function draw() {
    if (!shown) return;
    const text = search.value.toLowerCase();
    const open = chosen;
    kept = shown.waterfall.rows.flatMap((row, index) => {
      const isWanted = text ? `#${row.seq ?? ""} ${row.name} ${row.what} ${row.more ?? ""} ${row.kind}`.toLowerCase().includes(text) : all.checked || !isInfrastructure(row);
      return isWanted || index === open ? [index] : [];
    });
    const folded = shown.waterfall.rows.length - kept.length;
    count.textContent = `${number(kept.length)} records${folded ? `, ${number(folded)} ${text ? "others" : "of infrastructure folded"}` : ""}`;
    drawRows();
  }

  /** The position of a time, in percent of the axis. */
  const x = (scale, ms) => (scale.place(ms) - origin) * zoom * 100;

  function drawAxis(scale) {
    const width = axis.firstChild?.clientWidth ?? 0;
    // A tick's words take about 70 pixels.
    const most = Math.max(2, Math.min(10, Math.floor(width / 70)));
    const ticks = [];
    const put = (ms) => {
      const tick = el("span", {}, ms < 1 ? "0" : `+${duration(ms)}`);
      tick.style.left = `${x(scale, ms)}%`;
      ticks.push(tick);
    };
    if (scale.isCompressed) for (let n = 0; n <= most; n += 1) put(scale.time(origin + n / most / zoom));
    else {
      const shownMs = span() / zoom;
      const step = TICKS_MS.find((ms) => shownMs / ms <= most) ?? shownMs / most;
      for (let ms = Math.ceil((origin * span()) / step) * step; ms <= origin * span() + shownMs; ms += step) put(ms);
    }
    axis.replaceChildren(el("div", { class: "scale" }, ticks));
  }

  function drawRows() {
    if (!shown || !scroll.isConnected) return;
    drawAxis(scaled());
    rows.style.height = `${kept.length * ROW_PX}px`;
    if (follows && chosen === null && OPEN.includes(shown.session.status)) scroll.scrollTop = scroll.scrollHeight;
    rows.replaceChildren(...drawnRows(...inSight()));
    scroll.setAttribute("aria-activedescendant", chosen === null ? "" : `row-${kept.indexOf(chosen)}`);
  }

  /** The half-open range of rows to draw: the visible ones and `SPARE` more on either side. */
  function inSight() {
    const first = Math.max(0, Math.floor(scroll.scrollTop / ROW_PX) - SPARE);
    return [first, Math.min(kept.length, Math.ceil((scroll.scrollTop + scroll.clientHeight) / ROW_PX) + SPARE)];
  }

  function drawnRows(first, last) {
    if (first >= last) return [];
    const at = scaled();
    return kept.slice(first, last).map((index, place) => drawRow(shown.waterfall.rows[index], index, first + place, at));
  }

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

  function drawRow(row, index, place, scale) {
    const { waterfall } = shown;
    const lane = waterfall.lanes[row.lane];
    const bar = el("span", { class: `bar-${row.kind === "event" ? "event" : "step"} ${row.tone}` });
    const left = x(scale, row.from_ms);
    // A bar that begins at the end of the track would be invisible.
    bar.style.left = left <= 100 && row.kind !== "event" ? `min(${left}%, 100% - ${BAR_PX}px)` : `${left}%`;
    if (row.kind !== "event") bar.style.width = `${Math.max(0, x(scale, row.to_ms) - left)}%`;
    const track = el("span", { class: "track" });
    for (const wait of waterfall.waits) {
      if (wait.seq !== row.seq) continue;
      const gap = el("span", { class: "gap", title: `waited ${duration(wait.to_ms - wait.from_ms)} for ${wait.of === "answer" ? "an answer" : "a time"}` });
      gap.style.left = `${x(scale, wait.from_ms)}%`;
      gap.style.width = `${Math.max(0, x(scale, wait.is_over ? wait.to_ms : span()) - x(scale, wait.from_ms))}%`;
      track.append(gap);
    }
    track.append(bar);
    const name = row.kind === "event" ? row.name : `#${row.seq} ${row.name}`;
    const skew = row.skew_ms ? ` · clock ${row.skew_ms > 0 ? "ahead" : "behind"} by ${duration(Math.abs(row.skew_ms))}` : "";
    const notes = [row.to_ms > row.from_ms ? duration(row.to_ms - row.from_ms) : "", row.tokens ? `${number(row.tokens)} tokens` : ""].filter(Boolean).join(" · ");
    const item = el("div", {
      class: `row ${row.kind === "event" ? "event" : "step"} ${row.tone}${index === chosen ? " chosen" : ""}${row.beside ? " beside" : ""}`,
      id: `row-${place}`, role: "option", "aria-selected": String(index === chosen),
      "aria-setsize": kept.length, "aria-posinset": place + 1,
      title: row.more ?? row.what, onclick: () => open(index),
    },
    el("span", { class: "who" }, lane.epoch && lane.epoch > 1 ? `${lane.name} ${lane.epoch}` : lane.name),
    el("span", { class: "name" }, name),
    el("span", { class: "what" }, row.what, row.more ? ` — ${row.more}` : "", skew),
    track,
    el("span", { class: "notes" }, notes));
    item.style.top = `${place * ROW_PX}px`;
    return item;
  }

  // --- the selected record ---

  async function open(index, pointer = "") {
    const row = shown.waterfall.rows[index];
    if (!row) return;
    chosen = index;
    cited = pointer;
    moved(`/${encodeURIComponent(row.sk)}${pointer.split("/").map(encodeURIComponent).join("/")}`);
    if (!kept.includes(index)) draw();
    const top = kept.indexOf(index) * ROW_PX;
    if (top < scroll.scrollTop) scroll.scrollTop = top;
    if (top + ROW_PX > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = top + ROW_PX - scroll.clientHeight;
    drawRows();
    record.hidden = false;
    const title = row.kind === "event" ? row.name : `Step ${row.seq} · ${row.name}`;
    const bar = el("div", { class: "bar" }, el("h2", {}, title), el("span", { class: "grow" }), button("×", close, { class: "icon quiet", "aria-label": "Close the record" }));
    record.replaceChildren(bar, skeleton());
    try {
      const found = await get(path(id, `/record?sk=${encodeURIComponent(row.sk)}`));
      if (shown.waterfall.rows[chosen]?.sk !== row.sk || cited !== pointer) return;
      record.replaceChildren(bar, ...drawRecord(row, found, pointer));
      reveal();
    } catch (error) {
      record.replaceChildren(bar, el("p", { class: "bad" }, visible(error.message)));
      if (!error.status) connected(false);
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
    moved("");
    draw();
    scroll.focus({ preventScroll: true });
  }

  /** Opens the record that an address names, at the part that it cites. */
  function go(sk, pointer) {
    const index = shown.waterfall.rows.findIndex((row) => row.sk === sk);
    if (index >= 0) open(index, pointer);
    else said.textContent = visible(`No record ${sk} in this session.`);
  }

  function key(name) {
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[name];
    if (step) {
      const place = chosen === null ? 0 : Math.max(0, Math.min(kept.length - 1, kept.indexOf(chosen) + step));
      open(kept[place]);
      return true;
    }
    const room = 1 - 1 / zoom;
    if (name === "+" || name === "=") zoom = Math.min(ZOOM_MAX, zoom * 2);
    else if (name === "-" || name === "−") zoom = Math.max(1, zoom / 2);
    else if (name === "0") { zoom = 1; origin = 0; }
    else if (name === "ArrowRight") origin = Math.min(room, origin + 0.25 / zoom);
    else if (name === "ArrowLeft") origin = Math.max(0, origin - 0.25 / zoom);
    else if (name === "Escape" && !record.hidden) close();
    else return false;
    // Keep the selected row visible.
    const row = chosen === null ? null : shown.waterfall.rows[chosen];
    if (row && ["+", "=", "-"].includes(name)) origin = scaled().place(row.from_ms) - 0.5 / zoom;
    origin = Math.max(0, Math.min(1 - 1 / zoom, origin));
    drawRows();
    return true;
  }

  /** Leaves only the records with this text. */
  function filter(text) {
    search.value = text;
    draw();
  }

  return { element, update, go, key, filter, grow: drawRows, leave: () => resized.disconnect() };
}
