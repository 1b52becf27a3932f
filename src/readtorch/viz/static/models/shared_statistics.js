// Which numbers of a batch share a mean and a deviation: as figures/shared_statistics.py.
const SAMPLES = 3,
  CHANNELS = 4,
  PLACES = 3;
const NAMES = { batch: "BatchNorm1d(4)", instance: "InstanceNorm1d(4)", group: "GroupNorm(groups, 4)", layer: "LayerNorm([4, 3])", last: "LayerNorm(3)", rms: "RMSNorm([4, 3])" };
const WEIGHTS = { batch: "(4)", instance: "none", group: "(4)", layer: "(4, 3)", last: "(3)", rms: "(4, 3)" };

function statistic(layer, groups, cell) {
  const sample = Math.floor(cell / (CHANNELS * PLACES)),
    channel = Math.floor(cell / PLACES) % CHANNELS;
  if (layer === "batch") return channel;
  if (layer === "group") return sample * groups + Math.floor((channel * groups) / CHANNELS);
  return layer === "layer" || layer === "rms" ? sample : sample * CHANNELS + channel;
}

function model({ layer, groups, cell }) {
  const numbers = Array.from({ length: SAMPLES * CHANNELS * PLACES }, (_, i) => statistic(layer, Number(groups), i));
  const shared = numbers.map((number) => number === numbers[cell]);
  const count = shared.filter(Boolean).length,
    rms = layer === "rms";
  return {
    shared,
    facts: [
      ["statistics", `${Math.max(...numbers) + 1}, each of ${count} numbers`],
      [rms ? "weight alone" : "weight and bias", WEIGHTS[layer]],
      ["buffers", layer === "batch" ? "running_mean (4), running_var (4), num_batches_tracked ()" : "none"],
    ],
    say: `${NAMES[layer].replace("groups", groups)}: the number shares its ${rms ? "mean square" : "mean and variance"} with ${count - 1} others.`,
  };
}
