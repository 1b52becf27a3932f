// What a warp asks of memory: the rows of 128 bytes that it touches, and under them what each bank has to give: at once, or to
// half a warp after half a warp.

const CELL = 11,
  MANY = 12, // rows, of which each is drawn lower, and every other one has its address
  LEFT = 46, // where the words of a row begin
  BARS = 44; // the height of the banks' bars

const rowHeight = (lines) => (lines.length > MANY ? 7 : CELL);

function memoryRows({ lines, memory }) {
  const high = rowHeight(lines);
  return lines.map(([number, words], row) => {
    const y = row * high;
    const sectors = memory === "shared" ? [] : [...new Set(words.map((word) => Math.floor(word / 8)))];
    return [
      high === CELL || row % 2 === 0 ? s("text", { class: "rt-wa-address", x: LEFT - 5, y: y + high - 1 }, commas(number * ROW)) : [],
      s("rect", { class: "rt-wa-row", x: LEFT, y, width: BANKS * CELL, height: high }),
      sectors.map((sector) => s("rect", { class: "rt-wa-sector", x: LEFT + sector * 8 * CELL, y, width: 8 * CELL, height: high })),
      words.map((word) => s("rect", { class: "rt-wa-word", x: LEFT + word * CELL + 1, y: y + high / 6, width: CELL - 2, height: (high * 2) / 3 })),
    ];
  });
}

const fullest = (banks) => Math.max(...banks.flat());

function bankBars({ banks }, top) {
  const apart = BARS / banks.length,
    scale = (apart - (banks.length > 1 ? 3 : 0)) / fullest(banks);
  return banks.map((counts, part) =>
    counts.map((count, bank) => {
      const height = scale * count,
        whose = banks.length > 1 ? `, part ${part + 1} of the warp` : "";
      return s("rect", { class: count > 1 ? "rt-is-gold" : "rt-is-pale", x: LEFT + bank * CELL + 1, y: top + apart * (part + 1) - height, width: CELL - 2, height },
        s("title", {}, `bank ${bank}${whose}: ${plural(count, "word")}`),
      ); // prettier-ignore
    }),
  );
}

function memoryPicture(result) {
  const shared = result.memory === "shared",
    rows = result.lines.length * rowHeight(result.lines),
    top = rows + 16,
    width = LEFT + BANKS * CELL + 2;
  return s(
    "svg",
    {
      class: "rt-wa-memory", viewBox: `0 -1 ${width} ${shared ? top + BARS + 2 : rows + 3}`, role: "img",
      "aria-label": `${plural(result.lines.length, "row")} of 128 bytes` + (shared ? `; the fullest bank gives ${plural(fullest(result.banks), "word")}` : ""),
    },
    memoryRows(result),
    shared ? [s("text", { class: "rt-wa-address", x: LEFT - 5, y: top + BARS - 2 }, "banks"), bankBars(result, top)] : [],
  ); // prettier-ignore
}

const partsNote = ({ banks }) => (banks.length > 1 ? ` The banks serve the warp in ${banks.length} parts, one after the other: their turns add up.` : "");

const note = (result) =>
  result.memory === "shared"
    ? `A row is 128 bytes, and its columns are the 32 banks. Filled: words that this warp asks for. Bars: words that a bank has to give; their tallest is the number of turns.${partsNote(result)}`
    : "A row is 128 bytes, four sectors, framed where they are asked for. Filled: words that this warp asks for.";
const draw = ({ result }) => [memoryPicture(result), h("p", { class: "rt-dim" }, note(result))];

export default { render: figure(model, draw) };
