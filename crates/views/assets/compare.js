// Compares sessions: what differs in input and result first, then two of them step by step, with the changed paths of each step.

import { get, path } from "./api.js";
import { badge, button, dollars, duration, el, number, skeleton, titled, verdictBadge, visible, when, wideTable } from "./dom.js";
import { begun } from "./start.js";

const SAYS = { same: "same", differs: "≠ differs", only_a: "− only in A", only_b: "+ only in B" };
const ROWS_MAX = 1000;
/** Changed paths that are shown of one value. */
const PATHS_MAX = 200;
const NAMES = "ABCDEFGH";

/** The paths at which values differ, with each side's value there; undefined where it is absent. */
function differences(values) {
  const found = [];
  const walk = (parts, at) => {
    if (found.length > PATHS_MAX) return;
    const texts = parts.map((part) => JSON.stringify(part));
    if (texts.every((text) => text === texts[0])) return;
    const isOpen = (part) => part !== null && typeof part === "object" && Object.keys(part).length > 0;
    const kinds = new Set(parts.map((part) => (isOpen(part) ? (Array.isArray(part) ? "list" : "object") : "plain")));
    if (kinds.size > 1 || kinds.has("plain")) { found.push([at, parts]); return; }
    for (const name of new Set(parts.flatMap((part) => Object.keys(part)))) walk(parts.map((part) => part[name]), `${at}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`);
  };
  walk(values, "");
  return found;
}

const shown = (value) => (value === undefined ? "absent" : typeof value === "string" ? value : JSON.stringify(value, null, 1));

/** A text with the part marked in which it differs from another. */
function marked(text, other, tag) {
  if (other === undefined) return [text];
  let from = 0;
  while (from < Math.min(text.length, other.length) && text[from] === other[from]) from += 1;
  let to = 0;
  while (to < Math.min(text.length, other.length) - from && text.at(-1 - to) === other.at(-1 - to)) to += 1;
  const end = text.length - to;
  return [text.slice(0, from), from < end ? el(tag, {}, text.slice(from, end)) : "", text.slice(end)];
}

/** A table of changed paths; null if the values are equal. */
function changes(title, values, names) {
  const found = differences(values);
  if (found.length === 0) return null;
  const isTwo = values.length === 2;
  const rows = found.slice(0, PATHS_MAX).map(([at, parts]) => {
    const texts = parts.map(shown);
    return [el("th", { scope: "row" }, el("code", {}, at || "/")), ...texts.map((text, index) => (isTwo ? marked(text, texts[1 - index], index ? "ins" : "del") : text))];
  });
  return el("section", { class: "panel" }, el("h2", {}, title), el("p", { class: "faint" }, `${number(found.length)}${found.length > PATHS_MAX ? "+" : ""} changed ${found.length === 1 ? "path" : "paths"}`),
    wideTable(title, ["Path", ...names], rows, { kind: "changed" }));
}

export async function compare(frame, ids, { name }) {
  const [a, b, ...others] = ids;
  const found = await get(`/api/compare?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`);
  const whole = await Promise.all([found.a.session_id, found.b.session_id, ...others].slice(0, NAMES.length).map((id) => get(path(id))));
  const sessions = whole.map(({ session }, index) => (index < 2 ? [found.a, found.b][index] : session));
  const names = sessions.map((_, index) => NAMES[index]);
  const { comparison } = found;
  const { first_difference: first, pairs } = comparison;
  const same = first === null;
  name(`${titled(found.a)} and ${titled(found.b)}`);
  const inputs = whole.map(begun);
  const results = whole.map(({ session }) => session.result ?? null);
  frame.append(...[
    el("h1", {}, "Session comparison"),
    ids.length > NAMES.length ? el("p", { class: "warn" }, `Only the first ${NAMES.length} of ${number(ids.length)} sessions are compared.`) : null,
    sessions.length > 2 ? many(sessions, names) : el("div", { class: "sides" }, side("A", found.a), side("B", found.b)),
    el("p", { role: "status", class: same ? "" : "warn" },
      same ? `No difference: all ${pairs.length} steps have the same input and outcome.`
        : `${comparison.is_same_path ? "Same path" : "Different paths"}: ${comparison.same} of ${pairs.length} steps are identical. `,
      same ? null : el("a", { href: "#", onclick: (event) => { event.preventDefault(); show(first); } }, `First difference: ${title(pairs[first])}`)),
    changes("Input and settings", inputs, names) ?? el("p", { class: "faint" }, inputs[0] ? "Input and settings are equal." : "No session has a recorded input."),
    changes("Result", results, names) ?? el("p", { class: "faint" }, results[0] === null ? "No session has a result." : "The results are equal."),
    el("h2", {}, sessions.length > 2 ? "Steps of A and B" : "Steps"),
    comparison.is_cut ? el("p", { class: "faint" }, "Only the first 1,000 steps of each session are compared.") : null,
    pairs.length > ROWS_MAX ? el("p", { class: "faint" }, `Only the first ${number(ROWS_MAX)} of ${number(pairs.length)} rows are shown.`) : null,
    wideTable("Steps of both sessions", ["", "Step of A", "Step of B", "Duration A", "Duration B", "Difference", "Tokens A", "Tokens B", "Difference"],
      pairs.slice(0, ROWS_MAX).map(row), { figures: 3, kind: "compared", foot: total(pairs) })].filter(Boolean));

  function row(pair, index) {
    const { a: left, b: right } = pair;
    const isBoth = left && right && pair.verdict === "differs";
    const words = index === first ? "▶ first difference" : SAYS[pair.verdict];
    return el("tr", { class: `${pair.verdict}${index === first ? " first" : ""}`, id: `pair-${index}`, tabIndex: index === first ? -1 : undefined },
      el("td", {}, isBoth ? button(words, (event) => unfold(event.currentTarget, index), { class: "quiet icon", "aria-expanded": "false", title: "Show what changed" }) : words), cell(found.a, left), cell(found.b, right),
      el("td", { class: "figure" }, left ? duration(left.ms) : ""), el("td", { class: "figure" }, right ? duration(right.ms) : ""),
      el("td", { class: "figure" }, left && right ? more(right.ms - left.ms, duration) : ""),
      el("td", { class: "figure" }, left?.tokens ? number(left.tokens) : ""), el("td", { class: "figure" }, right?.tokens ? number(right.tokens) : ""),
      el("td", { class: "figure" }, left && right && left.tokens !== right.tokens ? more(right.tokens - left.tokens, number) : ""));
  }

  /** Shows what differs in the request, the call and the outcome of two steps. */
  async function unfold(pressed, index) {
    const item = document.getElementById(`pair-${index}`);
    const known = document.getElementById(`changes-${index}`);
    pressed.setAttribute("aria-expanded", String(!known));
    if (known) { known.remove(); return; }
    const inside = el("td", { colSpan: 9 }, skeleton());
    item.after(el("tr", { id: `changes-${index}` }, inside));
    try {
      const records = await Promise.all([[found.a, pairs[index].a], [found.b, pairs[index].b]].map(([of, step]) => get(path(of.session_id, `/record?sk=${encodeURIComponent(step.sk)}`))));
      const parts = [["Call", "call"], ["Request", "request"], ["Reply or result", "outcome"]].map(([words, field]) => changes(words, records.map((record) => record[field] ?? null), ["A", "B"]));
      inside.replaceChildren(...(parts.some(Boolean) ? parts.filter(Boolean) : [el("p", { class: "faint" }, "Call, request and outcome are equal: the steps differ in what came before them.")]));
    } catch (error) {
      inside.replaceChildren(el("p", { class: "bad" }, visible(error.message)));
    }
  }

  function show(index) {
    const item = document.getElementById(`pair-${index}`);
    item?.scrollIntoView({ block: "center" });
    item?.focus();
  }

  return {};
}

const used = ({ tokens: { input, output, unsettled } }) => input + output + unsettled;

function side(letter, session) {
  return el("section", { class: "panel" },
    el("h2", {}, `${letter} `, el("a", { href: `#/session/${encodeURIComponent(session.session_id)}` }, titled(session))),
    el("p", {}, badge(session.status), " ", session.verdict ? verdictBadge(session.verdict, session.verdict_tone) : null, " ", el("span", { class: "faint" }, session.agent ?? "no agent")),
    el("p", { class: "faint" }, "began ", when(session.initiated_at), ` · ${session.steps} steps · ${duration(session.elapsed_ms)} · ${number(used(session))} tokens`,
      session.usd ? ` · ${dollars(session.usd)}` : ""),
    el("p", { class: "faint" }, el("code", {}, session.session_id)),
    session.error ? el("p", { class: "bad text" }, session.error) : null);
}

/** Several sessions, one a row. */
function many(sessions, names) {
  const heads = ["", "Session", "Run", "Verdict", "Version", "Steps", "Duration", "Tokens", "Cost"];
  return wideTable("Sessions", heads, sessions.map((session, index) => [el("th", { scope: "row" }, names[index]),
    el("a", { href: `#/session/${encodeURIComponent(session.session_id)}` }, titled(session)), badge(session.status),
    session.verdict ? verdictBadge(session.verdict, session.verdict_tone) : "", session.version ?? "",
    number(session.steps), duration(session.elapsed_ms), number(used(session)), session.usd ? dollars(session.usd) : ""]), { figures: 5 });
}

function cell(session, step) {
  if (!step) return el("td", { class: "faint" }, "—");
  const href = `#/session/${encodeURIComponent(session.session_id)}/${encodeURIComponent(step.sk)}`;
  return el("td", { class: step.tone === "bad" ? "bad" : "" }, el("a", { href }, `#${step.seq} ${step.name}`), " ", el("span", { class: "faint" }, step.what));
}

function total(pairs) {
  const sum = (pick) => pairs.reduce((all, pair) => all + (pick(pair) ?? 0), 0);
  const [a, b] = [sum((pair) => pair.a?.ms), sum((pair) => pair.b?.ms)];
  const [ta, tb] = [sum((pair) => pair.a?.tokens), sum((pair) => pair.b?.tokens)];
  return el("tfoot", {}, el("tr", {}, [el("td", {}, el("strong", {}, "all steps")), el("td", {}), el("td", {}),
    ...[duration(a), duration(b), more(b - a, duration), number(ta), number(tb), more(tb - ta, number)]
      .map((text) => el("td", { class: "figure" }, text))]));
}

const title = ({ a, b }) => [a, b].map((step, index) => step && `${"AB"[index]} #${step.seq} ${step.name}`).filter(Boolean).join(", ");

const more = (by, words) => (by === 0 ? "±0" : `${by > 0 ? "+" : "−"}${words(Math.abs(by))}`);
