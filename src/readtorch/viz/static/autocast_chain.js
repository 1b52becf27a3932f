// A chain of operators within autocast, one row each: its policy, its casts, and the dtype of its result.
const SHORT = { float16: "f16", bfloat16: "bf16", float32: "f32", float64: "f64" };
const POLICY = {
  lower_precision_fp: "16 bits", fp32: "float32", fp32_set_opt_dtype: "float32, by dtype=", fp32_append_dtype: "float32, by dtype=",
  promote: "promote", banned: "refused",
}; // prettier-ignore
const pill = (dtype) => h("span", { class: `rt-ac-pill rt-ac-${dtype}` }, dtype);

const castItem = ({ of, from, to, found, read, written }) =>
  h("span", { class: found ? "rt-ac-cast rt-ac-found" : "rt-ac-cast" }, h("i", { "aria-hidden": "true" }, found ? "○" : "●"),
    ` ${of} ${SHORT[from]} → ${SHORT[to]}${found ? ", cached" : `, ${bytesText(read + written)}`}`); // prettier-ignore

function row({ name, policy, casts, result, error }, i, on) {
  const word = POLICY[policy] ?? (name in BY_HAND ? "by hand" : on ? "no list" : "off");
  return h("tr", { class: error ? "rt-ac-fails" : "" },
    h("th", { scope: "row" }, h("span", { class: "rt-dim" }, `y${i + 1} `), name),
    h("td", { class: policy ? "" : "rt-dim", title: policy }, word),
    error
      ? h("td", { colspan: 2, class: "rt-ac-error" }, casts.map(castItem), h("b", {}, "error "), error)
      : [h("td", {}, casts.length ? casts.map(castItem) : h("span", { class: "rt-dim" }, "–")), h("td", {}, pill(result))]); // prettier-ignore
}

function table({ result, inputs }) {
  const head = ["operator", "policy", "casts", "result"].map((name) => h("th", { scope: "col" }, name));
  const left = result.left.map((name) => h("tr", { class: "rt-dim" }, h("th", { scope: "row" }, name), h("td", { colspan: 3 }, "not reached")));
  return h("table", { class: "rt-gtable" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, result.steps.map((step, i) => row(step, i, inputs.on)), left)); // prettier-ignore
}

function editing({ inputs, set }) {
  const names = operatorsOf(inputs.chain),
    isFull = names.length === MOST || does(names.at(-1), "ends"),
    index = inputs.device === "cpu" ? 0 : 1,
    offered = NAMES.filter((name) => name !== "binary_cross_entropy" || ["sigmoid", "softmax"].includes(names.at(-1)));
  const groups = Object.entries({ "16 bits": [], float32: [], promote: [], refused: [], "no list": [], "by hand": [] });
  for (const name of offered) {
    const word = name in BY_HAND ? "by hand" : (POLICY[OPERATORS[name][index]] ?? "no list").split(",")[0];
    groups.find(([group]) => group === word)[1].push(name);
  }
  const append = h("select", { class: "rt-select", "data-focus": "append", disabled: isFull, "aria-label": "Append an operator", onchange: (event) => set({ chain: [...names, event.target.value].join(", ") }) },
    h("option", { value: "", selected: true }, "append …"),
    groups.filter(([, own]) => own.length).map(([group, own]) => h("optgroup", { label: group }, own.map((name) => h("option", { value: name }, name))))); // prettier-ignore
  const shorten = h("button", { type: "button", class: "rt-stmt", "data-focus": "shorten", disabled: names.length === 1, onclick: () => set({ chain: names.slice(0, -1).join(", ") }) }, "take the last away"); // prettier-ignore
  return h("p", { class: "rt-ac-edit" }, append, " ", shorten, h("span", { class: "rt-dim" }, " x: ", pill(inputs.dtype), ", weights: ", pill("float32")));
}

const draw = (parts) => h("div", { class: "rt-ac" }, editing(parts), table(parts));

export default { render: figure(model, draw) };
