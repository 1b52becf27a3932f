// A scripted program, and its graph before and after each pass.
const LINE_STATES = { "": ["", ""], new: ["+", "new"], changed: ["~", "changed"], gone: ["−", "gone"] };
const VERDICT_WORDS = { right: "", wrong: ": wrong", inputs: ": x differs" };

// The program with the reader's constants.
function programText({ count, a, b, write }) {
  const lines = [
    "# called with x = [[0.5, -1], [2, 0]], n = 10",
    "def wasteful(x, n: int):",
    "    unused = sine(x)  # sine(x): x.sin()",
    "    y = x.t().t().exp()",
    `    for i in range(${count}):`,
    `        y = y + x.exp() * (i * ${a} + ${b})`,
  ];
  return h("pre", { class: "rt-sp-program", tabindex: 0 }, [...lines, ...(write ? ["        x.neg_()"] : []), "    return y"].join("\n"));
}

function graphLine({ text, depth, state }) {
  const [mark, word] = LINE_STATES[state];
  return h("li", { class: `rt-fx-line rt-fx-${state || "plain"}`, style: `padding-left:${1.4 + depth * 0.9}em` },
    h("i", { class: "rt-sp-mark", "aria-hidden": "true" }, mark),
    state ? h("span", { class: "rt-vh" }, `${word}: `) : null,
    h("code", {}, text)); // prettier-ignore
}

const draw = ({ result, inputs, step, go }) =>
  h("div", { class: "rt-fx rt-sp" },
    h("div", {}, passBar(result, step, go, VERDICT_WORDS), programText(inputs)),
    h("ol", { class: "rt-fx-code rt-sp-graph", "aria-label": "the graph", tabindex: 0 }, result.steps[step].lines.map(graphLine))); // prettier-ignore

export default { render: figure(model, draw) };
