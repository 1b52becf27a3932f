// What a kernel can reach: the roofline of a chip, and the blocks that fit on a multiprocessor: as figures/roofline.py.
const CHIPS = {
  h100: { multiprocessors: 132, shared: 228, bandwidth: 3350, peak: { fma: 66.9, tf32: 494.7, bf16: 989.4 } },
  a100: { multiprocessors: 108, shared: 164, bandwidth: 2039, peak: { fma: 19.5, tf32: 156, bf16: 312 } },
};
const NAMES = { fma: "float32 units", tf32: "TF32 tensor cores", bf16: "bfloat16 tensor cores" };
const BYTES = { fma: 4, tf32: 4, bf16: 2 };
const PRODUCTS = ["matmul", "scores", "flash"]; // what tensor cores can do
const LATENCY = 0.6,
  WARP = 32,
  WARPS = 64,
  BLOCKS = 32,
  QUARTERS = 4,
  REGISTERS = 16384,
  MOST = 255,
  HEAD = 64,
  ROWS = 128;

const model = (inputs) => {
  const chip = CHIPS[inputs.chip];
  const units = PRODUCTS.includes(inputs.work) ? inputs.units : "fma",
    size = BYTES[units],
    [flops, bytes] = workCost(inputs.work, inputs.n, Number(inputs.tile), size),
    read = bytes - written(inputs.work, inputs.n, size);
  if (inputs.work === "matmul") resultsInRegisters(Number(inputs.tile), inputs.threads, inputs.registers);
  const [blocks, limit] = residentBlocks(inputs.threads, inputs.registers, inputs.shared, chip.shared);
  if (blocks === 0) refuse(`Not one block fits on a multiprocessor; limited by ${limit}.`);
  const warps = blocks * Math.ceil(inputs.threads / WARP),
    asked = (blocks * inputs.threads * Number(inputs.asked)) / 1024,
    needed = (((((chip.bandwidth * LATENCY) / chip.multiprocessors) * 1000) / 1024) * read) / bytes, // nobody waits for a store
    kept = Math.min(1, asked / needed),
    peak = chip.peak[units],
    moving = bytes / (chip.bandwidth * 1000) / kept,
    computing = flops / (peak * 1000000);
  const result = {
    flops, bytes, intensity: flops / bytes, ridge: (peak * 1000) / chip.bandwidth, peak, bandwidth: chip.bandwidth,
    kept, blocks, warps, limit, asked, needed, moving, computing,
    reached: flops / Math.max(moving, computing) / 1000000,
  }; // prettier-ignore
  return { ...result, say: rooflineSentence(result, inputs, NAMES[units]) };
};

// ---- the work

function workCost(work, n, tile, size) {
  if (work === "add") return [n * n, 3 * n * n * size];
  if (work === "softmax") return [5 * n * n, 2 * n * n * size];
  if (work === "matmul") return [2 * n * n * n, (2 * n * n * Math.ceil(n / tile) + n * n) * size];
  const operations = 4 * n * n * HEAD + 5 * n * n;
  if (work === "scores") return [operations, (4 * n * HEAD + 4 * n * n) * size];
  return [operations, (2 * n * HEAD + 2 * n * HEAD * Math.ceil(n / ROWS)) * size];
}

function written(work, n, size) {
  if (work === "scores") return (n * HEAD + 2 * n * n) * size;
  return (work === "flash" ? n * HEAD : n * n) * size;
}

// ---- what fits on a multiprocessor

function resultsInRegisters(tile, threads, registers) {
  const each = Math.ceil((tile * tile) / threads);
  const advice = each < MOST ? `give it about ${Math.min(2 * each, MOST)}` : `no thread has more than ${MOST}`;
  if (each >= registers)
    refuse(`${tile} × ${tile} results are ${commas(each)} for each of ${threads} threads, too many for its ${registers} registers: ${advice}.`);
}

function residentBlocks(threads, registers, shared, memory) {
  const warps = Math.ceil(threads / WARP),
    ofAWarp = Math.ceil((WARP * registers) / 256) * 256;
  const limits = [
    [BLOCKS, "places for blocks"],
    [Math.floor(WARPS / warps), "places for warps"],
    [Math.floor((QUARTERS * Math.floor(REGISTERS / ofAWarp)) / warps), "registers"],
    [Math.floor(memory / (shared + 1)), "shared memory"],
  ];
  return limits.reduce((least, limit) => (limit[0] < least[0] ? limit : least));
}

// ---- words

// What the kernel waits for. With too little in flight memory is slow because it is asked too late.
function boundBy({ moving, computing, kept }) {
  if (moving < computing) return "arithmetic";
  return kept === 1 ? "memory" : "latency";
}

function rooflineSentence(result, inputs, units) {
  const slower = Math.max(result.moving, result.computing);
  const waits = result.kept === 1 ? "enough to keep memory busy" : `too few, ${shortText(result.needed)} would keep memory busy`;
  const blocks = `${commas(result.blocks)} block${result.blocks === 1 ? "" : "s"}`;
  return (
    `${shortText(result.intensity)} operations a byte; the corner lies at ${shortText(result.ridge)}. ` +
    `${blocks} of ${inputs.threads} threads ${result.blocks === 1 ? "fits" : "fit"} on a multiprocessor, ${result.warps} of ${WARPS} warps ` +
    `(${shareText(result.warps / WARPS)}), limited by ${result.limit}. They ask for ${shortText(result.asked)} KiB at once: ${waits}. ` +
    `If every byte comes from memory: ${durationText(slower)}, bound by ${boundBy(result)}: ${shortText(result.reached)} TFLOP/s, ${shareText(result.reached / result.peak)} of the ${units}.`
  );
}

function shortText(x) {
  if (x >= 100) return commas(Math.floor(x + 0.5));
  const [unit, places] = x >= 10 ? [10, 1] : [100, 2],
    parts = Math.floor(unit * x + 0.5);
  return `${Math.floor(parts / unit)}.${String(parts % unit).padStart(places, "0")}`;
}

const durationText = (us) =>
  us >= 1000 ? `${shortText(us / 1000)} ms` : us >= 0.1 ? `${shortText(us)} µs` : `${shortText(us * 1000)} ns`;
const shareText = (share) => (share > 0 && share < 0.005 ? "under 1 %" : `${Math.floor(100 * share + 0.5 + 1e-9)} %`);
