// A graph drawn from above to below: its nodes in layers, the path that was taken in colour.

import { el, svg } from "./dom.js";

const [WIDE, HIGH, BESIDE, BELOW, EDGE] = [118, 30, 12, 26, 26];

export function picture(title, drawn, note) {
  const layers = Math.max(...drawn.nodes.map((node) => node.layer)) + 1;
  const counts = Array.from({ length: layers }, (_, layer) => drawn.nodes.filter((node) => node.layer === layer).length);
  const most = Math.max(...counts);
  const x = (node) => EDGE + (node.place + (most - counts[node.layer]) / 2) * (WIDE + BESIDE);
  const y = (node) => 4 + node.layer * (HIGH + BELOW);
  const [width, height] = [most * (WIDE + BESIDE) - BESIDE + 2 * EDGE, layers * (HIGH + BELOW) - BELOW + 8];
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": described(title, drawn) });
  // What was taken lies above what was not.
  for (const edge of [...drawn.edges].sort((a, b) => a.taken - b.taken)) {
    const [from, to] = [drawn.nodes[edge.from], drawn.nodes[edge.to]];
    drawing.append(svg("path", { d: line(edge, from, to), class: ["edge", edge.taken && "taken", edge.is_catch && "catch"].filter(Boolean).join(" ") }));
  }
  for (const node of drawn.nodes) {
    const state = [node.visits && "visited", node.is_newest && "newest", node.is_failed && "failed"].filter(Boolean).join(" ");
    const words = `${node.is_failed ? "✗ " : ""}${node.name}${node.visits > 1 ? ` ×${node.visits}` : ""}`;
    drawing.append(svg("g", { class: `node ${state}` },
      svg("title", {}, `${node.name}: ${visited(node)}`),
      svg("rect", { x: x(node), y: y(node), width: WIDE, height: HIGH, rx: 6 }),
      svg("text", { x: x(node) + WIDE / 2, y: y(node) + HIGH / 2 + 4, "text-anchor": "middle" }, short(words))));
  }
  return el("figure", {}, el("figcaption", {}, el("h2", {}, title), note ? el("p", { class: "faint" }, note) : null),
    el("div", { class: "picture", tabIndex: 0, role: "group", "aria-label": title }, drawing));

  function line(edge, from, to) {
    const [fx, fy, tx, ty] = [x(from) + WIDE / 2, y(from) + HIGH, x(to) + WIDE / 2, y(to)];
    if (edge.from === edge.to) {
      const [right, middle] = [x(from) + WIDE, y(from) + HIGH / 2];
      return `M ${right} ${middle - 6} C ${right + 20} ${middle - 14}, ${right + 20} ${middle + 14}, ${right} ${middle + 6}`;
    }
    if (edge.is_back) {
      const [fr, tr] = [x(from) + WIDE, x(to) + WIDE];
      const out = Math.max(fr, tr) + 14 + 4 * Math.min(3, from.layer - to.layer);
      return `M ${fr} ${fy - HIGH / 2} C ${out} ${fy - HIGH / 2}, ${out} ${ty + HIGH / 2}, ${tr} ${ty + HIGH / 2}`;
    }
    const bend = Math.max(10, (ty - fy) / 2);
    return `M ${fx} ${fy} C ${fx} ${fy + bend}, ${tx} ${ty - bend}, ${tx} ${ty}`;
  }
}

const short = (words) => (words.length > 20 ? `${words.slice(0, 19)}…` : words);

const visited = (node) => (node.visits === 0 ? "not visited" : `visited ${node.visits === 1 ? "once" : `${node.visits} times`}${node.is_newest ? ", the newest" : ""}${node.is_failed ? ", failed here" : ""}`);

/** The same in words, for those who do not see it. */
function described(title, drawn) {
  const been = drawn.nodes.filter((node) => node.visits).map((node) => `${node.name} ${visited(node)}`);
  return `${title}. ${been.length ? been.join("; ") : "Nothing was visited"}.`;
}
