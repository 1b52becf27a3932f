// What one optimizer step launches and moves: as figures/step_costs.py.
const CHUNK = 65536;
const LIMITS = {
  12: [[110, 64, 48, 36, 30], [96, 64, 48, 36, 30], 320],
  13: [[770, 448, 336, 252, 210], [672, 448, 336, 252, 210], 2240],
}; // prettier-ignore
// [depth, whether each tensor brings a number, tensors read and written]
const MEANS = [[2, false, 3], [1, false, 2], [3, false, 3]]; // prettier-ignore
const UPDATE = [[2, false, 2], [1, true, 2], [1, false, 2], [3, true, 4]]; // prettier-ignore
const DECAY = [[1, false, 2]];
const LINES = {
  SGD: [[2, false, 3]],
  momentum: [[1, false, 2], [2, false, 3], [2, false, 3]],
  Adam: [...MEANS, ...UPDATE],
  AdamW: [...DECAY, ...MEANS, ...UPDATE],
  AMSGrad: [...DECAY, ...MEANS, [2, false, 3], ...UPDATE],
}; // prettier-ignore
const FUSED = { SGD: [2, 3], momentum: [3, 5], Adam: [4, 7], AdamW: [4, 7], AMSGrad: [5, 9] };
const COUNTED = ["Adam", "AdamW", "AMSGrad"];
const WORDS = { SGD: "SGD", momentum: "SGD, momentum", Adam: "Adam", AdamW: "AdamW", AMSGrad: "AdamW, amsgrad=True" };

function launches(tensors, numbers, depth, own, version) {
  const [plain, withNumber, maxBlocks] = LIMITS[version],
    maxTensors = (own ? withNumber : plain)[depth - 1],
    chunks = Math.ceil(numbers / CHUNK);
  let kernels = 0,
    inTable = 0,
    blocks = 0;
  for (let t = 0; t < tensors; t++) {
    inTable++;
    for (let chunk = 0; chunk < chunks; chunk++) {
      blocks++;
      const isLast = chunk === chunks - 1;
      if (blocks === maxBlocks || (isLast && inTable === maxTensors)) {
        kernels++;
        blocks = 0;
        inTable = isLast ? 0 : 1;
      }
    }
  }
  return kernels + (blocks > 0 ? 1 : 0);
}

function model(inputs) {
  const { optimizer, tensors, numbers, version } = inputs,
    lines = LINES[optimizer],
    [depth, fusedPasses] = FUSED[optimizer],
    counted = COUNTED.includes(optimizer) ? 1 : 0;
  const passes = lines.reduce((sum, line) => sum + line[2], 0),
    found = {};
  for (const [lists, own] of lines) found[[lists, own]] ??= launches(tensors, numbers, lists, own, version);
  const oneKernel = launches(tensors, numbers, depth, false, version) + (counted && launches(tensors, 1, 1, false, version));
  const total = 4 * tensors * numbers;
  const row = (way, kernels, moved, kept) => {
    const launching = kernels * inputs.launch,
      moving = moved / (inputs.speed * 1e6);
    return { way, kernels, moved, kept, launching, moving, waits: launching > moving ? "launching" : "moving bytes" };
  };
  const rows = [
    row("loop", lines.length * tensors, passes * total, 2 * 4 * numbers * counted),
    row("foreach", lines.reduce((sum, [lists, own]) => sum + found[[lists, own]], 0), passes * total, total * counted),
    row("fused", oneKernel, fusedPasses * total, 0),
  ]; // prettier-ignore
  const parts = rows.map((one) => `${one.way} ${commas(one.kernels)}, ${one.waits}`);
  const say = `${WORDS[optimizer]}, ${commas(tensors)} × ${commas(numbers)} numbers. Kernels launched, and what takes longer: ${parts.join("; ")}.`;
  return { rows, most: Math.max(...rows.map((one) => Math.max(one.launching, one.moving))), say };
}
