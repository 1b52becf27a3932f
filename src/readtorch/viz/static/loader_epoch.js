// One epoch in virtual time: a lane for the training, one for each worker; a batch has its number everywhere.

function lanesOf(result) {
  const training = { name: "training", blocks: result.works, waits: result.waits };
  return [training, ...result.lanes.map((blocks, i) => ({ name: `worker ${i}`, blocks, waits: [] }))];
}

function drawn({ name, blocks, waits }) {
  const kind = name === "training" ? "work" : "fetch";
  const draw = (x, y) => [
    waits.map((one) => laneBar(x, one, { class: "rt-wait", y: y + 7, height: LANES.height - 14 })),
    blocks.map(([start, end, batch]) => [
      laneBar(x, [start, end], { class: `rt-${kind}`, y, title: `batch ${batch}: ${oneDigit(start)} to ${oneDigit(end)} ms` }),
      x(end) - x(start) > 13 ? s("text", { class: "rt-axis", x: x((start + end) / 2), y: y + 15, "text-anchor": "middle" }, String(batch)) : "",
    ]),
  ];
  return { name, draw };
}

function chart({ result }) {
  const lanes = lanesOf(result),
    words = lanes.map(({ name, blocks }) => `${name}: ${blocks.map(([, , batch]) => batch).join(", ") || "nothing"}`).join("; ");
  return laneChart({ lanes: lanes.map(drawn), total: result.total, unit: "ms", words: `Batches in the order of each lane. ${words}.` });
}

function facts({ result, inputs }) {
  const limit = inputs.workers * inputs.prefetch;
  const ahead = Math.min(limit, inputs.batches);
  const memory = inputs.workers ? `${ahead} batch${ahead === 1 ? " is" : "es are"} asked for ahead; at most ${result.ready} lie ready` : "nothing is fetched ahead";
  return h("div", { class: "rt-values" },
    h("ul", {}, laneKey("work", "trains"), laneKey("wait", "the training waits"), inputs.workers ? laneKey("fetch", "a worker fetches") : ""),
    h("span", { class: "rt-dim" }, memory),
    h("span", {}, "order: ", h("code", {}, result.order.join(" "))),
  ); // prettier-ignore
}

const draw = (parts) => [chart(parts), facts(parts)];

export default { render: figure(model, draw) };
