// The open questions: one card for each decision, with what would run, until when, and a moment to undo. A session shows the
// same card.

import { AGAIN_MS, Refused, get, path, poll, post, postLast } from "./api.js";
import { button, clock, el, titled, until, visible } from "./dom.js";

/** How long the buttons of a new question do nothing: a click on the previous question must not answer it. */
const UNREAD_MS = 700;
/** How long an answer can be undone before it is sent. */
const UNDO_MS = 3000;
const EVERY_MS = 2000;
const LISTED = 50;
/** Where an argument came from, and why that is not certain, in words. */
const ORIGINS = {
  person: "a person's words", input: "the session's input", program: "the program", tool: "a tool's answer",
  model: "the model's invention", undetermined: "not determined",
};
const WHY = {
  ambiguous: ", too weak a match to tell", none: ", found nowhere in the session", not_searched: ", too much to search",
};
const DONE = { approve: "Approved", reject: "Rejected", edit: "Approved as edited", say: "Replied" };

/** The name of a question in its session. */
export const keyOf = (session) => `${session.session_id} ${session.open_question?.question_id}`;

/**
 * A card for the open question of a session. `answered` is called once the answer is recorded. A card that was answered stays in its
 * place, so that no other question's button takes the place of its own.
 */
export function questionCard(session, { answered, linked = false }) {
  const open = session.open_question;
  const to = path(session.session_id, "/answer");
  /** What is about to be sent, until it can no longer be undone. */
  let pending = null;
  let isOver = false;
  let timer = null;
  let pause = AGAIN_MS[0];
  // The stack's text: a parsed number would be rounded.
  const asked = visible(open.arguments_text ?? "{}");
  const offered = (decision) => open.choices.includes(decision);
  const words = el("textarea", { class: "words", rows: 2, "aria-label": "Reply or reason", placeholder: offered("say") ? "A reply, or a reason" : "A reason (optional)" });
  const edited = el("textarea", { class: "edited", rows: Math.min(16, asked.split("\n").length + 1), spellcheck: false, "aria-label": "Arguments as JSON", value: asked, oninput: drawChanges });
  const changes = el("div", { class: "changes", role: "status" });
  const outcome = el("div", { class: "outcome", role: "status" });
  const wrong = el("p", { class: "bad", role: "alert" });
  const choice = (decision, label, kind = "") => (offered(decision) ? button(label, () => decide(decision), { class: kind, disabled: true, "data-decision": decision }) : null);
  const choices = [choice("approve", "Approve", "primary"), choice("edit", "Approve as edited"), choice("reject", "Reject", "danger"),
    choice("say", "Reply", offered("approve") ? "" : "primary")].filter(Boolean);
  const expiry = el("span", { class: "faint", title: open.expires_at });
  const element = el("section", { class: "ask", tabIndex: -1, "aria-label": "Open question", "data-key": keyOf(session) },
    el("header", {}, el("h2", {}, open.tool ? "Approval needed" : "The agent asks"),
      linked ? el("a", { href: `#/session/${encodeURIComponent(session.session_id)}` }, titled(session)) : null,
      linked && session.agent ? el("span", { class: "faint" }, session.agent) : null, el("span", { class: "grow" }), expiry),
    el("p", { class: "text prompt" }, open.prompt),
    open.justification ? el("p", { class: "faint text" }, open.justification) : null,
    open.tool ? el("p", {}, "The agent wants to run ", el("code", {}, open.tool), open.server ? [" of ", el("code", {}, open.server)] : null) : null,
    open.tool || open.arguments !== undefined ? el("pre", { class: "arguments", tabIndex: 0, "aria-label": "Arguments" }, asked) : null,
    offered("edit") ? el("details", { class: "editing" }, el("summary", {}, "Edit the arguments"), edited, changes) : null,
    drawnOrigins(open),
    offered("say") || offered("reject") ? words : null,
    el("p", { class: "acts" }, choices),
    wrong, outcome,
    el("p", { class: "faint small-text" }, "digest ", el("code", { title: open.digest }, open.digest.slice(0, 12)),
      open.tool_schema ? [" · schema ", el("code", { title: open.tool_schema }, open.tool_schema.slice(0, 12))] : null));
  drawExpiry();
  const enabling = setTimeout(() => able(true), UNREAD_MS);
  const expiring = setInterval(drawExpiry, 1000);

  function able(isAble) {
    for (const item of choices) item.disabled = !isAble || isOver || pending !== null;
  }

  function drawExpiry() {
    const text = `expires ${until(open.expires_at)} (${clock(open.expires_at)})`;
    if (expiry.textContent !== text) expiry.textContent = text;
  }

  /** Each changed argument, as it was and as it would be. */
  function drawChanges() {
    let now = null;
    try { now = JSON.parse(edited.value); } catch (error) { changes.replaceChildren(el("span", { class: "bad" }, `The arguments are not valid JSON: ${error.message}`)); return; }
    const before = open.arguments ?? {};
    const fields = [...new Set([...Object.keys(before), ...Object.keys(now ?? {})])];
    const shown = (value) => (value === undefined ? "absent" : JSON.stringify(value));
    changes.replaceChildren(...fields.filter((field) => JSON.stringify(before[field]) !== JSON.stringify(now?.[field]))
      .map((field) => el("div", {}, el("code", {}, field), ` ${shown(before[field])} → `, el("strong", {}, shown(now?.[field])))));
  }

  /** What an answer says; null with a message if it cannot be sent. */
  function bodyOf(decision) {
    const body = { question_id: open.question_id, digest: open.digest, decision };
    if (decision === "approve" && edited.value !== asked) {
      wrong.textContent = "The arguments were edited. Approve as edited, or restore them.";
      return null;
    }
    if (decision === "say") {
      if (!words.value.trim()) { wrong.textContent = "Write a reply first."; words.focus(); return null; }
      body.text = words.value;
    } else if (words.value) body.reason = words.value;
    if (decision === "edit") {
      try { body.arguments = JSON.parse(edited.value); } catch (error) {
        wrong.textContent = `The arguments are not valid JSON: ${error.message}`;
        return null;
      }
    }
    return body;
  }

  /** Holds the answer for a moment in which it can be undone. A second click finds the buttons disabled. */
  function decide(decision) {
    if (pending !== null || isOver) return;
    wrong.textContent = "";
    const body = bodyOf(decision);
    if (!body) return;
    pending = { decision, body };
    able(false);
    outcome.replaceChildren(el("strong", {}, `${DONE[decision]}.`), ` Sent in ${UNDO_MS / 1000} seconds. `, button("Undo", undo), button("Send now", send));
    timer = setTimeout(send, UNDO_MS);
  }

  function undo() {
    clearTimeout(timer);
    pending = null;
    outcome.replaceChildren("Not sent.");
    able(true);
  }

  async function send() {
    clearTimeout(timer);
    const { decision, body } = pending;
    outcome.replaceChildren("Sending …");
    try {
      await post(to, body);
      close(`${DONE[decision]} at ${new Date().toLocaleTimeString("en-GB")}.`);
      answered?.();
    } catch (error) {
      // Without a response it may have been recorded: the same answer is sent again, and counts once.
      if (!(error instanceof Refused) || error.status === 503) {
        outcome.replaceChildren(el("span", { class: "warn" }, "Not sent yet: the stack does not respond. Trying again."));
        timer = setTimeout(send, pause);
        pause = Math.min(2 * pause, AGAIN_MS[1]);
        return;
      }
      pending = null;
      outcome.replaceChildren();
      wrong.textContent = visible(error.message);
      able(true);
    }
  }

  /** The question is closed: the card keeps its size and says what became of it. */
  function close(what) {
    if (isOver) return;
    isOver = true;
    pending = null;
    [timer, enabling].forEach(clearTimeout);
    clearInterval(expiring);
    element.style.minHeight = `${element.offsetHeight}px`;
    element.classList.add("answered");
    outcome.replaceChildren(el("strong", {}, what));
    for (const item of [words, edited]) item.readOnly = true;
    able(false);
  }

  function leave() {
    [timer, enabling].forEach(clearTimeout);
    clearInterval(expiring);
    // A decision that was made is sent, although the time to undo it is not over.
    if (pending) postLast(to, pending.body);
    pending = null;
  }

  return { element, leave, decide, key: keyOf(session), isOver: () => isOver, isPending: () => pending !== null,
    elsewhere: () => { if (pending === null) close("No longer open: it was answered, expired or was cancelled."); } };
}

/** Where each argument of the call in question came from. */
function drawnOrigins(open) {
  if (!open.origins?.length) return null;
  const at = ({ origin, step, place }) => `${ORIGINS[origin] ?? origin}${step ? ` (step ${step}, ${place})` : ""}`;
  const why = ({ origin, match }) => origin === "program" && match === "none" ? ", which set or computed it" : WHY[match] ?? "";
  const item = (found) => el("li", { class: found.allowed ? "bad" : "" },
    el("code", {}, found.pointer || "other arguments"), `: ${at(found)}${why(found)}`,
    ...(found.also ?? []).map((other) => `; ${other.match === "contains" ? "contains" : "also in"} ${at(other)}`),
    found.allowed ? `; not permitted, only from: ${found.allowed.join(", ")}` : "");
  return el("details", { class: "origins", open: open.origins.some((found) => found.allowed) },
    el("summary", {}, open.origins_computed ? "Where the arguments came from (computed now, not in the record)" : "Where the arguments came from"),
    el("ul", {}, open.origins.map(item)));
}

/** All open questions. New ones are added at the end, and answered ones stay until they are cleared. */
export async function inbox(frame, _, { connected, counted, name }) {
  const cards = new Map();
  let refresh = null;
  let chosen = -1;
  const said = el("p", { class: "faint", role: "status" });
  const shelf = el("div", { class: "inbox" });
  const clear = button("Clear answered", () => {
    for (const [key, card] of cards) if (card.isOver()) { card.element.remove(); cards.delete(key); }
    clear.hidden = true;
  }, { class: "quiet", hidden: true });
  const allow = button("Notify me", async () => { await Notification.requestPermission(); allow.hidden = true; }, { class: "quiet", hidden: globalThis.Notification?.permission !== "default" });
  frame.append(el("div", { class: "bar" }, el("h1", {}, "Needs you"), el("span", { class: "grow" }), allow, clear), said, shelf);

  function draw(open, isMore) {
    counted(open, isMore);
    const now = new Set(open.map(keyOf));
    // A list that is cut does not tell whether the others are open.
    if (!isMore) for (const card of cards.values()) if (!now.has(card.key) && !card.isOver()) card.elsewhere();
    const soonest = [...open].sort((a, b) => (a.open_question.expires_at < b.open_question.expires_at ? -1 : 1));
    for (const session of soonest) {
      if (cards.has(keyOf(session))) continue;
      const card = questionCard(session, { answered: () => refresh(), linked: true });
      cards.set(card.key, card);
      shelf.append(card.element);
    }
    clear.hidden = ![...cards.values()].some((card) => card.isOver());
    said.textContent = open.length === 0 && !isMore ? "Nothing needs you." : isMore ? `The open questions of the newest ${LISTED} waiting sessions; there are more.` : `${open.length} open; new questions are added at the end. j and k choose, a approves, r rejects.`;
  }

  function key(pressed) {
    const all = [...cards.values()];
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[pressed];
    if (step && all.length) {
      chosen = Math.max(0, Math.min(all.length - 1, chosen + step));
      all[chosen].element.focus();
      all[chosen].element.scrollIntoView({ block: "nearest" });
    } else if ((pressed === "a" || pressed === "r") && all[chosen]?.element.contains(document.activeElement)) {
      all[chosen].element.querySelector(`[data-decision=${pressed === "a" ? "approve" : "reject"}]:enabled`)?.click();
    } else return false;
    return true;
  }

  name("Needs you");
  refresh = await poll(shelf, EVERY_MS, connected, async () => {
    const { sessions, more } = await get(`/api/sessions?status=WAITING&limit=${LISTED}`);
    draw(sessions.filter((session) => session.open_question), more !== null);
  }, true);
  return { key, leave: () => { for (const card of cards.values()) card.leave(); } };
}
