// A tensor and its storage: elements as grids, the cells that they lie in, and what follows from the strides.

const rowMajor = (sizes, index) => index.reduce((at, i, d) => at * sizes[d] + i, 0);
const numberOf = (place) => (place < 0 ? -1 - place : place); // a mark covers the number: Note [ Marks ]
// What stands in a place of the first storage.
const wordsOf = (extra, place) => (place < 0 ? "✱" : extra?.values[place] ?? String(place));

// Grids of the last two dimensions, one for each index of those before.
function drawTensor({ name, sizes, strides, offset, values }, kindOf, pick, label) {
  const columns = sizes.at(-1) ?? 1,
    rows = sizes.at(-2) ?? 1;
  const short = sizes.length < 2;
  const indexAt = (lead, row, column) => [...lead, ...(short ? [] : [row]), ...(sizes.length ? [column] : [])];
  const cell = (index) => {
    const at = rowMajor(sizes, index),
      kind = kindOf(index, values[at]);
    const focus = pick && { "data-focus": `element-${index}`, tabindex: kind === "pick" ? 0 : -1 };
    const act = pick && { onclick: () => pick(index), "aria-selected": String(kind === "pick") };
    return h("td", { role: pick && "gridcell", class: `rt-is-${kind}`, ...focus, ...act }, label(values[at]));
  };
  const grid = (lead) =>
    h(
      "table",
      { class: "rt-grid", role: pick && "grid", "aria-label": `elements of ${name}` },
      h("tbody", { role: pick && "rowgroup" }, [
        range(rows).map((row) =>
          h("tr", { role: pick && "row" }, range(columns).map((column) => cell(indexAt(lead, row, column)))),
        ),
      ]),
    );
  const blocks = indicesOf(sizes.slice(0, -2)).map((lead) =>
    h("div", {}, lead.length ? h("p", { class: "rt-dim" }, `[${lead.join(", ")}, :, :]`) : null, grid(lead)),
  );
  return h(
    "div",
    { class: "rt-view" },
    h("p", { class: "rt-vname" }, h("code", {}, name)),
    h("p", { class: "rt-dim rt-four" }, `sizes ${shapeText(sizes)}`, h("br"), `strides ${shapeText(strides)}`, h("br"), `offset ${offset}`),
    values.length ? h("div", { class: "rt-blocks" }, blocks) : h("p", { class: "rt-dim" }, "no elements"),
  );
}

// What can be done with these sizes, as it is written.
function suggestions({ sizes }) {
  const n = sizes.length,
    last = n - 1;
  if (!n) return [".unsqueeze(0)", ".expand(3)"];
  const reversed = range(n).reverse().join(", ");
  return [
    n === 2 && ".t()",
    n > 2 && `.transpose(0, ${last})`,
    n > 2 && `.permute(${reversed})`,
    ".view(-1)",
    ".reshape(-1)",
    ".contiguous()",
    `.narrow(0, ${Math.min(1, sizes[0])}, ${Math.max(0, sizes[0] - 1)})`,
    ".select(0, 0)",
    `[${":, ".repeat(last)}::2]`,
    sizes[last] > 1 && `.unfold(${last}, 2, 1)`,
    `.expand(2, ${sizes.map(() => -1).join(", ")})`,
    ".unsqueeze(0)",
    n > 1 && ".diagonal()",
    ".clone()",
    ".flip(0)",
    ".as_strided((2, 2), (1, 1))",
  ].filter(Boolean);
}

function draw({ result, inputs, set, focus, extra }) {
  const { stages, places, index, cell, used, facts } = result;
  const first = stages[0],
    last = stages.at(-1),
    value = cell === null ? null : numberOf(places[cell]);
  const label = (place) => wordsOf(extra, place);

  // ---- moving
  const pick = (next) => (equal(next, index) ? write() : set({ index: next }));
  // A second write to the same place puts the number back.
  function write() {
    if (cell === null) return;
    const toggled = (cells) => (cells.includes(cell) ? cells.filter((one) => one !== cell) : [...cells, cell]);
    if (!last.storage) return set({ marks: toggled(inputs.marks) });
    const before = inputs.copied_by === inputs.program ? inputs.copied_marks : [];
    set({ copied_by: inputs.program, copied_marks: toggled(before) });
  }
  const writing = { Enter: write, " ": write };
  const move = (d, by) => () => {
    const at = d + index.length;
    if (at < 0 || cell === null) return;
    const next = index.with(at, Math.max(0, Math.min(last.sizes[at] - 1, index[at] + by)));
    set({ index: next });
    focus(`element-${next}`);
  };
  const indices = cell === null ? [] : indicesOf(last.sizes);
  const reached = (at) => indices.find((one) => cellOf(last, one) === at);

  // ---- parts
  const kindOf = (one) => (equal(one, index) ? "pick" : cellOf(last, one) === cell ? "gold" : "plain");
  const picture = drawTensor(last, kindOf, pick, label);
  picture.classList.add("rt-result");
  onKeys(picture, {
    ArrowRight: move(-1, 1), ArrowLeft: move(-1, -1), ArrowDown: move(-2, 1), ArrowUp: move(-2, -1),
    PageDown: move(-3, 1), PageUp: move(-3, -1), ...writing,
  });
  const original = drawTensor(first, (one, place) => (numberOf(place) === value ? "gold" : "plain"), null, label);
  const storage = h(
    "div",
    { class: "rt-cells", role: "listbox", "aria-label": "cells of the storage" },
    places.map((place, at) => {
      const kind = at === cell ? "pick" : used.includes(at) ? "pale" : "free";
      const index = reached(at);
      return h(
        "div",
        {
          role: "option", class: `rt-cell rt-is-${kind}`, "data-focus": `cell-${at}`, "aria-selected": String(at === cell),
          "aria-disabled": String(!index), tabindex: at === (cell ?? 0) ? 0 : -1, onclick: () => index && pick(index),
        },
        last.storage || extra ? [h("span", { class: "rt-at" }, String(at)), " "] : null,
        label(place),
      );
    }),
  );
  const along = (by) => () => {
    const to = [...used].sort((a, b) => by * (a - b)).find((at) => by * (at - cell) > 0);
    if (to === undefined) return;
    set({ index: reached(to) });
    focus(`cell-${to}`);
  };
  onKeys(storage, { ArrowRight: along(1), ArrowLeft: along(-1), ArrowDown: along(1), ArrowUp: along(-1), ...writing });

  const chip = (text, changes, pressed = null) =>
    h(
      "button",
      {
        type: "button", class: "rt-chip", "data-focus": `chip-${text}`, "aria-pressed": pressed && String(pressed()),
        onclick: () => set(changes),
      },
      text,
    );
  const same = (numbers) => () => inputs.program === "x" && Object.entries(numbers).every(([k, v]) => equal(inputs[k], v));
  const views = (extra?.views ?? []).map(([name, numbers]) =>
    chip(name, { ...numbers, program: "x" }, same(numbers)),
  );
  const steps = suggestions(last).map((step) => chip(step, { program: inputs.program + step }));
  const between = stages.slice(1, -1).map(({ name, sizes, strides }) =>
    h("li", {}, h("code", {}, name), ` sizes ${shapeText(sizes)}, strides ${shapeText(strides)}`),
  );
  const writer = h(
    "button",
    { type: "button", class: "rt-chip", "data-focus": "write", tabindex: -1, onclick: write }, // by key: Enter on the element
    `${places[cell] < 0 ? "take ✱ from" : "write ✱ to"} ${last.name}${index.length ? shapeText(index) : ""}`,
  );
  const chips = (name, buttons) =>
    h("div", { class: "rt-chips", role: "group", "aria-label": name }, h("span", { class: "rt-dim" }, name), buttons);
  return [
    views.length > 1 && chips("views", views),
    chips("operations", [chip("x", { program: "x" }), steps]),
    h("div", { class: "rt-views" }, stages.length > 1 && original, picture),
    between.length > 0 && h("ul", { class: "rt-dim rt-between" }, between),
    h("p", { class: "rt-vname" }, last.storage ? "A new storage " : "Storage ", cell !== null && writer),
    storage,
    factList(facts),
  ];
}

export default { render: figure(model, draw) };
