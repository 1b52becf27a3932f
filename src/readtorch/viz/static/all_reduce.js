// An all-reduce: a row for each rank, with the ranks whose numbers are in each part; the messages of the round; and the time
// of each algorithm over the size.

const ROW = 30, TOP = 18, LEFT_OF = 74, WIDE = 220; // prettier-ignore
const CHART = { x: 50, y: 10, width: 250, height: 170 };

// ---- what the ranks hold

const middle = (rank) => TOP + rank * ROW + ROW / 2;

function cellOf(rank, part, mask, { n, parts, came }) {
  const width = WIDE / parts,
    whose = upTo(n).filter((r) => (mask >> r) & 1),
    full = whose.length === n;
  const kind = full ? "rt-ar-full" : whose.length > 1 ? "rt-ar-some" : "rt-ar-own";
  const x = LEFT_OF + part * width,
    words = whose.join(width > 9 * n ? "+" : "");
  return [
    s("rect", { class: `${kind}${came ? " rt-ar-came" : ""}`, x: x + 1, y: TOP + rank * ROW + 4, width: width - 2, height: ROW - 8 },
      s("title", {}, `rank ${rank}, part ${part}: the numbers of ${whose.join(", ")}`)),
    width > 6.2 * words.length + 4 && s("text", { class: `rt-ar-whose${full ? " rt-ar-on" : ""}`, x: x + width / 2, y: middle(rank) + 4 }, words),
  ]; // prettier-ignore
}

function arrow([source, target], i) {
  const [y1, y2] = [middle(source), middle(target)],
    bend = LEFT_OF - 14 - 7 * Math.min(6, Math.abs(source - target));
  return [
    s("path", { class: "rt-ar-arrow", d: `M${LEFT_OF - 4} ${y1}C${bend} ${y1} ${bend} ${y2} ${LEFT_OF - 6} ${y2 + (source < target ? -3 : 3)}` }),
    s("circle", { class: "rt-ar-head", cx: LEFT_OF - 5, cy: y2 + (source < target ? -3 : 3), r: 2.5 }),
  ]; // prettier-ignore
}

function holdings({ result, inputs, step }) {
  const n = inputs.ranks,
    { parts } = result,
    messages = step ? result.rounds[step - 1] : [];
  const came = new Set(messages.flatMap(([, target, first, count]) => upTo(count).map((i) => `${target},${first + i}`)));
  return s("svg", { class: "rt-ar", viewBox: `0 0 ${LEFT_OF + WIDE + 6} ${TOP + n * ROW + 4}`, role: "img", "aria-label": "What each rank holds" },
    s("text", { class: "rt-ar-tick", x: LEFT_OF, y: 12 }, parts > 1 ? "whose numbers are in each part" : "whose numbers are in it"),
    upTo(n).map((rank) => s("text", { class: "rt-ar-tick", x: 0, y: middle(rank) + 4 }, `rank ${rank}`)),
    messages.map(arrow),
    result.held[step].map((row, rank) => row.map((mask, part) => cellOf(rank, part, mask, { n, parts, came: came.has(`${rank},${part}`) }))),
  ); // prettier-ignore
}

// ---- time over size

function curves({ result, inputs }) {
  const times = Object.values(result.curves).flat();
  const low = Math.log10(Math.max(1e-3, Math.min(...times))),
    high = Math.max(low + 1, Math.log10(Math.max(...times)));
  const across = (power) => CHART.x + (CHART.width * (power - LEAST)) / (MOST - LEAST);
  const down = (us) => CHART.y + (CHART.height * (high - Math.log10(Math.max(us, 1e-3)))) / (high - low);
  const line = (name) => result.curves[name].map((us, i) => `${i ? "L" : "M"}${across(LEAST + i).toFixed(1)} ${down(us).toFixed(1)}`).join("");
  const here = across(Math.log2(Number(inputs.size)));
  const decades = upTo(Math.floor(high) - Math.ceil(low) + 1).map((i) => Math.ceil(low) + i);
  const rest = Object.keys(NAMES).filter((name) => name !== inputs.algorithm);
  return s("svg", { class: "rt-ar", viewBox: `0 0 ${CHART.x + CHART.width + 6} ${CHART.y + CHART.height + 42}`, role: "img", "aria-label": "Time over size" },
    decades.map((power) => [
      s("line", { class: "rt-ar-grid", x1: CHART.x, x2: CHART.x + CHART.width, y1: down(10 ** power), y2: down(10 ** power) }),
      (decades.length < 6 || power % 2 === 0) && s("text", { class: "rt-ar-tick rt-ar-end", x: CHART.x - 4, y: down(10 ** power) + 4 }, powerText(power)),
    ]),
    [[3, "8 B"], [10, "1 KiB"], [20, "1 MiB"], [30, "1 GiB"]].map(([power, words]) =>
      s("text", { class: `rt-ar-tick ${power === 30 ? "rt-ar-end" : "rt-ar-mid"}`, x: across(power), y: CHART.y + CHART.height + 14 }, words)),
    rest.map((name) => s("path", { class: "rt-ar-other", d: line(name) }, s("title", {}, NAMES[name]))),
    s("path", { class: "rt-ar-chosen", d: line(inputs.algorithm) }),
    s("line", { class: "rt-ar-here", x1: here, x2: here, y1: CHART.y, y2: CHART.y + CHART.height }),
    s("circle", { class: "rt-ar-point", cx: here, cy: down(result.totals[inputs.algorithm]), r: 4 }),
    s("text", { class: "rt-ar-tick", x: 4, y: CHART.y + CHART.height + 32 }, "bytes of each rank; thick: this algorithm"),
  ); // prettier-ignore
}

const powerText = (power) => {
  const [unit, name] = power >= 6 ? [6, " s"] : power >= 3 ? [3, " ms"] : [0, " µs"];
  return `${10 ** (power - unit)}${name}`;
};

const times = ({ result }) =>
  h("ul", { class: "rt-ar-times" },
    Object.keys(NAMES).map((name) => h("li", {}, `${NAMES[name]} `, h("b", {}, tookText(result.totals[name]))))); // prettier-ignore

const draw = (parts) => [times(parts), h("div", { class: "rt-ar-both" }, holdings(parts), curves(parts))];

export default { render: figure(model, draw) };
