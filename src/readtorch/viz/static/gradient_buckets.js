// One step of DDP: for each rank drawn a lane of what it computes and a lane of its all-reduces, each with its bucket's number.

const longEnough = ([begin, end], x, words) => x(end) - x(begin) > 9 * words.length + 4;

function named(x, y, one, words, kind) {
  const bar = laneBar(x, one, { class: `rt-gb-${kind}`, y, title: `${words.title}: ${msText(one[0])} to ${msText(one[1])}` });
  const label = longEnough(one, x, words.short) && s("text", { class: `rt-gb-on-${kind}`, x: (x(one[0]) + x(one[1])) / 2, y: y + 15, "text-anchor": "middle" }, words.short);
  return [bar, label];
} // prettier-ignore

const computingLane = (name, [begin, end], { forward }, n) => ({
  name,
  draw(x, y) {
    const one = (end - begin - forward) / n,
      start = begin + forward;
    const layers = countTo(n).map((i) => named(x, y, [start + i * one, start + (i + 1) * one], { short: `${n - 1 - i}`, title: `backward of layer ${n - 1 - i}` }, "backward"));
    return [named(x, y, [begin, start], { short: "forward", title: "forward" }, "forward"), layers];
  },
}); // prettier-ignore

const summingLane = (name, waits, { sums, buckets, bytes }) => ({
  name,
  draw(x, y) {
    const layers = (i) => `bucket ${i}, layers ${buckets[i].join(", ")}, ${volumeText(bytes[i])}`;
    return [
      waits.map((one, i) => one[1] > one[0] && laneBar(x, one, { class: "rt-gb-wait", y, title: `${layers(i)}: waits for the last rank` })),
      sums.map((one, i) => named(x, y, one, { short: `${i}`, title: layers(i) }, "sum")),
    ];
  },
}); // prettier-ignore

function chart({ result, inputs }) {
  const n = inputs.layers.length,
    who = result.computes.length > 1 ? ["rank 0", "last"] : ["a rank"];
  const lanes = result.computes.flatMap((computes, rank) => [
    computingLane(who[rank], computes, result, n),
    summingLane("sums", result.waits[rank], result),
  ]);
  return laneChart({ lanes, total: result.end, unit: "ms", words: `${result.buckets.length} buckets: a lane for what a rank computes, one for its all-reduces.` });
} // prettier-ignore

const KEYS = { "gb-forward": "forward", "gb-backward": "backward, with the layer's number", "gb-sum": "all-reduce, with the bucket's number", "gb-wait": "waits for the last rank" }; // prettier-ignore

function facts({ result }) {
  const present = Object.keys(KEYS).filter((key) => key !== "gb-wait" || result.computes.length > 1);
  return h("div", { class: "rt-values" }, h("ul", {}, present.map((key) => laneKey(key, KEYS[key]))));
}

const draw = (parts) => [chart(parts), facts(parts)];

export default { render: figure(model, draw) };
