// Draws a graph from top to bottom: nodes in layers, with the taken path in colour.

import { el, svg } from "./dom.js";

const [HIGH, BESIDE, BELOW, EDGE] = [28, 16, 32, 28];
/** The width of a box: that of the longest name, within bounds. */
const [NARROWEST, WIDEST, CHAR_PX, MARGIN_PX] = [128, 280, 7, 34];
const NAME_CHARS_MAX = 36;

/** `chosen`, if there is one, is called with the name of a visited node that was clicked. */
export function picture(title, drawn, note, chosen) {
  const longest = Math.max(...drawn.nodes.map((node) => node.name.length + (node.visits > 1 ? 4 : 0)));
  const WIDE = Math.min(WIDEST, Math.max(NARROWEST, CHAR_PX * longest + MARGIN_PX));
  const layers = Math.max(...drawn.nodes.map((node) => node.layer)) + 1;
  const columns = Math.max(...drawn.nodes.map((node) => node.place)) + 1;
  const x = (node) => EDGE + node.place * (WIDE + BESIDE);
  const y = (node) => 4 + node.layer * (HIGH + BELOW);
  const [width, height] = [columns * (WIDE + BESIDE) - BESIDE + 2 * EDGE, layers * (HIGH + BELOW) - BELOW + 8];
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": described(title, drawn) });
  // Taken edges are drawn above the others.
  for (const edge of [...drawn.edges].sort((a, b) => a.taken - b.taken)) {
    const [from, to] = [drawn.nodes[edge.from], drawn.nodes[edge.to]];
    drawing.append(svg("path", { d: line(edge, from, to), class: ["edge", edge.taken && "taken", edge.is_catch && "catch"].filter(Boolean).join(" ") }));
  }
  for (const node of drawn.nodes) {
    const state = [(node.visits || node.is_passed) && "visited", node.is_newest && "newest", node.is_failed && "failed"].filter(Boolean).join(" ");
    const times = node.visits > 1 ? ` ×${node.visits}` : "";
    const words = `${node.is_failed ? "✗ " : ""}${short(node.name, NAME_CHARS_MAX - times.length)}${times}`;
    const item = svg("g", { class: `node ${state}`, ...(chosen && node.visits ? { "data-go": node.name } : {}) },
      svg("title", {}, `${node.name}: ${visited(node)}`),
      svg("rect", { x: x(node), y: y(node), width: WIDE, height: HIGH, rx: 6 }),
      svg("text", { x: x(node) + WIDE / 2, y: y(node) + HIGH / 2 + 4, "text-anchor": "middle" }, words));
    if (chosen && node.visits) item.addEventListener("click", () => chosen(node.name));
    drawing.append(item);
  }
  return el("figure", {}, el("figcaption", {}, el("h2", {}, title), note ? el("p", { class: "faint" }, note) : null),
    el("div", { class: "picture", tabIndex: 0, role: "group", "aria-label": title }, drawing));

  function line(edge, from, to) {
    const [fx, fy, tx, ty] = [x(from) + WIDE / 2, y(from) + HIGH, x(to) + WIDE / 2, y(to)];
    if (edge.from === edge.to) {
      const [right, middle] = [x(from) + WIDE, y(from) + HIGH / 2];
      return `M ${right} ${middle - 6} C ${right + 20} ${middle - 14}, ${right + 20} ${middle + 14}, ${right} ${middle + 6}`;
    }
    if (edge.is_back && from.place === to.place) {
      // Back in the same column: curve around it on the left.
      const [left, out] = [x(from), x(from) - Math.min(EDGE - 4, 10 + 4 * (from.layer - to.layer))];
      return `M ${left} ${fy - HIGH / 2} C ${out} ${fy - HIGH / 2}, ${out} ${ty + HIGH / 2}, ${left} ${ty + HIGH / 2}`;
    }
    if (edge.is_back) {
      // Back to another column: leave at the top, enter at the nearer side.
      const [top, side] = [y(from), from.place > to.place ? x(to) + WIDE : x(to)];
      return `M ${fx} ${top} C ${fx} ${ty + HIGH / 2}, ${fx} ${ty + HIGH / 2}, ${side} ${ty + HIGH / 2}`;
    }
    const bend = Math.max(10, (ty - fy) / 2);
    return `M ${fx} ${fy} C ${fx} ${fy + bend}, ${tx} ${ty - bend}, ${tx} ${ty}`;
  }
}

const short = (words, most) => (words.length > most ? `${words.slice(0, most - 1)}…` : words);

const visited = (node) => (node.visits === 0 ? (node.is_passed ? "passed" : "not visited") : `visited ${node.visits === 1 ? "once" : `${node.visits} times`}${node.is_newest ? ", most recent" : ""}${node.is_failed ? ", failed here" : ""}`);

/** The graph in words, for screen readers. */
function described(title, drawn) {
  const been = drawn.nodes.filter((node) => node.visits || node.is_passed).map((node) => `${node.name} ${visited(node)}`);
  return `${title}. ${been.length ? been.join("; ") : "No nodes visited"}.`;
}
