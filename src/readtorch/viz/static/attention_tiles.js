// Attention in tiles: the matrix of scores with its tiles, the numbers of one query, and bars for bytes.

const SIDE = 240;

// The tiles of each kind as one path; runs of tiles, where single ones could not be told apart.
function tilePaths({ ranges, down, across }) {
  const width = SIDE / across,
    height = SIDE / down,
    single = across <= 64 && down <= 64;
  const paths = { "rt-is-free": "", "rt-is-pale": "", "rt-is-plain": "" };
  const add = (kind, from, to, row) => {
    const step = single && kind !== "rt-is-free" ? 1 : to - from;
    for (let c = from; c < to; c += step)
      paths[kind] += `M${(c * width).toFixed(2)} ${(row * height).toFixed(2)}h${(width * step).toFixed(2)}v${height.toFixed(2)}h${(-width * step).toFixed(2)}z`;
  };
  ranges.forEach(([first, end, whole, wholeEnd], row) => {
    add("rt-is-free", 0, first, row);
    add("rt-is-free", end, across, row);
    const inside = wholeEnd > whole;
    add("rt-is-pale", first, inside ? whole : end, row);
    if (!inside) return;
    add("rt-is-plain", whole, wholeEnd, row);
    add("rt-is-pale", wholeEnd, end, row);
  });
  return Object.entries(paths).map(([kind, d]) => s("path", { class: kind, d }));
}

function tileMatrix(result, step, set) {
  const { down, across, block, states } = result,
    width = SIDE / across,
    height = SIDE / down;
  const tile = (c, kind) =>
    s("rect", { class: kind, x: c * width, y: block * height, width: Math.max(width, 1.5), height: Math.max(height, 1.5) });
  const now = states[step]?.tile;
  const choose = (to) => to >= 0 && to < down && to !== block && set({ block: to });
  const svg = s(
    "svg",
    {
      viewBox: `-2 -2 ${SIDE + 4} ${SIDE + 4}`, class: `rt-tiles${down > 24 || across > 24 ? " rt-tiles-many" : ""}`, role: "slider", tabindex: 0, "data-focus": "tiles",
      "aria-label": "row of tiles", "aria-valuemin": 0, "aria-valuemax": down - 1, "aria-valuenow": block,
      "aria-valuetext": `row ${block} of ${down}`,
      onclick: (event) => {
        const seen = event.currentTarget.getBoundingClientRect();
        choose(Math.floor(((event.clientY - seen.top) / seen.height) * down));
      },
    },
    tilePaths(result),
    states.slice(1, Math.min(step, states.length)).map((state) => tile(state.tile, "rt-tile-done")),
    now === null || now === undefined ? null : tile(now, "rt-is-gold"),
    s("rect", { class: "rt-tile-row", x: -1, y: block * height - 1, width: SIDE + 2, height: height + 2 }),
  ); // prettier-ignore
  onKeys(svg, { ArrowDown: () => choose(block + 1), ArrowUp: () => choose(block - 1), Home: () => choose(0), End: () => choose(down - 1) });
  return h(
    "div",
    { class: "rt-tilebox" },
    h("p", { class: "rt-dim" }, "keys →, queries ↓"),
    svg,
    h(
      "p",
      { class: "rt-dim rt-tilekey" },
      [["plain", "computed"], ["pale", "with a mask inside"], ["free", "skipped"]].map(([kind, words]) =>
        h("span", {}, h("i", { class: `rt-is-${kind}` }), ` ${words}`),
      ),
    ),
  ); // prettier-ignore
}

function queryTable({ states, query }, step) {
  const state = states[Math.min(step, states.length - 1)],
    done = step === states.length;
  const digits = (x) => (x === null ? "−∞" : fourDigits(x));
  const scores = state.scores.length ? state.scores.map((x) => (x === null ? "–" : x.toFixed(2))).join("  ") : state.keys ? `${commas(state.keys)}, largest ${digits(state.largest)}` : "–";
  const moved = state.before !== null && state.top !== state.before;
  const row = (words, value, kind = "") => h("tr", { class: kind }, h("th", { scope: "row" }, words), h("td", {}, value));
  const output = done && state.total ? state.out / state.total : state.out;
  return h(
    "table",
    { class: "rt-onequery" },
    h("caption", {}, `query ${query}`),
    h(
      "tbody",
      {},
      row("tile's scores", done ? "–" : scores),
      row("maximum", moved && !done ? `${digits(state.before)} → ${digits(state.top)}` : digits(state.top), moved && !done ? "rt-now-row" : ""),
      row("old × factor", step === 0 || done ? "–" : fourDigits(state.factor), moved && !done ? "rt-now-row" : ""),
      row("sum", fourDigits(state.total)),
      row(done ? "output, divided by the sum" : "Σ weight × value", fourDigits(output), done ? "rt-now-row" : ""),
    ),
  );
}

function byteBars(result, { chip, dtype }) {
  const most = Math.max(result.plain, result.tiled);
  const times = (most / Math.min(result.plain, result.tiled)).toFixed(1);
  const gain = times === "1.0" ? "" : `, ${times} times ${result.tiled < result.plain ? "less" : "more"}`;
  const bar = (words, n, whole, kind, note = "") =>
    h(
      "div",
      { class: "rt-bytebar" },
      h("span", {}, words),
      h("b", {}, `${amountText(n)}${note}`),
      h("div", { class: "rt-bytetrack", "aria-hidden": "true" }, h("i", { class: kind, style: `width:${Math.min(100, (100 * n) / whole).toFixed(1)}%` })),
    );
  return h(
    "div",
    { class: "rt-bytebars" },
    h("p", { class: "rt-dim" }, "Bytes moved for a head:"),
    bar(`plain, in ${dtype}`, result.plain, most, "rt-is-free"),
    bar("in tiles", result.tiled, most, "rt-is-pale", gain),
    bar("a tile on the chip", result.need, chip * 1024, result.fits ? "rt-is-pale" : "rt-is-gold", result.fits ? ` of ${commas(chip)} KiB` : " does not fit"),
    h("p", { class: "rt-dim" }, `The whole matrix of scores: ${amountText(result.scores)}. ${commas(result.computed)} of ${commas(result.down * result.across)} tiles are computed.`),
  );
}

const draw = ({ result, inputs, step, set }) =>
  h(
    "div",
    { class: "rt-tilefig" },
    tileMatrix(result, step, set),
    h("div", { class: "rt-tileside" }, queryTable(result, step), byteBars(result, inputs)),
  );

export default { render: figure(model, draw) };
