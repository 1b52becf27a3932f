// One training step: the stations at the left, the numbers of the chosen one at the right, the losses of all turns below.
const STATIONS = [
  ["Optimizer.zero_grad", "Python"], ["Module.__call__", "Python"], ["THPVariable_linear", "C++"], ["native::linear", "C++"],
  ["VariableType::addmm", "C++"], ["wrapper_CPU_addmm", "C++"], ["cross_entropy_loss", "C++"],
  ["Tensor.backward", "Python"], ["Engine::evaluate_function", "C++"], ["SoftmaxBackward0::apply", "C++"],
  ["AccumulateGrad", "C++"], ["SGD.step", "Python"], ["ADInplaceOrView::add_", "C++"],
]; // prettier-ignore
const FLOOR = Math.log(1 + Math.exp(-1)); // of the loss, with two softmaxes and two classes

const transposed = (rows) => rows[0].map((_, column) => rows.map((row) => row[column]));
const scaled = (value, factor) =>
  Array.isArray(value) ? value.map((one) => scaled(one, factor)) : value * factor;

// [name, numbers] of what is at hand at each station
const AT_HAND = [
  (r) => (r.zero || !r.found
    ? [["weight.grad", [["None"]]], ["bias.grad", [["None"]]]]
    : [["weight.grad", r.found[0]], ["bias.grad", [r.found[1]]]]),
  (r) => [["x", r.x], ["class", r.labels.map((label) => [label])]],
  (r) => [["input", r.x], ["weight", r.weight], ["bias", [r.bias]]],
  (r) => [["bias", [r.bias]], ["x", r.x], ["weight.t()", transposed(r.weight)]],
  (r) => [["kept: x", r.x]],
  (r) => [["x @ weight.t() + bias", r.z], r.softmax && ["softmax of it", r.p]],
  (r) => [["log_softmax", r.logq], ["class", r.labels.map((label) => [label])], ["loss", [[r.loss]]]],
  () => [["gradient of the loss", [[1]]]],
  (r) => [["of log_softmax", r.toLogq], [r.softmax ? "of softmax" : "of the scores", r.toP], r.softmax && ["of the scores", r.toZ]],
  (r) => (r.softmax
    ? [["grad", r.toP], ["result", r.p], ["p · (grad − Σ p·grad)", r.toZ]]
    : [["grad", r.toLogq], ["result", r.logq], ["grad − exp(result) · Σ grad", r.toP]]),
  (r) => [["arrives at weight", r.toWeight], ["at bias", [r.toBias]], ["weight.grad", r.grad[0]], ["bias.grad", [r.grad[1]]]],
  (r) => [["−lr · weight.grad", scaled(r.grad[0], -r.rate)], ["−lr · bias.grad", [scaled(r.grad[1], -r.rate)]]],
  (r) => [["weight before", r.weight], ["weight after", r.after[0]], ["bias after", [r.after[1]]]],
]; // prettier-ignore

function shown(value) {
  if (typeof value === "string" || Number.isInteger(value)) return String(value);
  const size = Math.abs(value);
  return size < 5e-5 ? value.toExponential(1) : size < 1e4 ? value.toFixed(4) : value.toExponential(2);
}
const matrix = ([name, rows]) =>
  h("div", {},
    h("p", { class: "rt-dim" }, name),
    h("table", {}, h("tbody", {}, rows.map((row) => h("tr", {}, row.map((value) => h("td", {}, shown(value))))))),
  ); // prettier-ignore

function stationButton([name, language], i, step, go) {
  return h("li", {}, h("button", {
    type: "button", class: `rt-station ${i === step ? "rt-is-pick" : "rt-is-plain"}`, "data-focus": `station-${i}`,
    "aria-current": i === step ? "step" : null, "aria-label": `${i}: ${name}, ${language}`, onclick: () => go(i),
  }, h("b", {}, String(i)), h("span", {}, name))); // prettier-ignore
}

// The floor is always in view, so that one sees on which side of it a curve lies.
const curveRange = (r) => [Math.min(FLOOR, ...r.losses), Math.max(FLOOR, ...r.losses)];

// The losses of all iterations; a click chooses one.
function lossCurve(r, set) {
  const [width, height] = [560, 100];
  const [low, high] = curveRange(r);
  const x = (turn) => 6 + ((width - 12) * turn) / (r.losses.length - 1);
  const y = (loss) => height - 7 - ((height - 14) * (loss - low)) / (high - low || 1);
  const path = r.losses.map((loss, turn) => `${turn ? "L" : "M"}${x(turn).toFixed(1)} ${y(loss).toFixed(1)}`).join("");
  const label = `Losses of iterations 0 to ${r.losses.length - 1}: from ${r.losses[0].toFixed(4)} to ${r.losses.at(-1).toFixed(4)}`;
  const choose = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    const turn = Math.round((((event.clientX - box.left) / box.width) * width - 6) / ((width - 12) / (r.losses.length - 1)));
    set({ turn: Math.max(0, Math.min(r.losses.length - 1, turn)) });
  };
  return s("svg", { viewBox: `0 0 ${width} ${height}`, class: "rt-losses", role: "img", "aria-label": label, onclick: choose },
    s("line", { class: "rt-bound", x1: 0, x2: width, y1: y(FLOOR), y2: y(FLOOR) }),
    s("path", { class: "rt-curve", d: path }),
    s("circle", { class: "rt-is-pick", cx: x(r.turn), cy: y(r.loss), r: 5 }),
  ); // prettier-ignore
}

function lossWords(r) {
  const [bottom, top] = curveRange(r).map(shown);
  return `Loss in iteration ${r.turn}: ${shown(r.loss)}. Left to right: iterations 0 to ${r.losses.length - 1}; top ${top}, bottom ${bottom}; dashed: 0.3133, the floor of two softmaxes.`;
}

const draw = ({ result, step, set, go }) =>
  h("div", { class: "rt-path" },
    h("ol", { class: "rt-stations" }, STATIONS.map((station, i) => stationButton(nameNow(station, i, result), i, step, go))),
    h("div", { class: "rt-athand rt-scrollx", tabindex: 0, role: "group", "aria-label": "numbers at this station" },
      h("p", { class: "rt-here" }, `${step}  ${nameNow(STATIONS[step], step, result)[0]}`),
      AT_HAND[step](result).filter(Boolean).map(matrix)),
    h("div", {}, h("p", { class: "rt-dim" }, lossWords(result)), lossCurve(result, set)),
  ); // prettier-ignore

// Without the softmax in forward, station 9 is the node of the softmax that cross_entropy takes.
const nameNow = ([name, language], i, result) =>
  i === 9 && !result.softmax ? ["LogSoftmaxBackward0::apply", language] : [name, language];

export default { render: figure(model, draw) };
