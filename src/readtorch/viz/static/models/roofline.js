// What a kernel can reach: the roofline of a chip, and the blocks that fit on a multiprocessor: as figures/roofline.py.
const CHIPS = {
  h100: { multiprocessors: 132, shared: 228, bandwidth: 3350, peak: { fma: 66.9, tf32: 494.7, bf16: 989.4 } },
  a100: { multiprocessors: 108, shared: 164, bandwidth: 2039, peak: { fma: 19.5, tf32: 156, bf16: 312 } },
};
const NAMES = { fma: "float32 units", tf32: "TF32 tensor cores", bf16: "bfloat16 tensor cores" };
const BYTES = { fma: 4, tf32: 4, bf16: 2, float32: 4, bfloat16: 2 };
const PRODUCTS = ["matmul", "scores", "flash"]; // what tensor cores can do
const LATENCY = 0.6,
  SHORTEST = 2,
  WARP = 32,
  WARPS = 64,
  BLOCKS = 32,
  QUARTERS = 4,
  REGISTERS = 16384,
  MOST = 255,
  HEAD = 64,
  ROWS = 128,
  DEEP = 16;

const model = (inputs) => {
  const chip = CHIPS[inputs.chip];
  const units = PRODUCTS.includes(inputs.work) ? inputs.units : "fma",
    size = BYTES[PRODUCTS.includes(inputs.work) ? units : inputs.dtype],
    [flops, bytes] = workCost(inputs.work, inputs.n, Number(inputs.tile), size),
    read = bytes - written(inputs.work, inputs.n, size);
  if (inputs.work === "matmul") resultsInRegisters(Number(inputs.tile), inputs.threads, inputs.registers);
  const shared = Math.max(inputs.shared, forTiles(inputs.work, Number(inputs.tile), size));
  let [blocks, limit] = residentBlocks(inputs.threads, inputs.registers, shared, chip.shared);
  if (blocks === 0) refuse(`Not one block fits on a multiprocessor; limited by ${limit}.`);
  const grid = gridOf(inputs.work, inputs.n, Number(inputs.tile), inputs.threads),
    busiest = Math.ceil(grid / chip.multiprocessors), // blocks of one multiprocessor, one after the other or together
    idle = grid ? (busiest * chip.multiprocessors) / grid : 1; // how many times as long, since some have fewer
  if (grid && busiest < blocks) [blocks, limit] = [busiest, "the number of blocks"];
  const warps = blocks * Math.ceil(inputs.threads / WARP),
    asked = (blocks * inputs.threads * Number(inputs.asked)) / 1024,
    needed = ((((((chip.bandwidth * LATENCY) / chip.multiprocessors) * 1000) / 1024) * read) / bytes) * idle, // nobody waits for a store
    kept = Math.min(1, asked / needed),
    peak = chip.peak[units],
    alone = bytes / (chip.bandwidth * 1000),
    computing = (flops / (peak * 1000000)) * idle,
    limits = { memory: alone, latency: (alone * needed) / asked, arithmetic: computing, launch: SHORTEST },
    slowest = Math.max(...Object.values(limits));
  const result = {
    flops, bytes, intensity: flops / bytes, ridge: (peak * 1000) / chip.bandwidth, peak, bandwidth: chip.bandwidth,
    kept, blocks, warps, shared, grid, busiest, idle, limit, asked, needed, moving: alone / kept, computing,
    reached: flops / slowest / 1000000, limits, bound: Object.keys(limits).find((name) => limits[name] === slowest),
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

// How many blocks a product has; 0: not counted, as of work that takes any number of blocks, or of many heads.
function gridOf(work, n, tile, threads) {
  if (work !== "matmul") return 0;
  return tile === 1 ? Math.ceil((n * n) / threads) : Math.ceil(n / tile) ** 2;
}

// KiB of shared memory that a block needs for a tile of each matrix, DEEP numbers along the sum.
const forTiles = (work, tile, size) => (work === "matmul" && tile > 1 ? Math.ceil((2 * tile * DEEP * size) / 1024) : 0);

function written(work, n, size) {
  if (work === "scores") return (n * HEAD + 2 * n * n) * size;
  return (work === "flash" ? n * HEAD : n * n) * size;
}

// ---- what fits on a multiprocessor

function resultsInRegisters(tile, threads, registers) {
  const each = Math.ceil((tile * tile) / threads);
  const advice =
    each < MOST ? `give it about ${Math.min(2 * each, MOST)}` : `no thread has more than ${MOST}, so take more threads`;
  if (tile * tile >= QUARTERS * REGISTERS)
    refuse(
      `${tile} × ${tile} results are ${commas(tile * tile)}, as many as a multiprocessor has registers: whatever the number of threads, none is left for anything else.`,
    );
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

function rooflineSentence(result, inputs, units) {
  const why = result.bound === "launch" ? "as long as the shortest kernel" : `bound by ${result.bound}`;
  const waits = result.kept === 1 ? "enough to keep memory busy" : `too few, ${shortText(result.needed)} would keep memory busy`;
  const blocks = `${commas(result.blocks)} block${result.blocks === 1 ? "" : "s"}`;
  const memory = result.shared ? ` and ${result.shared} KiB of shared memory` : "";
  return (
    `${durationText(result.limits[result.bound])}, ${why}: ${shortText(result.reached)} TFLOP/s, ${shareText(result.reached / result.peak)} of the ${units}, if every byte comes from memory. ` +
    `${shortText(result.intensity)} operations a byte; the corner lies at ${shortText(result.ridge)}. ` +
    `${blocks} of ${inputs.threads} threads${memory} at a time on a multiprocessor, ${result.warps} of ${WARPS} warps ` +
    `(${shareText(result.warps / WARPS)}), limited by ${result.limit}. ${fillingText(result)}They ask for ${shortText(result.asked)} KiB at once: ${waits}.`
  );
}

// How well a product's blocks fill the chip.
function fillingText({ grid, busiest, idle }) {
  if (!grid) return "";
  return `${commas(grid)} block${grid === 1 ? "" : "s"} in all, at most ${commas(busiest)} for a multiprocessor: ${shareText(1 / idle)} of the chip has work. `;
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
