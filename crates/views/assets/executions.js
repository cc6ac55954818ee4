// Executions of users' state machines: the newest ones, and the history of one.

import { get } from "./api.js";
import { clock, duration, el, number } from "./dom.js";

const EVERY_MS = 5000;
const GLYPHS = { RUNNING: ["▸", "running"], SUCCEEDED: ["✓", "succeeded"], FAILED: ["✗", "failed"], TIMED_OUT: ["■", "stopped"], ABORTED: ["■", "stopped"] };

const address = (arn) => `#/executions/${encodeURIComponent(arn)}`;

function badge(status) {
  const [glyph, kind] = GLYPHS[status] ?? ["", ""];
  return el("span", { class: `kind ${kind}` }, `${glyph} ${status}`);
}

function table(caption, heads, rows) {
  return el("div", { class: "wide", tabIndex: 0, role: "group", "aria-label": caption }, el("table", { class: "small" },
    el("thead", {}, el("tr", {}, heads.map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell) => el("td", {}, cell)))))));
}

const took = ({ started_ms, stopped_ms }) => (stopped_ms === null ? "" : duration(stopped_ms - started_ms));

function drawList({ machines, executions, searched }) {
  const names = machines.map(({ name, type }) => `${name} (${type.toLowerCase()})`).join(", ");
  return [
    el("p", { class: "faint" }, machines.length === 0
      ? "No state machine of your own was created on this stack. CreateStateMachine creates one."
      : `State machines: ${names}. The newest ${number(searched)} executions of this stack were searched; those of Daybook's workflow are shown with their sessions.`),
    executions.length === 0 ? "" : table("Executions", ["Status", "State machine", "Execution", "Started", "Duration", "Error"],
      executions.map((it) => [badge(it.status), it.machine, el("a", { href: address(it.arn) }, it.name), clock(it.started_ms), took(it), it.error ?? ""])),
  ];
}

/** The details of an event: the member that ends in EventDetails. */
function details(event) {
  const [, found] = Object.entries(event).find(([name]) => name.endsWith("EventDetails")) ?? [];
  return found ? JSON.stringify(found) : "";
}

function drawOne({ execution, history, is_cut }) {
  const first = history[0]?.timestamp ?? 0;
  const payload = (name, text) => (text === null ? "" : el("section", { class: "panel" }, el("h2", {}, name), el("pre", {}, text)));
  return [
    el("p", {}, badge(execution.status), ` ${execution.machine} · ${execution.name} · started ${clock(execution.started_ms)} ${took(execution)}`),
    execution.error === null && execution.cause === null ? "" : el("p", { class: "bad" }, `${execution.error ?? ""} ${execution.cause ?? ""}`),
    payload("Input", execution.input), payload("Output", execution.output),
    el("section", { class: "panel" }, el("h2", {}, "History"),
      is_cut ? el("p", { class: "faint" }, `Only the first ${number(history.length)} events.`) : "",
      table("History", ["Event", "After", "Type", "Details"], history.map((event) =>
        [`#${event.id}`, `+${duration(Math.round((event.timestamp - first) * 1000))}`, event.type, el("code", {}, details(event))]))),
  ];
}

export async function executions(frame, [arn], { connected }) {
  let timer = null;
  let left = false;
  const body = el("div");
  frame.append(el("div", { class: "bar" }, el("h1", {}, "Executions"), arn ? el("a", { href: "#/executions" }, "All executions") : ""), body);

  async function refresh() {
    clearTimeout(timer);
    try {
      const drawn = arn ? drawOne(await get(`/api/execution?arn=${encodeURIComponent(arn)}`)) : drawList(await get("/api/executions"));
      body.replaceChildren(...drawn);
      connected(true);
    } catch (error) {
      if (error.status === 404 && !arn) {
        body.replaceChildren(el("p", { class: "faint" }, "Only a running stack has executions of state machines."));
        return;
      }
      if (error.status) throw error;
      connected(false);
    }
    if (!left) timer = setTimeout(tick, EVERY_MS);
  }

  function tick() {
    if (document.hidden) timer = setTimeout(tick, EVERY_MS);
    else refresh().catch(() => connected(false));
  }

  await refresh();
  return { key: (name) => { if (name === "Escape") location.hash = arn ? "#/executions" : "#/"; return name === "Escape"; }, leave: () => { left = true; clearTimeout(timer); } };
}
