// One entry, and all code that comes from it: the pieces at the left, the chosen one at the right, PyTorch's and the reader's.
// `extra`: { entries: [[name, inputs]], pieces: { name: { piece: [[file, text]] } } }, PyTorch's from its own generator.
const ROWS = [
  ["schema", "the schema, registered", ["registrations"]],
  ["call", "the way into the dispatcher", []],
  ["function", "function of Python", ["function"]],
  ["method", "method of Python", ["methods"]],
  ["cpp", "the same for C++", []],
  ["cpu", "kernels for the CPU", ["kernels"]],
  ["meta", "kernel for Meta", []],
  ["default", "kernel for other backends", []],
  ["composite", "one kernel for all", []],
  ["autograd", "kernel that records", ["autograd"]],
  ["node", "node of the graph", ["node"]],
  ["inplace", "counts versions, marks views", []],
  ["view", "how to make the view again", []],
  ["functionalize", "makes writes into values", []],
  ["vmap", "wraps a batch rule", []],
  ["trace", "kernel that traces", []],
  ["pyi", "stub for type checkers", []],
];

const listing = (head, text, key) =>
  h("div", { class: "rt-listing" }, h("p", { class: "rt-dim" }, head),
    h("pre", { class: "rt-scrollx", tabindex: 0, "data-focus": key, "aria-label": head }, text)); // prettier-ignore

function pieceButton([key, label, mine], theirs, pieces, chosen, set) {
  const here = mine.some((one) => one in pieces);
  const there = theirs && key in theirs;
  const who = [there && "PyTorch", here && "mini"].filter(Boolean).join(", ");
  return h("li", {}, h("button", {
    type: "button", "data-focus": `piece-${key}`, "aria-pressed": String(key === chosen),
    class: `rt-piece ${key === chosen ? "rt-is-pick" : here || there ? "rt-is-plain" : "rt-is-free"}`,
    onclick: () => set({ piece: key }),
  }, h("span", {}, label), h("small", {}, who || (theirs ? "not made" : "–")))); // prettier-ignore
}
function entryList(extra, name, set) {
  const known = (extra?.entries ?? []).some(([one]) => one === name);
  const list = h("select", {
    class: "rt-select", "aria-label": "a real entry", "data-focus": "entry",
    onchange: () => {
      const found = extra.entries.find(([one]) => one === list.value);
      if (found) set(found[1]);
    },
  }, !known && h("option", { value: "" }, "yours"), (extra?.entries ?? []).map(([one]) => h("option", { value: one }, one))); // prettier-ignore
  list.value = known ? name : "";
  return h("label", { class: "rt-entries" }, h("span", {}, "PyTorch's entry "), list);
}
// PyTorch's files are shown for its own schema alone.
const theirPieces = (extra, inputs, name) =>
  (extra?.entries ?? []).some(([one, { schema }]) => one === name && schema === inputs.schema) ? (extra.pieces[name] ?? {}) : null;

const draw = ({ result, inputs, set, extra }) => {
  const theirs = theirPieces(extra, inputs, result.name);
  const [key, , mine] = ROWS.find(([one]) => one === inputs.piece);
  const found = theirs?.[key];
  const none = theirs ? "PyTorch generates nothing of this kind for this entry." : extra
    ? "This is no entry of PyTorch's list, so there is no text of its generators to show." : "PyTorch's files are shown in the built page."; // prettier-ignore
  const own = theirs && extra.entries.find(([one]) => one === result.name)[1];
  const edited = own && ["variants", "structured", "formulas"].some((one) => own[one] !== inputs[one]);
  const about = edited && found ? h("p", { class: "rt-dim" }, "PyTorch's text is that of its own entry, without your changes.") : null;
  const made = /struct TORCH_API (\w+)/.exec(theirs?.node?.map(([, text]) => text).join("\n"))?.[1];
  const nothing = made && !result.pieces.node && mine.some((one) => one === "node" || one === "autograd")
    ? `No formula is given here, so your generator writes nothing of this kind. PyTorch's formulas make ${made}.`
    : "Your generator writes nothing of this kind."; // prettier-ignore
  const ours = mine.filter((one) => one in result.pieces).map((one) => result.pieces[one]).join("\n\n");
  return [
    extra && entryList(extra, theirs ? result.name : "", set),
    h("div", { class: "rt-pieces" },
      h("ul", {}, ROWS.map((row) => pieceButton(row, theirs, result.pieces, key, set))),
      h("div", {},
        found ? found.map(([file, text], i) => listing(file, text, `theirs-${i}`)) : h("p", { class: "rt-dim" }, none),
        about,
        ours ? listing("what your generator writes", ours, "ours")
          : h("p", { class: "rt-dim" }, nothing))),
  ]; // prettier-ignore
};

export default { render: figure(model, draw, { together: true }) };
