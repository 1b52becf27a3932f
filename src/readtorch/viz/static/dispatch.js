// Dispatch stepper: one operator call, step by step, with the key sets at every step.

const sourceTitle = ({ name, file, first }) =>
  ({ generated: `${name}, generated`, cell: `${name}, line ${first} of the cell` })[file] ?? `${name}, ${file}:${first}`;

// Does the operator's name stand above this step? It does where a call of an operator begins.
function startsCall(steps, i) {
  const begins = (title) => title === "entry" || title.startsWith("through");
  return begins(steps[i].title) && !steps[i - 1].title.startsWith("through");
}

function render({ model, el }) {
  const data = model.get("data"),
    { steps, keys } = data;
  const step = () => model.get("step");
  const goTo = (to) => assign(model, "step", to);

  const play = player({ last: steps.length - 1, what: "the call", get: step, set: goTo, milliseconds: 1800 });
  const buttons = steps.map((one, i) =>
    h(
      "button",
      {
        type: "button",
        class: "rt-stepname",
        onclick: () => {
          play.stop();
          goTo(i);
        },
      },
      h("span", { class: "rt-n" }, String(i)),
      " ",
      one.title,
    ),
  );
  const list = h(
    "ol",
    { class: "rt-steps", "aria-label": "Steps of the call" },
    buttons.map((button, i) => {
      const first = startsCall(steps, i);
      return h(
        "li",
        { style: `margin-left:${steps[i].depth * 0.9}rem` },
        first ? h("span", { class: "rt-opname" }, steps[i].operator) : null,
        button,
      );
    }),
  );
  const listBox = h("div", { class: "rt-stepbox" }, list),
    stage = h("div", { class: "rt-stage" });
  const cut = data.left_out
    ? h("p", { class: "rt-dim" }, `${plural(data.left_out, "further operator call")} left out.`)
    : null;
  const root = h(
    "div",
    { class: "rt-w rt-dispatch", role: "group", "aria-label": data.title },
    h("p", { class: "rt-title" }, data.title),
    h("div", { class: "rt-bar" }, play.buttons),
    play.slider,
    play.now,
    h("div", { class: "rt-cols rt-cols-left" }, listBox, stage),
    cut,
    h("p", { class: "rt-hint" }, KEY_HINT, " Tab goes through the steps, Enter shows one."),
  );
  el.append(root);
  onKeys(root, play.keys);

  // ---- the table of keys: a row for each key, highest priority first; a column for each set
  function keyTable(one) {
    const inUse = keys.filter(({ bit }) => one.columns.some(([, set]) => set & bit));
    const head = h(
      "tr",
      {},
      h("th", { scope: "col" }, "key"),
      one.columns.map(([label]) => h("th", { scope: "col" }, h("code", {}, label))),
    );
    const rows = inUse.map(({ name, bit }) =>
      h(
        "tr",
        { class: bit === one.chosen ? "rt-chosenkey" : null },
        h(
          "th",
          { scope: "row" },
          name,
          bit === one.chosen ? h("span", { class: "rt-badge" }, "highest") : null,
        ),
        one.columns.map(([, set]) => (set & bit ? h("td", { class: "rt-has" }, "yes") : h("td", {}, "–"))),
      ),
    );
    return h(
      "div",
      { class: "rt-scrollx", tabindex: 0, role: "group", "aria-label": "Keys in each set" },
      h("table", { class: "rt-keys" }, h("thead", {}, head), h("tbody", {}, rows)),
    );
  }
  const pairs = (title, entries) => [
    heading(title),
    h(
      "dl",
      {},
      entries.map(([name, value]) => [h("dt", {}, name), h("dd", {}, h("code", {}, value))]),
    ),
  ];
  const keyNames = (set) =>
    keys
      .filter(({ bit }) => set & bit)
      .map(({ name }) => name)
      .join(" | ") || "no key";

  function stageOf(one) {
    const source = one.source && [
      heading(sourceTitle(one.source)),
      codeBlock(one.source.lines, one.source.first, one.mark),
      one.source.cut ? h("p", { class: "rt-dim" }, "…") : null,
    ];
    return [
      h("p", { class: "rt-dtitle" }, one.title),
      h("p", {}, one.text),
      one.columns.length ? keyTable(one) : null,
      one.operands.length ? [heading("values"), h("ul", {}, one.operands.map(tensorItem))] : null,
      one.registered.length ? pairs("registered for this operator", one.registered) : null,
      one.table.length
        ? pairs(
            "resolved so far (key set: kernel)",
            one.table.map(([set, name]) => [keyNames(set), name]),
          )
        : null,
      source,
    ]
      .flat(2)
      .filter(Boolean);
  }
  function update() {
    const one = steps[step()];
    buttons.forEach((button, i) => {
      if (i === step()) button.setAttribute("aria-current", "step");
      else button.removeAttribute("aria-current");
    });
    reveal(listBox, buttons[step()]);
    play.show(h("b", {}, one.operator), ` ${one.title}`);
    stage.replaceChildren(...stageOf(one));
  }
  const unbind = bind(model, ["step"], update);
  return () => {
    play.stop();
    unbind();
  };
}

export default { render };
