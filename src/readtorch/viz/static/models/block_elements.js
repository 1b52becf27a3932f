// Which elements a thread of PyTorch's pointwise kernel works on: as figures/block_elements.py.
const THREADS = 128,
  WARP = 32;
// operands: [elements that one load of a thread moves, elements a thread]
const WAYS = { float32: [4, 8], float64: [2, 8], float16: [8, 8], "x[2:]": [2, 8], "x[1:]": [1, 4], fill_: [8, 16] };

const countOf = (n, word) => `${commas(n)} ${word}${n === 1 ? "" : "s"}`;

function model({ n, operands, thread }) {
  const [vector, each] = WAYS[operands],
    size = each * THREADS,
    blocks = Math.ceil(n / size);
  const shown = [...new Set([0, blocks - 1])].map((number) => blockOf(number, Math.min(size, n - number * size), vector, each, thread));
  const result = { blocks, size, each, vector, thread, shown };
  return { ...result, say: blocksText(n, result) };
}

function blockOf(number, held, vector, each, thread) {
  const tested = held < each * THREADS || vector === 1,
    width = tested ? 1 : vector,
    first = thread - (thread % WARP);
  return { number, held, tested, pieces: piecesOf(thread, 1, width, each, held), warp: piecesOf(first, WARP, width, each, held) };
}

function piecesOf(first, threads, width, each, held) {
  const starts = Array.from({ length: each / width }, (_, load) => (first + THREADS * load) * width);
  return starts.filter((start) => start < held).map((start) => [start, Math.min(start + threads * width, held)]);
}

function blocksText(n, result) {
  const whole = `${countOf(n, "element")}: ${countOf(result.blocks, "block")} of ${THREADS} threads, ${result.each} elements a thread. `;
  const parts = result.shown.map((one) => `In block ${commas(one.number)}, which has ${commas(one.held)}, thread ${result.thread} ${loadsText(one, result)}.`);
  return whole + parts.join(" ");
}

const loadsText = ({ tested, pieces }, { vector, each }) =>
  tested ? `tests ${each} places and finds ${countOf(pieces.length, "element")}` : `moves ${countOf(pieces.length, "vector")} of ${vector}, without a test`;
