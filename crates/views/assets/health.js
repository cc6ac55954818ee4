// Sessions of a time range by status: a bar chart, a table by agent, and the circuit breakers.

import { get, poll } from "./api.js";
import { clock, dollars, duration, el, number, svg, wideTable } from "./dom.js";
import { written } from "./filter.js";

const EVERY_MS = 5000;
/** Stacked from bottom to top; each has a glyph, so that colour is not the only cue. */
const KINDS = [["succeeded", "✓"], ["running", "▸"], ["waiting", "‖"], ["stopped", "■"], ["failed", "✗"]];
const [WIDE, HIGH] = [960, 120];
/** The statuses that a kind counts. */
const STATUSES = { succeeded: "SUCCEEDED", running: "RUNNING,INITIATED", waiting: "WAITING", stopped: "CANCELLED,REJECTED", failed: "FAILED,TIMED_OUT" };

/** The address of the list with these filters. */
const listed = (fields) => `#/?${new URLSearchParams({ q: written(fields) })}`;

export async function health(frame, _, { connected }) {
  let hours = 24;
  let again = null;
  const span = el("select", { id: "span", onchange: () => { hours = Number(span.value); again?.(); } },
    el("option", { value: "1" }, "last hour"), el("option", { value: "24", selected: true }, "last 24 hours"), el("option", { value: "168" }, "last 7 days"));
  const body = el("div");
  frame.append(el("div", { class: "bar" }, el("h1", {}, "Health"), el("span", { class: "grow" }), el("label", { for: "span" }, "Time range"), span), body);

  function draw({ health: seen, breakers, damaged, log_problem, restarted_executions, sessions, sessions_max, is_cut }) {
    body.replaceChildren(
      el("p", { class: "faint", role: "status" }, is_cut
        ? `Only the newest ${number(sessions_max)} sessions of this time range are counted.`
        : `${number(sessions)} sessions began in this time range; at most the newest ${number(sessions_max)} are counted.`),
      el("p", { class: "figures" }, KINDS.map(([kind, glyph]) => el("a", { class: `kind ${kind}`, href: listed({ status: STATUSES[kind], since: `${hours}h` }) }, `${glyph} ${number(seen.total[kind])} ${kind}`)),
        el("span", { class: seen.lost ? "warn" : "faint" }, `! ${number(seen.lost)} agents stopped responding`)),
      harmed(damaged), unsigned(log_problem), restarted(restarted_executions), bars(seen), agents(seen.agents), breaker(breakers));
  }

  function harmed(damaged) {
    if (!damaged.length) return "";
    const links = damaged.map((id) => el("li", {}, el("a", { href: `#/session/${encodeURIComponent(id)}` }, id)));
    return el("div", { class: "bad" }, `✗ ${number(damaged.length)} sessions have damaged records and are not counted; daybook verify names the records.`, el("ul", {}, links));
  }

  function unsigned(problem) {
    if (!problem) return "";
    return el("div", { class: "bad" }, `✗ The log of sessions is not signed: ${problem}`);
  }

  function restarted(executions) {
    if (!executions) return "";
    return el("div", { class: "bad" }, `✗ ${number(executions)} running executions were restarted after a failure of their runner; the stack's log says why.`);
  }

  function bars(seen) {
    const total = (bar) => KINDS.reduce((sum, [kind]) => sum + bar[kind], 0);
    const most = Math.max(1, ...seen.bars.map(total));
    const wide = WIDE / seen.bars.length;
    const bad = seen.bars.filter((bar) => bar.failed).length;
    const picture = svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, class: "bars", preserveAspectRatio: "none", role: "img",
      "aria-label": `Sessions by start time; failures in ${bad} of ${seen.bars.length} intervals; at most ${most} sessions in one interval` });
    seen.bars.forEach((bar, index) => {
      let y = HIGH;
      const group = svg("g", { class: "bar-link" }, svg("title", {}, `${clock(bar.at)}: ${KINDS.map(([kind]) => `${bar[kind]} ${kind}`).join(", ")}`));
      group.append(svg("rect", { x: index * wide, y: 0, width: wide - 2, height: HIGH, class: "empty" }));
      for (const [kind] of KINDS) {
        const height = (bar[kind] / most) * (HIGH - 4);
        y -= height;
        if (height > 0) group.append(svg("rect", { x: index * wide, y, width: wide - 2, height, class: kind }));
      }
      const to = new Date(Date.parse(bar.at) + seen.bar_ms).toISOString();
      if (total(bar)) group.addEventListener("click", () => { location.hash = listed({ since: bar.at, until: to }); });
      picture.append(group);
    });
    return el("figure", {}, picture, el("figcaption", { class: "bar faint" }, clock(seen.bars[0].at), el("span", { class: "grow" }), `${duration(seen.bar_ms)} per bar, at most ${most} sessions`, el("span", { class: "grow" }), "now"));
  }

  function agents(all) {
    if (all.length === 0) return el("p", { class: "faint" }, "No sessions in this time range.");
    const heads = ["Agent", "Sessions", "Succeeded", "Failed", "Stopped", "Waiting", "Running", "p50", "p95", "Tokens", "Cost", "Stopped responding"];
    const count = (value) => (value ? number(value) : "");
    const rows = all.map((agent) => [
      agent.name === null ? el("span", { class: "faint" }, "rejected before start") : el("a", { href: `#/?agent=${encodeURIComponent(agent.name)}` }, agent.name),
      ...[["", KINDS.reduce((sum, [kind]) => sum + agent[kind], 0)], ...["succeeded", "failed", "stopped", "waiting", "running"].map((kind) => [kind, agent[kind]])]
        .map(([kind, value]) => (value && agent.name !== null
          ? el("a", { class: kind === "failed" ? "bad" : null, href: listed({ status: STATUSES[kind], agent: agent.name, since: `${hours}h` }) }, count(value)) : count(value))),
      duration(agent.p50_ms), duration(agent.p95_ms), count(agent.tokens), agent.micro_usd ? dollars(agent.micro_usd / 1e6) : "", count(agent.lost)]);
    return el("div", {}, wideTable("By agent", heads, rows, { figures: 1 }), el("p", { class: "faint" }, "p50 and p95: time from start to verdict of ended sessions, waits included."));
  }

  function breaker(all) {
    return el("section", { class: "panel" }, el("h2", {}, "Circuit breakers"),
      all.length === 0 ? el("p", { class: "faint" }, "No agent has a circuit breaker.") : null,
      all.map(({ agent, per_hour, taken, is_open, next_free_at }) => el("p", { class: is_open ? "bad" : "" },
        el("strong", {}, agent), ...(per_hour === null
          ? [` ${number(taken)} sessions in the last hour; the limit is configured on the invoker and unknown here`]
          : [is_open ? " ✗ open: new sessions are rejected" : " ✓ closed: sessions are admitted",
            ` · ${number(taken)} of ${number(per_hour)} slots used in the last hour`]),
        next_free_at && per_hour !== null ? ` · next slot free at ${clock(next_free_at)}` : "")));
  }

  again = await poll(body, EVERY_MS, connected, async () => draw(await get(`/api/health?hours=${hours}`)));
  return {};
}
