"use strict";
// A decision as a picture: on its graph where there is one, as bars where not.

function drawGraph() {
  const { tails, heads, places, directed, ends, names } = state.model.drawing, costs = state.answer.costs;
  const cell = 64, xs = places.map((p) => p[0]), ys = places.map((p) => p[1]);
  const x0 = Math.min(...xs), y0 = Math.min(...ys), pad = 48;
  const at = (node) => [(places[node][0] - x0) * cell + pad, (places[node][1] - y0) * cell + pad];
  const width = (Math.max(...xs) - x0) * cell + 2 * pad, height = (Math.max(...ys) - y0) * cell + 2 * pad;
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": describe() });
  const sorted = [...costs].sort((a, b) => a - b), rank = (c) => sorted.length < 2 ? 0 :
    sorted.findIndex((value) => value >= c) / (sorted.length - 1);
  const there = new Set(tails.map((tail, j) => `${tail} ${heads[j]}`));
  const both = (j) => directed && there.has(`${heads[j]} ${tails[j]}`);
  const line = (j, offset, attributes) => {
    const [ax, ay] = at(tails[j]), [bx, by] = at(heads[j]), length = Math.hypot(bx - ax, by - ay) || 1;
    const dx = -(by - ay) / length * offset, dy = (bx - ax) / length * offset;
    return shape("line", { x1: ax + dx, y1: ay + dy, x2: bx + dx, y2: by + dy, ...attributes });
  };
  tails.forEach((_, j) => {
    const share = Math.round(100 * rank(costs[j]));
    const road = line(j, both(j) ? 2.5 : 0, { "stroke-width": 4, "stroke-linecap": "round",
      stroke: `color-mix(in srgb, var(--dear) ${share}%, var(--cheap))` });
    road.append(shape("title", {}, `${state.model.variables[j]}: ${amount(costs[j])}`));
    svg.append(road);
  });
  const other = state.other === null ? null : state.answer.alternatives[state.other].decision;
  for (const [kind, decision, offset] of [["observed", state.sample.observed, -4], ["predicted", state.answer.predicted, 4], ["alternative", other, 10]]) {
    if (!decision) continue;
    decision.forEach((value, j) => {
      if (Math.abs(value) > 1e-6) svg.append(line(j, offset, { class: `taken ${kind}`, "stroke-width": 5,
        "stroke-opacity": Math.min(1, 0.35 + 0.65 * Math.abs(value)) }));
    });
  }
  places.forEach((_, node) => {
    const [x, y] = at(node), named = names !== null;
    svg.append(shape("circle", { class: ends.includes(node) ? "node end" : "node", cx: x, cy: y, r: named ? 11 : 6 }));
    if (named) svg.append(shape("text", { x, y: y + 4, "text-anchor": "middle", class: ends.includes(node) ? "end" : "" }, names[node]));
  });
  ends.forEach((node, k) => {  // beside the node, away from the middle of the picture
    const [x, y] = at(node), dx = x - width / 2, dy = y - height / 2, far = (names ? 32 : 25) / (Math.hypot(dx, dy) || 1);
    svg.append(shape("text", { x: x + dx * far, y: y + dy * far + 4, "text-anchor": "middle" }, k ? "end" : "start"));
  });
  return svg;
}

const pen = document.createElement("canvas").getContext("2d");
// A name that fits into a room, its middle left out if need be.
function fitted(name, room) {
  pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  let most = Math.min(name.length, 60);
  while (most > 4 && pen.measureText(shortened(name, most)).width > room) most -= 1;
  return shortened(name, most);
}
const BARS = 24;
function drawBars() {
  const { observed } = state.sample, predicted = state.answer.predicted || observed.map(() => 0);
  const used = observed.map((value, j) => j).filter((j) => Math.abs(observed[j]) > 1e-6 || Math.abs(predicted[j]) > 1e-6);
  used.sort((a, b) => Math.abs(predicted[b] - observed[b]) - Math.abs(predicted[a] - observed[a]) || a - b);
  // Drawn at the size of the text around it, on a phone too.
  const narrow = $("drawing").clientWidth < 460;
  // Those that differ most, in the order of the file: a variable keeps its place.
  const rows = used.slice(0, BARS).sort((a, b) => a - b), high = 30, left = narrow ? 120 : 170, room = narrow ? 130 : 330;
  const most = Math.max(1e-9, ...rows.map((j) => Math.max(Math.abs(observed[j]), Math.abs(predicted[j]))));
  const svg = shape("svg", { class: "bars", viewBox: `0 0 ${left + room + 60} ${rows.length * high + 8}`, role: "img", "aria-label": describe() });
  rows.forEach((j, k) => {
    const y = k * high + 6, name = state.model.variables[j];
    const label = shape("text", { x: left - 10, y: y + 15, "text-anchor": "end" }, fitted(name, left - 14));
    label.append(shape("title", {}, name));
    svg.append(label);
    const bars = [["observed", observed[j]], ["predicted", predicted[j]]].slice(0, state.answer.predicted ? 2 : 1);
    bars.forEach(([kind, value], line) => {
      const length = Math.abs(value) / most * room;
      svg.append(shape("rect", { class: `bar ${kind}`, x: left, y: y + 10 * line, width: Math.max(length, 1), height: 8, rx: 2 }));
      if (line === 0 || !same(observed[j], predicted[j]))
        svg.append(shape("text", { x: left + length + 6, y: y + 8 + 10 * line }, figure(value)));
    });
  });
  if (used.length <= BARS) return svg;
  const rest = element("p", { class: "hint" }, `${used.length - BARS} more are not 0; the table below has all.`);
  return element("div", {}, svg, rest);
}
