// Five ways down: shades of the loss, a path for each optimizer with a colour and a dash of its own, and the start to drag.

const FRAME = { width: 640, height: 340, left: 34, right: 10, top: 8, bottom: 24 },
  ACROSS = [-2, 2],
  DOWN = [-1, 3],
  CELLS = [48, 32];

const part = (value, [low, high]) => Math.max(-9, Math.min(10, (value - low) / (high - low)));
const placeX = (x) => FRAME.left + part(x, ACROSS) * (FRAME.width - FRAME.left - FRAME.right);
const placeY = (y) => FRAME.top + (1 - part(y, DOWN)) * (FRAME.height - FRAME.top - FRAME.bottom);

// One rectangle a cell, the darker the lower: a step of shade is a factor of four.
function shades(surface) {
  const { loss } = SURFACES[surface],
    [columns, rows] = CELLS;
  const wide = (ACROSS[1] - ACROSS[0]) / columns,
    high = (DOWN[1] - DOWN[0]) / rows;
  const levels = Array.from({ length: 7 }, () => "");
  for (let i = 0; i < columns; i++)
    for (let j = 0; j < rows; j++) {
      const x = ACROSS[0] + wide * i,
        y = DOWN[0] + high * j;
      const level = Math.max(0, Math.min(6, Math.floor(5 - Math.log(Math.max(loss(x + wide / 2, y + high / 2), 1e-9)) / Math.log(4))));
      const [left, top, right, bottom] = [placeX(x), placeY(y + high), placeX(x + wide), placeY(y)].map((v) => v.toFixed(1));
      levels[level] += `M${left} ${top}H${right}V${bottom}H${left}z`;
    }
  return levels.map((d, level) => s("path", { class: "rt-shade", "fill-opacity": (0.04 * level).toFixed(2), d }));
}

const kindOf = (name) => Object.keys(OPTIMIZERS).indexOf(name);

function chart({ result, inputs, set }) {
  const clip = uniqueId("clip"),
    { width, height, left, right, top, bottom } = FRAME;
  const way = ({ name, points, loss }) => {
    const [x, y] = points.at(-1);
    return [
      s("path", { class: `rt-way rt-way${kindOf(name)}`, d: points.map((p, i) => `${i ? "L" : "M"}${placeX(p[0]).toFixed(1)} ${placeY(p[1]).toFixed(1)}`).join("") }),
      loss === null ? "" : s("circle", { class: `rt-end rt-way${kindOf(name)}`, cx: placeX(x), cy: placeY(y), r: 4 }),
    ];
  };
  const cross = ([x, y]) => s("path", { class: "rt-minimum", d: `M${placeX(x) - 6} ${placeY(y)}h12M${placeX(x)} ${placeY(y) - 6}v12` });
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", role: "img", "aria-label": `Paths on a surface. ${result.say}` },
    s("clipPath", { id: clip }, s("rect", { x: left, y: top, width: width - left - right, height: height - top - bottom })),
    shades(inputs.surface),
    [-2, -1, 0, 1, 2].map((x) => s("text", { class: "rt-axis", x: placeX(x), y: height - 7, "text-anchor": "middle" }, String(x))),
    [-1, 0, 1, 2, 3].map((y) => s("text", { class: "rt-axis", x: left - 5, y: placeY(y) + 4, "text-anchor": "end" }, String(y))),
    s("g", { "clip-path": `url(#${clip})` }, result.minima.map(cross), result.paths.map(way)),
    s("circle", { class: "rt-start", cx: placeX(inputs.x), cy: placeY(inputs.y), r: 7 }),
  ); // prettier-ignore
  const follow = (event) => {
    const box = svg.getBoundingClientRect();
    const at = (offset, size, length, [low, high], before, after) => low + (((offset / size) * length - before) / (length - before - after)) * (high - low);
    const x = at(event.clientX - box.left, box.width, width, ACROSS, left, right),
      y = DOWN[0] + DOWN[1] - at(event.clientY - box.top, box.height, height, DOWN, top, bottom);
    const within = (value, [low, high]) => Math.round(20 * Math.max(low, Math.min(high, value))) / 20;
    set({ x: within(x, ACROSS), y: within(y, DOWN) });
  };
  svg.addEventListener("pointerdown", follow);
  svg.addEventListener("pointermove", (event) => event.buttons === 1 && follow(event));
  return h("div", { class: "rt-chart" }, svg);
}

function values({ result }) {
  const row = (one) =>
    h("li", {},
      s("svg", { viewBox: "0 0 30 10", width: 30, height: 10, "aria-hidden": "true" }, s("path", { class: `rt-way rt-way${kindOf(one.name)}`, d: "M1 5H29" })),
      h("span", {}, one.name, " ", h("code", {}, `lr=${Number(one.rate.toPrecision(3))}`)),
      h("b", {}, one.loss === null ? "diverged" : one.arrived ? `step ${one.arrived}` : `loss ${Number(one.loss.toPrecision(2))}`),
    ); // prettier-ignore
  return h("ul", { class: "rt-values" }, result.paths.map(row));
}

const draw = (parts) => [chart(parts), values(parts)];

export default { render: figure(model, draw) };
