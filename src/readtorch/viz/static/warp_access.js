// What a warp asks of memory: the rows of 128 bytes that it touches, and under them what each bank has to give.

const CELL = 11,
  LEFT = 46, // where the words of a row begin
  BARS = 44; // the height of the banks' bars

function memoryRows({ lines }) {
  return lines.map(([number, words], row) => {
    const y = row * CELL;
    const sectors = [...new Set(words.map((word) => Math.floor(word / 8)))];
    return [
      s("text", { class: "rt-wa-address", x: LEFT - 5, y: y + 9 }, commas(number * ROW)),
      s("rect", { class: "rt-wa-row", x: LEFT, y, width: BANKS * CELL, height: CELL }),
      sectors.map((sector) => s("rect", { class: "rt-wa-sector", x: LEFT + sector * 8 * CELL, y, width: 8 * CELL, height: CELL })),
      words.map((word) => s("rect", { class: "rt-wa-word", x: LEFT + word * CELL + 1, y: y + 2, width: CELL - 2, height: CELL - 4 })),
    ];
  });
}

function bankBars({ banks, turns, leastTurns }, top) {
  const most = Math.max(...banks);
  return banks.map((count, bank) => {
    const height = (BARS * count) / most;
    const kind = turns > leastTurns && count > 1 ? "rt-is-gold" : "rt-is-pale";
    return s("rect", { class: kind, x: LEFT + bank * CELL + 1, y: top + BARS - height, width: CELL - 2, height },
      s("title", {}, `bank ${bank}: ${plural(count, "word")}`),
    ); // prettier-ignore
  });
}

function memoryPicture(result) {
  const top = result.lines.length * CELL + 16,
    width = LEFT + BANKS * CELL + 2;
  return s(
    "svg",
    {
      class: "rt-wa-memory", viewBox: `0 -1 ${width} ${top + BARS + 2}`, role: "img",
      "aria-label": `${plural(result.lines.length, "row")} of 128 bytes; the fullest bank gives ${plural(Math.max(...result.banks), "word")}`,
    },
    memoryRows(result),
    s("text", { class: "rt-wa-address", x: LEFT - 5, y: top + BARS - 2 }, "banks"),
    bankBars(result, top),
  ); // prettier-ignore
}

const draw = ({ result }) => [
  memoryPicture(result),
  h("p", { class: "rt-dim" }, "A row is 128 bytes: four sectors, framed where they move, and each of the 32 banks once (columns). Filled: words that this warp asks for. Bars: words that a bank has to give."),
]; // prettier-ignore

export default { render: figure(model, draw) };
