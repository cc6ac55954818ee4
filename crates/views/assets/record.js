// Shows one record: its content as JSON, with the cited part marked.

import { duration, el, readable, tokens, visible } from "./dom.js";

/** Characters of a payload that are shown at first; a click shows the rest. */
const SHOWN_CHARS = 100_000;

/** Formats the value as indented JSON and marks the part at the JSON pointer. */
export function printed(value, pointer) {
  const parts = [];
  let text = "";
  const walk = (item, indent, at) => {
    const isCited = pointer !== null && at === pointer;
    if (isCited) { parts.push(text); text = ""; }
    const inner = `${indent}  `;
    if (item === null || typeof item !== "object") text += visible(JSON.stringify(item));
    else {
      const entries = Array.isArray(item) ? item.map((child, index) => [index, child]) : Object.entries(item);
      const [open, close] = Array.isArray(item) ? "[]" : "{}";
      text += open;
      entries.forEach(([name, child], index) => {
        text += `${index ? "," : ""}\n${inner}${Array.isArray(item) ? "" : `${visible(JSON.stringify(name))}: `}`;
        walk(child, inner, `${at}/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`);
      });
      text += entries.length ? `\n${indent}${close}` : close;
    }
    if (isCited) { parts.push(el("mark", { class: "cited", tabIndex: -1 }, text)); text = ""; }
  };
  walk(value, "", "");
  parts.push(text);
  return parts;
}

function payload(value, pointer) {
  const parts = printed(value, pointer);
  const all = parts.reduce((sum, part) => sum + (part.textContent ?? part).length, 0);
  const frame = el("pre", { tabIndex: 0, "aria-label": "Output, as JSON" });
  if (parts.length > 1 || all <= SHOWN_CHARS) {
    frame.append(...parts);
    return [frame];
  }
  frame.append(parts[0].slice(0, SHOWN_CHARS));
  const more = el("button", { type: "button", onclick: () => { frame.replaceChildren(...parts); more.remove(); } },
    `Show all (${Math.ceil(all / 1000)} kB)`);
  return [frame, more];
}

/** What the model was sent, or why there is nothing to show. */
function requested({ state, sent, problem }) {
  if (state === "recorded") return payload(sent, null);
  const why = { policy: "None: the agent's policy answered.", unrecorded: "An earlier version did not record it." };
  return el("p", { class: problem ? "bad" : "faint" }, why[state] ?? `It cannot be shown: ${problem}.`);
}

/** Renders a record below its title; `row` is its line in the timeline, `pointer` the cited part. */
export function drawRecord(row, found, pointer) {
  const { outcome, detail, call, request, hash, prev_hash, sk, ...rest } = found;
  const held = outcome ?? detail;
  const facts = {
    when: found.finished_at ?? found.timestamp, took: row.to_ms > row.from_ms ? duration(row.to_ms - row.from_ms) : null,
    kind: rest.kind, effect: rest.effect, writer: rest.writer, runner: rest.runner, claim: rest.epoch, error: rest.error_message,
    tokens: rest.tokens ? tokens(rest.tokens, rest.usd) || null : null, key: sk, hash, parent: prev_hash,
  };
  const isCited = pointer !== null && pointer !== "";
  return [
    row.more ? el("p", { class: `text ${row.tone}` }, row.more) : null,
    isCited ? el("p", { class: "faint" }, "cited: ", el("code", {}, pointer)) : null,
    call ? el("div", {}, el("h3", {}, `Call to ${call.tool}`), el("pre", { tabIndex: 0, "aria-label": "Arguments" }, JSON.stringify(call.arguments, null, 2))) : null,
    request ? el("div", {}, el("h3", {}, "Model request"), requested(request)) : null,
    held === null || held === undefined ? null : el("div", {}, el("h3", {}, "Output"), payload(held, isCited ? pointer : null)),
    el("h3", {}, "Record"), readable(facts),
  ].filter(Boolean);
}
