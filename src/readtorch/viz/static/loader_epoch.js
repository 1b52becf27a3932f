// One epoch in virtual time: a lane for the training, one for each worker; a batch has its number and shade everywhere.

const LANES = { width: 700, left: 74, right: 8, row: 30, height: 22 };

function lanesOf(result) {
  const training = { name: "training", blocks: result.works, waits: result.waits };
  return [training, ...result.lanes.map((blocks, i) => ({ name: `worker ${i}`, blocks, waits: [] }))];
}

function chart({ result }) {
  const { width, left, right, row, height } = LANES,
    lanes = lanesOf(result),
    wide = (width - left - right) / Math.max(result.total, 1e-9),
    bottom = 8 + row * lanes.length;
  const x = (time) => left + wide * time;
  const block = ([start, end, batch], y, name) => {
    const room = (end - start) * wide;
    return [
      s("rect", { class: `rt-${name} rt-shade${batch % 4}`, x: x(start), y, width: Math.max(room, 0.7), height }, s("title", {}, `batch ${batch}: ${oneDigit(start)} to ${oneDigit(end)} ms`)),
      room > 13 ? s("text", { class: "rt-axis", x: x((start + end) / 2), y: y + 15, "text-anchor": "middle" }, String(batch)) : "",
    ];
  };
  const every = niceStep(result.total / 6),
    ticks = Array.from({ length: Math.floor(result.total / every) + 1 }, (_, i) => i * every);
  const words = lanes.map(({ name, blocks }) => `${name}: ${blocks.map(([, , batch]) => batch).join(", ") || "nothing"}`).join("; ");
  return h("div", { class: "rt-scrollx", tabindex: 0, role: "group", "aria-label": "lanes" },
    s("svg", { viewBox: `0 0 ${width} ${bottom + 22}`, width: "100%", role: "img", "aria-label": `Batches in the order of each lane. ${words}.` },
      ticks.map((time) => [
        s("path", { class: "rt-gridline", d: `M${x(time)} 4V${bottom}` }),
        s("text", { class: "rt-axis", x: x(time), y: bottom + 15, "text-anchor": x(time) > width - 40 ? "end" : "middle" }, `${time} ms`),
      ]),
      lanes.map(({ name, blocks, waits }, i) => {
        const y = 8 + row * i;
        return [
          s("text", { class: "rt-axis", x: left - 6, y: y + 15, "text-anchor": "end" }, name),
          waits.map(([start, end]) => s("rect", { class: "rt-wait", x: x(start), y: y + 7, width: Math.max((end - start) * wide, 0.7), height: height - 14 })),
          blocks.map((one) => block(one, y, i ? "fetch" : "work")),
        ];
      }),
    )); // prettier-ignore
}

function niceStep(wanted) {
  const power = 10 ** Math.floor(Math.log10(Math.max(wanted, 0.1)));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= wanted);
}

const key = (name, words) => h("li", {}, h("span", { class: `rt-key rt-${name}`, "aria-hidden": "true" }), words);

function facts({ result, inputs }) {
  const limit = inputs.workers * inputs.prefetch;
  const memory = inputs.workers ? `${Math.min(limit, inputs.batches)} batches are asked for ahead; at most ${result.ready} lie ready` : "nothing is fetched ahead";
  return h("div", { class: "rt-values" },
    h("ul", {}, key("work", "trains"), key("wait", "the training waits"), inputs.workers ? key("fetch", "a worker fetches") : ""),
    h("span", { class: "rt-dim" }, memory),
    h("span", {}, "order: ", h("code", {}, result.order.join(" "))),
  ); // prettier-ignore
}

const draw = (parts) => [chart(parts), facts(parts)];

export default { render: figure(model, draw) };
