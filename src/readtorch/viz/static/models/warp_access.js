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
    warps, warp, lanes, lines: linesOf(lanes, size), banks: partsOf(lanes, size).map((part) => wordsInBanks(part, size)),
    sectors: costs[warp][0], least: costs[warp][1], turns: costs[warp][2], leastTurns: costs[warp][3],
    all: { sectors, least, turns }, different: new Set(ofWarps.flatMap((addresses) => unitsOf(addresses, size, SECTOR))).size,
    used: (different * size) / (sectors * SECTOR),
  }; // prettier-ignore
  return { ...result, memory: inputs.memory, say: accessSentence(result, inputs.memory, size) + beyondText(inputs) };
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
  const parts = partsOf(addresses, size);
  const turns = parts.reduce((sum, part) => sum + Math.max(...wordsInBanks(part, size)), 0);
  return [unitsOf(addresses, size, SECTOR).length, least, turns, parts.length];
}

// The lanes that the banks serve at once: a warp, of 8 bytes each half a warp, of 16 a quarter.
function partsOf(addresses, size) {
  const together = Math.max(1, Math.floor(ROW / Math.max(size, WORD)));
  return Array.from({ length: Math.ceil(addresses.length / together) }, (_, i) => addresses.slice(together * i, together * (i + 1)));
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

function accessSentence(result, memory, size) {
  const asks = `Warp ${result.warp} of ${result.warps} asks for ${some(result.lanes.length, "element")} of ${some(size, "byte")}: `;
  return asks + (memory === "global" ? sectorsText(result) : turnsText(result));
}

// A word on an index that leaves its row.
function beyondText({ pattern, across, down, shift, pitch }) {
  const last = shift + (pattern === "rows" ? across : down) - 1;
  if (pattern === "line" || last < pitch) return "";
  return ` (The second index goes up to ${last}, and a row has ${pitch}: it runs on into the next row.)`;
}

const turnsText = ({ turns, leastTurns, all }) =>
  `${some(turns, "turn")}, ${turns === leastTurns ? "no" : "a"} bank conflict. The accesses of the block take ${some(all.turns, "turn")}.`;

function sectorsText({ sectors, least, different, used, all }) {
  const fewest = sectors === least ? "as few as can be" : `${least} would do`;
  const apart = different === all.sectors ? "all different" : `${commas(different)} different`;
  return (
    `${some(sectors, "sector")} of ${SECTOR} bytes, ${fewest}. The block asks for ${some(all.sectors, "sector")}, ${apart}: ` +
    `without a cache ${commas(all.sectors * SECTOR)} bytes, ${percentOf(used)} of them used.`
  );
}
