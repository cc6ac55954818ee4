// Compares two sessions step by step: the first difference, durations and tokens.

import { get } from "./api.js";
import { badge, dollars, duration, el, number, when } from "./dom.js";

const SAYS = { same: "same", differs: "≠ differs", only_a: "− only in A", only_b: "+ only in B" };

const ROWS_MAX = 1000;

export async function compare(frame, [a, b], { place }) {
  const found = await get(`/api/compare?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`);
  const { comparison } = found;
  place.append(" / compare");
  const { first_difference: first, pairs } = comparison;
  const same = first === null;
  frame.append(
    el("h1", {}, "Session comparison"),
    el("div", { class: "sides" }, side("A", found.a), side("B", found.b)),
    el("p", { role: "status", class: same ? "good" : "warn" },
      same ? `✓ No difference: all ${pairs.length} steps have the same input and outcome.`
        : `${comparison.is_same_path ? "Same path" : "Different paths"}: ${comparison.same} of ${pairs.length} steps are identical. `,
      same ? null : el("a", { href: "#", onclick: (event) => { event.preventDefault(); show(first); } }, `First difference: ${title(pairs[first])}`)),
    comparison.is_cut ? el("p", { class: "faint" }, "Only the first 1,000 steps of each session are compared.") : "",
    el("div", { class: "wide", tabIndex: 0, role: "group", "aria-label": "Steps of both sessions" }, el("table", { class: "small compared" },
      el("thead", {}, el("tr", {}, ["", "Step of A", "Step of B", "Duration A", "Duration B", "Difference", "Tokens A", "Tokens B", "Difference"].map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, pairs.slice(0, ROWS_MAX).map(row)), total(pairs))));

  function row(pair, index) {
    const { a, b } = pair;
    return el("tr", { class: `${pair.verdict}${index === first ? " first" : ""}`, id: `pair-${index}`, tabIndex: index === first ? -1 : undefined },
      el("td", {}, index === first ? "▶ first difference" : SAYS[pair.verdict]), cell(found.a, a), cell(found.b, b),
      el("td", { class: "figure" }, a ? duration(a.ms) : ""), el("td", { class: "figure" }, b ? duration(b.ms) : ""),
      el("td", { class: "figure" }, a && b ? more(b.ms - a.ms, duration) : ""),
      el("td", { class: "figure" }, a?.tokens ? number(a.tokens) : ""), el("td", { class: "figure" }, b?.tokens ? number(b.tokens) : ""),
      el("td", { class: "figure" }, a && b && a.tokens !== b.tokens ? more(b.tokens - a.tokens, number) : ""));
  }

  function show(index) {
    const item = document.getElementById(`pair-${index}`);
    item?.scrollIntoView({ block: "center" });
    item?.focus();
  }

  return { key: (name) => { if (name === "Escape") location.hash = "#/"; return name === "Escape"; }, leave: () => {} };
}

function side(name, session) {
  const { input, output, unsettled } = session.tokens;
  return el("section", { class: "panel" },
    el("h2", {}, `${name} `, badge(session.status), " ", session.agent ?? "no agent"),
    el("p", {}, el("a", { href: `#/session/${encodeURIComponent(session.session_id)}` }, session.session_id)),
    el("p", { class: "faint" }, "began ", when(session.initiated_at), ` · ${session.steps} steps · ${duration(session.elapsed_ms)} · ${number(input + output + unsettled)} tokens`,
      session.usd ? ` · ${dollars(session.usd)}` : ""),
    session.error ? el("p", { class: "bad text" }, session.error) : null);
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
