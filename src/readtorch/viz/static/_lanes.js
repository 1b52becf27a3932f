// A chart of lanes over a common time: a name, blocks and whatever else stands in the lane.

const LANES = { width: 700, left: 92, right: 8, row: 30, height: 22 };

function niceStep(wanted) {
  const power = 10 ** Math.floor(Math.log10(Math.max(wanted, 0.1)));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= wanted);
}

/** lanes: [{ name, draw(x, y) }], total and unit of the time, words for readers of the screen. */
function laneChart({ lanes, total, unit, words }) {
  const { width, left, right, row } = LANES,
    wide = (width - left - right) / Math.max(total, 1e-9),
    bottom = 8 + row * lanes.length,
    every = niceStep(total / 6),
    ticks = Array.from({ length: Math.floor(total / every) + 1 }, (_, i) => i * every);
  const x = (time) => left + wide * time;
  const anchor = (time) => (x(time) > width - 40 ? "end" : "middle");
  return h("div", { class: "rt-scrollx", tabindex: 0, role: "group", "aria-label": "lanes" },
    s("svg", { viewBox: `0 0 ${width} ${bottom + 22}`, width: "100%", role: "img", "aria-label": words },
      ticks.map((time) => [
        s("path", { class: "rt-gridline", d: `M${x(time)} 4V${bottom}` }),
        s("text", { class: "rt-axis", x: x(time), y: bottom + 15, "text-anchor": anchor(time) }, `${commas(time)} ${unit}`),
      ]),
      lanes.map(({ name, draw }, i) => {
        const y = 8 + row * i;
        return [s("text", { class: "rt-axis", x: left - 6, y: y + 15, "text-anchor": "end" }, name), draw(x, y)];
      }),
    )); // prettier-ignore
}

/** A bar of at least a hair's width, with a name that a pointer shows. */
const laneBar = (x, [start, end], { y, height = LANES.height, title, ...rest }) =>
  s("rect", { x: x(start), y, width: Math.max(x(end) - x(start), 0.7), height, ...rest }, title ? s("title", {}, title) : "");

const laneKey = (name, words) => h("li", {}, h("span", { class: `rt-key rt-${name}`, "aria-hidden": "true" }), words);
