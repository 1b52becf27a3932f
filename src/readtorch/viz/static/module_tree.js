// Module tree: what a module holds, as an ARIA tree; the details of the chosen entry beside it.

const MARK = { module: "M", parameter: "P", buffer: "B", attribute: "a" };
const WHERE = {
  _parameters: "self._parameters",
  _buffers: "self._buffers",
  _modules: "self._modules",
  __dict__: "the plain self.__dict__",
};

function render({ model, el }) {
  const data = model.get("data"),
    items = []; // in the order of the tree
  const tree = h(
    "ul",
    { role: "tree", class: "rt-tree", "aria-label": `${data.title}: ${data.root.type}` },
    drawItem(data.root, 1, null),
  );
  // plain attributes can be hidden, except those that hide something themselves
  const plain = h("input", {
    type: "checkbox",
    checked: true,
    onchange: () => {
      for (const item of items)
        if (item.entry.kind === "attribute" && !item.entry.warning) item.li.hidden = !plain.checked;
      if (!visible().includes(current())) assign(model, "selected", "");
      update();
    },
  });
  const treeBox = h("div", { class: "rt-treebox" }, tree),
    detail = detailBox();
  const root = h(
    "div",
    { class: "rt-w rt-moduletree", role: "group", "aria-label": data.title },
    h("p", { class: "rt-title" }, data.title),
    h(
      "div",
      { class: "rt-bar" },
      h("button", { type: "button", class: "rt-btn", onclick: () => unfold(true) }, "Open all"),
      h("button", { type: "button", class: "rt-btn", onclick: () => unfold(false) }, "Close all"),
      h("label", { class: "rt-check" }, plain, " plain attributes"),
    ),
    h("div", { class: "rt-cols" }, treeBox, detail),
    h(
      "div",
      { class: "rt-legend", "aria-hidden": "true" },
      Object.entries(MARK).map(([kind, mark]) =>
        h(
          "span",
          {},
          h("b", { class: `rt-mk rt-k-${kind}` }, mark),
          kind === "attribute" ? "plain attribute" : kind,
        ),
      ),
    ),
    h(
      "p",
      { class: "rt-hint" },
      "Keys: up and down move, right opens, left closes, * opens all; a letter jumps to a name.",
    ),
  );
  el.append(root);

  function drawItem(entry, level, parent) {
    const item = { entry, parent, children: [], open: level < 3 };
    items.push(item);
    const note = entry.shared_with.length ? h("span", { class: "rt-badge" }, "shared") : null;
    const evaluating = entry.evaluating ? h("span", { class: "rt-badge" }, "eval") : null;
    const warn = entry.warning
      ? h("span", { class: "rt-badge rt-warn" }, entry.warning.split(/[:,]/)[0])
      : null;
    item.row = h(
      "div",
      { class: "rt-trow" },
      h("span", { class: "rt-twist", "aria-hidden": "true" }),
      h("b", { class: `rt-mk rt-k-${entry.kind}`, "aria-hidden": "true" }, MARK[entry.kind]),
      " ",
      h("code", {}, entry.name),
      " ",
      h("span", { class: "rt-vh" }, entry.kind),
      " ",
      entry.kind === "parameter" || entry.kind === "buffer"
        ? null
        : h("span", { class: "rt-ttype" }, entry.type),
      " ",
      h("span", { class: "rt-dim" }, entry.text),
      " ",
      note,
      " ",
      evaluating,
      " ",
      warn,
    );
    item.li = h(
      "li",
      { role: "treeitem", tabindex: -1, "aria-level": level, "aria-selected": "false" },
      item.row,
    );
    item.li.addEventListener("focus", () => assign(model, "selected", entry.path));
    item.row.addEventListener("click", () => {
      if (entry.children.length) toggle(item, !item.open);
      focus(item);
    });
    if (entry.children.length) {
      item.li.setAttribute("aria-expanded", String(item.open));
      item.group = h(
        "ul",
        { role: "group", hidden: !item.open },
        entry.children.map((child) => {
          const li = drawItem(child, level + 1, item);
          item.children.push(items.find((other) => other.entry === child));
          return li;
        }),
      );
      item.li.append(item.group);
    }
    return item.li;
  }
  function toggle(item, open) {
    if (!item.group) return;
    item.open = open;
    item.group.hidden = !open;
    item.li.setAttribute("aria-expanded", String(open));
  }
  function unfold(open) {
    items.forEach((item) => toggle(item, open || !item.parent));
    if (!visible().includes(current())) assign(model, "selected", "");
  }

  // ---- moving
  const current = () => items.find((item) => item.entry.path === model.get("selected")) ?? items[0];
  const visible = () =>
    items.filter((item) => {
      for (let up = item.parent; up; up = up.parent) if (!up.open) return false;
      return !item.li.hidden;
    });
  function focus(item) {
    if (!item) return;
    item.li.focus({ preventScroll: true });
    reveal(treeBox, item.row);
  }
  const move = (by) => () => focus(visible()[visible().indexOf(current()) + by]);
  function jump(letter) {
    const list = visible(),
      at = list.indexOf(current());
    focus(
      [...list.slice(at + 1), ...list.slice(0, at + 1)].find((item) =>
        item.entry.name.toLowerCase().startsWith(letter),
      ),
    );
  }
  function goTo(path) {
    const item = items.find((other) => other.entry.path === path);
    for (let up = item.parent; up; up = up.parent) toggle(up, true);
    focus(item);
  }
  onKeys(tree, {
    ArrowDown: move(1),
    ArrowUp: move(-1),
    Home: () => focus(items[0]),
    End: () => focus(visible().at(-1)),
    ArrowRight: () =>
      current().group && !current().open
        ? toggle(current(), true)
        : focus(current().children.find((child) => !child.li.hidden)),
    ArrowLeft: () => (current().group && current().open ? toggle(current(), false) : focus(current().parent)),
    Enter: () => toggle(current(), !current().open),
    " ": () => toggle(current(), !current().open),
    "*": () => unfold(true),
  });
  tree.addEventListener("keydown", (event) => {
    if (event.key.length === 1 && /\w/.test(event.key) && !event.ctrlKey && !event.metaKey && !event.altKey) {
      jump(event.key.toLowerCase());
      event.stopPropagation();
    }
  });

  // ---- details
  function detailOf(entry) {
    const facts = entry.facts.map(([name, value]) => [
      name,
      value.includes("\n") ? h("pre", { tabindex: 0 }, value) : value,
    ]);
    return [
      h("p", { class: "rt-dtitle" }, entry.path || entry.name),
      h("p", { class: "rt-dim" }, `${entry.kind}, ${entry.type}`),
      entry.lives_in && h("p", {}, "lives in ", h("code", {}, WHERE[entry.lives_in])),
      entry.warning && h("p", { class: "rt-note" }, entry.warning),
      entry.shared_with.length
        ? h(
            "p",
            { class: "rt-note" },
            "the same object as ",
            entry.shared_with.map((path, i) => [
              i ? ", " : "",
              linkButton(path || "(the root)", () => goTo(path)),
            ]),
          )
        : null,
      factList(facts),
    ].filter(Boolean);
  }
  function update() {
    const chosen = current();
    for (const item of items) {
      item.li.setAttribute("tabindex", item === chosen ? 0 : -1);
      item.li.setAttribute("aria-selected", String(item === chosen));
      item.row.classList.toggle("rt-on", item === chosen);
    }
    detail.replaceChildren(...detailOf(chosen.entry));
  }
  return bind(model, ["selected"], update);
}

export default { render };
