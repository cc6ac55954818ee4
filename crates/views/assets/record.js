// Shows one record: what it holds, with the cited part marked.

import { dataView } from "./data.js";
import { duration, el, tokens } from "./dom.js";
import { markdown } from "./markdown.js";

/** What the model was sent, or why there is nothing to show: the system prompt folded, messages as text, the rest as data. */
export function requested({ state, sent, problem }) {
  if (state !== "recorded") {
    const why = { policy: "None: the agent's policy answered.", unrecorded: "An earlier version did not record it." };
    return el("p", { class: problem ? "bad" : "faint" }, why[state] ?? `It cannot be shown: ${problem}.`);
  }
  const { system, messages = [], ...rest } = sent;
  const fold = (words, isOpen, ...inside) => el("details", { open: isOpen }, el("summary", {}, words), ...inside);
  return el("div", { class: "request" },
    system ? fold("System prompt", false, markdown(textOf(system))) : null,
    messages.map((message, index) => fold(`Message ${index + 1}: ${message.role ?? "message"}`, index === messages.length - 1,
      markdown(textOf(message.text ?? message.content ?? message)))),
    fold("Model, tools and settings", false, dataView(rest, { label: "Model request" })));
}

/** A text, or anything else as JSON. */
function textOf(value) {
  if (typeof value === "string") return value;
  if (typeof value?.text === "string") return value.text;
  if (Array.isArray(value) && value.every((part) => typeof part?.text === "string")) return value.map((part) => part.text).join("\n\n");
  return `\`\`\`\n${JSON.stringify(value, null, 2)}\n\`\`\``;
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
    call ? el("div", {}, el("h3", {}, `Call to ${call.tool}`), dataView(call.arguments, { label: "Arguments" })) : null,
    request ? el("div", {}, el("h3", {}, "Model request"), requested(request)) : null,
    held === null || held === undefined ? null : el("div", {}, el("h3", {}, "Output"), dataView(held, { pointer: isCited ? pointer : null, label: "Output" })),
    el("h3", {}, "Record"), el("dl", { class: "fields" }, Object.entries(facts).filter(([, fact]) => fact !== null && fact !== undefined)
      .flatMap(([name, fact]) => [el("dt", {}, name), el("dd", { class: "text" }, String(fact))])),
  ].filter(Boolean);
}
