// One training step in virtual time: a lane for the host, one for each device; sums of a ring run beside the work.

const PHASES = {
  launch: "the host launches", copy: "copies", forward: "forward", backward: "backward", sum: "sums of gradients", update: "updates",
}; // prettier-ignore

const oneDecimal = (number) => number.toLocaleString("en-US", { maximumFractionDigits: 1 });

function drawn([name, blocks, rings]) {
  const title = ([start, end, phase]) => `${name}: ${PHASES[phase]}, ${whole(start)} to ${whole(end)} µs`;
  const half = LANES.height / 2;
  const draw = (x, y) => [
    blocks.map((one) => laneBar(x, one, { class: `rt-${one[2]}`, y, height: rings.length ? half : LANES.height, title: title(one) })),
    rings.map((one) => laneBar(x, one, { class: "rt-sum", y: y + half, height: half, title: title(one) })),
  ];
  return { name, draw };
}

function chart({ result }) {
  const lanes = [["host", result.host, []], ...result.lanes.map((blocks, i) => [`device ${i}`, blocks, result.rings])];
  const computes = result.computes.map((share, i) => `device ${i} ${percent(share)}`).join(", ");
  return laneChart({ lanes: lanes.map(drawn), total: result.total, unit: "µs", words: `How much of the step each computes: ${computes}.` });
}

function facts({ result, inputs }) {
  const present = new Set([...result.host, ...result.lanes.flat(), ...result.rings].map(([, , phase]) => phase));
  return h("div", { class: "rt-values" },
    h("ul", {}, Object.keys(PHASES).filter((phase) => present.has(phase)).map((phase) => laneKey(phase, PHASES[phase]))),
    h("span", { class: "rt-dim" }, `${oneDecimal(result.bytes / 1e6)} MB of parameters`, inputs.strategy === "DataParallel" ? "" : "; each device has a host like this one"),
  ); // prettier-ignore
}

const draw = (parts) => [chart(parts), facts(parts)];

export default { render: figure(model, draw) };
