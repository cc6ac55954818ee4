// Renders a conclusion, in the same way for every agent.

import { SIGNS, el, verdictBadge, wideTable } from "./dom.js";

const toned = (tone) => (tone === "neutral" ? "" : tone);

export const badgeOf = ({ word, tone }) => verdictBadge(word, tone);

/** Renders text in backticks as code. */
export function coded(text) {
  return text.split("`").map((part, index) => (index % 2 ? el("code", {}, part) : part));
}

/** Renders the parts of a conclusion; `cite` links a claim to its record. */
export function conclusion(found, cite) {
  const { headings } = found;
  const heading = (words) => (words ? el("h3", {}, words) : null);
  const part = (list, words, first, draw) => (list.length ? [heading(words), el("ol", { start: first }, list.map(draw))] : []);
  return [
    el("h2", {}, found.title, " ", found.verdict ? badgeOf(found.verdict) : null),
    ...(found.summary ? [heading(headings.summary), el("p", { class: "text what" }, found.summary)] : []),
    ...(found.facts.length ? [el("dl", { class: "fields" }, found.facts.flatMap(fact))] : []),
    ...part(found.findings, headings.findings, 0, (finding) => drawFinding(finding, cite)),
    ...part(found.actions, headings.actions, 1, action),
    ...found.tables.flatMap(table),
    ...found.notes.flatMap(({ title, lines, tone }) => [heading(title),
      ...lines.map((line) => el("p", { class: `text ${toned(tone)}` }, line))]),
  ];
}

function fact({ name, value, tone, share_permille }) {
  const bar = share_permille === null ? null : el("meter", { min: 0, max: 1000, value: share_permille, "aria-label": name });
  return [el("dt", {}, name), el("dd", { class: toned(tone) }, bar, bar ? " " : null, value)];
}

function drawFinding({ label, text, tone, evidence, claim }, cite) {
  const source = evidence && (evidence.quote === null ? evidence.source
    : `${evidence.source} = ${evidence.quote || "(nothing found)"}`);
  return el("li", {}, el("span", { class: toned(tone) }, SIGNS[tone]), label ? el("strong", {}, label, " ") : null, text, " ",
    cite(claim), source ? el("code", { class: "source", title: source }, source) : null);
}

function action({ title, details, notes, evidence }) {
  const basis = evidence.length ? [`evidence ${evidence.map((index) => `[${index}]`).join("")}`] : [];
  const faint = [...basis, ...notes].join(" · ");
  return el("li", { class: "text" }, el("span", {}, coded(title)), details ? [": ", ...coded(details)] : null,
    faint ? el("span", { class: "faint" }, ` (${faint})`) : null);
}

function table({ title, columns, rows }) {
  return [el("h3", {}, title), wideTable(title, columns, rows.map((cells) => cells.map(({ text, tone }) => el("td", { class: toned(tone) }, text))))];
}
