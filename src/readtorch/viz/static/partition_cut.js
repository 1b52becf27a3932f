// A joint graph, forward above backward, as the partitioner cuts it: what is kept, what is computed again, and why.
const CUT_STATES = {
  saved: "kept for the backward", again: "computed in the forward, and again in the backward", forward: "of the forward alone",
  backward: "of the backward alone", input: "an input that the backward does not need", tangent: "the gradient that comes in",
  unused: "computed for nothing",
}; // prettier-ignore
const CUT_CLASS = { saved: "run", again: "ready", forward: "done", input: "done", backward: "wait", tangent: "wait", unused: "gone" };
const CUT_LEGEND = [
  ["rt-n-run", "kept"], ["rt-n-ready", "computed again"], ["rt-n-done", "forward, parameters"], ["rt-n-wait", "backward"],
]; // prettier-ignore
const BAN_WORDS = {
  "not in recomputable allowlist": "no: not in the allowlist of cheap operators",
  "random or compute intensive op": "no: it draws random numbers, or is a product",
  "materialized in backward": "no: it is materialized in the backward, where an operator that does not fuse reads it from memory",
  "used far apart": "no: its operand is used early and late, with something between that does not fuse",
  "reduction op": "no: it is less than a quarter of its operands, so it is cheap to keep",
};

// ---- where the nodes stand

// Pairs of numbers of nodes: edges, and what keeps the backward below the forward. As in figures/partition_cut.py.
function cutLinks(nodes) {
  const places = new Map(nodes.map(({ name }, i) => [name, i]));
  const edges = nodes.flatMap(({ inputs }, i) => inputs.map((name) => [places.get(name), i]));
  const first = places.get("tangents_1");
  const half = (i) => nodes[i].half;
  const without = (wanted, found) => nodes.map((_, i) => i).filter((i) => half(i) === wanted && !found.has(i));
  const ends = without("forward", new Set(edges.filter(([, b]) => half(b) === "forward").map(([a]) => a)));
  const starts = without("backward", new Set([first, ...edges.filter(([a]) => half(a) === "backward").map(([, b]) => b)]));
  return [edges, [...ends.map((i) => [i, first]), ...starts.map((i) => [first, i])]];
}

const firstLine = ({ name, target }) => (name.startsWith("primals") ? `${target} (${name})` : name);

// The same graph is cut often, while the budget is dragged: it is laid out once.
let laidOut = { key: null };
function placedCut(nodes) {
  const labels = nodes.map((node) => [firstLine(node), sizeInTenths(node.bytes)]);
  const [edges, order] = cutLinks(nodes);
  const key = JSON.stringify([labels, edges]);
  if (laidOut.key !== key) {
    const layout = layeredLayout(labels, [...edges, ...order], { row: 48, gap: 12, character: 7.2, padding: 10 });
    laidOut = { key, edges, ...layout, paths: layout.paths.slice(0, edges.length) };
  }
  return laidOut;
}

// ---- the drawing

const inBackward = ({ state }) => state === "again" || state === "backward";
// How an edge is drawn that leads from what was there in the forward to what the backward computes.
function cutKind(from, to) {
  if (!inBackward(to) || (from.state !== "saved" && from.state !== "input")) return "";
  return from.parameter ? " rt-past" : " rt-live";
}
const boxClass = ({ state, parameter }) => (state === "saved" && parameter ? "done" : CUT_CLASS[state]);

const scrolledTo = new WeakMap(); // of a figure, by its `set`: where its graph was scrolled to, and for which node

function cutPicture(parts, show) {
  const { result, inputs, set } = parts,
    { nodes } = result,
    graph = placedCut(nodes);
  const chosen = Math.max(0, nodes.findIndex(({ name }) => name === inputs.node)); // prettier-ignore
  const look = (i) => {
    set({ node: nodes[i].name });
    parts.focus(`node-${nodes[i].name}`);
  };
  const marker = uniqueId("arrow");
  const boxes = nodes.map((node, i) => nodeBox(node, graph.boxes[i], { chosen: i === chosen, inputs, show, look: () => look(i) }));
  const svg = s(
    "svg",
    {
      class: "rt-graph", viewBox: `0 0 ${graph.width} ${graph.height}`, width: graph.width, style: `min-width: ${graph.width * 0.75}px`,
      role: "group", "aria-label": "The joint graph. Arrow keys follow the edges.",
      onpointerleave: () => show(inputs.node === "" ? null : nodes[chosen]),
    },
    s("defs", {}, arrowMarker(marker)), borderOf(graph, nodes), edgeLines(graph, nodes, marker), boxes,
  ); // prettier-ignore
  onKeys(svg, edgeKeys(graph, chosen, look));
  return scrollingBox(svg, boxes[chosen], parts);
}

function nodeBox(node, { x, y, w, h: height }, { chosen, inputs, show, look }) {
  const looked = node.name === inputs.node ? " rt-sel" : "";
  const words = (line, at, kind) => s("text", { x: w / 2, y: at, "text-anchor": "middle", class: kind }, line);
  return s(
    "g",
    {
      class: `rt-node rt-n-${boxClass(node)}${looked}`, role: "button", tabindex: chosen ? 0 : -1, "data-focus": `node-${node.name}`,
      transform: `translate(${x - w / 2},${y - height / 2})`, onclick: look, onfocus: () => show(node), onpointermove: () => show(node),
    },
    s("desc", {}, CUT_STATES[node.state]),
    s("rect", { width: w, height, rx: node.args.length ? 4 : 14 }),
    words(firstLine(node), 15, "rt-nname"), words(sizeInTenths(node.bytes), 29, "rt-nlab"),
  ); // prettier-ignore
}

const edgeLines = (graph, nodes, marker) =>
  graph.paths.map((points, e) => {
    const [from, to] = graph.edges[e].map((i) => nodes[i]);
    return s("path", { class: `rt-edge${cutKind(from, to)}`, d: edgeCurve(points), "marker-end": `url(#${marker})` });
  });

function borderOf(graph, nodes) {
  const top = graph.boxes[nodes.findIndex(({ name }) => name === "tangents_1")].y - 24;
  const word = (text, y) => s("text", { class: "rt-pc-half", x: 4, y }, text);
  const line = s("path", { class: "rt-pc-border", d: `M0 ${top}H${graph.width}` });
  return [line, word("forward ↑", top - 5), word("backward ↓", top + 14)];
}

function edgeKeys(graph, chosen, look) {
  const there = (i) => i !== undefined && look(i);
  const beside = (by) => {
    const row = graph.boxes.map((_, i) => i).filter((i) => graph.boxes[i].layer === graph.boxes[chosen].layer);
    row.sort((a, b) => graph.boxes[a].x - graph.boxes[b].x);
    there(row[row.indexOf(chosen) + by]);
  };
  return {
    ArrowDown: () => there(graph.edges.find(([from]) => from === chosen)?.[1]),
    ArrowUp: () => there(graph.edges.find(([, to]) => to === chosen)?.[0]),
    ArrowLeft: () => beside(-1),
    ArrowRight: () => beside(1),
  };
}

// All is drawn anew after each change: the box stays where it was, and moves to a node that has just been chosen.
function scrollingBox(svg, node, { inputs, set }) {
  if (!scrolledTo.has(set)) scrolledTo.set(set, { at: [0, 0], node: "" });
  const scrolled = scrolledTo.get(set);
  const box = h("div", { class: "rt-graphbox", tabindex: -1, onscroll: () => (scrolled.at = [box.scrollLeft, box.scrollTop]) }, svg);
  requestAnimationFrame(() => {
    if (!box.isConnected) return;
    [box.scrollLeft, box.scrollTop] = scrolled.at;
    if (scrolled.node !== inputs.node) reveal(box, node);
    scrolled.node = inputs.node;
  });
  return box;
}

// ---- the node that is looked at

// Of a view, and of a detached tensor: the node whose memory it shows.
function memoryOf(node, nodes) {
  if (!ALIASES.includes(node.target) || node.target === "_unsafe_view") return node;
  return memoryOf(nodes.find(({ name }) => name === node.inputs[0]), nodes);
}

// Whether it is computed from the gradient: then nothing could keep it for the backward.
function fromGradient(nodes) {
  const found = new Set(["tangents_1"]);
  for (const { name, inputs } of nodes) if (inputs.some((input) => found.has(input))) found.add(name);
  return found;
}

function costWords({ bytes, cost, distance, shape }) {
  if (cost === null) return shape === null ? "a tuple is not kept, its parts are" : "without limit";
  if (cost === 0) return "nothing: a parameter is there anyway";
  const steps = Math.min(100, Math.max(1, distance));
  const near = distance ? `${plural(distance, "step")} from the backward` : "it is of the backward itself";
  const place = distance >= SHOWN_FAR ? "no way leads to the backward" : near;
  const power = steps > 1 ? superscript(steps) : "";
  const twice = cost > 1.5 * Math.trunc(bytes * 1.1 ** steps);
  const why = twice ? ", and all its users would fuse with it, so it need not be in memory" : "";
  return `${commas(cost)} = ${commas(bytes)} bytes × 1.1${power}${twice ? " × 2" : ""}: ${place}${why}`;
}
const superscript = (n) => [...String(n)].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("");

function againWords(node, budget) {
  if (node.ban) return BAN_WORDS[node.ban];
  if (node.name.startsWith("primals")) return "no: it is an input";
  if (node.state === "saved") return "it could be; to keep it costs no more";
  if (node.state === "again") return budget === 1 ? "yes: that is cheaper than to keep it" : "yes, to keep within the budget";
  return node.half === "forward" ? "it may be, and nothing asks for it" : "it is computed once, in the backward";
}

function cutDetails(node, nodes, budget) {
  const { name, target, args, shape, bytes, parameter } = node;
  const call = args.length ? h("code", {}, `${target}(${args.join(", ")})`) : null;
  const after = fromGradient(nodes).has(name);
  const type = shape && bytes < FLOAT * product(shape) ? "bool" : "float32"; // a mask
  const size = `${shape ? `${type} ${shapeText(shape)}` : "a tuple"}, ${sizeInTenths(bytes)}`;
  return [
    h("p", { class: "rt-dtitle" }, firstLine(node)),
    factList([
      ["operator", call],
      ["result", size],
      ["memory", memoryOf(node, nodes) === node ? null : `that of ${firstLine(memoryOf(node, nodes))}`],
      ["it is", `${CUT_STATES[node.state]}${parameter && node.state === "saved" ? ": a parameter, and not counted" : ""}`],
      ["eager", after ? null : node.eager ? "keeps it" : "does not keep it"],
      ["computed again", after ? null : againWords(node, budget)],
      ["keeping costs", after ? "it is made from the gradient: there is nothing to keep" : costWords(node)],
    ]),
  ];
}

const NO_DETAILS = "Point at a node, or go to one with the arrow keys: what would it cost to keep it, and why is it not computed again?";

// ---- what is kept and moved

function cutTable({ rows }) {
  const words = [h("span", { class: "rt-vh" }, "what runs"), "kept", "forward reads + writes", "backward reads + writes"];
  const head = words.map((word) => h("th", { scope: "col" }, word));
  const row = ({ title, kept, forward, backward }) =>
    h("tr", {}, h("th", { scope: "row" }, title), [kept, forward, backward].map((n) => h("td", {}, sizeInTenths(n)))); // prettier-ignore
  return h("table", { class: "rt-gtable" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows.map(row)));
}

// ---- what would be kept within each budget

const BUDGETS = Array.from({ length: 21 }, (_, k) => (k * 5) / 100);
let curve = { key: null };
function keptByBudget(inputs) {
  const key = JSON.stringify({ ...inputs, budget: 0, node: "" });
  if (curve.key !== key) curve = { key, kept: BUDGETS.map((budget) => model({ ...inputs, budget }).rows.at(-1).kept) };
  return curve.kept;
}

function budgetChart({ inputs, result, set }) {
  const kept = keptByBudget(inputs),
    most = Math.max(result.rows[0].kept, ...kept, 1),
    now = Math.round(inputs.budget * 20);
  const bars = kept.map((bytes, k) => {
    const height = Math.max(1, (48 * bytes) / most);
    return s("g", { onclick: () => set({ budget: BUDGETS[k] }) },
      s("title", {}, `budget ${BUDGETS[k]}: ${sizeInTenths(bytes)}`),
      s("rect", { class: "rt-pc-all", x: 12 * k, y: 0, width: 12, height: 50 }),
      s("rect", { class: k === now ? "rt-pc-now" : null, x: 12 * k + 1, y: 50 - height, width: 10, height })); // prettier-ignore
  });
  const svg = s("svg", { class: "rt-pc-chart", viewBox: "0 0 252 51", preserveAspectRatio: "none", "aria-hidden": "true" }, bars);
  const choose = (place) => set({ budget: BUDGETS[Math.max(0, Math.min(BUDGETS.length, place) - 1)] });
  const text = `budget ${inputs.budget}: ${sizeInTenths(result.rows.at(-1).kept)} kept`;
  const slider = placeSlider(svg, { label: "kept, for each budget", at: now + 1, count: BUDGETS.length, text, choose });
  return h("div", { class: "rt-pc-budgets" }, heading("kept, for each budget from 0 to 1"), slider);
}

const draw = (parts) => {
  const { nodes } = parts.result;
  const detail = h("div", { class: "rt-detail", tabindex: 0, role: "group", "aria-label": "the node", "data-focus": "detail" });
  const show = (node) =>
    detail.replaceChildren(...(node ? cutDetails(node, nodes, parts.inputs.budget) : [h("p", { class: "rt-dim" }, NO_DETAILS)]));
  show(nodes.find(({ name }) => name === parts.inputs.node));
  return h("div", { class: "rt-pc" }, 
    h("div", { class: "rt-pc-graph" }, cutPicture(parts, show), legend(CUT_LEGEND)),
    h("div", {}, cutTable(parts.result), budgetChart(parts)), detail); // prettier-ignore
};

export default { render: figure(model, draw) };
