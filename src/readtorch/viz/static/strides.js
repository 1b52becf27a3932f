// Stride explorer: views as grids of elements, over the storage that they share.

const elementOffset = (view, index) => view.offset + index.reduce((sum, i, d) => sum + i * view.stride[d], 0);
const rowMajor = (shape, index) => index.reduce((at, i, d) => at * shape[d] + i, 0);

function indicesOf(shape) {
  return shape.reduce(
    (found, size) => found.flatMap((index) => [...Array(size).keys()].map((i) => [...index, i])),
    [[]],
  );
}

// The cells of the storage that an element covers.
function cellsOf(view, cell, index) {
  const first = (elementOffset(view, index) * view.itemsize) / cell;
  return Array.from({ length: view.itemsize / cell }, (_, k) => first + k);
}

// "offset 3 + 1·4 + 2·1 = 9"
function sum(view, index) {
  const terms = index.map((i, d) => h("span", { class: "rt-term" }, `${i}·${view.stride[d]}`));
  const plus = terms.flatMap((term) => [" + ", term]);
  return [
    "offset ",
    h("span", { class: "rt-term" }, String(view.offset)),
    plus,
    " = ",
    h("b", {}, String(elementOffset(view, index))),
  ];
}

function render({ model, el }) {
  const data = model.get("data"),
    { views, storages } = data;
  const view = () => views[model.get("view")];
  const picked = () => {
    const index = model.get("index");
    return index.length === view().shape.length ? index : view().shape.map(() => 0);
  };
  function pick(v, index) {
    model.set("view", v);
    assign(model, "index", index);
  }
  const emptyView = (v) => v.shape.includes(0);

  // ---- the parts of the page
  const grids = views.map((v, number) => drawView(v, number));
  const strips = storages.map(drawStorage);
  const formula = h("p", { class: "rt-formula", "aria-live": "polite" });
  const detail = h("div", { class: "rt-under" });
  const root = h(
    "div",
    { class: "rt-w rt-strides", role: "group", "aria-label": data.title },
    h("p", { class: "rt-title" }, data.title),
    h(
      "div",
      { class: "rt-views" },
      grids.map((g) => g.card),
    ),
    formula,
    strips.map((strip) => strip.part),
    detail,
    legend([
      ["rt-c-used", "in the chosen view"],
      ["rt-c-pick", "the picked element"],
      ["rt-c-free", "not in the chosen view"],
      ["rt-c-same", "another element in the same place"],
    ]),
    h(
      "p",
      { class: "rt-hint" },
      "Keys: arrows move in the last two dimensions, Page Up and Page Down in the one before, ",
      "Tab goes to the next view. In the storage, arrows move from cell to cell.",
    ),
  );
  el.append(root);

  // ---- a view: blocks of rows of elements
  function drawView(v, number) {
    const cells = new Map();
    const cellFor = (index) => {
      const text = v.values[rowMajor(v.shape, index)];
      const td = h(
        "td",
        {
          role: "gridcell",
          tabindex: -1,
          "data-index": index.join(),
          onclick: () => focusOn(number, index),
          onfocus: () => {
            if (view() !== v || picked().join() !== index.join()) pick(number, index);
          },
        },
        text,
      );
      cells.set(index.join(), td);
      return td;
    };
    const outer = v.shape.slice(0, -2),
      [rows, columns] = [v.shape.at(-2) ?? 1, v.shape.at(-1) ?? 1];
    const block = (lead) => {
      const tail = (r, c) => (v.shape.length > 1 ? [r, c] : v.shape.length ? [c] : []);
      const body = Array.from({ length: rows }, (_, r) =>
        h(
          "tr",
          { role: "row" },
          Array.from({ length: columns }, (_, c) => cellFor([...lead, ...tail(r, c)])),
        ),
      );
      const name = lead.length ? `${v.label}[${lead.join(", ")}]` : v.label;
      const grid = h(
        "table",
        { role: "grid", class: "rt-grid", "aria-label": `elements of ${name}` },
        h("tbody", { role: "rowgroup" }, body),
      );
      return h(
        "div",
        { class: "rt-block" },
        lead.length ? h("p", { class: "rt-dim" }, `[${lead.join(", ")}, :, :]`) : null,
        grid,
      );
    };
    const blocks = emptyView(v) ? h("p", { class: "rt-dim" }, "no elements") : indicesOf(outer).map(block);
    const card = h(
      "section",
      { class: "rt-view", "aria-label": v.label },
      h("p", { class: "rt-vname" }, h("code", {}, v.label)),
      h(
        "p",
        { class: "rt-dim rt-four" },
        `size ${shapeText(v.shape)}`,
        h("br"),
        `stride ${shapeText(v.stride)}`,
        h("br"),
        `offset ${v.offset}, ${v.dtype}`,
        h("br"),
        v.contiguous ? "contiguous" : "not contiguous",
      ),
      h("div", { class: "rt-blocks" }, blocks),
    );
    onKeys(card, {
      ArrowRight: () => step(-1, 1),
      ArrowLeft: () => step(-1, -1),
      ArrowDown: () => step(-2, 1),
      ArrowUp: () => step(-2, -1),
      PageDown: () => step(-3, 1),
      PageUp: () => step(-3, -1),
      Home: () => edge(0),
      End: () => edge(v.shape.at(-1) - 1),
    });
    return { card, cells };
  }
  function step(dimension, by) {
    // dimension counts from the end: -1 is the last
    const index = [...picked()],
      d = index.length + dimension;
    if (d < 0) return;
    index[d] = Math.max(0, Math.min(view().shape[d] - 1, index[d] + by));
    focusOn(model.get("view"), index);
  }
  function edge(at) {
    if (picked().length) focusOn(model.get("view"), [...picked().slice(0, -1), at]);
  }
  function focusOn(number, index) {
    pick(number, index);
    grids[number].cells.get(index.join()).focus();
  }

  // ---- a storage: its cells in a row that wraps
  function drawStorage(storage, number) {
    const cells = storage.values.map((text, at) =>
      h(
        "div",
        {
          role: "option",
          class: "rt-cell",
          tabindex: -1,
          onclick: () => fromCell(number, at),
          onfocus: () => fromCell(number, at),
        },
        h("span", { class: "rt-at" }, String(at)),
        " ",
        h("span", { class: "rt-val" }, text),
      ),
    );
    const name = storages.length > 1 ? `Storage ${number + 1}` : "Storage";
    const box = h("div", { role: "listbox", class: "rt-cells", "aria-label": `${name}: cells` }, cells);
    const move = (by) => () => {
      const to = cells[cells.indexOf(document.activeElement) + by];
      if (to) to.focus();
    };
    onKeys(box, { ArrowRight: move(1), ArrowLeft: move(-1), ArrowDown: move(1), ArrowUp: move(-1) });
    const width = `a cell is ${plural(storage.cell, "byte")} (${storage.dtype})`;
    const about = `${storage.nbytes} bytes at ${storage.address}; ${width}`;
    return {
      cells,
      part: h(
        "div",
        { class: "rt-storage" },
        h("p", { class: "rt-vname" }, name, " ", h("span", { class: "rt-dim" }, about)),
        box,
      ),
    };
  }
  // The first element of the chosen view (else of another) that covers the cell becomes the picked one.
  let asked = null; // the cell the reader stands on, when no view reaches it
  function fromCell(storage, at) {
    const candidates = [model.get("view"), ...views.keys()].filter((v) => views[v].storage === storage);
    for (const v of candidates) {
      const index = elementsOn(views[v], at)[0];
      if (index) {
        asked = null;
        pick(v, index);
        return;
      }
    }
    asked = [storage, at];
    update();
  }
  const elementsOn = (v, at) =>
    indicesOf(v.shape).filter((index) => cellsOf(v, storages[v.storage].cell, index).includes(at));

  // ---- drawing
  function update() {
    const v = view(),
      index = picked(),
      cell = storages[v.storage].cell;
    const used = new Set(indicesOf(v.shape).flatMap((i) => cellsOf(v, cell, i)));
    const hit = new Set(emptyView(v) ? [] : cellsOf(v, cell, index));
    strips.forEach((strip, number) =>
      drawCells(strip.cells, number === v.storage ? used : new Set(), number === v.storage ? hit : new Set()),
    );
    grids.forEach((grid, number) =>
      drawGrid(grid, views[number], number === model.get("view"), index, hit, v.storage),
    );
    formula.replaceChildren(
      ...(emptyView(v)
        ? ["no elements"]
        : [
            h("code", {}, `${v.label}[${index.join(", ")}]`),
            ": ",
            ...sum(v, index).flat(2),
            h(
              "span",
              { class: "rt-dim" },
              `; elements of ${plural(v.itemsize, "byte")}, so byte ${elementOffset(v, index) * v.itemsize}`,
            ),
          ]),
    );
    detail.replaceChildren(asked ? `No view here reaches cell ${asked[1]}.` : othersOn(v, hit));
  }
  function drawCells(cells, used, hit) {
    const first = hit.size ? Math.min(...hit) : 0;
    cells.forEach((c, at) => {
      c.className = `rt-cell ${hit.has(at) ? "rt-c-pick" : used.has(at) ? "rt-c-used" : "rt-c-free"}`;
      c.setAttribute("aria-selected", String(hit.has(at)));
      c.setAttribute("tabindex", at === first || c === document.activeElement ? 0 : -1);
    });
  }
  function drawGrid(grid, v, chosen, index, hit, storage) {
    grid.card.classList.toggle("rt-chosen", chosen);
    const start = chosen ? index.join() : v.shape.map(() => 0).join();
    for (const [key, td] of grid.cells) {
      const mine = chosen && key === start;
      const same =
        v.storage === storage &&
        cellsOf(v, storages[storage].cell, key === "" ? [] : key.split(",").map(Number)).some((c) =>
          hit.has(c),
        );
      td.className = mine ? "rt-c-pick" : same ? "rt-c-same" : "";
      td.setAttribute("aria-selected", String(mine));
      td.setAttribute("tabindex", key === start ? 0 : -1);
    }
  }
  // Every element that lies on the picked cells: more than one with a stride of 0, or in several views.
  function othersOn(v, hit) {
    const names = views
      .filter((w) => w.storage === v.storage)
      .flatMap((w) =>
        indicesOf(w.shape)
          .filter((index) => cellsOf(w, storages[w.storage].cell, index).some((c) => hit.has(c)))
          .map((index) => `${w.label}[${index.join(", ")}]`),
      );
    const shown = names.slice(0, 12).join(", ") + (names.length > 12 ? ` and ${names.length - 12} more` : "");
    return names.length > 1
      ? h("p", {}, "The same memory: ", h("code", {}, shown))
      : h("p", { class: "rt-dim" }, "No other element lies there.");
  }
  return bind(model, ["view", "index"], update);
}

export default { render };
