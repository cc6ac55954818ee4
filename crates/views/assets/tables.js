// Tables below a session's timeline: usage by model and tool, and runs.

import { clock, dollars, duration, el, number, wideTable } from "./dom.js";

/** Characters of a runner's name: its role, and enough of its id to be unique. */
const RUNNER_CHARS = 14;

function table(caption, heads, rows) {
  return el("section", { class: "panel" }, el("h2", {}, caption), wideTable(caption, heads, rows, { figures: 2 }));
}

const cents = (spent) => (spent.unpriced && !spent.micro_usd ? "price unknown" : spent.micro_usd ? dollars(spent.micro_usd / 1e6) : "");

const metrics = (spent) => [number(spent.calls), spent.failed ? number(spent.failed) : "", duration(spent.ms),
  spent.input ? number(spent.input) : "", spent.output ? number(spent.output) : "", spent.unsettled ? number(spent.unsettled) : "", cents(spent)];

export function ledger({ accounts, entries, total }) {
  if (accounts.length === 0) return null;
  const heads = ["Kind", "Name", "Calls", "Failed", "Duration", "Tokens in", "Tokens out", "Unsettled", "Cost"];
  const rows = accounts.map(({ kind, name, spent }) => [kind === name ? "" : kind, name, ...metrics(spent)]);
  const made = table("Usage", heads, [...rows, ["", el("strong", {}, "total"), ...metrics(total)]]);
  if (entries.length > 0) {
    made.append(el("details", {}, el("summary", {}, `By step (${entries.length} with tokens)`),
      table("Tokens by step", ["Step", "Node", "Calls", "Failed", "Duration", "Tokens in", "Tokens out", "Unsettled", "Cost"],
        entries.map(({ seq, node, spent }) => [`#${seq}`, node, ...metrics(spent)]))));
  }
  return made;
}

const ENDS = { at_work: "running", lost: "✗ stopped responding", suspended: "‖ paused for input", completed: "✓ completed", failed: "✗ failed",
  superseded: "superseded", closed: "closed by another writer" };

export function runs(all, lease, machine) {
  const rows = all.map((run) => [`#${run.epoch}`, el("span", { title: run.runner }, run.runner.slice(0, RUNNER_CHARS)), `+${duration(run.from_ms)}`, run.to_ms === null ? "now" : `+${duration(run.to_ms)}`,
    number(run.steps), ENDS[run.end], run.supersedes ? `#${run.supersedes}` : ""]);
  const notes = [
    lease ? `lease held by claim ${lease.epoch}, last heartbeat ${clock(lease.beat_at)}` : null,
    machine && machine.executions > 1 ? `resumed ${machine.executions - 1} times` : null,
  ].filter(Boolean);
  if (rows.length === 0) return null;
  const made = table("Runs", ["Claim", "Runner", "From", "To", "Steps", "End", "After"], rows);
  if (notes.length > 0) made.append(el("p", { class: "faint" }, notes.join(" · ")));
  return made;
}
