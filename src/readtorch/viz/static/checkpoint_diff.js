// Checkpoint diff: a row for each name, the two sides beside each other; the details of the chosen row.

const VERDICTS = {
  same: "equal on both sides",
  value: "copied: the values change",
  dtype: "copied and converted to the dtype on the left",
  shape: "size mismatch: load_state_dict raises an error, strict or not",
  missing: "missing key: an error if strict, otherwise the left side keeps its own",
  unexpected: "unexpected key: an error if strict, otherwise left out",
};

function render({ model, el }) {
  const data = model.get("data"),
    [leftName, rightName] = data.names;
  const found = Object.keys(VERDICTS).filter((verdict) => data.rows.some((row) => row.verdict === verdict));
  const count = (verdict) => data.rows.filter((row) => row.verdict === verdict).length;

  const hideSame = h("input", {
    type: "checkbox",
    onchange: () => {
      assign(model, "differences", hideSame.checked);
    },
  });

  // ---- the table
  const sideText = (cell) =>
    cell
      ? [h("code", {}, cell.dtype), " ", cell.shape ? shapeText(cell.shape) : cell.text]
      : h("span", { class: "rt-dim" }, "none");
  const rows = data.rows.map((row) => {
    const button = linkButton(row.name, () => assign(model, "selected", row.name));
    const shared = row.left?.shared_with.length || row.right?.shared_with.length;
    const tr = h(
      "tr",
      { class: `rt-v-${row.verdict}` },
      h("th", { scope: "row" }, button, shared ? [" ", h("span", { class: "rt-badge" }, "shared")] : null),
      h("td", { class: "rt-verdict" }, row.verdict), // first, so that a narrow page shows it
      h("td", {}, sideText(row.left)),
      h("td", {}, sideText(row.right)),
    );
    tr.addEventListener("click", () => assign(model, "selected", row.name));
    return { row, tr, button };
  });
  const head = ["name", "verdict", leftName, rightName].map((text) => h("th", { scope: "col" }, text));
  const table = h(
    "table",
    { class: "rt-diff" },
    h("thead", {}, h("tr", {}, head)),
    h("tbody", {}, rows.map(({ tr }) => tr)),
  );
  const box = h(
    "div",
    { class: "rt-diffbox", tabindex: 0, role: "group", "aria-label": `${leftName} and ${rightName} by name` },
    table,
  );
  const detail = detailBox();
  const versions = data.versions.map(([name, left, right]) =>
    h(
      "p",
      { class: "rt-note" },
      "version of ",
      h("code", {}, name || "(the root)"),
      `: ${left} in ${leftName}, ${right} in ${rightName}`,
    ),
  );
  el.append(
    h(
      "div",
      { class: "rt-w rt-checkpointdiff", role: "group", "aria-label": data.title },
      h("p", { class: "rt-title" }, data.title),
      h(
        "div",
        { class: "rt-bar" },
        h("label", { class: "rt-check" }, hideSame, " differences only"),
        h("span", { class: "rt-dim" }, found.map((verdict) => `${count(verdict)} ${verdict}`).join(", ")),
      ),
      h("div", { class: "rt-cols" }, box, detail),
      versions,
      data.left_out ? h("p", { class: "rt-dim" }, `${plural(data.left_out, "further name")} left out.`) : null,
      h("p", { class: "rt-hint" }, "Keys: up and down choose a name, Home and End the first and the last."),
    ),
  );

  // ---- moving
  const visible = () => rows.filter(({ tr }) => !tr.hidden);
  const current = () => visible().find(({ row }) => row.name === model.get("selected")) ?? visible()[0];
  function focus(item) {
    if (!item) return;
    assign(model, "selected", item.row.name);
    item.button.focus({ preventScroll: true });
    reveal(box, item.tr);
  }
  const move = (by) => () => focus(visible()[visible().indexOf(current()) + by]);
  onKeys(table, {
    ArrowDown: move(1),
    ArrowUp: move(-1),
    Home: () => focus(visible()[0]),
    End: () => focus(visible().at(-1)),
  });

  // ---- details
  function sideOf(name, cell) {
    if (!cell) return [heading(name), h("p", { class: "rt-dim" }, "does not have it")];
    return [
      heading(name),
      factList([
        [cell.shape ? "dtype" : "type", h("code", {}, cell.dtype)],
        ["shape", cell.shape && shapeText(cell.shape)],
        [cell.shape ? "values" : "value", cell.text],
        ["storage", cell.shared_with.length ? `shared with ${cell.shared_with.join(", ")}` : null],
      ]),
    ];
  }
  function update() {
    hideSame.checked = model.get("differences");
    for (const { row, tr } of rows) tr.hidden = hideSame.checked && row.verdict === "same";
    const chosen = current();
    for (const item of rows) {
      item.button.setAttribute("tabindex", item === chosen ? 0 : -1);
      item.tr.classList.toggle("rt-on", item === chosen);
      item.button.setAttribute("aria-current", String(item === chosen));
    }
    if (!chosen) {
      detail.replaceChildren(h("p", { class: "rt-dim" }, "No differences."));
      return;
    }
    const { row } = chosen;
    detail.replaceChildren(
      h("p", { class: "rt-dtitle" }, row.name),
      h("p", { class: row.verdict === "same" ? "rt-dim" : "rt-note" }, VERDICTS[row.verdict]),
      ...(row.values ? [h("p", {}, row.values)] : []),
      ...sideOf(leftName, row.left),
      ...sideOf(rightName, row.right),
    );
  }
  return bind(model, ["selected", "differences"], update);
}

export default { render };
