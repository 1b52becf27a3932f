// A program's graph and its generated code, before and after each pass: lines at the left, nodes at the right.
const STATES = { "": "wait", new: "run", changed: "done", gone: "gone" };
const STATE_MARKS = { "": "", new: "new", changed: "changed", gone: "gone" };

const lineOf = (node, code) =>
  node.state === "gone" ? `${node.name}` : node.op === "placeholder" ? `def forward(self, x, y): ${node.name}` : code[node.name];

// The generated code. What the pass removed stays in its place, struck through.
function codeLines({ nodes, code }) {
  const inputs = nodes.filter(({ op }) => op === "placeholder").map(({ name }) => name);
  const row = (text, state) =>
    h("li", { class: `rt-fx-line rt-fx-${state || "plain"}` }, state && h("span", { class: "rt-fx-mark" }, STATE_MARKS[state]), h("code", {}, text));
  const body = nodes.filter(({ op }) => op !== "placeholder").map((node) => row(lineOf(node, code), node.state));
  return h("ol", { class: "rt-fx-code", "aria-label": "the generated code" }, row(`def forward(self, ${inputs.join(", ")}):`, ""), body);
} // prettier-ignore

const fxTarget = ({ op, target, args }) => {
  const numbers = args.filter((a) => a.number !== undefined).map((a) => a.number);
  const words = /^[-+*/]$/.test(target) && args[0].number !== undefined ? [...numbers, target] : [target, ...numbers];
  return op === "placeholder" ? "input" : op === "output" ? "" : words.join(" ");
};

function fxPicture({ nodes }) {
  const place = new Map(nodes.map(({ name }, i) => [name, i]));
  const pairs = nodes.flatMap((node, i) => node.args.filter((a) => place.has(a.node)).map((a) => [place.get(a.node), i]));
  const edges = [...new Set(pairs.map(String))].map((pair) => pair.split(",").map(Number));
  const labels = nodes.map((node) => [node.name, fxTarget(node) || " "]);
  const graph = layeredLayout(labels, edges, { row: 54, gap: 16, character: 7, padding: 12 });
  const marker = uniqueId("arrow");
  const lines = graph.paths.map((points, e) => {
    const gone = edges[e].some((i) => nodes[i].state === "gone");
    return s("path", { class: `rt-edge${gone ? " rt-gone rt-ghost" : ""}`, d: edgeCurve(points), "marker-end": `url(#${marker})` });
  });
  const boxes = nodes.map((node, i) => {
    const { x, y, w, h: height } = graph.boxes[i];
    return s("g", { class: `rt-node rt-n-${STATES[node.state]}`, transform: `translate(${x - w / 2},${y - height / 2})` },
      s("rect", { width: w, height, rx: node.op === "placeholder" ? 14 : 4 }),
      s("text", { x: w / 2, y: 15, "text-anchor": "middle", class: "rt-nname" }, node.name),
      s("text", { x: w / 2, y: 29, "text-anchor": "middle", class: "rt-nlab" }, fxTarget(node))); // prettier-ignore
  });
  const words = nodes.map((n) => `${n.name}${n.state && ` (${STATE_MARKS[n.state]})`}`).join(", ");
  const svg = s("svg", {
    class: "rt-graph", viewBox: `0 0 ${graph.width} ${graph.height}`, width: graph.width, height: graph.height,
    role: "img", "aria-label": `The graph, in layers: ${words}`,
  }, s("defs", {}, arrowMarker(marker)), lines, boxes); // prettier-ignore
  return h("div", { class: "rt-graphbox", tabindex: 0, role: "group", "aria-label": "the graph", "data-focus": "graph" }, svg);
}

const VERDICT_WORDS = { right: "", wrong: ": wrong", inputs: ": inputs differ", fails: ": fails" };

const draw = ({ result, step, go }) =>
  h("div", { class: "rt-fx" },
    h("div", {}, passBar(result, step, go, VERDICT_WORDS), codeLines(result.steps[step])),
    fxPicture(result.steps[step])); // prettier-ignore

export default { render: figure(model, draw) };
