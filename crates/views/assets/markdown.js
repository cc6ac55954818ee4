// Renders Markdown of models and tools, which may be hostile: it builds elements from text and never parses markup. HTML stays
// text, images are shown as their addresses, and a link shows where it leads.

import { el, wideTable } from "./dom.js";

/** Longer texts are shown as they are: what a person reads is shorter. */
const CHARS_MAX = 60_000;
const DEPTH_MAX = 6;

/** Inline parts, the first that matches: code, strong, emphasis, a link. */
const INLINE = /`([^`\n]+)`|\*\*([^*\n]+)\*\*|(?<![\w*])\*([^*\s][^*\n]*)\*(?![\w*])|(?<![\w_])_([^_\s][^_\n]*)_(?![\w_])|!?\[([^[\]\n]*)\]\(([^()\s]+)\)/g;

export function markdown(text) {
  const frame = el("div", { class: "markdown" });
  if (text.length > CHARS_MAX) frame.append(el("p", { class: "text" }, text));
  else frame.append(...blocks(text.replaceAll("\r\n", "\n").split("\n"), 0));
  return frame;
}

function blocks(lines, depth) {
  const made = [];
  let at = 0;
  const take = (matches) => { const taken = []; while (at < lines.length && matches(lines[at], taken.length)) taken.push(lines[at++]); return taken; };
  while (at < lines.length) {
    const line = lines[at];
    const fence = line.match(/^\s*(```|~~~)/);
    const list = line.match(/^\s*([-*+]|\d+[.)])\s+/);
    if (!line.trim()) at += 1;
    else if (fence) {
      at += 1;
      const inside = take((next) => !next.trim().startsWith(fence[1]));
      at += 1;
      made.push(el("pre", { tabIndex: 0 }, inside.join("\n")));
    } else if (/^#{1,6}\s/.test(line)) made.push(el("h3", {}, inline(lines[at++].replace(/^#+\s+/, ""))));
    else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) { at += 1; made.push(el("hr")); }
    else if (line.startsWith(">") && depth < DEPTH_MAX) made.push(el("blockquote", {}, blocks(take((next) => next.startsWith(">")).map((next) => next.replace(/^>\s?/, "")), depth + 1)));
    else if (/^\s*\|.*\|\s*$/.test(line) && /^[\s:|-]+$/.test(lines[at + 1] ?? "")) made.push(table(take((next) => /^\s*\|.*\|\s*$/.test(next))));
    else if (list && depth < DEPTH_MAX) made.push(listed(take((next, n) => n === 0 || /^\s*([-*+]|\d+[.)])\s+/.test(next) || /^\s{2,}\S/.test(next)), depth));
    else made.push(el("p", { class: "text" }, inline(take((next, n) => n === 0 || (next.trim() !== "" && !/^\s*(```|~~~|#{1,6}\s|>|[-*+]\s|\d+[.)]\s|\|)/.test(next))).join("\n"))));
  }
  return made;
}

function listed(lines, depth) {
  const items = [];
  const margin = lines[0].match(/^\s*/)[0].length;
  for (const line of lines) {
    const isItem = /^\s*([-*+]|\d+[.)])\s+/.test(line) && line.match(/^\s*/)[0].length <= margin + 1;
    if (isItem || items.length === 0) items.push([line.replace(/^\s*([-*+]|\d+[.)])\s+/, "")]);
    else items.at(-1).push(line.replace(new RegExp(`^\\s{0,${margin + 2}}`), ""));
  }
  const isOrdered = /^\s*\d/.test(lines[0]);
  return el(isOrdered ? "ol" : "ul", isOrdered ? { start: Number.parseInt(lines[0], 10) || 1 } : {}, items.map(([first, ...rest]) =>
    el("li", {}, inline(first), rest.length ? blocks(rest, depth + 1) : null)));
}

function table([head, , ...rows]) {
  const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());
  return wideTable("Table", cells(head).map(inline), rows.map((row) => cells(row).map(inline)));
}

function inline(text) {
  const parts = [];
  let from = 0;
  for (const found of text.matchAll(INLINE)) {
    const [all, code, strong, stars, lines, words, address] = found;
    parts.push(text.slice(from, found.index));
    from = found.index + all.length;
    if (code !== undefined) parts.push(el("code", {}, code));
    else if (strong !== undefined) parts.push(el("strong", {}, strong));
    else if (stars ?? lines) parts.push(el("em", {}, stars ?? lines));
    else parts.push(...link(all, words, address));
  }
  parts.push(text.slice(from));
  return parts;
}

/** A link with its address in sight; anything but the web stays text. */
function link(all, words, address) {
  if (all.startsWith("!") || !/^https?:\/\//i.test(address)) return [all];
  return [words && words !== address ? `${words} ` : "", el("a", { href: address, rel: "noopener noreferrer nofollow", target: "_blank" }, address)];
}
