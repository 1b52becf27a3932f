// Autograd explorer: the graph behind a tensor, and the order in which the engine runs it.

const STATES = [
  ["wait", "waits for gradients"],
  ["ready", "in the ready queue"],
  ["run", "running"],
  ["done", "done"],
];

// What the engine knows after `step` nodes have run: the gradients each node still waits for, and the queue.
function engineAt(data, order, step) {
  const done = new Set(order.slice(0, step).map((n) => n.id));
  const missing = new Map(data.nodes.map((n) => [n.id, n.needs]));
  for (const e of data.edges) if (done.has(e.from)) missing.set(e.to, missing.get(e.to) - 1);
  // The largest sequence number leaves the queue first; an AccumulateGrad has none and goes before all.
  const queue = data.nodes
    .filter((n) => n.order !== null && !done.has(n.id) && missing.get(n.id) === 0)
    .sort((a, b) => priority(b) - priority(a) || a.order - b.order);
  const running = step > 0 ? order[step - 1] : null;
  return { done, missing, queue, running };
}
const priority = (node) => (node.sequence_nr === null ? Number.MAX_VALUE : node.sequence_nr);
const stateOf = (engine, node) =>
  node === engine.running
    ? "run"
    : engine.done.has(node.id)
      ? "done"
      : engine.queue.includes(node)
        ? "ready"
        : "wait";
const fullName = (node) => (node.label ? `${node.name} ${node.label}` : node.name);

function curve(points) {
  let d = `M${points[0].join()}`;
  for (let i = 1; i < points.length; i++) {
    const [[x0, y0], [x1, y1]] = [points[i - 1], points[i]],
      middle = (y0 + y1) / 2;
    d += `C${x0},${middle} ${x1},${middle} ${x1},${y1}`;
  }
  return d;
}

function drawEdges(edges, marker) {
  return edges.map((e) =>
    s("path", { class: "rt-edge", d: curve(e.points), "marker-end": `url(#${marker})` }),
  );
}

function drawNode(n) {
  const name = s(
    "text",
    { x: n.w / 2, y: n.label ? 15 : n.h / 2 + 4, "text-anchor": "middle", class: "rt-nname" },
    n.name,
  );
  const label =
    n.label && s("text", { x: n.w / 2, y: 29, "text-anchor": "middle", class: "rt-nlab" }, n.label);
  // the name comes from the text inside; the engine's state goes into the description
  return s(
    "g",
    { role: "button", tabindex: -1, transform: `translate(${n.x - n.w / 2},${n.y - n.h / 2})` },
    s("desc"),
    s("rect", { width: n.w, height: n.h, rx: n.is_leaf ? 14 : 4 }),
    name,
    label,
    s("text", { x: n.w + 4, y: n.h / 2 + 4, class: "rt-ndep", "aria-hidden": "true" }),
  );
}

function render({ model, el }) {
  const data = model.get("data"),
    { nodes, edges } = data;
  const order = nodes.filter((n) => n.order !== null).sort((a, b) => a.order - b.order);
  const selected = () => nodes[model.get("selected")];
  const select = (id) => assign(model, "selected", id);
  const goTo = (step) => {
    model.set("step", step);
    select(step > 0 ? order[step - 1].id : -1);
  };

  // ---- the parts of the page
  const play = player({
    last: order.length,
    what: "the backward pass",
    get: () => model.get("step"),
    set: goTo,
  });
  const marker = uniqueId("arrow");
  const arrow = s(
    "marker",
    {
      id: marker,
      viewBox: "0 0 8 8",
      refX: 7,
      refY: 4,
      markerUnits: "userSpaceOnUse",
      markerWidth: 8,
      markerHeight: 8,
      orient: "auto",
    },
    s("path", { class: "rt-arrow", d: "M0,0L8,4L0,8z" }),
  );
  const edgeEls = drawEdges(edges, marker),
    nodeEls = nodes.map(drawNode);
  const svg = s(
    "svg",
    {
      class: "rt-graph",
      viewBox: `0 0 ${data.width} ${data.height}`,
      width: data.width,
      height: data.height,
      role: "group",
      "aria-label": "Autograd graph. Arrow keys follow the edges.",
    },
    s("defs", {}, arrow),
    s("g", {}, edgeEls),
    s("g", {}, nodeEls),
  );
  const box = h("div", { class: "rt-graphbox", tabindex: -1 }, svg);
  const detail = detailBox();
  const size = h(
    "select",
    {
      class: "rt-select",
      "aria-label": "Graph size",
      onchange: () => box.classList.toggle("rt-fit", size.value === "fit"),
    },
    h("option", { value: "natural" }, "natural size"),
    h("option", { value: "fit" }, "fit the width"),
  );
  const root = h(
    "div",
    { class: "rt-w rt-autograd", role: "group", "aria-label": data.title },
    h("p", { class: "rt-title" }, data.title),
    h("div", { class: "rt-bar" }, play.buttons, h("span", { class: "rt-spring" }), size),
    play.slider,
    play.now,
    h("div", { class: "rt-cols" }, box, detail),
    legend([...STATES.map(([k, text]) => [`rt-n-${k}`, text]), ["rt-round", "AccumulateGrad: writes .grad"]]),
    h("p", { class: "rt-hint" }, KEY_HINT, " In the graph, arrow keys move along the edges."),
  );
  el.append(root);

  // ---- moving through the graph
  nodeEls.forEach((g, i) => {
    g.addEventListener("click", () => visit(i));
    g.addEventListener("focus", () => {
      if (model.get("selected") !== i) select(i);
    });
  });
  function visit(id) {
    if (id === undefined) return;
    nodeEls[id].focus({ preventScroll: true });
    show(nodes[id]);
  }
  function show(n) {
    const f = svg.getBoundingClientRect().width / data.width;
    const left = svg.getBoundingClientRect().left - box.getBoundingClientRect().left + box.scrollLeft;
    revealIn(
      box,
      left + (n.x - n.w / 2) * f,
      (n.y - n.h / 2) * f,
      left + (n.x + n.w / 2) * f,
      (n.y + n.h / 2) * f,
      24,
      90,
    );
  }
  function sideways(by) {
    const here = selected();
    const row = nodes.filter((n) => n.layer === here?.layer).sort((a, b) => a.x - b.x);
    visit(row[row.indexOf(here) + by]?.id);
  }
  onKeys(svg, {
    ArrowDown: () => visit(edges.find((e) => e.from === selected()?.id)?.to),
    ArrowUp: () => visit(edges.find((e) => e.to === selected()?.id)?.from),
    ArrowLeft: () => sideways(-1),
    ArrowRight: () => sideways(1),
  });
  const stepAndFollow = (move) => () => {
    const inGraph = svg.contains(document.activeElement);
    move();
    if (inGraph) visit(selected()?.id);
  };
  onKeys(root, { ",": stepAndFollow(play.keys[","]), ".": stepAndFollow(play.keys["."]), p: play.keys.p });

  // ---- drawing
  function detailOf(n) {
    const reached = n.order !== null && n.order < model.get("step");
    const next = n.next.map(([to, nr]) =>
      h(
        "li",
        {},
        to === null
          ? h("span", { class: "rt-dim" }, "None (needs no gradient)")
          : [
              linkButton(fullName(nodes[to]), () => visit(to)),
              h("span", { class: "rt-dim" }, ` input ${nr}`),
            ],
      ),
    );
    return [
      h("p", { class: "rt-dtitle" }, n.name),
      n.label && h("p", { class: "rt-dim" }, n.is_leaf ? n.label : `makes ${n.label}`),
      factList([
        ["runs", n.order === null ? "never" : `step ${n.order + 1} of ${order.length}`],
        ["waits for", plural(n.needs, "gradient")],
        ["sequence_nr", n.sequence_nr === null ? "the largest (UINT64_MAX)" : String(n.sequence_nr)],
        ["made by", n.made_by && h("code", {}, n.made_by)],
      ]),
      heading(n.is_leaf ? "variable" : "saved for backward"),
      tensorList(n.saved, "nothing"),
      next.length ? [heading("next_functions"), h("ol", { start: 0 }, next)] : null,
      heading("gradient in"),
      reached ? tensorList(n.grads_in, "none") : h("p", { class: "rt-dim" }, "has not arrived yet"),
      heading(n.is_leaf ? "after the step" : "gradients out"),
      reached ? tensorList(n.grads_out, "none") : h("p", { class: "rt-dim" }, "not computed yet"),
    ]
      .flat()
      .filter(Boolean);
  }
  function drawNodeState(engine, n) {
    const g = nodeEls[n.id],
      state = stateOf(engine, n),
      chosen = n === selected();
    const waits = state === "wait" && n.needs > 1 ? `waits for ${engine.missing.get(n.id)}` : "";
    g.setAttribute("class", `rt-node rt-n-${state}${n.is_leaf ? " rt-leaf" : ""}${chosen ? " rt-sel" : ""}`);
    g.setAttribute("tabindex", chosen || (!selected() && n === nodes[0]) ? 0 : -1);
    g.querySelector("desc").textContent = STATES.find(([k]) => k === state)[1];
    g.querySelector(".rt-ndep").textContent = waits;
  }
  function sentence(engine) {
    const { running, queue } = engine;
    const ready =
      queue.slice(0, 4).map(fullName).join(", ") + (queue.length > 4 ? ` and ${queue.length - 4} more` : "");
    const first = running ? [h("b", {}, fullName(running)), " runs"] : ["backward() has not started."];
    const rest = queue.length ? `ready queue: ${ready}` : "the queue is empty: backward() returns";
    return [h("span", {}, first), h("span", { class: "rt-why" }, rest)];
  }
  let shown = null;
  function update() {
    const engine = engineAt(data, order, model.get("step"));
    nodes.forEach((n) => drawNodeState(engine, n));
    edgeEls.forEach((path, i) => {
      const from = nodes[edges[i].from];
      path.setAttribute(
        "class",
        `rt-edge${from === engine.running ? " rt-live" : engine.done.has(from.id) ? " rt-past" : ""}`,
      );
    });
    play.show(...sentence(engine));
    if (engine.running && engine.running !== shown) show(engine.running);
    shown = engine.running;
    const n = selected();
    detail.replaceChildren(
      ...(n
        ? detailOf(n)
        : [
            h(
              "p",
              { class: "rt-dim" },
              "Choose a node: click it, or tab into the graph and use the arrow keys.",
            ),
          ]),
    );
  }
  const unbind = bind(model, ["step", "selected"], update);
  requestAnimationFrame(() => show(nodes[0])); // when the graph is wider than its box
  return () => {
    play.stop();
    unbind();
  };
}

export default { render };
