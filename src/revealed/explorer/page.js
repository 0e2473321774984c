"use strict";
// One model, one chosen sample, one context that may be moved away from what was observed.
const state = { model: null, sample: null, answer: null, context: {}, shown: [], asked: 0, other: null };
const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}
function shape(name, attributes, text) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}
function figure(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size < 1e-9) return "0";
  return String(Number(value.toPrecision(size >= 1000 ? 5 : 4)));
}
const same = (a, b) => Math.abs(a - b) <= 1e-5 * (1 + Math.abs(b));
const equal = (a, b) => a !== null && b !== null && a.every((value, j) => same(value, b[j]));

async function ask(path, content) {
  const options = content === undefined ? {} :
    { method: "POST", body: JSON.stringify(content), headers: { "Content-Type": "application/json" } };
  const response = await fetch(path, options);
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error || response.statusText);
  return answer;
}
function complain(error) {
  $("trouble").hidden = !error;
  $("trouble").textContent = error ? String(error.message || error) : "";
}

// --- samples -------------------------------------------------------------------------------------

function listSamples() {
  const words = $("search").value.trim().toLowerCase(), which = $("which").value;
  state.shown = [];
  const list = $("list");
  list.replaceChildren();
  state.model.samples.forEach((sample, number) => {
    if (words && !sample.name.toLowerCase().includes(words)) return;
    if (which === "held" && !sample.held) return;
    if (which === "missed" && sample.repeated) return;
    state.shown.push(number);
    const item = element("li", { role: "option", id: `sample-${number}`, "aria-selected": "false" },
      element("span", { class: "name" }, sample.name));
    if (sample.held) item.append(element("span", { class: "mark", title: "held out: the model did not learn from it" }, "held"));
    item.append(element("span", { class: sample.repeated ? "hit" : "miss" }, sample.repeated ? "✓" : "✗"));
    item.title = sample.repeated ? "the model repeats this decision" : "the model decides otherwise";
    item.addEventListener("click", () => choose(number));
    list.append(item);
  });
  if (!state.shown.length) list.append(element("li", {}, "no such sample"));
  mark();
}
function mark() {
  for (const item of $("list").querySelectorAll("[aria-selected]")) item.setAttribute("aria-selected", "false");
  const item = state.sample && $(`sample-${state.sample.number}`);
  if (!item) return;
  item.setAttribute("aria-selected", "true");
  $("list").setAttribute("aria-activedescendant", item.id);
  const list = $("list"), top = item.offsetTop - list.offsetTop;
  if (top < list.scrollTop || top + item.offsetHeight > list.scrollTop + list.clientHeight)
    list.scrollTop = top - list.clientHeight / 2;
}
async function choose(number) {
  const turn = ++state.asked;
  try {
    const sample = await ask(`/api/sample/${number}`);
    if (turn !== state.asked) return;
    state.sample = sample; state.answer = sample; state.context = { ...sample.context };
    complain(null); mark(); fillFeatures(); show();
  } catch (error) { complain(error); }
}
function move(by) {
  const at = state.shown.indexOf(state.sample ? state.sample.number : -1);
  const next = Math.min(Math.max(at + by, 0), state.shown.length - 1);
  if (state.shown.length && next !== at) choose(state.shown[next]);
}

// --- context -------------------------------------------------------------------------------------

function fillFeatures() {
  const form = $("features");
  form.replaceChildren();
  for (const feature of state.model.features) {
    const label = element("label"), name = element("span", { class: "feature" }, feature.name);
    if (feature.levels) {
      const select = element("select", { name: feature.name });
      for (const level of feature.levels) select.append(element("option", { value: level }, level));
      select.value = state.context[feature.name];
      select.addEventListener("change", () => change(feature.name, select.value, name));
      label.append(name, select);
    } else {
      const step = feature.whole ? 1 : (feature.high - feature.low) / 200;
      const value = state.context[feature.name];
      const range = element("input", { type: "range", min: Math.min(feature.low, value),
        max: Math.max(feature.high, value), step: feature.whole ? 1 : "any", "aria-label": feature.name });
      const box = element("input", { type: "number", step: feature.whole ? 1 : "any", name: feature.name,
        "aria-label": `${feature.name}, exact value` });
      range.value = value; box.value = figure(value);
      range.addEventListener("input", () => { box.value = figure(Number(range.value)); change(feature.name, Number(range.value), name); });
      range.addEventListener("keydown", (event) => {
        const way = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
        if (!way || feature.whole) return;
        event.preventDefault();
        range.value = Number(range.value) + way * step;
        range.dispatchEvent(new Event("input"));
      });
      box.addEventListener("input", () => {
        if (box.value === "" || !Number.isFinite(Number(box.value))) return;
        range.value = box.value; change(feature.name, Number(box.value), name);
      });
      label.append(element("span", { class: "row" }, name, box), range);
    }
    form.append(label);
  }
  $("reset").disabled = true;
}
let timer = 0;
function change(name, value, label) {
  state.context[name] = value;
  label.classList.toggle("moved", value !== state.sample.context[name]);
  $("reset").disabled = !moved();
  clearTimeout(timer);
  timer = setTimeout(decide, 60);
}
const moved = () => Object.keys(state.context).some((name) => state.context[name] !== state.sample.context[name]);
async function decide() {
  const turn = ++state.asked;
  try {
    const answer = await ask("/api/decide", { context: state.context, sample: state.sample.number });
    if (turn !== state.asked) return;
    state.answer = answer; complain(null); show();
  } catch (error) { complain(error); }
}

// --- the decision --------------------------------------------------------------------------------

function show() {
  const { sample, answer, model } = state, verdict = $("verdict");
  state.other = null;
  const other = moved() ? "with this context" : "";
  verdict.classList.toggle("good", Boolean(answer.repeated));
  verdict.textContent = !answer.solved ? "No decision of minimum cost: the total falls without limit" :
    answer.repeated ? `The model decides as was observed ${other}` : `The model decides otherwise ${other}`;
  const changed = answer.predicted ? answer.predicted.filter((value, j) => !same(value, sample.observed[j])).length : null;
  $("figures").replaceChildren(
    told(figure(answer.distance), "distance of the costs from explaining what was observed"),
    told(figure(answer.excess === null ? null : Math.max(answer.excess, 0)), "what was observed costs above the cheapest"),
    told(changed === null ? "–" : String(changed), `of ${model.variables.length} entries differ`));
  $("drawing").replaceChildren(model.drawing ? drawGraph() : drawBars());
  $("legend").replaceChildren(element("span", { class: "key observed" }), "observed",
    element("span", { class: "key predicted" }), "predicted",
    model.drawing ? "; the stronger a line, the dearer it is predicted to be" : "");
  showAlternatives(); showCosts();
}
const told = (value, words) => element("div", {}, element("b", {}, value), element("span", {}, words));

function drawGraph() {
  const { tails, heads, places, directed } = state.model.drawing, costs = state.answer.costs;
  const cell = 64, xs = places.map((p) => p[0]), ys = places.map((p) => p[1]);
  const x0 = Math.min(...xs), y0 = Math.min(...ys), pad = 36;
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
    road.append(shape("title", {}, `${state.model.variables[j]}: ${figure(costs[j])}`));
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
  places.forEach((_, node) => { const [x, y] = at(node); svg.append(shape("circle", { class: "node", cx: x, cy: y, r: 6 })); });
  return svg;
}
function drawBars() {
  const { observed } = state.sample, predicted = state.answer.predicted || observed.map(() => 0);
  const used = observed.map((value, j) => j).filter((j) => Math.abs(observed[j]) > 1e-6 || Math.abs(predicted[j]) > 1e-6);
  used.sort((a, b) => Math.abs(predicted[b] - observed[b]) - Math.abs(predicted[a] - observed[a]) || a - b);
  // Drawn at the size of the text around it, on a phone too.
  const narrow = $("drawing").clientWidth < 460;
  const rows = used.slice(0, 24), high = 30, left = narrow ? 120 : 170, room = narrow ? 130 : 330, letters = narrow ? 16 : 24;
  const most = Math.max(1e-9, ...rows.map((j) => Math.max(Math.abs(observed[j]), Math.abs(predicted[j]))));
  const svg = shape("svg", { viewBox: `0 0 ${left + room + 60} ${rows.length * high + 8}`, role: "img", "aria-label": describe() });
  rows.forEach((j, k) => {
    const y = k * high + 6, name = state.model.variables[j];
    svg.append(shape("text", { x: left - 10, y: y + 15, "text-anchor": "end" }, name.length > letters ? name.slice(0, letters - 1) + "…" : name));
    [["observed", observed[j]], ["predicted", predicted[j]]].forEach(([kind, value], line) => {
      const length = Math.abs(value) / most * room;
      svg.append(shape("rect", { class: `bar ${kind}`, x: left, y: y + 10 * line, width: Math.max(length, 1), height: 8, rx: 2 }));
      if (line === 0 || !same(observed[j], predicted[j]))
        svg.append(shape("text", { x: left + length + 6, y: y + 8 + 10 * line }, figure(value)));
    });
  });
  return svg;
}
function describe() {
  const { answer, sample } = state;
  if (!answer.predicted) return "no decision of minimum cost";
  return answer.repeated ? "observed and predicted decision are the same" :
    `observed and predicted decision differ in ${answer.predicted.filter((v, j) => !same(v, sample.observed[j])).length} entries`;
}
function showAlternatives() {
  const list = $("alternatives"), { answer, sample, model } = state;
  list.replaceChildren();
  answer.alternatives.forEach((other, place) => {
    const moves = model.variables.map((name, j) => [name, answer.predicted[j], other.decision[j]])
      .filter(([, from, to]) => !same(from, to)).sort((a, b) => Math.abs(b[2] - b[1]) - Math.abs(a[2] - a[1]));
    const words = moves.slice(0, 4).map(([name, from, to]) => `${name} ${figure(from)} → ${figure(to)}`).join(", ");
    const item = element("li", {}, element("b", {}, `+${figure(other.extra)}  `), words,
      moves.length > 4 ? ` and ${moves.length - 4} more` : "");
    if (equal(other.decision, sample.observed)) item.append(" ", element("span", { class: "same" }, "this is what was observed"));
    if (model.drawing) {  // drawn while pointed at
      item.tabIndex = 0;
      const draw = (which) => () => { state.other = which; $("drawing").replaceChildren(drawGraph()); };
      for (const event of ["mouseenter", "focus"]) item.addEventListener(event, draw(place));
      for (const event of ["mouseleave", "blur"]) item.addEventListener(event, draw(null));
    }
    list.append(item);
  });
  if (!answer.alternatives.length) list.append(element("li", {}, "none was found"));
}
function showCosts() {
  const { model, sample, answer } = state;
  $("cost-name").textContent = model.maximise ? "value" : "cost";
  const body = $("costs");
  body.replaceChildren(...model.variables.map((name, j) => {
    const predicted = answer.predicted ? answer.predicted[j] : null;
    const row = element("tr", {}, element("td", {}, name), element("td", {}, figure(answer.costs[j])),
      element("td", {}, figure(sample.observed[j])), element("td", {}, figure(predicted)));
    if (predicted !== null && !same(predicted, sample.observed[j])) row.className = "differs";
    return row;
  }));
}

// --- start ---------------------------------------------------------------------------------------

async function start() {
  try {
    const model = state.model = await ask("/api/model");
    $("title").textContent = model.plan;
    const hits = model.samples.filter((sample) => sample.repeated).length;
    const held = model.samples.filter((sample) => sample.held);
    $("summary").textContent = `${model.samples.length} samples, of which the model repeats ${hits}` +
      (held.length && held.length < model.samples.length ?
        `; of the ${held.length} held out it repeats ${held.filter((sample) => sample.repeated).length}.` : ".");
    $("search").addEventListener("input", listSamples);
    $("which").addEventListener("change", listSamples);
    $("reset").addEventListener("click", () => choose(state.sample.number));
    $("list").addEventListener("keydown", (event) => {
      const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -1e9, End: 1e9 }[event.key];
      if (by) { event.preventDefault(); move(by); }
    });
    $("features").addEventListener("submit", (event) => event.preventDefault());
    listSamples();
    await choose(0);
    document.body.dataset.ready = "yes";
  } catch (error) { complain(error); }
}
start();
