// One element of a convolution: the inputs that it reads, the filter's group, and the questions that choose the algorithm.

// The first of `most` places to draw of `count` from `low`, so that `middle` is among them.
const firstOf = (low, count, middle, most) => (count <= most ? low : Math.max(low, Math.min(low + count - most, Math.round(middle) - Math.floor(most / 2))));

function inputGrid({ size, padding, transposed, rows, columns, kernel }) {
  const edge = (d) => (transposed ? 0 : padding[d]);
  const window = (line, d) => {
    const count = size[d] + 2 * edge(d),
      most = 11,
      places = line.map(([, i]) => i);
    const middle = places.length ? (Math.min(...places) + Math.max(...places)) / 2 : 0;
    const first = firstOf(-edge(d), count, middle, most);
    return { places: range(Math.min(count, most)).map((i) => i + first), before: first > -edge(d), after: first + most < edge(d) + size[d] };
  };
  const down = window(rows, 0),
    across = window(columns, 1);
  const tapAt = (line, place) => line.find(([, i]) => i === place)?.[0];
  const cell = (i) => (j) => {
    const k = tapAt(rows, i),
      l = tapAt(columns, j),
      inside = 0 <= i && i < size[0] && 0 <= j && j < size[1];
    const read = k !== undefined && l !== undefined;
    const kind = read ? (inside ? "pick" : "gold") : inside ? "plain" : "free";
    return h("td", { class: `rt-is-${kind}` }, read ? String(k * kernel[1] + l) : "");
  };
  const cut = down.before || down.after || across.before || across.after;
  return h(
    "div",
    {},
    h("p", { class: "rt-dhead" }, `Input ${size[0]} × ${size[1]}`, cut ? h("span", { class: "rt-dim" }, " (a part)") : null),
    h(
      "table",
      { class: "rt-grid rt-cv-input", "aria-hidden": "true" },
      h("tbody", {}, down.places.map((i) => h("tr", {}, across.places.map(cell(i))))),
    ),
  );
}

function outputGrid({ images, out, at }, set, focus) {
  const [down, across] = [0, 1].map((d) => {
    const first = firstOf(0, out[d], at[d], 7);
    return range(Math.min(out[d], 7)).map((i) => i + first);
  });
  const cell = (i) => (j) => {
    const here = i === at[0] && j === at[1];
    return h("td", {
      role: "gridcell", class: here && images ? "rt-is-pick" : "rt-is-plain", "data-focus": `out-${i},${j}`, tabindex: here ? 0 : -1,
      "aria-selected": String(here), "aria-label": `[${i}, ${j}]`, onclick: () => set({ at: [i, j] }),
    }); // prettier-ignore
  };
  const grid = h(
    "table",
    { class: "rt-grid rt-cv-output", role: "grid", "aria-label": "elements of the result" },
    h("tbody", { role: "rowgroup" }, down.map((i) => h("tr", { role: "row" }, across.map(cell(i))))),
  );
  const move = (d, by) => () => {
    const next = at.with(d, Math.max(0, Math.min(out[d] - 1, at[d] + by)));
    set({ at: next });
    focus(`out-${next}`);
  };
  onKeys(grid, {
    ArrowDown: move(0, 1), ArrowUp: move(0, -1), ArrowRight: move(1, 1), ArrowLeft: move(1, -1), Home: move(1, -out[1]), End: move(1, out[1]),
  }); // prettier-ignore
  const cut = out[0] > 7 || out[1] > 7;
  const head = images ? `Result ${out[0]} × ${out[1]}` : "Result: no image";
  return h("div", {}, h("p", { class: "rt-dhead" }, head, images && cut ? h("span", { class: "rt-dim" }, " (a part)") : null), grid);
}

// Channels of the input, and the filters of the result: what belongs together, for any number of them.
function bars({ channels, filters, groups, from, inner, filter }, set) {
  const WIDE = 240;
  const line = (count, parts) =>
    s(
      "svg",
      { viewBox: `0 0 ${WIDE} 16`, "aria-hidden": "true" },
      s("rect", { class: "rt-is-plain", width: WIDE, height: 16 }),
      parts.map(([kind, first, many]) => s("rect", { class: `rt-is-${kind}`, x: (first * WIDE) / count, width: Math.max(2, (many * WIDE) / count), height: 16 })),
      count <= 32 ? range(count - 1).map((i) => s("line", { class: "rt-cv-cut", x1: ((i + 1) * WIDE) / count, x2: ((i + 1) * WIDE) / count, y1: 0, y2: 16 })) : null,
    );
  const of = filters / groups;
  const channel = inner === 1 ? `channel ${from}` : `channels ${from} to ${from + inner - 1}`;
  const button = (by, words) =>
    h("button", {
      type: "button", class: "rt-chip", "data-focus": `filter${by}`, "aria-label": words,
      onclick: () => set({ filter: Math.max(0, Math.min(filters - 1, filter + by)) }),
    }, by < 0 ? "‹" : "›"); // prettier-ignore
  return h(
    "div",
    { class: "rt-cv-bars" },
    h("span", {}, `filter ${filter}`, button(-1, "the filter before"), button(1, "the next filter")),
    line(filters, [["pale", Math.floor(filter / of) * of, of], ["pick", filter, 1]]),
    h("span", {}, channel),
    line(channels, [["pick", from, inner]]),
  );
}

function questions({ asked, backend }) {
  const row = ([words, of, answer]) =>
    h("tr", { class: answer ? "rt-yes" : "" }, h("td", {}, words), h("td", {}, of), h("td", {}, answer ? "yes" : "no"));
  return h(
    "div",
    { class: "rt-cv-asked" },
    h("p", { class: "rt-dhead" }, "_select_conv_backend → ", h("b", { class: "rt-is-pick rt-cv-chosen" }, backend)),
    h("table", { class: "rt-gtable" }, h("tbody", {}, asked.map(row))),
  );
}

const draw = ({ result, set, focus }) =>
  h(
    "div",
    { class: "rt-cv" },
    h("div", { class: "rt-cv-grids" }, outputGrid(result, set, focus), inputGrid(result)),
    h("div", { class: "rt-cv-side" }, bars(result, set), questions(result), factList(result.facts)),
  );

export default { render: figure(model, draw) };
