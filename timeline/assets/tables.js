// What was spent, and who worked when: small tables below a session's timeline.

import { clock, dollars, duration, el, number } from "./dom.js";

/** Characters of a runner's name: its role, and enough of its id to tell it from another. */
const RUNNER_CHARS = 14;

function table(caption, heads, rows) {
  return el("section", { class: "panel" }, el("h2", {}, caption),
    el("div", { class: "wide", tabIndex: 0, role: "group", "aria-label": caption }, el("table", { class: "small" },
      el("thead", {}, el("tr", {}, heads.map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell, index) => el("td", { class: index > 1 ? "figure" : "" }, cell))))))));
}

const cents = (spent) => (spent.unpriced && !spent.micro_usd ? "no price known" : spent.micro_usd ? dollars(spent.micro_usd / 1e6) : "");

const figures = (spent) => [number(spent.calls), spent.failed ? number(spent.failed) : "", duration(spent.ms),
  spent.input ? number(spent.input) : "", spent.output ? number(spent.output) : "", spent.unsettled ? number(spent.unsettled) : "", cents(spent)];

export function ledger({ accounts, entries, total }) {
  if (accounts.length === 0) return null;
  const heads = ["Kind", "Name", "Times", "Failed", "Took", "Tokens in", "out", "unsettled", "Cost"];
  const rows = accounts.map(({ kind, name, spent }) => [kind === name ? "" : kind, name, ...figures(spent)]);
  const made = table("Ledger", heads, [...rows, ["", el("strong", {}, "total"), ...figures(total)]]);
  if (entries.length > 0) {
    made.append(el("details", {}, el("summary", {}, `By step (${entries.length} that used tokens)`),
      table("Tokens by step", ["Step", "Node", "Times", "Failed", "Took", "Tokens in", "out", "unsettled", "Cost"],
        entries.map(({ seq, node, spent }) => [`#${seq}`, node, ...figures(spent)]))));
  }
  return made;
}

const ENDS = { at_work: "at work", lost: "✗ fell silent", suspended: "‖ let go to wait", completed: "✓ completed", failed: "✗ failed",
  superseded: "superseded", closed: "closed by somebody else" };

export function runs(all, lease, machine) {
  const rows = all.map((run) => [`#${run.epoch}`, el("span", { title: run.runner }, run.runner.slice(0, RUNNER_CHARS)), `+${duration(run.from_ms)}`, run.to_ms === null ? "now" : `+${duration(run.to_ms)}`,
    number(run.steps), ENDS[run.end], run.supersedes ? `#${run.supersedes}` : ""]);
  const notes = [
    lease ? `the lease is claim ${lease.epoch}'s, last beat ${clock(lease.beat_at)}` : null,
    machine && machine.executions > 1 ? `resumed ${machine.executions - 1} times` : null,
  ].filter(Boolean);
  if (rows.length === 0) return null;
  const made = table("Who worked on it", ["Claim", "Runner", "From", "To", "Steps", "How it ended", "After"], rows);
  if (notes.length > 0) made.append(el("p", { class: "faint" }, notes.join(" · ")));
  return made;
}
