// What a guard refuses: the program's lines, what the export says, the guards one by one, and what model and program answer.
const VERDICTS = { same: "✓ the same", wrong: "✗ another result", refused: "✗ refused", both: "✗ refused" };
const MARKS = { holds: "✓", fails: "✗", error: "✗", unasked: "·" };

const sourceLine = (line, i) => h("li", { class: i === 2 ? "rt-tt-ran" : null }, h("code", {}, line));
const guardLine = ([words, state]) =>
  h("li", { class: state === "fails" || state === "error" ? "rt-tt-frozen" : state === "unasked" ? "rt-tt-missed" : null },
    h("span", { class: "rt-tt-mark" }, MARKS[state]), h("code", {}, words),
    state === "unasked" && h("span", { class: "rt-tt-note" }, "not asked")); // prettier-ignore

const card = (name, kind, verdict, ...inside) =>
  h("section", { class: `rt-tt-card ${kind}`, "aria-label": name },
    h("p", { class: "rt-tt-head" }, h("b", {}, name), verdict && h("span", { class: "rt-tt-verdict" }, verdict)),
    ...inside); // prettier-ignore

const result = (words) => h("p", { class: "rt-tt-result" }, words);

const draw = ({ result: found }) => {
  const refused = found.verdict === "none";
  const kind = { wrong: "rt-tt-wrong", refused: "rt-tt-fails" }[found.verdict] ?? (refused ? "rt-tt-none" : "");
  return h("div", { class: "rt-tt" },
    h("ol", { class: "rt-tt-program", "aria-label": "the program" }, found.source.map(sourceLine)),
    h("div", { class: "rt-tt-cards rt-tt-two" },
      card("the export", refused ? "rt-tt-fails" : "", refused && "✗ refused", ...found.outcome.map(result)),
      card("its guards, in order", "", "", h("ol", { class: "rt-tt-lines", "aria-label": "guards" }, refused ? h("li", {}, "no program, no guards") : found.guards.length ? found.guards.map(guardLine) : h("li", {}, "none")))),
    h("div", { class: "rt-tt-cards" },
      card("the model answers", "", "", result(found.model)),
      card("the program answers", kind, VERDICTS[found.verdict], result(refused ? "there is none" : found.program)))); // prettier-ignore
};

export default { render: figure(model, draw) };
