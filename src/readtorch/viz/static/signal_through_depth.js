// A signal through a deep network: three curves on a logarithmic axis, and their values at one layer.

const CHART = { width: 640, height: 290, left: 62, right: 12, top: 16, bottom: 26 };
const CURVES = [
  ["scale", "scale of a layer's output"],
  ["difference", "difference between samples"],
  ["gradient", "gradient of a layer's weight"],
];
const CHIPS = { "nn.Linear": "1/√3 Linear", Xavier: "1 Xavier", ReLU: "√2 ReLU", tanh: "5/3 tanh" };

const powerText = (power) => (power === 0 ? "1" : power === 1 ? "10" : `1e${power}`);

function chart({ result, set }) {
  const { width, height, left, right, top, bottom } = CHART,
    count = result.scale.length;
  const x = (i) => left + ((width - left - right) * (i + 0.5)) / count;
  const y = (value) => top + ((height - top - bottom) * (result.high - Math.log10(value))) / (result.high - result.low);
  const every = Math.ceil((result.high - result.low) / 8);
  const ticks = [];
  for (let power = result.high; power >= result.low; power -= every) ticks.push(power);
  const choose = (layer) => set({ layer: Math.max(1, Math.min(count, layer)) });
  const line = ([name]) => {
    let pen = "M";
    const d = result[name].map((value, i) => {
      if (!value) return (pen = "M"), "";
      const piece = `${pen}${x(i).toFixed(1)} ${y(value).toFixed(1)}`;
      return (pen = "L"), piece;
    });
    const chosen = result[name][result.at - 1];
    return [s("path", { class: `rt-line-${name}`, d: d.join("") }), chosen ? s("circle", { class: `rt-dot-${name}`, cx: x(result.at - 1), cy: y(chosen), r: 4 }) : ""];
  };
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", role: "img", "aria-label": `Three curves over ${count} layers. ${result.say}` },
    ticks.map((power) => [
      s("path", { class: "rt-gridline", d: `M${left} ${y(10 ** power)}H${width - right}` }),
      s("text", { class: "rt-axis", x: left - 5, y: y(10 ** power) + 4, "text-anchor": "end" }, powerText(power)),
    ]),
    s("path", { class: "rt-here", d: `M${x(result.at - 1)} ${top}V${height - bottom}` }),
    CURVES.map(line),
    [1, ...[10, 20, 30, 40, 50].filter((n) => n < count), count].map((n, i, all) =>
      n === all[i + 1] || (i < all.length - 1 && all.at(-1) - n < 3) ? "" : s("text", { class: "rt-axis", x: x(n - 1), y: height - 9, "text-anchor": "middle" }, String(n))),
  ); // prettier-ignore
  svg.addEventListener("click", (event) => {
    const box = svg.getBoundingClientRect();
    choose(Math.floor(((((event.clientX - box.left) / box.width) * width - left) / (width - left - right)) * count) + 1);
  });
  const text = `layer ${result.at}: ${CURVES.map(([name]) => `${name} ${shortNumber(result[name][result.at - 1])}`).join(", ")}`;
  return placeSlider(svg, { label: "layer", at: result.at, count, text, choose });
}

function values({ result }) {
  const row = ([name, words]) =>
    h("li", {}, s("svg", { viewBox: "0 0 30 10", width: 30, height: 10, "aria-hidden": "true" }, s("path", { class: `rt-line-${name}`, d: "M1 5H29" })), h("span", {}, words), h("b", {}, shortNumber(result[name][result.at - 1])));
  return h("div", { class: "rt-values" }, h("span", { class: "rt-dim" }, `layer ${result.at}`), h("ul", {}, CURVES.map(row)));
} // prettier-ignore

function chips({ inputs, set }) {
  const now = exactGain(inputs.gain);
  const chip = ([name, words]) =>
    h("button", {
      type: "button", class: "rt-chip", "data-focus": `gain-${name}`, "aria-pressed": String(NAMED[name] === now),
      onclick: () => set({ gain: Math.round(NAMED[name] * 1000) / 1000 }),
    }, words); // prettier-ignore
  return h("div", { class: "rt-chips", role: "group", "aria-label": "gains with a name" }, Object.entries(CHIPS).map(chip));
}

const draw = (parts) => [chips(parts), chart(parts), values(parts)];

export default { render: figure(model, draw) };
