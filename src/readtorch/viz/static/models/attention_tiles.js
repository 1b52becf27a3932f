// Attention in tiles: which tiles of the scores are computed, what moves, and one query's softmax: as figures/attention_tiles.py.
const MOST_TILES = 256;
const SHOWN_SCORES = 8;
const BYTES_OF = { float32: 4, float16: 2, bfloat16: 2 };

const model = ({ queries, keys, head, dtype, mask, window, chip, seed, ...inputs }) => {
  const rows = Math.min(inputs.rows, queries),
    columns = Math.min(inputs.columns, keys);
  const down = Math.ceil(queries / rows),
    across = Math.ceil(keys / columns);
  if (down > MOST_TILES || across > MOST_TILES)
    refuse(`That makes ${commas(down)} times ${commas(across)} tiles; the figure draws up to ${MOST_TILES} of each. Take larger blocks.`);
  const reach = { none: [-Infinity, Infinity], causal: [0, Infinity], window: [0, window - 1] }[mask];
  const ranges = Array.from({ length: down }, (_, r) => tilesOf(r, rows, columns, queries, keys, across, reach));
  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
  const fetched = sum(ranges.map(([first, end]) => Math.min(end * columns, keys) - Math.min(first * columns, keys)));
  const size = BYTES_OF[dtype];
  const need = size * (rows + 2 * columns) * head + 4 * (rows * columns + rows * head + 2 * rows);
  const block = Math.min(inputs.block, down - 1),
    query = Math.min((block + 1) * rows, queries) - 1;
  const result = {
    rows, columns, down, across, ranges,
    computed: sum(ranges.map(([first, end]) => end - first)),
    masked: sum(ranges.map(([first, end, whole, wholeEnd]) => end - first - (wholeEnd - whole))),
    plain: size * (2 * queries * head + 2 * keys * head + 4 * queries * keys),
    tiled: size * (2 * queries * head + 2 * head * fetched) + 4 * queries,
    scores: size * queries * keys,
    need, fits: need <= chip * 1024, block, query,
    states: statesOf(query, ranges[block], columns, keys, reach, seed),
  }; // prettier-ignore
  return { ...result, say: tileSentences(result) };
};

// [first, end, first, end]: the tiles of a row of tiles that are computed, and those among them that need no mask.
function tilesOf(row, rows, columns, queries, keys, across, [least, most]) {
  const low = row * rows,
    high = Math.min((row + 1) * rows, queries) - 1;
  const some = [],
    whole = [];
  for (let c = 0; c < across; c++) {
    const left = c * columns,
      right = Math.min((c + 1) * columns, keys) - 1;
    if (low - right > most || high - left < least) continue;
    some.push(c);
    if (low - right >= least && high - left <= most) whole.push(c);
  }
  const ends = (tiles) => (tiles.length ? [tiles[0], tiles.at(-1) + 1] : [0, 0]);
  return [...ends(some), ...ends(whole)];
}

// ---- one query: invented scores and values, and what becomes of them

// Spread like a sum of dice, so that large scores are rare, and with them a new maximum.
function scoreOf(query, key, seed) {
  let x = (query * 7919 + key * 10007 + seed * 31337 + 1) % 65521;
  x = (((x * x) % 65521) * 40503) % 65521;
  const digit = (unit) => Math.floor(x / unit) % 8;
  return (digit(1) + digit(8) + digit(64) + digit(512) + digit(4096)) / 4 - 4.5;
}
const valueOf = (key) => (key * 3 + 1) % 10;

function statesOf(query, [first, end], columns, keys, [least, most], seed) {
  let top = null,
    total = 0,
    out = 0;
  const states = [{ tile: null, keys: 0, scores: [], largest: null, before: null, top: null, factor: 1, total: 0, out: 0 }];
  for (let tile = first; tile < end; tile++) {
    const left = tile * columns,
      count = Math.min(left + columns, keys) - left;
    const visible = (j) => least <= query - j && query - j <= most;
    const places = Array.from({ length: count }, (_, i) => left + i),
      seen = places.filter(visible);
    const before = top,
      largest = seen.length ? Math.max(...seen.map((j) => scoreOf(query, j, seed))) : null;
    top = before === null ? largest : largest === null ? before : Math.max(before, largest);
    const factor = largest === null ? 1 : before === null ? 0 : Math.exp(before - top);
    let weight = 0,
      weighted = 0;
    for (const j of seen) {
      const w = Math.exp(scoreOf(query, j, seed) - top);
      weight += w;
      weighted += w * valueOf(j);
    }
    total = total * factor + weight;
    out = out * factor + weighted;
    const scores = count <= SHOWN_SCORES ? places.map((j) => (visible(j) ? scoreOf(query, j, seed) : null)) : [];
    states.push({ tile, keys: count, scores, largest, before, top, factor, total, out });
  }
  return states;
}

// ---- words

const fourDigits = (x) => x.toFixed(4);
const timesOf = (n) => (n === 0 ? "never" : n === 1 ? "once" : `${n} times`);
const tileCount = (n) => (n === 0 ? "no tile" : n === 1 ? "one tile" : `${n} tiles`);

// Bytes in words; rounded half up, in whole tenths.
function amountText(n) {
  for (const [unit, name] of [[1024 ** 3, "GiB"], [1024 ** 2, "MiB"], [1024, "KiB"]]) { // prettier-ignore
    if (n < unit) continue;
    const tenths = Math.floor((n * 10) / unit + 0.5);
    return `${commas(Math.floor(tenths / 10))}.${tenths % 10} ${name}`;
  }
  return `${n} bytes`;
}

function tileSentences(result) {
  const { query, states } = result,
    last = states.at(-1),
    first = result.block * result.rows;
  const named = first === query ? `query ${first}` : `queries ${first} to ${query}`;
  const rises = states.filter(({ before, top }) => before !== null && top > before).length;
  const said = [
    `${commas(result.computed)} of ${commas(result.down * result.across)} tiles are computed. Tiles move ${amountText(result.tiled)} a head, the plain form ` +
      `${amountText(result.plain)}. Now ${named}, ${tileCount(states.length - 1)}; query ${query} is followed: ` +
      `after its first tile the maximum rises ${timesOf(rises)}.`,
    ...states.slice(1).map((state) => toldOf(state, result.columns)),
  ];
  if (last.top === null) return [...said, `Query ${query} sees no key: its sum is 0, and the kernel writes 0.`];
  return [
    ...said,
    `Divided by the sum ${fourDigits(last.total)}, the output of query ${query} is ${fourDigits(last.out / last.total)}; ` +
      `its logsumexp, ${fourDigits(last.top)} + log ${fourDigits(last.total)} = ${fourDigits(last.top + Math.log(last.total))}, is kept for backward.`,
  ];
}

function toldOf(state, columns) {
  const left = state.tile * columns,
    right = left + state.keys - 1;
  const where = left === right ? `Key ${left}` : `Keys ${left} to ${right}`;
  if (state.largest === null) return `${where}: this query may see none of them, and nothing changes.`;
  if (state.before === null) return `${where}: the maximum is ${fourDigits(state.top)}, the sum ${fourDigits(state.total)}.`;
  if (state.top > state.before)
    return (
      `${where}: the maximum rises from ${fourDigits(state.before)} to ${fourDigits(state.top)}. What was collected is multiplied by ` +
      `${fourDigits(state.factor)}; with this tile the sum is ${fourDigits(state.total)}.`
    );
  return `${where}: the maximum stays ${fourDigits(state.top)}, nothing is rescaled; with this tile the sum is ${fourDigits(state.total)}.`;
}
