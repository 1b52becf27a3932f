// load_state_dict, name by name: the lines of the checkpoint, a row for each name, and what PyTorch says.
const HAPPENS = { copied: "copied", shape: "another shape", missing: "missing", unexpected: "unexpected" };
const LOOKS = { copied: "rt-is-pale", shape: "rt-is-gold", missing: "rt-is-gold", unexpected: "rt-is-gold" };

function lineEditor(written, { set, focus }) {
  const id = uniqueId("lines");
  const typed = () => {
    const { value, selectionStart, selectionEnd } = area;
    if (set({ checkpoint: "own", written: value })) return;
    focus("lines"); // the field is a new one now: typing goes on in it, at the same place
    const now = document.activeElement;
    if (now?.dataset.focus !== "lines") return;
    now.value = value;
    now.setSelectionRange(selectionStart, selectionEnd);
  };
  const area = h("textarea", {
    id, rows: Math.max(5, written.split("\n").length), spellcheck: "false", "data-focus": "lines", oninput: typed,
  }); // prettier-ignore
  area.value = written;
  area.addEventListener("keydown", (event) => event.ctrlKey || event.metaKey || event.stopPropagation()); // Ctrl+Z is the figure's
  return h("div", {}, h("label", { class: "rt-pm-head", for: id }, "the checkpoint: change a name or a shape"), area);
}

function nameTable({ rows }) {
  const shape = (one) => h("td", {}, one ? shapeText(one) : h("span", { class: "rt-dim" }, "none"));
  const head = ["name", "model", "checkpoint", "loading"].map((text) => h("th", { scope: "col" }, text));
  const row = (one) => h("tr", {}, h("th", { scope: "row" }, one.name), shape(one.own), shape(one.saved), h("td", { class: LOOKS[one.verdict] }, HAPPENS[one.verdict]));
  return h("div", { class: "rt-scrollx", tabindex: 0, role: "group", "aria-label": "the names", "data-focus": "names" },
    h("table", { class: "rt-ld-names" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows.map(row)))); // prettier-ignore
}

function draw({ result, set, focus }) {
  const said = h("pre", { class: "rt-ld-said", tabindex: 0, "data-focus": "said" }, result.lines.join("\n"));
  return h("div", { class: "rt-ld" }, lineEditor(result.written, { set, focus }), nameTable(result), said);
}

export default { render: figure(model, draw) };
