// Which elements a thread works on: the first block and the last one, in rows of 128 elements of memory.
const ACROSS = 4, // of an element
  HIGH = 11;

// [column, row, width] of each span, cut at the ends of rows.
function inRows(spans) {
  const found = [];
  for (let [start, end] of spans)
    while (start < end) {
      const stop = Math.min(end, (Math.floor(start / THREADS) + 1) * THREADS);
      found.push([start % THREADS, Math.floor(start / THREADS), stop - start]);
      start = stop;
    }
  return found;
}

const spansOf = (kind, spans) =>
  inRows(spans).map(([x, y, width]) => s("rect", { class: kind, x: 1 + ACROSS * x, y: 1 + HIGH * y, width: ACROSS * width, height: HIGH }));

function blockPicture({ number, held, warp, pieces }, { each }) {
  const width = ACROSS * THREADS,
    height = HIGH * each;
  return s("svg", { class: "rt-be-block", viewBox: `0 0 ${width + 2} ${height + 2}`, role: "img", "aria-label": `block ${commas(number)}: ${countOf(held, "element")}` },
    s("rect", { class: "rt-be-none", x: 1, y: 1, width, height }),
    spansOf("rt-be-row", [[0, held]]), spansOf("rt-be-warp", warp), spansOf("rt-be-own", pieces)); // prettier-ignore
}

const spanText = (from) => ([start, end]) => (end - start === 1 ? commas(from + start) : `${commas(from + start)}–${commas(from + end - 1)}`);

function blockPart(one, result) {
  const own = one.pieces.map(spanText(one.number * result.size)).join(" · "),
    ending = one.number === result.blocks - 1 ? ", the last" : "",
    way = one.tested ? "unroll: each element is tested" : "vectorized: no test";
  return h("section", { class: "rt-be-part" },
    h("p", {}, h("b", {}, `Block ${commas(one.number)}${ending}`), ` ${way}`),
    blockPicture(one, result),
    h("p", { class: "rt-be-list" }, `thread ${result.thread}: ${own || "no element"}`)); // prettier-ignore
}

const rowsNote = "A row is 128 elements in memory. Filled: the thread’s elements. Pale: those of the other lanes of its warp. Dashed: no element.";
const draw = ({ result }) => [
  h("div", { class: "rt-be" }, result.shown.map((one) => blockPart(one, result))),
  h("p", { class: "rt-dim" }, rowsNote),
];

export default { render: figure(model, draw) };
