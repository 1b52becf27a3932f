// What a batch norm remembers: two charts over the batches, one over the mean of the data, and a table of formulas.
const WIDE = 190,
  HIGH = 116;
const FORMULAS = ["E[x²] − E[x]²", "two passes, float32", "two passes, double", "Welford, float32"];
const RUNS = { image: "two passes, double", rows: "two passes, float32", slice: null }; // which of them a batch norm of this layout runs
const LOWEST = -8,
  HIGHEST = 12;

const placed = (points) => points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");
const label = (x, y, words, anchor = "start") => s("text", { x, y, "text-anchor": anchor }, words);
const frame = (name, ...parts) =>
  s("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, class: "rt-rs-chart", role: "img", "aria-label": name }, parts);

function short(x) {
  const size = Math.abs(x);
  return size !== 0 && (size >= 1e5 || size < 1e-3) ? x.toExponential(1).replace("e+", "e").replace(".0e", "e") : String(Number(x.toPrecision(4)));
}

// What each batch had, as dots, what was remembered, as a line, and the truth.
function overBatches(name, batch, running, truth) {
  const all = [...batch, ...running, truth],
    low = Math.min(...all),
    range = Math.max(...all) - low || 1;
  const at = (v, i) => [6 + (WIDE - 12) * (i / (batch.length - 1)), 102 - 86 * ((v - low) / range)];
  const [, level] = at(truth, 0);
  return h("div", {}, h("p", { class: "rt-dhead" }, name), frame(
    `${name}: begins at ${short(running[0])}, ends at ${short(running.at(-1))}, the truth is ${short(truth)}`,
    s("line", { x1: 0, x2: WIDE, y1: level, y2: level, class: "rt-rs-truth" }),
    batch.map((v, i) => at(v, i)).map(([cx, cy]) => s("circle", { cx, cy, r: 2, class: "rt-rs-dot" })),
    s("polyline", { points: placed(running.map(at)), class: "rt-rs-line" }),
    label(WIDE, 10, short(low + range), "end"), label(WIDE, 115, short(low), "end"), label(2, 115, "batches →"),
  )); // prettier-ignore
}

// 10 to the k, as one writes it.
const power = (k) => (k === 0 ? "1" : `10${[...String(k)].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c])).join("")}`);
const exponent = (error) => Math.min(HIGHEST, Math.max(LOWEST, error > 0 ? Math.log10(error) : LOWEST));
const heightOf = (error) => 8 + (94 * (HIGHEST - exponent(error))) / (HIGHEST - LOWEST);
const acrossOf = (offset) => 30 + ((WIDE - 40) * Math.min(9, Math.max(0, Math.log10(Math.max(1, Math.abs(offset)))))) / 9;

// The error of each formula as the mean of the data grows.
function overOffsets({ errors: [now, ...decades] }, { offset }, set) {
  const x = acrossOf(offset);
  const grid = [-8, -4, 0, 4, 8, 12].map((e) => [
    s("line", { x1: 28, x2: WIDE, y1: heightOf(10 ** e), y2: heightOf(10 ** e), class: e === 0 ? "rt-rs-truth" : "rt-rs-grid" }),
    label(26, heightOf(10 ** e) + 3.5, e === LOWEST ? "0" : power(e), "end"),
  ]);
  const ticks = [0, 3, 6, 9].map((k) => label(acrossOf(10 ** k), 115, power(k), k === 9 ? "end" : "middle"));
  const lines = FORMULAS.map((_, f) => s("polyline", { points: placed(decades.map((row, k) => [acrossOf(10 ** k), heightOf(row[f])])), class: `rt-rs-f${f}` }));
  const here = now.map((error, f) => s("circle", { cx: x, cy: heightOf(error), r: 3, class: `rt-rs-f${f}` }));
  const means = [3, 1e4, 1e6, 1e8].map((offset) =>
    h("button", { type: "button", class: "rt-stmt", "data-focus": `mean-${offset}`, onclick: () => set({ offset }) }, short(offset)));
  return h("div", { class: "rt-rs-errors" }, h("p", { class: "rt-dhead" }, "absolute error, by mean of the data"),
    frame("absolute error of each formula over the mean of the data, both in powers of ten; dashed: 1, the variance of the data", grid, ticks, s("line", { x1: x, x2: x, y1: 4, y2: 104, class: "rt-rs-grid" }), lines, here),
    h("div", { class: "rt-statements", role: "group", "aria-label": "mean of the data" }, h("span", { class: "rt-dim" }, "mean:"), means)); // prettier-ignore
}

function formulaTable({ variances, outputs, exact }, { layout }) {
  const key = (f) => s("svg", { viewBox: "0 0 22 8", class: "rt-rs-key", "aria-hidden": "true" }, s("line", { x1: 1, x2: 21, y1: 4, y2: 4, class: `rt-rs-f${f}` }));
  const row = (name, numbers, sign) =>
    h("tr", { class: name === RUNS[layout] ? "rt-rs-runs" : "" }, h("th", { scope: "row" }, sign, name), numbers.map((one) => h("td", {}, short(one))));
  const head = h("tr", {}, ["by", "variance", "output’s deviation"].map((name) => h("th", { scope: "col" }, name)));
  return h("div", { class: "rt-rs-table" }, h("p", { class: "rt-dhead" }, "of the first batch"),
    h("table", { class: "rt-gtable" }, h("thead", {}, head),
      h("tbody", {}, FORMULAS.map((name, f) => row(name, [variances[f], outputs[f]], key(f))), row("exact, of what is stored", [exact, Math.sqrt(exact / (exact + 1e-5))], "")))); // prettier-ignore
}

const draw = ({ result, inputs, set }) => {
  const [means, variances] = [0, 1].map((k) => result.running.map((pair) => pair[k]));
  return h("div", { class: "rt-rs" },
    overBatches("running mean", result.means, means, inputs.offset), overBatches("running variance", result.unbiased, variances, 1),
    formulaTable(result, inputs), overOffsets(result, inputs, set)); // prettier-ignore
};

export default { render: figure(model, draw) };
