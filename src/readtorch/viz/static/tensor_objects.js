// A program and its tensors: buttons that write statements, and a table with a column for each tensor.

const ROWS = [
  ["names", (t) => t.names.join(", ") || "none"],
  ["Python count", (t) => String(t.python) + (t.note ? ", note" : "")],
  ["strong count", (t) => String(t.strong)],
  ["held by", (t) => t.owners.join("; ")],
  ["storage_", (t) => `S${t.storage}, ${plural(t.sharers, "tensor")}`],
  ["autograd_meta_", (t) => t.meta],
  ["requires_grad", (t) => (t.requires_grad ? "True" : "False")],
  ["version_counter_", (t) => (t.counter === null ? "null" : `V${t.counter} = ${t.version}`)],
  ["sizes, strides", (t) => `${shapeText(t.shape)}, ${shapeText(t.strides)}`],
  ["key_set_", (t) => t.keys.join(", ")],
];

function objectTable({ statements, steps }, step) {
  const now = steps[step],
    before = step ? steps[step - 1] : [];
  const columns = [...now, ...before.filter((t) => !now.some((other) => other.id === t.id))];
  columns.sort((one, other) => one.id - other.id);
  const isGone = (t) => !now.includes(t);
  const old = (t) => before.find((other) => other.id === t.id);
  const cell = (t, text) => {
    if (isGone(t)) return h("td", { class: "rt-dim" }, "freed");
    const changed = !old(t) || text(old(t)) !== text(t);
    return h("td", { class: changed ? "rt-is-gold" : null }, text(t), changed ? h("span", { class: "rt-vh" }, " (changed)") : null);
  };
  const head = h("tr", {}, h("th", { scope: "col" }, "field"), columns.map((t) => h("th", { scope: "col" }, `T${t.id}`)));
  const body = ROWS.map(([name, text]) => h("tr", {}, h("th", { scope: "row" }, name), columns.map((t) => cell(t, text))));
  const label = step ? `The tensors after ${statements[step - 1]}` : "No tensors yet";
  return h(
    "div",
    { class: "rt-scrollx", tabindex: 0, role: "region", "aria-label": label, "data-focus": "objects" },
    h("table", { class: "rt-objects" }, h("thead", {}, head), h("tbody", {}, body)),
  );
}

function programLines({ statements, failed }, step, go) {
  const line = (statement, i) =>
    h("li", {}, h("button", {
      type: "button", class: `rt-stmt${i + 1 === step ? " rt-is-pick" : ""}${failed && i + 1 === statements.length ? " rt-failed" : ""}`, "data-focus": `line-${i}`,
      "aria-current": i + 1 === step ? "step" : null, onclick: () => go(i + 1),
    }, statement)); // prettier-ignore
  return h("ol", { class: "rt-program", "aria-label": "the program" }, statements.map(line));
}

function statementButtons({ inputs, result, set, go }) {
  const { target: r, operand: a, second: b, mode } = inputs;
  const offered = [
    `${r} = torch.ones(2, 3)`, `${r} = torch.ones(2, 3, requires_grad=True)`, `${r} = torch.ones(2, 3, dtype=torch.complex64)`,
    `${r} = ${a}`, `${r} = ${a}.view(6)`, `${r} = ${a}.detach()`, `${r} = ${a}.data`, `${r} = ${a}.conj()`, `${r} = ${a}.clone()`,
    `${r} = ${a} * ${b}`, `${r} = ${a}.exp()`, `${a}.requires_grad_()`, `${a}.requires_grad_(False)`, `${a}.add_(1)`,
    `${a}.note = 'mine'`, `del ${a}`, `${a}.sum().backward()`, `${r} = ${a}.grad_fn._saved_self`,
    `${r} = ${a}.grad_fn._saved_result`, `${r} = ${a}._base`,
  ]; // prettier-ignore
  const add = (statement) => () => {
    const line = mode ? `with torch.${mode}(): ${statement}` : statement;
    const good = result.failed ? result.statements.slice(0, -1) : result.statements; // a line that failed makes room
    if (!set({ program: [...good, line].join("; ") })) go(good.length + 1);
  };
  const button = (statement, i) =>
    h("button", { type: "button", class: "rt-stmt", "data-focus": `add-${i}`, onclick: add(statement) }, statement);
  const cut = () => {
    const left = result.statements.slice(0, -1);
    if (!set({ program: left.join("; ") })) go(left.length);
  };
  const last = h("button", { type: "button", class: "rt-stmt rt-is-free", "data-focus": "cut", onclick: cut }, "remove the last");
  return h("div", { class: "rt-statements", role: "group", "aria-label": "add a statement" }, offered.map(button), last);
}

const draw = (parts) => [
  statementButtons(parts),
  programLines(parts.result, parts.step, parts.go),
  objectTable(parts.result, parts.step),
];

export default { render: figure(model, draw, { typing: "goes to the last step" }) };
