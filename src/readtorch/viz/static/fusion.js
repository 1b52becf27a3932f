// Fusion viewer: the lines of a graph beside the kernels that they became; what belongs together is marked in both.

function render({ model, el }) {
  const data = model.get("data");
  const operators = data.operators;
  const panes = { graph: [], kernel: [] };
  const choose = (key) => assign(model, "selected", key);

  // A row of either list. Rows without an operator can be reached, too, but mark nothing.
  function row(pane, line, tag) {
    const own = panes[pane];
    const place = own.length;
    const li = h(
      "li",
      { role: "option", tabindex: -1, class: "rt-i-line", onclick: () => go(pane, place) },
      h("i", { class: "rt-i-mark", "aria-hidden": "true" }, tag || " "),
      h("code", { style: "white-space:pre" }, line.text || " "),
    );
    own.push({ li, key: line.key });
    return li;
  }
  function list(pane, label, items) {
    const ol = h("ol", { class: "rt-i-lines", role: "listbox", "aria-label": label }, items);
    onKeys(ol, {
      ArrowDown: () => go(pane, here[pane] + 1),
      ArrowUp: () => go(pane, here[pane] - 1),
      Home: () => go(pane, 0),
      End: () => go(pane, panes[pane].length - 1),
    });
    return h("div", { class: "rt-i-box" }, ol);
  }
  const here = { graph: 0, kernel: 0 };
  function go(pane, to) {
    here[pane] = Math.max(0, Math.min(panes[pane].length - 1, to));
    const { li, key } = panes[pane][here[pane]];
    choose(key);
    settle();
    li.focus({ preventScroll: true });
  }

  const graph = list("graph", "Lines of the graph", data.before.map((line) =>
    row("graph", { ...line, text: "  ".repeat(line.depth) + line.text }, line.group)));
  const kernels = list("kernel", "Lines of the kernels", data.kernels.flatMap(({ group, lines }) =>
    lines.map((line, i) => row("kernel", line, i ? "" : group))));
  const now = h("p", { class: "rt-now", "aria-live": "polite" });
  const after = h("details", {}, h("summary", {}, "The graph after fusion"),
    h("pre", { tabindex: 0 }, data.after.map((line) => `${"  ".repeat(line.depth)}${line.text}\n`).join("")));
  const root = h(
    "div",
    { class: "rt-w rt-ir rt-fusion", role: "group", "aria-label": data.title },
    h("p", { class: "rt-title" }, data.title),
    h("p", { class: "rt-dim" }, `${plural(data.before.filter((l) => l.key >= 0).length, "operator")} in ${plural(data.kernels.length, "group")}`),
    now,
    h("div", { class: "rt-cols rt-f-cols" },
      h("div", {}, heading("graph"), graph),
      h("div", {}, heading("kernels"), kernels)),
    after,
    h("p", { class: "rt-hint" }, "Arrow keys choose a line; the line that it became, or came from, is marked on the other side."),
  );
  el.append(root);

  // One row of each list can have the focus: the one chosen last, or the one that belongs to the choice.
  function settle() {
    for (const pane of ["graph", "kernel"])
      panes[pane].forEach(({ li }, i) => (li.tabIndex = i === here[pane] ? 0 : -1));
  }
  function draw() {
    const key = model.get("selected");
    for (const pane of ["graph", "kernel"]) {
      panes[pane].forEach((each, i) => {
        const on = key >= 0 && each.key === key;
        each.li.classList.toggle("rt-i-chosen", on);
        each.li.setAttribute("aria-selected", String(on));
        if (on) here[pane] = i;
      });
      const { li } = panes[pane][here[pane]] ?? {};
      if (li && key >= 0) reveal(li.closest(".rt-i-box"), li);
    }
    settle();
    const operator = operators[key];
    now.replaceChildren(
      ...(operator
        ? [h("b", {}, operator.kind), ` in group ${operator.group}`, operator.place ? `, from ${operator.place}: ` : "", h("code", {}, operator.source)]
        : ["Choose a line of the graph or of a kernel."]),
    );
  }
  return bind(model, ["selected"], draw);
}

export default { render };
