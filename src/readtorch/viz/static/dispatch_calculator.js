// From key sets to kernels: a line for each key, with its sets and its entries, and beside it the hops of both libraries.

const SET_SIGNS = [
  ["carried", "•", "carried by an operand"],
  ["included", "+", "added by the thread"],
  ["excluded", "−", "taken away by the thread"],
];

function keyTable({ rows, hops, known }, step, go) {
  const now = step ? hops[step - 1].key : null;
  const stepButton = (i) =>
    h("button", {
      type: "button", class: `rt-hop${i === step ? " rt-is-pick" : ""}`, "data-focus": `hop-${i}`, "aria-current": i === step ? "step" : null,
      "aria-label": `hop ${i}: ${hops[i - 1].key}`, onclick: () => go(i),
    }, String(i)); // prettier-ignore
  const sign = ([fact, face, words], row) =>
    row[fact] ? [h("span", { "aria-hidden": "true", title: words }, face), h("span", { class: "rt-vh" }, `${words} `)] : null;
  const line = (row) =>
    h(
      "tr",
      { class: row.key === now ? "rt-now-row" : row.left ? "rt-left-row" : "rt-dim", "aria-current": row.key === now ? "true" : null },
      h("th", { scope: "row" }, row.key),
      h("td", { class: "rt-signs" }, SET_SIGNS.map((one) => sign(one, row))),
      h("td", {}, row.torch.entry, row.skipped ? h("span", { class: "rt-vh" }, ", masked off") : null),
      h("td", {}, row.torch.hops.map(stepButton)),
      known ? h("td", {}, row.ours.entry) : null,
      known ? h("td", {}, row.ours.hops.map((i) => h("span", { class: "rt-hop" }, String(i)))) : null,
    );
  const titles = ["key", "sets", "PyTorch", "hop", ...(known ? ["readtorch", "hop"] : [])];
  const head = h("tr", {}, titles.map((title) => h("th", { scope: "col" }, title)));
  return h(
    "div",
    { class: "rt-scrollx", tabindex: 0, role: "region", "aria-label": "the keys and their entries", "data-focus": "keys" },
    h("table", { class: "rt-keytable" }, h("thead", {}, head), h("tbody", {}, rows.map(line))),
    h("p", { class: "rt-dim" }, SET_SIGNS.map(([, face, words]) => `${face} ${words}`).join(", ")),
  );
}

function hopList(title, hops, chosen) {
  const item = ({ key, how, keys, kind, place }, i) =>
    h(
      "li",
      { class: i + 1 === chosen ? "rt-now-row" : null },
      h("b", {}, key),
      h("span", { class: "rt-dim" }, ` ${how}, keys ${listedKeys(keys)}`),
      h("br"),
      `${kind}${place ? `, ${place}` : ""}`,
    );
  return h("div", {}, h("p", { class: "rt-title" }, title), h("ol", {}, hops.map(item)));
}

const draw = ({ result, step, go }) =>
  h(
    "div",
    { class: "rt-dispatch" },
    keyTable(result, step, go),
    h(
      "div",
      { class: "rt-hoplists" },
      hopList("Hops in PyTorch", result.hops, step),
      result.known ? hopList("Hops in readtorch", result.ours, 0) : h("p", { class: "rt-dim" }, "readtorch has no such operator."),
    ),
  );

export default { render: figure(model, draw) };
