// A session as a conversation: what it was asked, what the model said, the tools that it called, and what people decided, with a
// field to reply where the open question takes one.

import { get, path } from "./api.js";
import { dataView } from "./data.js";
import { button, clock, dollars, duration, el, number, visible } from "./dom.js";
import { markdown } from "./markdown.js";
import { requested } from "./record.js";

/** Longer conversations show their newest part at first. */
const SHOWN = 200;
const ARGUMENT_CHARS = 80;
const DECIDED = { approve: "approved", reject: "rejected", edit: "approved with other arguments", say: "replied" };

const isPlain = (value) => value === null || typeof value !== "object";

export function conversation(id, { send, reveal }) {
  const list = el("div", { class: "talk" });
  const earlier = button("", () => { shownFrom = Math.max(0, shownFrom - SHOWN); draw(); }, { class: "quiet", hidden: true });
  const words = el("textarea", { rows: 2, "aria-label": "Reply", placeholder: "Reply to the agent" });
  const reply = el("button", { class: "primary" }, "Send");
  const composer = el("form", { class: "composer talk", hidden: true, onsubmit: sendReply }, words, el("div", { class: "acts" }, reply, el("span", { class: "faint small-text" }, "Ctrl + Enter sends")));
  words.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) composer.requestSubmit(); });
  const element = el("section", { "aria-label": "Conversation" }, earlier, list, composer);
  /** Drawn entries by step: what is journaled does not change. */
  const drawn = new Map();
  let steps = [];
  let asked = "";
  let reads = 0;
  let shownFrom = null;
  let open = null;

  /** Reads the steps again if there are new ones. */
  async function update({ session }) {
    open = session.open_question;
    const canSay = Boolean(open?.choices.includes("say"));
    composer.hidden = !canSay;
    const now = `${session.steps} ${session.status}`;
    if (now === asked) return;
    asked = now;
    reads += 1;
    const mine = reads;
    try {
      const found = await get(path(id));
      // A newer read has more.
      if (mine !== reads) return;
      steps = found.steps;
      draw();
    } catch (error) {
      if (mine !== reads) return;
      asked = "";
      list.replaceChildren(el("p", { class: "bad" }, visible(error.message)));
    }
  }

  function draw() {
    shownFrom ??= Math.max(0, steps.length - SHOWN);
    earlier.hidden = shownFrom === 0;
    earlier.textContent = `${number(shownFrom)} earlier steps`;
    const wanted = steps.slice(shownFrom).flatMap((step) => {
      if (!drawn.has(step.seq)) drawn.set(step.seq, entry(step));
      return drawn.get(step.seq) ?? [];
    });
    if (wanted.length === 0) { list.replaceChildren(el("p", { class: "faint" }, "Nothing was said yet.")); return; }
    const stays = new Set(wanted);
    for (const item of [...list.children]) if (!stays.has(item)) item.remove();
    wanted.forEach((item, index) => { if (list.children[index] !== item) list.insertBefore(item, list.children[index] ?? null); });
  }

  async function sendReply(event) {
    event.preventDefault();
    if (!words.value.trim() || !open) return;
    reply.disabled = true;
    const { question_id, digest } = open;
    if (await send("answer", { question_id, digest, decision: "say", text: words.value })) words.value = "";
    reply.disabled = false;
  }

  // --- entries ---

  function entry(step) {
    const { kind, effect, outcome } = step;
    if (kind === "claim") return step.seq === 1 ? opened(step) : note(step, "Claimed by another runner");
    if (kind === "ask") return question(step);
    if (kind === "answer") return answer(step);
    if (kind === "end") return ended(step);
    if (kind === "outcome" && effect === "chat") return chat(step);
    if (kind === "outcome" && effect === "tools") return tool(step);
    if (kind === "outcome") return note(step, `${step.node ?? "the agent"}: ${effect}`, outcome);
    return null;
  }

  function frame(step, kind, who, facts, ...inside) {
    return el("article", { class: `said ${kind}`, "data-step": step.seq },
      el("header", {}, el("strong", {}, who), facts.filter(Boolean).map((fact) => el("span", {}, fact)), el("span", { class: "grow" }), el("span", {}, clock(step.finished_at)),
        button(`#${step.seq}`, () => reveal(step.sk), { class: "quiet icon small-text", "aria-label": `Step ${step.seq} in the timeline` })),
      inside.flat().filter(Boolean));
  }

  function took(step) {
    const ms = Date.parse(step.finished_at) - Date.parse(step.started_at);
    return ms > 0 ? duration(ms) : "";
  }

  function note(step, text, value) {
    return frame(step, "note", text, [took(step)], value === null || value === undefined ? null : folded("Output", value));
  }

  function folded(label, value, isOpen = false) {
    const inside = el("details", { open: isOpen }, el("summary", {}, label));
    const build = () => { if (inside.open && inside.childElementCount === 1) inside.append(dataView(value, { label })); };
    inside.addEventListener("toggle", build);
    build();
    return inside;
  }

  function opened(step) {
    const { input, settings } = step.outcome ?? {};
    const said = Object.entries(input ?? {}).filter(([name, value]) => typeof value === "string" && ["message", "query", "question", "prompt"].includes(name));
    const rest = Object.keys(input ?? {}).length - said.length;
    return frame(step, "person", "Input", [], said.map(([, value]) => markdown(value)), rest > 0 ? folded("Input", input, said.length === 0) : null, settings ? folded("Settings", settings) : null);
  }

  function chat(step) {
    const { reply, failure } = step.outcome ?? {};
    const used = step.tokens.input + step.tokens.output;
    const facts = [step.node, took(step), used ? `${number(used)} tokens` : "", step.usd ? dollars(step.usd) : ""];
    if (!reply) return frame(step, "model", "Model", facts, failure ? el("p", { class: "bad text" }, failure.message ?? JSON.stringify(failure)) : folded("Output", step.outcome));
    const by = typeof reply.by === "string" ? reply.by : reply.by?.model ?? "model";
    return frame(step, "model", by === "policy" ? "Policy (no model)" : by, facts, reply.text ? markdown(reply.text) : null,
      (reply.calls ?? []).map((call) => el("p", { class: "small-text faint" }, "calls ", el("code", {}, call.tool), " ", el("span", { class: "arguments" }, chips(call.arguments)))), sentTo(step));
  }

  /** What the model was sent, fetched when it is opened. */
  function sentTo(step) {
    const inside = el("details", {}, el("summary", { class: "small-text faint" }, "What the model was sent"));
    inside.addEventListener("toggle", async () => {
      if (!inside.open || inside.childElementCount > 1) return;
      const wait = el("p", { class: "faint" }, "fetching …");
      inside.append(wait);
      try {
        const { request } = await get(path(id, `/record?sk=${encodeURIComponent(step.sk)}`));
        wait.replaceWith(request ? requested(request) : el("p", { class: "faint" }, "There was no request."));
      } catch (error) {
        wait.textContent = visible(error.message);
      }
    });
    return inside;
  }

  function chips(given) {
    if (given === null || typeof given !== "object") return [el("code", { class: "chip" }, String(given))];
    return Object.entries(given).map(([name, value]) => {
      const text = isPlain(value) ? String(value) : JSON.stringify(value);
      return el("code", { class: "chip", title: text }, `${name}: ${text.length > ARGUMENT_CHARS ? `${text.slice(0, ARGUMENT_CHARS)}…` : text}`);
    });
  }

  function tool(step) {
    const { call, outcome } = step;
    const isBad = outcome && ("failure" in outcome || "error" in outcome);
    const value = outcome && Object.keys(outcome).length === 1 ? Object.values(outcome)[0] : outcome;
    return frame(step, `tool${isBad ? " bad" : ""}`, call?.tool ?? "Tool", [call?.server, took(step), isBad ? el("span", { class: "bad" }, "✗ failed") : ""],
      call && Object.keys(call.arguments ?? {}).length ? el("div", { class: "arguments" }, chips(call.arguments)) : null,
      isBad && typeof value?.message === "string" ? el("p", { class: "bad text" }, value.message) : null, folded("Result", value));
  }

  function question(step) {
    const asking = step.outcome?.question ?? {};
    return frame(step, "asks", asking.tool ? `Approval needed: ${asking.tool}` : "The agent asks", [], el("p", { class: "text" }, asking.prompt ?? ""),
      asking.arguments && Object.keys(asking.arguments).length ? el("div", { class: "arguments" }, chips(asking.arguments)) : null);
  }

  function answer(step) {
    const { decision, reason, text, arguments: changed } = step.outcome ?? {};
    const who = step.principal?.name ?? (step.principal ? step.principal.kind : "A person");
    return frame(step, "person", `${who} ${DECIDED[decision] ?? "answered"}`, [], text ? markdown(text) : null, reason ? el("p", { class: "text" }, reason) : null,
      changed ? el("div", { class: "arguments" }, chips(changed)) : null, decision ? null : folded("Answer", step.outcome));
  }

  function ended(step) {
    if (step.error_message) return frame(step, "note", "Ended", [], el("p", { class: "bad text" }, step.error_message));
    const reply = step.outcome?.reply;
    return frame(step, "model", "Result", [], typeof reply === "string" ? markdown(reply) : null, step.outcome ? folded("Result", step.outcome, typeof reply !== "string") : null);
  }

  return { element, update };
}
