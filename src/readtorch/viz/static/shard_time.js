// The streams of a rank over a step: a lane for each; in the lane that computes, what it waits for.

const STREAMS = { compute: "compute", copy_in: "copy in", gather: "gather", reduce: "scatter" };
const DOES = {
  forward: "forward", backward: "backward", copy: "copies", gather: "all-gather", reduce: "reduce-scatter",
  late: "waits for a collective",
}; // prettier-ignore

const kindOf = (kind) => (kind.startsWith("late") ? "late" : kind);

function shardBar(x, y, lane, [start, end, kind, group], groups) {
  const what = `${STREAMS[lane]}: ${DOES[kindOf(kind)]}${group < groups ? ` of group ${group + 1}` : ""}, ${amount(start)} to ${amount(end)}`,
    wide = x(end) - x(start),
    named = kind !== "copy" && group < groups && wide > 18;
  return [
    laneBar(x, [start, end], { class: `rt-st-${kindOf(kind)}`, y, title: what }),
    named ? s("text", { class: `rt-st-name rt-st-on-${kindOf(kind)}`, x: (x(start) + x(end)) / 2, y: y + 15, "text-anchor": "middle" }, group + 1) : "",
  ]; // prettier-ignore
}

function chart({ result }) {
  const lanes = Object.keys(STREAMS).map((lane) => ({
    name: STREAMS[lane],
    draw: (x, y) => result.lanes[lane].map((block) => shardBar(x, y, lane, block, result.groups)),
  }));
  const inMs = result.total >= 1000;
  const scaled = inMs ? lanes.map(({ name, draw }) => ({ name, draw: (x, y) => draw((time) => x(time / 1000), y) })) : lanes;
  return laneChart({ lanes: scaled, total: inMs ? result.total / 1000 : result.total, unit: inMs ? "ms" : "µs", words: "what each stream does over the step" });
}

const facts = () => h("div", { class: "rt-values" }, h("ul", {}, Object.keys(DOES).map((kind) => laneKey(`st-${kind}`, DOES[kind])))); // prettier-ignore

const draw = (parts) => [chart(parts), facts()];

export default { render: figure(model, draw) };
