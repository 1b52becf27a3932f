// A weight, and who notices: the program, lines to insert, and a row for every object that somebody holds.
const INSERTS = [
  "with torch.no_grad(): net.weight.mul_(0.5)",
  "net.weight.data.mul_(0.5)",
  "net.weight.data = net.weight * 0.5",
  "net.weight = torch.nn.Parameter(net.weight * 0.5)",
  "v = net.weight.detach()",
  "v = copy.copy(net.weight)",
  "v.mul_(0.5)",
  "net.double()",
];

function programLines({ result, step, go }) {
  const { line } = result.steps[step],
    reached = result.steps.at(-1).line;
  const row = (text, i) => {
    const failed = result.failed && i === reached ? " rt-failed" : "";
    return h("li", {}, h("button", {
      type: "button", class: `rt-stmt${i === line ? " rt-is-pick" : ""}${failed}${i > reached ? " rt-unrun" : ""}`,
      "data-focus": `line-${i}`, "aria-current": i === line ? "step" : null, onclick: () => go(Math.min(i + 1, result.steps.length - 1)),
    }, text)); // prettier-ignore
  };
  return h("ol", { class: "rt-program", "aria-label": "the program" }, result.lines.map(row));
}

// What can be written behind the line that is looked at.
function insertions({ result, step, set, go, focus }) {
  const { lines } = result,
    { line } = result.steps[step];
  const change = (program, at) => () => {
    if (set({ program })) return;
    go(at + 1);
    focus(`line-${Math.max(0, at)}`);
  };
  const button = (key, text, act) => h("button", { type: "button", class: "rt-stmt", "data-focus": key, onclick: act }, text);
  return h(
    "div",
    { class: "rt-statements", role: "group", "aria-label": "insert a line below" },
    h("span", { class: "rt-dim" }, "insert below:"),
    INSERTS.map((text, i) => button(`insert-${i}`, text, change(lines.toSpliced(line + 1, 0, text).join("; "), line + 1))),
    line >= 0 && button("remove", "remove the line", change(lines.toSpliced(line, 1).join("; "), line - 1)),
  );
}

function objectTable({ result, step }) {
  const { rows } = result.steps[step],
    before = result.steps[step - 1]?.rows ?? rows;
  const cell = (row, text, key) => {
    const old = before.find(({ number }) => number === row.number);
    const fresh = !old || String(old[key]) !== String(row[key]);
    return h("td", { class: fresh && step > 0 ? "rt-is-gold" : null }, text);
  };
  const memory = ({ memory }) => h("span", { class: `rt-pk-memory rt-pk-m${memory % 6}` }, `M${memory}`);
  return h(
    "div",
    { class: "rt-scrollx", tabindex: 0, role: "group", "aria-label": "the objects", "data-focus": "objects" },
    h("table", { class: "rt-gtable" },
      h("thead", {}, h("tr", {}, ["object", "held by", "memory", "version", "autograd", "values", ".grad"].map((one) => h("th", { scope: "col" }, one)))),
      h("tbody", {}, rows.map((row) => h("tr", {},
        h("th", { scope: "row" }, `${row.number} ${row.kind}`),
        cell(row, row.holders.map((one) => h("div", {}, one)), "holders"), cell(row, memory(row), "memory"), cell(row, `v${row.version}`, "version"),
        cell(row, row.graph || "–", "graph"), cell(row, [row.values, row.dtype === "float64" && h("div", { class: "rt-dim" }, row.dtype)], "values"), cell(row, [row.grad || "–", row.grad_dtype && h("div", { class: "rt-dim" }, row.grad_dtype)], "grad"))))),
  ); // prettier-ignore
}

const draw = (parts) =>
  h("div", { class: "rt-gx rt-pk" }, h("div", {}, programLines(parts), insertions(parts)), objectTable(parts));

export default { render: figure(model, draw, { typing: "goes to the last step" }) };
