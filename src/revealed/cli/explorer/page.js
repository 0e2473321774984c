"use strict";
// One model, one chosen sample, one context that may be moved away from what was observed.
const state = { model: null, sample: null, answer: null, context: {}, shown: [], asked: 0, other: null, size: 0 };
const WORDS = {
  cost: { one: "cost", all: "Predicted costs", costs: "costs", sign: "+", best: "cheapest", excess: "extra cost of the observed decision",
    near: "The next best decisions under the predicted costs, and what they would cost more.",
    some: "Some decisions that cost little more under the predicted costs; there may be others between them.",
    endless: "No best decision: the total cost falls without limit", scale: "cheap to expensive, as predicted" },
  value: { one: "value", all: "Predicted values", costs: "values", sign: "−", best: "best", excess: "value that the observed decision leaves",
    near: "The next best decisions under the predicted values, and what they would be worth less.",
    some: "Some decisions worth little less under the predicted values; there may be others between them.",
    endless: "No best decision: the total value grows without limit", scale: "worth little to worth much, as predicted" },
};
const words = () => WORDS[state.model.maximize ? "value" : "cost"];
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
  if (size === 0) return "0";
  if (size >= 1e7 || size < 1e-4) return value.toExponential(3).replace(/\.?0*e\+?/, "e");
  return String(Number(value.toPrecision(size >= 1000 ? 5 : 4)));
}
// A cost among others: what is nothing beside them is rounding.
const amount = (value) => value !== null && value !== undefined && Math.abs(value) < 1e-9 * state.size ? "0" : figure(value);
const shortened = (name, most) => name.length <= most ? name :
  `${name.slice(0, Math.ceil(most / 2) - 1)}…${name.slice(-Math.floor(most / 2))}`;  // ends tell names apart
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
  const sought = $("search").value.trim().toLowerCase(), which = $("which").value;
  state.shown = [];
  const list = $("list");
  list.replaceChildren();
  state.model.samples.forEach((sample, number) => {
    if (sought && !sample.name.toLowerCase().includes(sought)) return;
    if (which === "held" && !sample.held) return;
    if (which === "missed" && sample.repeated) return;
    state.shown.push(number);
    const item = element("li", { role: "option", id: `sample-${number}`, "aria-selected": "false" },
      element("span", { class: "name" }, shortened(sample.name, 22)));
    if (sample.held) item.append(element("span", { class: "mark", title: "held out: the model did not learn from it" }, "held"));
    item.append(element("span", { class: sample.repeated ? "hit" : "miss" }, sample.repeated ? "✓" : "✗"));
    item.title = `${sample.name}: ${sample.repeated ? "prediction matches" : "prediction differs"}`;
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
    state.set = new Set();  // learned limits that someone moved; the others move with the features
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
  state.learned = {};
  for (const feature of state.model.features) {
    const label = element("label"), name = element("span", { class: "feature", title: feature.name }, feature.name);
    if (feature.levels) {
      const select = element("select", { name: feature.name });
      for (const level of feature.levels) select.append(element("option", { value: level }, level));
      select.value = state.context[feature.name];
      select.addEventListener("change", () => change(feature.name, select.value, name));
      label.append(name, select);
    } else {
      const step = feature.whole ? 1 : (feature.high - feature.low) / 200;
      const given = state.context[feature.name];  // null: a limit that is the plan's own; words: one that is none
      const own = typeof given === "number" ? given : given === null ? feature.planned : null;
      const value = own === null || own === undefined ? feature.high : own;
      const range = element("input", { type: "range", min: Math.min(feature.low, value),
        max: Math.max(feature.high, value), step: feature.whole ? 1 : "any", "aria-label": feature.name });
      const box = element("input", { type: "number", step: feature.whole ? 1 : "any", name: feature.name,
        "aria-label": `${feature.name}, exact value` });
      range.value = value; box.value = typeof given === "number" ? figure(value) : "";
      if (typeof given !== "number") box.placeholder = given === null ? "as planned" : given;
      if (feature.limits) name.append(element("span", { class: "mark", title: `what ${feature.limits} of the plan is on this day` }, "limit"));
      if (feature.learned) state.learned[feature.name] = { range, box, name };
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
  if (state.learned[name]) state.set.add(name);
  label.classList.toggle("moved", value !== state.sample.context[name]);
  $("reset").disabled = !moved();
  clearTimeout(timer);
  timer = setTimeout(decide, 60);
}
const moved = () => Object.keys(state.context).some((name) => state.context[name] !== state.sample.context[name]);
async function decide() {
  const turn = ++state.asked;
  try {
    const context = { ...state.context };
    for (const name of Object.keys(state.learned)) if (!state.set.has(name)) context[name] = null;
    const answer = await ask("/api/decide", { context, sample: state.sample.number });
    if (turn !== state.asked) return;
    follow(answer.limits);
    state.answer = answer; complain(null); show();
  } catch (error) { complain(error); }
}

function follow(limits) {
  for (const [column, value] of Object.entries(limits)) {
    if (state.set.has(column) || value === null) continue;
    const { range, box, name } = state.learned[column];
    range.min = Math.min(range.min, value); range.max = Math.max(range.max, value);
    range.value = value; box.value = figure(value);
    state.context[column] = value;
    name.classList.toggle("moved", value !== state.sample.context[column]);
  }
  $("reset").disabled = !moved();
}

// --- the decision --------------------------------------------------------------------------------

function show() {
  const { sample, answer, model } = state, verdict = $("verdict");
  state.other = null;
  const other = moved() ? "with this context" : "";
  verdict.classList.toggle("good", Boolean(answer.repeated));
  state.size = answer.costs.reduce((most, cost) => Math.max(most, Math.abs(cost)), 0);
  const doubt = answer.proved ? "" : `: the ${words().best} found in time, not proved to be it`;
  verdict.textContent = answer.impossible ? "No decision meets these limits" :
    !answer.solved ? (answer.stopped ? "No decision was found in time" : words().endless) :
      (answer.repeated ? `Prediction matches ${other}` : `Prediction differs ${other}`) + doubt;
  const changed = answer.predicted ? answer.predicted.filter((value, j) => !same(value, sample.observed[j])).length : null;
  $("figures").replaceChildren(
    told(amount(answer.distance), `distance of the ${words().costs} from explaining what was observed`),
    told(amount(answer.excess === null ? null : Math.max(answer.excess, 0)), words().excess),
    told(changed === null ? "–" : String(changed), `of ${model.variables.length} entries differ`));
  $("drawing").replaceChildren(model.drawing ? drawGraph() : drawBars());
  $("legend").replaceChildren(element("span", { class: "key observed" }), "observed",
    element("span", { class: "key predicted" }), "predicted",
    ...(model.drawing ? [element("span", { class: "key scale" }), words().scale] : []));
  showAlternatives(); showCosts();
}
const told = (value, words) => element("div", {}, element("b", {}, value), element("span", {}, words));

function describe() {
  const { answer, sample } = state;
  if (!answer.predicted) return "no decision of minimum cost";
  return answer.repeated ? "observed and predicted decision are the same" :
    `observed and predicted decision differ in ${answer.predicted.filter((v, j) => !same(v, sample.observed[j])).length} entries`;
}
// What a decision has that the predicted one has not; for yes or no, what it takes and what it leaves.
function difference(decision) {
  const { model, answer } = state;
  const moves = model.variables.map((name, j) => [shortened(name, 40), answer.predicted[j], decision[j]])
    .filter(([, from, to]) => !same(from, to)).sort((a, b) => Math.abs(b[2] - b[1]) - Math.abs(a[2] - a[1]));
  const listed = (some) => some.slice(0, 4).join(", ") + (some.length > 4 ? ` and ${some.length - 4} more` : "");
  if (moves.every(([, from, to]) => same(from + to, 1) && (same(from, 0) || same(from, 1)))) {
    const taken = moves.filter((move) => same(move[1], 0)).map((move) => move[0]);
    const left = moves.filter((move) => same(move[1], 1)).map((move) => move[0]);
    return [taken.length ? `takes ${listed(taken)}` : "", left.length ? `leaves ${listed(left)}` : ""].filter(Boolean).join("; ");
  }
  return listed(moves.map(([name, from, to]) => `${name} ${figure(from)} → ${figure(to)}`));
}
function showAlternatives() {
  const list = $("alternatives"), { answer, sample, model } = state;
  $("near").textContent = answer.alternatives_proved ? words().near : words().some;
  list.replaceChildren();
  answer.alternatives.forEach((other, place) => {
    const item = element("li", {}, element("b", {}, `${words().sign}${amount(Math.max(other.extra, 0))}  `), difference(other.decision));
    if (equal(other.decision, sample.observed)) item.append(" ", element("span", { class: "same" }, "this is what was observed"));
    if (model.drawing) {  // drawn while pointed at
      item.tabIndex = 0;
      const draw = (which) => () => { state.other = which; $("drawing").replaceChildren(drawGraph()); };
      for (const event of ["mouseenter", "focus"]) item.addEventListener(event, draw(place));
      for (const event of ["mouseleave", "blur"]) item.addEventListener(event, draw(null));
    }
    list.append(item);
  });
  if (!answer.alternatives.length) list.append(element("li", {}, answer.alternatives_proved ? "there is no other corner" : "none was found"));
}
function showCosts() {
  const { model, sample, answer } = state;
  $("cost-name").textContent = words().one;
  $("costs-heading").textContent = words().all;
  const differs = (j) => answer.predicted !== null && !same(answer.predicted[j], sample.observed[j]);
  const used = (j) => Math.abs(sample.observed[j]) > 1e-6 || (answer.predicted !== null && Math.abs(answer.predicted[j]) > 1e-6);
  const order = model.variables.map((_, j) => j);
  const many = order.length > 40;  // then what matters comes first
  if (many) order.sort((a, b) => differs(b) - differs(a) || used(b) - used(a) || a - b);
  $("order").hidden = !many;
  $("costs").replaceChildren(...order.map((j) => {
    const row = element("tr", {}, element("th", { scope: "row" }, model.variables[j]), element("td", {}, amount(answer.costs[j])),
      element("td", {}, figure(sample.observed[j])), element("td", {}, figure(answer.predicted ? answer.predicted[j] : null)));
    if (differs(j)) row.className = "differs";
    return row;
  }));
}

// --- start ---------------------------------------------------------------------------------------

async function start() {
  try {
    const model = state.model = await ask("/api/model");
    $("title").textContent = $("title").title = model.plan;
    const hits = model.samples.filter((sample) => sample.repeated).length;
    const held = model.samples.filter((sample) => sample.held);
    $("summary").textContent = `${model.samples.length} samples, of which the model repeats ${hits}` +
      (held.length && held.length < model.samples.length ?
        `; of the ${held.length} held out it repeats ${held.filter((sample) => sample.repeated).length}.` : ".") +
      (model.whole ? " Its decisions are whole, as the plan asks." : model.relaxed ?
        " It was fitted to the relaxation: decisions may have fractions where the plan asks for whole numbers." : "") + (model.given ? ` Given beforehand: ${model.given}.` : "");
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
