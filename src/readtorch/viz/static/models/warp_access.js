// What a warp asks of memory: sectors of 32 bytes, turns of 32 banks: as figures/warp_access.py.
const WARP = 32,
  SECTOR = 32, // bytes
  BANKS = 32,
  WORD = 4,
  ROW = BANKS * WORD,
  MOST_THREADS = 1024;

const some = (n, word) => `${commas(n)} ${word}${n === 1 ? "" : "s"}`;
const percentOf = (share) => `${Math.floor(100 * share + 0.5 + 1e-9)} %`;

const model = (inputs) => {
  const threads = inputs.across * inputs.down,
    size = Number(inputs.size);
  if (threads > MOST_THREADS) refuse(`That is a block of ${commas(threads)} threads; a GPU allows ${commas(MOST_THREADS)}.`);
  const warps = Math.ceil(threads / WARP),
    warp = Math.min(inputs.warp, warps - 1);
  const ofWarps = Array.from({ length: warps }, (_, one) => lanesOfWarp(inputs, one, threads, size));
  const lanes = ofWarps[warp],
    costs = ofWarps.map((addresses) => costOf(addresses, size));
  const [sectors, least, turns] = [0, 1, 2].map((i) => costs.reduce((sum, cost) => sum + cost[i], 0));
  const different = ofWarps.reduce((sum, addresses) => sum + new Set(addresses).size, 0);
  const result = {
    warps, warp, lanes, lines: linesOf(lanes, size), banks: wordsInBanks(lanes, size),
    sectors: costs[warp][0], least: costs[warp][1], turns: costs[warp][2], leastTurns: costs[warp][3],
    all: { sectors, least, turns }, used: (different * size) / (sectors * SECTOR),
  }; // prettier-ignore
  return { ...result, say: accessSentence(result, size) };
};

// ---- addresses

const lanesOfWarp = (inputs, warp, threads, size) =>
  Array.from({ length: Math.min(WARP, threads - WARP * warp) }, (_, lane) => addressOf(inputs, WARP * warp + lane) * size);

function addressOf({ pattern, across, stride, pitch, shift }, thread) {
  const ty = Math.floor(thread / across),
    tx = thread % across;
  return shift + (pattern === "line" ? stride * thread : pattern === "rows" ? pitch * ty + tx : pitch * tx + ty);
}

// ---- costs

function unitsOf(addresses, size, unit) {
  const found = new Set();
  for (const address of addresses) {
    const last = Math.floor((address + size - 1) / unit);
    for (let u = Math.floor(address / unit); u <= last; u++) found.add(u);
  }
  return [...found].sort((a, b) => a - b);
}

function costOf(addresses, size) {
  const least = Math.ceil((new Set(addresses).size * size) / SECTOR);
  const together = Math.max(1, Math.floor(ROW / Math.max(size, WORD)));
  let turns = 0;
  for (let i = 0; i < addresses.length; i += together) turns += Math.max(...wordsInBanks(addresses.slice(i, i + together), size));
  return [unitsOf(addresses, size, SECTOR).length, least, turns, Math.ceil(addresses.length / together)];
}

function wordsInBanks(addresses, size) {
  const counts = Array(BANKS).fill(0);
  for (const word of unitsOf(addresses, size, WORD)) counts[word % BANKS]++;
  return counts;
}

function linesOf(addresses, size) {
  const lines = new Map();
  for (const word of unitsOf(addresses, size, WORD)) {
    const number = Math.floor(word / BANKS);
    lines.set(number, [...(lines.get(number) ?? []), word % BANKS]);
  }
  return [...lines];
}

// ---- words

function accessSentence({ lanes, warp, warps, sectors, least, turns, leastTurns, used, all }, size) {
  const fewest = sectors === least ? "as few as can be" : `${least} would do`;
  const banks = `${some(turns, "turn")}, ${turns === leastTurns ? "no" : "a"} bank conflict`;
  return (
    `Warp ${warp} of ${warps} asks for ${some(lanes.length, "element")} of ${some(size, "byte")}: from global memory ${some(sectors, "sector")} of ${SECTOR} bytes, ${fewest}; ` +
    `from shared memory ${banks}. The whole block moves ${commas(all.sectors * SECTOR)} bytes and uses ${percentOf(used)} of them; ` +
    `its shared accesses take ${some(all.turns, "turn")}.`
  );
}
