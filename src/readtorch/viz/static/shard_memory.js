// What a rank holds over a step: the curve in six bands, and below it the most that each strategy needs.

// In a narrow window the drawing is half as wide, so that its words stay as large.
const SHARD_WIDE = { left: 60, right: 692, top: 8, bottom: 190 },
  SHARD_NARROW = { left: 63, right: 352, top: 8, bottom: 190 };

function shardBands(points, most, { left, right, top, bottom }) {
  const wide = (right - left) / points.length,
    base = points.map(() => 0);
  const y = (bytes) => (bottom - ((bottom - top) * bytes) / most).toFixed(1);
  return Object.keys(BANDS).map((band) => {
    const low = base.slice();
    points.forEach((point, i) => (base[i] += point[band]));
    const upper = points.map((_, i) => `${left + wide * i} ${y(base[i])}L${left + wide * (i + 1)} ${y(base[i])}`),
      lower = points.map((_, i) => `${left + wide * (i + 1)} ${y(low[i])}L${left + wide * i} ${y(low[i])}`).reverse();
    return s("path", { class: `rt-sh-${band}`, d: `M${upper.join("L")}L${lower.join("L")}Z` });
  });
}

// A column over each moment, which says what is there.
function shardMoments(points, { left, right, top, bottom }) {
  const wide = (right - left) / points.length;
  const words = (point) => Object.keys(BANDS).filter((band) => point[band]).map((band) => `${BANDS[band]} ${amount(point[band])}`); // prettier-ignore
  return points.map((point, i) =>
    s("rect", { class: "rt-sh-moment", x: left + wide * i, y: top, width: wide, height: bottom - top },
      s("title", {}, `${point.name}: ${amount(total(point))}. ${words(point).join(", ")}`))); // prettier-ignore
}

function shardCurve({ result, inputs }, box, looks) {
  const { points, limit } = result,
    highest = Math.max(...points.map(total)),
    most = Math.max(highest, limit < 2 * highest ? limit : 0) * 1.04,
    { left, right, top, bottom } = box;
  const y = (bytes) => bottom - ((bottom - top) * bytes) / most,
    middle = left + ((right - left) * (1.5 + inputs.blocks)) / points.length;
  return s("svg", { class: `rt-sh ${looks}`, viewBox: `0 0 ${right + 8} 212`, role: "img", "aria-label": "memory of a rank over a step" },
    shardBands(points, most, box),
    [0, highest].map((bytes) => s("text", { class: "rt-rf-tick rt-rf-end", x: left - 5, y: y(bytes) + 4 }, bytes ? amount(bytes) : "0")),
    limit < most ? [s("line", { class: "rt-sh-limit", x1: left, x2: right, y1: y(limit), y2: y(limit) }), s("text", { class: "rt-rf-tick", x: left + 4, y: y(limit) + 12 }, "the device")] : "",
    s("line", { class: "rt-rf-grid", x1: middle, x2: middle, y1: top, y2: bottom }),
    s("text", { class: "rt-rf-tick rt-rf-mid", x: (left + middle) / 2, y: bottom + 14 }, "forward"),
    s("text", { class: "rt-rf-tick rt-rf-mid", x: (right + middle) / 2, y: bottom + 14 }, "backward"),
    shardMoments(points, box)); // prettier-ignore
}

const shardKey = () => h("ul", { class: "rt-sh-key" }, Object.entries(BANDS).map(([band, words]) => h("li", {}, h("span", { class: `rt-key rt-sh-${band}`, "aria-hidden": "true" }), words))); // prettier-ignore

function shardPeaks({ result, inputs, set }) {
  const most = Math.max(...result.peaks.map(([, bytes]) => bytes));
  return h("div", { class: "rt-sh-peaks", role: "group", "aria-label": "the most that each strategy needs" },
    result.peaks.map(([name, bytes]) => h("button", {
      type: "button", class: name === inputs.strategy ? "rt-is-pick" : "", "aria-pressed": String(name === inputs.strategy),
      "data-focus": `strategy-${name}`, onclick: () => set({ strategy: name }),
    }, h("span", {}, WORDS[name]), h("i", { "aria-hidden": "true" }, h("b", { style: `width:${((100 * bytes) / most).toFixed(1)}%` })), h("span", {}, amount(bytes))))); // prettier-ignore
}

const draw = (parts) => [shardCurve(parts, SHARD_WIDE, "rt-sh-wide"), shardCurve(parts, SHARD_NARROW, "rt-sh-narrow"), shardKey(), shardPeaks(parts)];

export default { render: figure(model, draw) };
