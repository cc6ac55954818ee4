// Executions of users' state machines: the newest ones, and the history of one.

import { get, poll } from "./api.js";
import { badge, clock, duration, el, number, wideTable } from "./dom.js";

const EVERY_MS = 5000;

const address = (arn) => `#/executions/${encodeURIComponent(arn)}`;

const took = ({ started_ms, stopped_ms }) => (stopped_ms === null ? "" : duration(stopped_ms - started_ms));

function drawList({ machines, executions, searched }) {
  const names = machines.map(({ name, type }) => `${name} (${type.toLowerCase()})`).join(", ");
  return [
    el("p", { class: "faint text" }, machines.length === 0
      ? "No state machine of your own was created on this stack. CreateStateMachine creates one."
      : `State machines: ${names}. The newest ${number(searched)} executions of this stack were searched; those of Daybook's workflow are shown with their sessions.`),
    executions.length === 0 ? "" : wideTable("Executions", ["Status", "State machine", "Execution", "Started", "Duration", "Error"],
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
    el("p", { class: "text" }, badge(execution.status), ` ${execution.machine} · ${execution.name} · started ${clock(execution.started_ms)} ${took(execution)}`),
    execution.error === null && execution.cause === null ? "" : el("p", { class: "bad text" }, `${execution.error ?? ""} ${execution.cause ?? ""}`),
    payload("Input", execution.input), payload("Output", execution.output),
    el("section", { class: "panel" }, el("h2", {}, "History"),
      is_cut ? el("p", { class: "faint" }, `Only the first ${number(history.length)} events.`) : "",
      wideTable("History", ["Event", "After", "Type", "Details"], history.map((event) =>
        [`#${event.id}`, `+${duration(Math.round((event.timestamp - first) * 1000))}`, event.type, el("code", {}, details(event))]))),
  ];
}

export async function executions(frame, [arn], { connected }) {
  const body = el("div");
  frame.append(el("div", { class: "bar" }, el("h1", {}, "Executions"), arn ? el("a", { href: "#/executions" }, "All executions") : ""), body);

  await poll(body, EVERY_MS, connected, async () => {
    try {
      const found = await get(arn ? `/api/execution?arn=${encodeURIComponent(arn)}` : "/api/executions");
      body.replaceChildren(...(arn ? drawOne(found) : drawList(found)));
      // The history of an execution that has ended does not change.
      return arn && found.execution.status !== "RUNNING";
    } catch (error) {
      if (error.status !== 404 || arn) throw error;
      body.replaceChildren(el("p", { class: "faint" }, "Only a running stack has executions of state machines."));
      return true;
    }
  });
  return { key: (name) => { const isBack = name === "Escape" && arn; if (isBack) location.hash = "#/executions"; return isBack; } };
}
