// One example, three recordings: the function with the lines that ran, and a card for each tracer.
const VERDICTS = { right: "✓ right", wrong: "✗ wrong", fails: "✗ error", none: "not recorded" };

function sourcePane({ source, ran, wanted }, inputs) {
  const called = listText(inputs.call);
  const line = (words, i) =>
    h("li", { class: ran.includes(i) ? "rt-tt-ran" : i ? "rt-tt-missed" : null },
      h("span", { class: "rt-tt-mark" }, ran.includes(i) ? "▸" : ""), h("code", {}, words)); // prettier-ignore
  return h("div", { class: "rt-tt-source" },
    h("ol", { "aria-label": "the function; ▸ marks what runs for the example" }, source.map(line)),
    h("p", {}, "▸ ran for the example. ", h("b", {}, `For ${called} it returns ${wanted}.`))); // prettier-ignore
}

function card({ name, lines, warning, error, hint, result, verdict }) {
  const row = ([words, note]) =>
    h("li", { class: note ? "rt-tt-frozen" : null },
      note && h("span", { class: "rt-tt-note" }, `from ${note}`), h("code", {}, words)); // prettier-ignore
  return h("section", { class: `rt-tt-card rt-tt-${verdict}`, "aria-label": name },
    h("p", { class: "rt-tt-head" }, h("b", {}, name), h("span", { class: "rt-tt-verdict" }, VERDICTS[verdict])),
    lines.length > 0 && h("ol", { class: "rt-tt-lines", "aria-label": `what ${name} recorded` }, lines.map(row)),
    warning && h("p", { class: "rt-tt-warning" }, warning),
    error && h("p", { class: "rt-tt-warning" }, error),
    hint && h("p", { class: "rt-tt-warning" }, hint),
    result && h("p", { class: "rt-tt-result" }, verdict === "fails" ? result : `returns ${result}`)); // prettier-ignore
}

const draw = ({ result, inputs }) =>
  h("div", { class: "rt-tt" }, sourcePane(result, inputs), h("div", { class: "rt-tt-cards" }, result.made.map(card)));

export default { render: figure(model, draw) };
