// Shows any JSON value: as a tree that is built where it is opened, pretty or raw; with search, wrapping, and copies of a value or
// its pointer. Arrays of like objects are tables. Text keeps its line breaks.

import { button, copier, el, number, visible } from "./dom.js";

/** Characters of a printed value that are shown at first; a click shows the rest. */
const SHOWN_CHARS = 100_000;
/** Entries of an object or array that are built at once. */
const CHUNK = 100;
/** Smaller parts are open from the beginning. */
const OPEN_ENTRIES = 12;
const OPEN_DEPTH = 3;
const FOUND_MAX = 500;
const COLUMNS_MAX = 10;

const isBranch = (value) => value !== null && typeof value === "object" && Object.keys(value).length > 0;
const escaped = (name) => String(name).replaceAll("~", "~0").replaceAll("/", "~1");
const unescaped = (part) => part.replaceAll("~1", "/").replaceAll("~0", "~");

/** Whether the array is a table: objects of plain values with few names. */
function columnsOf(value) {
  if (!Array.isArray(value) || value.length < 2 || value.length > CHUNK) return null;
  const isFlat = (row) => row !== null && typeof row === "object" && !Array.isArray(row) && Object.values(row).every((cell) => !isBranch(cell));
  if (!value.every(isFlat)) return null;
  const columns = [...new Set(value.flatMap((row) => Object.keys(row)))];
  return columns.length > 0 && columns.length <= COLUMNS_MAX ? columns : null;
}

/** A viewer of the value; the part at the JSON pointer is marked as cited. */
export function dataView(value, { pointer = null, label = "Value" } = {}) {
  const body = el("div");
  const place = el("code", { class: "faint" });
  const search = el("input", { type: "search", placeholder: "Find", "aria-label": `Find in ${label}`, onkeydown: (event) => { if (event.key === "Enter") { event.preventDefault(); find(event.shiftKey ? -1 : 1); } } });
  const hits = el("span", { class: "faint small-text", role: "status" });
  const form = el("select", { "aria-label": `Form of ${label}`, onchange: draw }, ["tree", "pretty", "raw"].map((name) => el("option", { value: name }, name)));
  const wrap = el("input", { type: "checkbox", checked: true, onchange: draw, id: `wrap-${crypto.randomUUID()}` });
  const branches = new Map();
  let chosen = "";
  let found = { text: "", pointers: [], at: -1 };
  const frame = el("div", { class: "data" },
    el("div", { class: "bar" }, search, hits, form, el("label", { for: wrap.id, class: "small-text" }, wrap, " wrap"),
      copier("Copy value", () => { const part = at(chosen); return typeof part === "string" ? part : JSON.stringify(part, null, 2); }),
      copier("Copy pointer", () => chosen)),
    body);
  draw();
  return frame;

  function at(where) {
    return where.split("/").slice(1).map(unescaped).reduce((part, name) => part?.[name], value);
  }

  function draw() {
    branches.clear();
    if (form.value === "tree" && typeof value === "object" && value !== null) {
      const tree = el("div", { class: `tree${wrap.checked ? "" : " nowrap"}`, tabIndex: 0, role: "group", "aria-label": label, onclick: choose });
      tree.append(...children(value, "", 0));
      body.replaceChildren(tree, place);
      if (pointer !== null) reveal(pointer, "cited");
    } else body.replaceChildren(...printedText());
  }

  function printedText() {
    const text = typeof value === "string" ? visible(value) : visible(JSON.stringify(value, null, form.value === "raw" ? 0 : 2));
    const pre = el("pre", { tabIndex: 0, class: wrap.checked ? "" : "nowrap", "aria-label": label }, text.slice(0, SHOWN_CHARS));
    if (text.length <= SHOWN_CHARS) return [pre];
    const more = button(`Show all (${number(Math.ceil(text.length / 1000))} kB)`, () => { pre.textContent = text; more.remove(); });
    return [pre, more];
  }

  // --- the tree ---

  function choose(event) {
    const item = event.target.closest("[data-at]");
    if (!item) return;
    chosen = item.dataset.at;
    place.textContent = visible(chosen || "/");
  }

  function children(part, where, depth) {
    const names = Array.isArray(part) ? part.map((_, index) => index) : Object.keys(part);
    const made = names.slice(0, CHUNK).map((name) => node(name, part[name], `${where}/${escaped(name)}`, depth));
    if (names.length <= CHUNK) return made;
    let from = CHUNK;
    const more = button("", () => grow(CHUNK), { class: "more quiet" });
    const grow = (count) => {
      more.before(...names.slice(from, from + count).map((name) => node(name, part[name], `${where}/${escaped(name)}`, depth)));
      from += count;
      if (from >= names.length) more.remove();
      else more.textContent = `${number(names.length - from)} more`;
    };
    more.textContent = `${number(names.length - from)} more`;
    made.push(more);
    branches.set(`${where}#`, (name) => { const index = names.findIndex((known) => String(known) === name); if (index >= from) grow(index - from + 1); });
    return made;
  }

  function node(name, part, where, depth) {
    const key = el("span", { class: "key" }, `${name}: `);
    if (!isBranch(part)) return el("div", { class: "leaf", "data-at": where }, key, leaf(part));
    const size = Object.keys(part).length;
    const words = Array.isArray(part) ? `[${number(size)}]` : `{${number(size)}}`;
    const inside = el("details", { "data-at": where }, el("summary", {}, key, el("span", { class: "faint" }, words)));
    let isBuilt = false;
    const build = () => {
      if (isBuilt) return;
      isBuilt = true;
      const columns = columnsOf(part);
      inside.append(...(columns ? [table(part, columns, where)] : children(part, where, depth + 1)));
    };
    branches.set(where, () => { build(); inside.open = true; });
    inside.addEventListener("toggle", () => { if (inside.open) build(); });
    if (size <= OPEN_ENTRIES && depth < OPEN_DEPTH) { build(); inside.open = true; }
    return inside;
  }

  function leaf(part) {
    const kind = typeof part === "string" ? "string" : typeof part === "number" ? "number" : "other";
    return el("span", { class: kind }, kind === "string" ? part : JSON.stringify(part));
  }

  function table(rows, columns, where) {
    return el("table", {}, el("thead", {}, el("tr", {}, columns.map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, rows.map((row, index) => el("tr", { "data-at": `${where}/${index}` }, columns.map((name) =>
        el("td", { "data-at": `${where}/${index}/${escaped(name)}` }, name in row ? leaf(row[name]) : ""))))));
  }

  /** Opens the way to a part and marks it. */
  function reveal(where, mark) {
    let so = "";
    branches.get("#")?.(unescaped(where.split("/")[1] ?? ""));
    for (const name of where.split("/").slice(1)) {
      branches.get(`${so}#`)?.(unescaped(name));
      so = `${so}/${name}`;
      branches.get(so)?.();
    }
    const item = [...body.querySelectorAll("[data-at]")].find((known) => known.dataset.at === where) ?? (where === "" ? body.firstElementChild : null);
    if (!item) return;
    if (mark === "cited") {
      // A branch keeps its summary as its first child.
      const inside = item.matches("details, tr") ? item.firstElementChild : item;
      const cited = el("mark", { class: "cited", tabIndex: -1 });
      cited.append(...inside.childNodes);
      inside.append(cited);
    } else {
      for (const before of body.querySelectorAll(".found")) before.classList.remove("found");
      item.classList.add("found");
      item.scrollIntoView({ block: "nearest" });
      chosen = where;
      place.textContent = visible(where || "/");
    }
  }

  // --- search ---

  function find(step) {
    const text = search.value.toLowerCase();
    if (!text) return;
    if (form.value !== "tree") { form.value = "tree"; draw(); }
    if (found.text !== text) found = { text, pointers: matches(text), at: step > 0 ? -1 : 0 };
    const { pointers } = found;
    if (pointers.length === 0) { hits.textContent = "not found"; return; }
    found.at = (found.at + step + pointers.length) % pointers.length;
    hits.textContent = `${found.at + 1} of ${number(pointers.length)}${pointers.length === FOUND_MAX ? "+" : ""}`;
    reveal(pointers[found.at], "found");
  }

  /** Pointers of the parts whose name or plain value has the text. */
  function matches(text) {
    const pointers = [];
    const walk = (part, where, name) => {
      if (pointers.length >= FOUND_MAX) return;
      const isHit = String(name).toLowerCase().includes(text) || (!isBranch(part) && String(part).toLowerCase().includes(text));
      if (isHit && where) pointers.push(where);
      if (isBranch(part)) for (const [inner, child] of Object.entries(part)) walk(child, `${where}/${escaped(inner)}`, Array.isArray(part) ? "" : inner);
    };
    walk(value, "", "");
    return pointers;
  }
}
