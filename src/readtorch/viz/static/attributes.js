// Where does it go? Buttons that write statements, the questions of the one that is looked at, and the dictionaries.

const WRITTEN = (x) => [
  `m.${x} = nn.Parameter(torch.ones(2))`, `m.${x} = nn.Linear(2, 1)`, `m.${x} = nn.Buffer(torch.ones(2))`,
  `m.${x} = nn.Buffer(torch.ones(2), persistent=False)`, `m.${x} = torch.ones(2)`, `m.${x} = None`, `m.${x} = 3`,
  `m.${x} = [nn.Linear(2, 1)]`, `m.${x} = nn.ModuleList([nn.Linear(2, 1)])`, `m.${x} = m.${x === "x" ? "y" : "x"}`, `m.${x}`,
  `del m.${x}`, `m.register_buffer("${x}", torch.ones(2))`, `m.register_parameter("${x}", None)`, `m.add_module("${x}", nn.ReLU())`,
  `setattr(m, "a.${x}", nn.ReLU())`, `m.${x} = m`,
  "m.__init__()", "m = nn.Module.__new__(nn.Module)",
]; // prettier-ignore

function buttons({ inputs, result, set, go }) {
  const { statements } = result;
  const write = (lines) => () => {
    if (!set({ program: lines.join("; ") })) go(lines.length);
  };
  const button = (statement, i) =>
    h("button", { type: "button", class: "rt-stmt", "data-focus": `add-${i}`, onclick: write([...statements, statement]) }, statement);
  const cut = { type: "button", class: "rt-stmt rt-is-free", "data-focus": "cut", onclick: write(statements.slice(0, -1)) };
  return h(
    "div",
    { class: "rt-statements", role: "group", "aria-label": "add a statement" },
    h("button", cut, "remove the last"),
    WRITTEN(inputs.target).map(button),
  );
}

function lines({ statements, steps }, step, go) {
  const line = (statement, i) =>
    h("li", {}, h("button", {
      type: "button", class: `rt-stmt${i + 1 === step ? " rt-is-pick" : ""}${steps[i + 1].error ? " rt-failed" : ""}`,
      "data-focus": `line-${i}`, "aria-current": i + 1 === step ? "step" : null, onclick: () => go(i + 1),
    }, statement, steps[i + 1].error ? h("span", { class: "rt-vh" }, " (an error)") : null)); // prettier-ignore
  const list = h("ol", { class: "rt-program", "aria-label": "the program" }, statements.map(line));
  requestAnimationFrame(() => step && reveal(list, list.children[step - 1]));
  return list;
}

function questions({ rows }) {
  const answer = (row) => (row.code === "raise" || row.answer.includes("Error: ") ? "rt-failed-row" : row.answer === "no" ? "rt-dim" : "rt-yes");
  const one = (row) =>
    h(
      "tr",
      { class: answer(row) },
      h("td", {}, row.line ? String(row.line) : ""),
      answer(row) === "rt-failed-row"
        ? h("td", { colspan: 2 }, h("code", {}, row.code), ` ${row.answer}`)
        : [h("td", {}, h("code", {}, row.code)), h("td", {}, row.answer)],
    );
  const head = h("tr", {}, ["line", "module.py", ""].map((words) => h("th", { scope: "col" }, words || h("span", { class: "rt-vh" }, "answer"))));
  const list = h(
    "div",
    { class: "rt-questions", tabindex: 0, role: "region", "aria-label": "the questions, one after the other", "data-focus": "questions" },
    rows.length ? h("table", {}, h("thead", {}, head), h("tbody", {}, rows.map(one))) : h("p", { class: "rt-dim" }, "Choose a statement."),
  );
  requestAnimationFrame(() => (list.scrollTop = list.scrollHeight)); // the answer that decides is the last
  return list;
}

function dictionaries({ steps }, step) {
  const now = steps[step],
    before = steps[Math.max(0, step - 1)];
  const had = (i, [name, text]) => before.files[i]?.some(([other, words]) => other === name && words === text);
  const left = (i) => (before.files[i] ?? []).filter(([name]) => !now.files[i]?.some(([other]) => other === name));
  const entry = (i) => ([name, text]) =>
    h("span", { class: had(i, [name, text]) ? "rt-entry" : "rt-entry rt-is-gold" }, `${name}: ${text}`, had(i, [name, text]) ? null : h("span", { class: "rt-vh" }, " (new)"));
  const gone = ([name]) => h("span", { class: "rt-entry rt-is-free" }, h("s", {}, name), h("span", { class: "rt-vh" }, " (gone)"));
  const file = (name, i) => {
    const entries = now.files[i];
    const words = entries === null ? "not there" : entries.length || left(i).length ? null : "empty";
    return h("div", { class: "rt-file" }, h("b", {}, name), words ? h("span", { class: "rt-dim" }, words) : [(entries ?? []).map(entry(i)), left(i).map(gone)]);
  };
  const error = (words) => h("span", { class: "rt-dim" }, words);
  const row = (label, names) => h("div", { class: "rt-file" }, h("b", {}, label), names === null ? error("AttributeError") : typeof names === "string" ? error(names) : names.join(", ") || h("span", { class: "rt-dim" }, "nothing"));
  return h(
    "div",
    { class: "rt-files", role: "group", "aria-label": "the dictionaries" },
    FILES.map(file),
    now.unsaved.length ? row("not saved", now.unsaved) : null,
    row("named_parameters()", now.parameters),
    row("state_dict()", now.saved),
  );
}

const draw = (parts) => [
  buttons(parts),
  lines(parts.result, parts.step, parts.go),
  h("div", { class: "rt-attributes" }, questions(parts.result.steps[parts.step]), dictionaries(parts.result, parts.step)),
];

export default { render: figure(model, draw, { typing: "goes to the last step" }) };
