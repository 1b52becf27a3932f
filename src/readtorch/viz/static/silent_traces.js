// Wrong without a warning: the program with the lines that ran, the graph, and what the function and its trace answer.
const VERDICTS = { right: "✓ the same", wrong: "✗ another result", gradient: "✗ another gradient", fails: "✗ error" };

const sourceLine = ([words, mark]) =>
  h("li", { class: mark ? `rt-tt-${mark}` : null },
    h("span", { class: "rt-tt-mark" }, mark === "ran" ? "▸" : ""), h("code", {}, words)); // prettier-ignore

const graphLine = ([words, note]) =>
  h("li", { class: note ? "rt-tt-frozen" : null },
    note && h("span", { class: "rt-tt-note" }, `from ${note}`), h("code", {}, words)); // prettier-ignore

const card = (name, verdict, ...inside) =>
  h("section", { class: `rt-tt-card ${verdict ? `rt-tt-${verdict}` : ""}`, "aria-label": name },
    h("p", { class: "rt-tt-head" }, h("b", {}, name), verdict && h("span", { class: "rt-tt-verdict" }, VERDICTS[verdict])),
    ...inside); // prettier-ignore

const answer = (lines) => lines.map((line) => h("p", { class: "rt-tt-result" }, line));

const draw = ({ result: { source, lines, verdict, why, ...answers }, inputs }) =>
  h("div", { class: "rt-tt" },
    h("div", { class: "rt-tt-cards rt-tt-two" },
      h("div", {},
        h("ol", { class: "rt-tt-program", "aria-label": "the program; ▸ marks what of the function runs for the example" }, source.map(sourceLine)),
        h("p", { class: "rt-tt-warning" }, "▸ ran for the example."),
        h("details", { class: "rt-tt-warning" }, h("summary", {}, "Why?"), why)),
      card("traced.graph", "", h("ol", { class: "rt-tt-lines", "aria-label": "the graph of the trace" }, lines.map(graphLine)))),
    h("div", { class: "rt-tt-cards" },
      card(`f([${inputs.call.join(", ")}])`, "", ...answer(answers.function)),
      card(`traced([${inputs.call.join(", ")}])`, verdict, ...answer(answers.trace)))); // prettier-ignore

export default { render: figure(model, draw) };
