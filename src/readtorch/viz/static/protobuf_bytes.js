// An ONNX file: its bytes as buttons, and its fields, those of a message below it and further to the right.

function changed({ result, set }, by) {
  const bytes = result.bytes.map((pair, i) => (i === result.chosen ? (parseInt(pair, 16) + by + 256) % 256 : parseInt(pair, 16)));
  set({ bytes: bytes.map((b) => b.toString(16).padStart(2, "0")).join(" ") });
}

function byteButton({ result, set }, pair, i) {
  const { from, at, to } = result.rows[result.holder];
  const kind = i === result.chosen ? "rt-pb-chosen" : i >= from && i < at ? "rt-pb-head" : i >= from && i < to ? "rt-pb-value" : "";
  return h("button", { type: "button", class: `rt-pb-byte ${kind}`, "data-focus": `byte-${i}`, "aria-label": `byte ${i}: ${pair}`, "aria-pressed": String(i === result.chosen), onclick: () => set({ at: i }) }, pair); // prettier-ignore
}

function fieldRow({ result, set }, row, i) {
  const name = row.name || "?";
  return h("tr", { class: i === result.holder ? "rt-pb-holder" : "", onclick: () => set({ at: row.from }) },
    h("td", { class: "rt-dim" }, String(row.from)),
    h("td", { class: "rt-pb-name" }, "· ".repeat(row.depth), h("b", {}, name)),
    h("td", {}, `${row.number}`), h("td", {}, `${row.wire}`), h("td", { class: "rt-pb-text" }, row.value)); // prettier-ignore
}

const draw = (parts) => {
  const step = (by, words) => h("button", { type: "button", class: "rt-stmt", "data-focus": `step${by}`, onclick: () => changed(parts, by) }, words);
  const head = ["byte", "field", "no.", "wire", "value"].map((name) => h("th", { scope: "col" }, name));
  return h("div", { class: "rt-pb" },
    h("p", { class: "rt-pb-edit" }, step(-1, "− 1"), " ", step(1, "+ 1"), h("span", { class: "rt-dim" }, ` the chosen byte, ${parts.result.bytes[parts.result.chosen]}`)),
    h("div", { class: "rt-pb-bytes", role: "group", "aria-label": "the bytes" }, parts.result.bytes.map((pair, i) => byteButton(parts, pair, i))),
    h("table", { class: "rt-gtable" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, parts.result.rows.map((row, i) => fieldRow(parts, row, i))))); // prettier-ignore
};

export default { render: figure(model, draw) };
