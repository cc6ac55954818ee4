// Builds elements and formats values. Text is always set as text, never as markup: journal content is untrusted.

const SVG = "http://www.w3.org/2000/svg";

/** An element with properties, attributes (`aria-…`, `role`, `data-…`) and children, which may be text. */
export function el(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** An SVG element with attributes and children. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, visible(value));
  element.append(...children.map(visible));
  return element;
}

/** Control and format characters, and those that are drawn as nothing or as a blank; line breaks and tabs excepted. */
const HIDDEN = /[\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?![\t\n\r])\p{Cc}/gu;

/** A text with hidden characters as escapes, which are valid in JSON strings; any other value as it is. */
export function visible(text) {
  if (typeof text !== "string") return text;
  const escaped = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return text.replace(HIDDEN, (hidden) => hidden.split("").map(escaped).join(""));
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.includes("-") || name === "role" || name === "for" || name === "list") element.setAttribute(name, visible(value));
    // What a person or the page typed stays as it is.
    else element[name] = name === "value" ? value : visible(value);
  }
  const isShown = (child) => child !== null && child !== undefined && child !== false;
  element.append(...children.flat().filter(isShown).map(visible));
  return element;
}

/** What became of a run: its glyph and class. The glyph tells them apart without colour. An ended run is not green: whether its
 * result is good is the agent's verdict, which has a badge of its own. */
export const STATUS = {
  INITIATED: ["▸", "running"],
  RUNNING: ["▸", "running"],
  WAITING: ["‖", "waiting"],
  SUCCEEDED: ["✓", "ended"],
  FAILED: ["✗", "failed"],
  TIMED_OUT: ["✗", "failed"],
  CANCELLED: ["■", "stopped"],
  ABORTED: ["■", "stopped"],
  REJECTED: ["■", "stopped"],
};

export const OPEN = ["INITIATED", "RUNNING", "WAITING"];

export const worded = (status) => status.replaceAll("_", " ").toLowerCase();

/** What became of the run. */
export function badge(status) {
  const [glyph, state] = STATUS[status] ?? ["?", "ended"];
  return el("span", { class: `badge ${state}`, title: "what became of the run" }, `${glyph} ${worded(status)}`);
}

/** A sign for each tone, so that colour is not the only cue. */
export const SIGNS = { good: "✓ ", bad: "✗ ", warn: "! ", neutral: "" };

/** The agent's verdict. A verdict without an assessment has no colour. */
export function verdictBadge(word, tone = "neutral") {
  const known = tone in SIGNS ? tone : "neutral";
  return el("span", { class: `verdict ${known === "neutral" ? "" : known}`.trim(), title: "the agent's verdict" }, `${SIGNS[known]}${word}`);
}

/** What a session is called where its agent gave it no title. */
export const titled = (session) => session.title || `${session.agent ?? "session"} ${session.session_id.slice(0, 8)}`;

/** A time span: `12 ms`, `1.234 s`, `2 min 03 s`, `1 h 02 min`. */
export function duration(ms) {
  if (ms === null || ms === undefined) return "";
  const s = Math.floor(ms / 1000);
  const two = (n) => String(n).padStart(2, "0");
  if (s < 1) return `${Math.round(ms)} ms`;
  if (s < 60) return `${(ms / 1000).toFixed(s < 10 ? 2 : 1)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${two(s % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${two(Math.floor(s / 60) % 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s / 3600) % 24} h`;
}

export function number(value) {
  return value.toLocaleString("en-US");
}

export function dollars(usd) {
  return `$${usd.toFixed(usd < 1 ? 4 : 2)}`;
}

export function tokens({ input, output, unsettled }, usd) {
  const all = input + output + unsettled;
  if (all === 0) return "";
  return usd > 0 ? `${number(all)} tokens · ${dollars(usd)}` : `${number(all)} tokens`;
}

/** A time of day, preceded by the date unless it is today. */
export function clock(stamp) {
  if (!stamp) return "";
  const at = new Date(stamp);
  const isToday = at.toDateString() === new Date().toDateString();
  const time = at.toLocaleTimeString("en-GB");
  return isToday ? time : `${at.toLocaleDateString("en-CA")} ${time}`;
}

export function when(stamp) {
  return el("time", { dateTime: stamp ?? "", title: stamp ?? "" }, clock(stamp));
}

/** How long ago a time was: `now`, `5 min`, `3 h`, `2 d`. */
export function age(stamp, now = Date.now()) {
  if (!stamp) return "";
  const s = Math.max(0, Math.floor((now - Date.parse(stamp)) / 1000));
  if (s < 60) return s < 5 ? "now" : `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} d`;
}

/** The time that is left until then: `in 6 d 23 h`. */
export function until(stamp, now = Date.now()) {
  const ms = Date.parse(stamp) - now;
  return ms > 0 ? `in ${duration(ms)}` : "now";
}

/** A button. */
export function button(label, onclick, properties = {}) {
  return el("button", { type: "button", onclick, ...properties }, label);
}

/** Copies a text; the button says whether that worked. */
export function copier(label, text) {
  const made = button(label, async () => {
    try { await navigator.clipboard.writeText(text()); made.textContent = "Copied"; } catch { made.textContent = "Not copied"; }
    setTimeout(() => { made.textContent = label; }, 1500);
  });
  return made;
}

/** Grey bars in the place of what is being fetched. */
export const skeleton = () => el("div", { class: "skeleton", role: "status", "aria-label": "Loading" }, [1, 2, 3, 4].map(() => el("span")));

/** A table that scrolls sideways in its frame. Columns from `figures` on are numbers. A row may be an element, a cell may be a `td` or `th`. */
export function wideTable(label, heads, rows, { figures = Infinity, kind = "", foot = null } = {}) {
  const as = (index) => ({ class: index < figures ? null : "figure" });
  return el("div", { class: "wide", tabIndex: 0, role: "group", "aria-label": label }, el("table", { class: `small ${kind}` },
    el("thead", {}, el("tr", {}, heads.map((head, index) => el("th", { scope: "col", ...as(index) }, head)))),
    el("tbody", {}, rows.map((row) => (Array.isArray(row)
      ? el("tr", {}, row.map((cell, index) => (cell instanceof HTMLTableCellElement ? cell : el("td", as(index), cell)))) : row))), foot));
}

/** Asks once whether to cancel; `cancel` gets what to send with it. */
export function askToCancel(title, cancel) {
  const reason = el("input", { id: "reason", maxLength: 500, autocomplete: "off", placeholder: "Why (optional)" });
  const dialog = el("dialog", { "aria-labelledby": "cancel-title", onclose: () => dialog.remove() },
    el("h2", { id: "cancel-title" }, title), el("p", { class: "faint" }, "Effects so far stay. A cancelled session cannot be continued."),
    el("form", { onsubmit: (event) => { event.preventDefault(); dialog.close(); cancel(reason.value ? { reason: reason.value } : {}); } },
      el("label", { for: "reason" }, "Reason"), reason,
      el("div", { class: "acts" }, button("Keep running", () => dialog.close()), el("button", { class: "danger" }, "Cancel now"))));
  document.body.append(dialog);
  dialog.showModal();
}

/** What a session waits for that lacks a version of its agent. */
export function needs({ version, registered }) {
  const there = registered.length ? `registered: ${registered.join(", ")}` : "the agent is not registered";
  return `waits for version ${version} of its agent; ${there}`;
}
