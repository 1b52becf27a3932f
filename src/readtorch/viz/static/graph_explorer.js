// A program, its graph, and backward: lines at the left, nodes at the right, and what can be done to both.

const STATE_WORDS = {
  running: "runs now", done: "has run", ready: "in the ready queue", waits: "waits for gradients",
  idle: "in the graph", dropped: "no tensor leads here any more",
}; // prettier-ignore
const STATE_CLASS = { running: "run", done: "done", ready: "ready", waits: "wait", idle: "wait", dropped: "gone" };

const titleOf = (node) =>
  node.leaf ? `AccumulateGrad of ${node.label || "a leaf"}` : `${node.name} (${node.number})`;
const savedText = ({ name, version, now }) => (version === now ? `${name} v${version}` : `${name} v${version}, now v${now}`);

// The words in a node's box: its name, and the tensor that it made with what it saved when it was made.
function boxLines(node, seen) {
  const saved = seen.released ? "released" : seen.saved.map(savedText).join(", ");
  const first = node.leaf ? "AccumulateGrad" : titleOf(node);
  const second = [node.leaf ? `${node.label}.grad` : node.inner ? `${node.label}: holds ${node.inner}` : node.label, saved];
  return [first, second.filter(Boolean).join(" · ") || " "];
}

// Where all nodes of the program stand, so that none moves while they appear one after the other.
function placedGraph({ nodes, steps }) {
  const longest = (lines, others) => lines.map((line, k) => (others[k].length > line.length ? others[k] : line));
  const labels = nodes.map((node, i) =>
    steps.filter((step) => step.nodes.length > i).map((step) => boxLines(node, step.nodes[i])).reduce(longest),
  ); // prettier-ignore
  const edges = nodes.flatMap((node, i) => node.next.map((to, k) => ({ from: i, to, k })).filter(({ to }) => to !== null));
  const layout = layeredLayout(labels, edges.map(({ from, to }) => [from, to]), { row: 62, gap: 26, character: 7, padding: 14 }); // prettier-ignore
  // edges between the same two nodes are drawn apart
  const apart = edges.map((edge) => {
    const same = edges.filter(({ from, to }) => from === edge.from && to === edge.to);
    return (same.indexOf(edge) - (same.length - 1) / 2) * 22;
  });
  const points = layout.paths.map((path, e) => path.map(([x, y]) => [x + apart[e], y]));
  return { ...layout, edges: edges.map((edge, e) => ({ ...edge, points: points[e] })) };
}

// A cross in the middle of an edge that the mouse can press; the list of edges has the same as a button.
function cross([x, y], title, act, kind) {
  return s(
    "g",
    { class: `rt-cut ${kind}`, transform: `translate(${x},${y})`, "aria-hidden": "true", onclick: act },
    s("title", {}, title),
    s("circle", { r: 7.5 }),
    s("path", { d: kind === "rt-join" ? "M-4 0H4M0 -4V4" : "M-3 -3L3 3M3 -3L-3 3" }),
  );
}
const middleOf = (points) => {
  const k = Math.floor((points.length - 1) / 2);
  return [0, 1].map((d) => (points[k][d] + points[k + 1][d]) / 2);
};

const looked = ({ inputs, result, step }) => {
  const { nodes } = result.steps[step];
  if (inputs.node >= 0 && inputs.node < nodes.length) return inputs.node;
  const running = nodes.findIndex((node) => node.state === "running");
  return running >= 0 ? running : nodes.length - 1;
};

// Another program; its end shows what became of it. The line that is another has the focus, if what was pressed is gone.
const change = ({ set, go, focus, result }, program) => () => {
  if (set({ program, node: -1 })) return;
  go(Infinity);
  const line = program.split("; ").findIndex((text, i) => text !== result.lines[i]);
  if (document.activeElement === document.body) focus(`line-${Math.max(0, line)}`);
};

function bringToMiddle(box, el) {
  if (!el || !box.isConnected) return;
  const [outer, inner] = [box, el].map((one) => one.getBoundingClientRect());
  box.scrollTop += inner.top + inner.height / 2 - outer.top - outer.height / 2;
  box.scrollLeft += inner.left + inner.width / 2 - outer.left - outer.width / 2;
}

function graphPicture(parts) {
  const { result, step, set, focus } = parts;
  const { nodes } = result,
    now = result.steps[step].nodes;
  const graph = placedGraph(result),
    chosen = looked(parts);
  if (!nodes.length) return h("p", { class: "rt-dim rt-graphbox" }, "No tensor here requires grad: there is no graph.");
  const marker = uniqueId("arrow");
  const live = graph.edges.filter(({ from }) => from < now.length);
  const lines = live.map(({ from, k, points }) => {
    const { state } = now[from],
      kind = state === "running" ? "rt-live" : state === "done" ? "rt-past" : "";
    const gone = state === "dropped" || !nodes[from].next ? " rt-gone" : "";
    return s("path", { class: `rt-edge ${kind}${gone}`, d: edgeCurve(points), "marker-end": `url(#${marker})`, "data-edge": k });
  }); // prettier-ignore
  const cuts = live.map(({ from, k, points }) => {
    const { cut } = nodes[from];
    return cut[k] && now[from].state !== "dropped" && cross(middleOf(points), "cut this edge with .detach()", change(parts, cut[k]), "rt-scissors");
  });
  const ghosts = nodes.slice(0, now.length).flatMap(({ ghosts }, i) => ghosts.map(({ to, join }, k) => {
    const { x, y, w, h: height } = graph.boxes[i];
    const start = [x + w / 2 - 10 - 18 * k, y + height / 2],
      target = to !== null && to < now.length ? graph.boxes[to] : null;
    const end = target && target.y > y ? [target.x, target.y - target.h / 2] : [start[0], start[1] + 22];
    return [
      s("path", { class: "rt-edge rt-ghost", d: edgeCurve([start, end]) }),
      cross(middleOf([start, end]), "take this .detach() away", change(parts, join), "rt-join"),
    ];
  })); // prettier-ignore
  const look = (i) => {
    set({ node: i });
    focus(`node-${i}`);
  };
  const boxes = nodes.map((node, i) => {
    const { x, y, w, h: height } = graph.boxes[i],
      seen = now[i];
    if (!seen) return null;
    const [first, second] = boxLines(node, seen);
    const stale = seen.saved.some((saved) => saved.version !== saved.now) ? " rt-stale-saved" : "";
    const waits = seen.state === "waits" && seen.needs;
    return s(
      "g",
      {
        class: `rt-node rt-n-${STATE_CLASS[seen.state]}${i === chosen ? " rt-sel" : ""}${stale}`, role: "button",
        tabindex: i === chosen ? 0 : -1, "data-focus": `node-${i}`, transform: `translate(${x - w / 2},${y - height / 2})`,
        onclick: () => look(i),
      },
      s("desc", {}, STATE_WORDS[seen.state] + (waits ? `, for ${plural(seen.needs, "gradient")}` : "")),
      s("rect", { width: w, height, rx: node.leaf ? 14 : 4 }),
      s("text", { x: w / 2, y: 15, "text-anchor": "middle", class: "rt-nname" }, first),
      s("text", { x: w / 2, y: 29, "text-anchor": "middle", class: "rt-nlab" }, second),
      seen.place && s("text", { x: w - 2, y: -4, "text-anchor": "end", class: "rt-ndep", "aria-hidden": "true" }, `${seen.place}.`),
      waits && s("g", { class: "rt-waits", transform: `translate(-6,${height / 2})`, "aria-hidden": "true" },
        s("title", {}, `waits for ${plural(seen.needs, "gradient")}`), s("circle", { r: 8 }), s("text", { y: 4, "text-anchor": "middle" }, seen.needs)),
    ); // prettier-ignore
  });
  const svg = s(
    "svg",
    {
      class: "rt-graph", viewBox: `0 -12 ${graph.width} ${graph.height + 12}`, width: graph.width, style: `min-width: ${graph.width * 0.8}px`, role: "group",
      "aria-label": "The graph. Arrow keys follow the edges.",
    },
    s("defs", {}, arrowMarker(marker)), lines, ghosts.map(([line]) => line), boxes, cuts, ghosts.map(([, button]) => button),
  ); // prettier-ignore
  const there = (i) => i !== undefined && i !== null && i >= 0 && i < now.length && look(i);
  const beside = (by) => {
    const row = nodes.map((_, i) => i).filter((i) => graph.boxes[i].layer === graph.boxes[chosen].layer);
    row.sort((a, b) => graph.boxes[a].x - graph.boxes[b].x);
    there(row[row.indexOf(chosen) + by]);
  };
  onKeys(svg, {
    ArrowDown: () => there(nodes[chosen].next.find((to) => to !== null)),
    ArrowUp: () => there(nodes.findIndex((node) => node.next.includes(chosen))),
    ArrowLeft: () => beside(-1),
    ArrowRight: () => beside(1),
  });
  const box = h("div", { class: "rt-graphbox", tabindex: -1 }, svg);
  requestAnimationFrame(() => bringToMiddle(box, boxes[chosen])); // when it is in the page
  return box;
}

// ---- the program

function programOf(parts) {
  const { result, step, go } = parts,
    { line } = result.steps[step];
  const stepOf = (i) => {
    const found = result.steps.findIndex((one) => one.line === i);
    return found < 0 ? result.steps.length - 1 : found;
  };
  const reached = result.steps.at(-1).line;
  const row = (text, i) => {
    const failed = result.failed && i === reached ? " rt-failed" : "";
    const state = `${i === line ? " rt-is-pick" : ""}${failed}${i > reached ? " rt-unrun" : ""}`;
    return h("li", {}, h("button", {
      type: "button", class: `rt-stmt${state}`, "data-focus": `line-${i}`, "aria-current": i === line ? "step" : null,
      onclick: () => go(stepOf(i)),
    }, text)); // prettier-ignore
  };
  return h("ol", { class: "rt-program", "aria-label": "the program" }, result.lines.map(row));
}

// What can be written behind the line that is looked at.
function changesOf(parts) {
  const { result, step, inputs, set } = parts,
    { lines } = result;
  const { line, tensors } = result.steps[step];
  const names = tensors.map(({ name }) => name);
  const name = names.includes(inputs.tensor) ? inputs.tensor : (names.at(-1) ?? "");
  const insert = (text) => change(parts, lines.toSpliced(line + 1, 0, text).join("; "));
  const button = (key, text, act) => h("button", { type: "button", class: "rt-stmt", "data-focus": key, onclick: act }, text);
  const choice = h(
    "select",
    { class: "rt-select", "data-focus": "tensor", "aria-label": "tensor", onchange: () => set({ tensor: choice.value }) },
    names.map((one) => h("option", { value: one, selected: one === name }, one)),
  );
  const ends = lines.at(-1)?.endsWith("backward()");
  return h(
    "div",
    { class: "rt-statements", role: "group", "aria-label": "change the program" },
    name && [
      h("span", { class: "rt-dim" }, "insert below:"), choice,
      button("plus", `${name} += 1`, insert(`${name} += 1`)),
      button("times", `${name} *= 2`, insert(`${name} *= 2`)),
      button("detach", `${name} = ${name}.detach()`, insert(`${name} = ${name}.detach()`)),
    ],
    line >= 0 && button("remove", "remove the line", change(parts, lines.toSpliced(line, 1).join("; "))),
    ends && button("again", "backward() again", change(parts, [...lines, lines.at(-1)].join("; "))),
  ); // prettier-ignore
}

function tensorsOf({ result, step }) {
  const { tensors } = result.steps[step];
  if (!tensors.length) return null;
  const before = step ? result.steps[step - 1].tensors : [];
  const made = ({ node, stale, requires_grad }) =>
    node === null ? (requires_grad ? "leaf" : "–") : `${titleOf(result.nodes[node])}${stale ? ", old" : ""}`;
  const row = (t) => {
    const old = before.find((one) => one.name === t.name);
    const cell = (text, was) => h("td", { class: text === was ? null : "rt-is-gold" }, text);
    return h("tr", {}, h("th", { scope: "row" }, t.name), cell(t.value, old?.value), cell(`v${t.version}`, old && `v${old.version}`),
      cell(made(t), old && made(old)), cell(t.grad || "–", old && (old.grad || "–"))); // prettier-ignore
  };
  const head = ["", "value", "version", "grad_fn", ".grad"].map((word) => h("th", { scope: "col" }, word || h("span", { class: "rt-vh" }, "tensor")));
  return h(
    "div",
    { class: "rt-scrollx rt-tensors", tabindex: 0, role: "region", "aria-label": "the tensors", "data-focus": "tensors" },
    h("table", { class: "rt-gtable" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, tensors.map(row))),
  );
} // prettier-ignore

// ---- the node that is looked at

function nodeDetails(parts) {
  const { result, step, inputs, set } = parts,
    i = looked(parts);
  if (i < 0) return h("div", { class: "rt-detail" });
  const node = result.nodes[i],
    seen = result.steps[step].nodes[i];
  const name = (to) => titleOf(result.nodes[to]);
  const button = (key, text, act) => h("button", { type: "button", class: "rt-stmt", "data-focus": key, onclick: act }, text);
  const edges = node.next.map((to, k) => h("li", {},
    to === null ? h("span", { class: "rt-dim" }, "None: needs no gradient") : h("code", {}, name(to)),
    seen.out[k] && ` gets ${seen.out[k]}`,
    node.cut[k] && [" ", button(`cut-${k}`, "cut", change(parts, node.cut[k]))])); // prettier-ignore
  const ghosts = node.ghosts.map(({ join }, k) => h("li", {}, h("span", { class: "rt-dim" }, "cut by .detach() "), button(`join-${k}`, "join again", change(parts, join)))); // prettier-ignore
  const saved = seen.saved.map((one) => h("li", { class: one.version === one.now ? null : "rt-is-gold" },
    h("code", {}, `${one.name} = ${one.value}`), ` at version ${one.version}${one.version === one.now ? "" : `, now ${one.now}`}`)); // prettier-ignore
  const kept = seen.released ? "released" : node.leaf ? "the leaf" : "nothing";
  return h(
    "div",
    { class: "rt-detail", tabindex: 0, role: "group", "aria-label": "the node", "data-focus": "node" },
    h("p", { class: "rt-dtitle" }, titleOf(node), " ", inputs.node >= 0 && button("follow", "follow backward", () => set({ node: -1 }))),
    factList([
      ["state", STATE_WORDS[seen.state]],
      ["made by", result.lines[node.line] && h("code", {}, `line ${node.line + 1}`)],
      ["runs", node.inner ? `${node.inner}, on its part of the gradient` : null],
      ["saved", saved.length ? h("ul", {}, saved) : kept],
      [seen.state === "running" || seen.state === "done" ? "got" : "has got", seen.buffer || null],
      ["leads to", edges.length + ghosts.length ? h("ol", { start: 0 }, edges, ghosts) : null],
    ]),
  );
}

const draw = (parts) =>
  h("div", { class: "rt-gx" },
    h("div", { class: "rt-gx-left" }, programOf(parts), changesOf(parts), tensorsOf(parts)),
    h("div", { class: "rt-gx-right" }, graphPicture(parts), nodeDetails(parts)),
  ); // prettier-ignore

export default { render: figure(model, draw, { typing: "goes to the last step" }) };
