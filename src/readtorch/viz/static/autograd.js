// Autograd explorer: the graph behind a tensor, and the order in which the engine runs it. A box of the drawing is a node,
// or a module that stands for all of its own.

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
  for (const [from, to] of data.edges) if (done.has(from)) missing.set(to, missing.get(to) - 1);
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

// What a box says of itself: a node's name and label, or a module's path and how many nodes it has.
function boxWords(box) {
  if (box.module) return [box.module, plural(box.nodes.length, "node")];
  const [node] = box.nodes;
  return node.label ? [node.name, node.label] : [node.name];
}

function drawBox(box, { x, y, w, h: height }) {
  const [name, label] = boxWords(box);
  const leaf = !box.module && box.nodes[0].is_leaf;
  // the name comes from the text inside; the engine's state goes into the description
  return s(
    "g",
    { role: "button", tabindex: -1, transform: `translate(${x - w / 2},${y - height / 2})` },
    s("desc"),
    box.module ? s("rect", { class: "rt-behind", x: 4, y: 4, width: w, height, rx: 4 }) : null,
    s("rect", { width: w, height, rx: leaf ? 14 : 4 }),
    s("text", { x: w / 2, y: label ? 15 : height / 2 + 4, "text-anchor": "middle", class: "rt-nname" }, name),
    label && s("text", { x: w / 2, y: 29, "text-anchor": "middle", class: "rt-nlab" }, label),
    s("text", { x: w + 6, y: height / 2 + 4, class: "rt-ndep", "aria-hidden": "true" }),
  );
}

function render({ model, el }) {
  const data = model.get("data"),
    { nodes } = data,
    hasModules = nodes.some((node) => node.module);
  const order = nodes.filter((n) => n.order !== null).sort((a, b) => a.order - b.order);
  let graph, layout, boxEls, edgeEls, svg; // of what is drawn now: see redraw
  let module = ""; // that is looked at, in the place of a node
  const selected = () => nodes[model.get("selected")];
  const boxOfNode = (id) => graph.boxes[graph.place.get(id)];
  const looked = () => (module ? graph.boxes.find((box) => box.module === module) : selected() && boxOfNode(selected().id));
  const select = (id) => {
    module = "";
    assign(model, "selected", id);
  };
  const goTo = (step) => {
    module = "";
    model.set("step", step);
    select(step > 0 ? order[step - 1].id : -1);
  };

  // ---- the parts of the page
  const play = player({
    last: order.length,
    what: "the backward pass",
    get: () => model.get("step"),
    set: goTo,
    milliseconds: order.length > 100 ? 200 : 900,
  });
  const box = h("div", { class: "rt-graphbox", tabindex: -1 });
  const detail = detailBox();
  const zoomed = (by) => () => {
    const now = model.get("zoom") || (100 * svg.getBoundingClientRect().width) / layout.width;
    assign(model, "zoom", by ? Math.round(Math.max(10, Math.min(400, now * by))) : 0);
  };
  const small = (text, label, onclick) =>
    h("button", { type: "button", class: "rt-btn rt-small", "aria-label": label, title: label, onclick }, text);
  const group = h("input", { type: "checkbox", onchange: () => assign(model, "grouped", group.checked) });
  const search = h("input", {
    type: "search", class: "rt-input rt-find", "aria-label": "Search nodes", placeholder: "search nodes", autocomplete: "off",
    oninput: () => find(0),
  }); // prettier-ignore
  const found = h("span", { class: "rt-dim", role: "status" });
  const exportButton = small("SVG", "Save the drawing as SVG", () =>
    download(exportedSvg(svg), "autograd.svg", "image/svg+xml"),
  );
  const root = h(
    "div",
    { class: "rt-w rt-autograd", role: "group", "aria-label": data.title },
    h("p", { class: "rt-title" }, data.title),
    h("div", { class: "rt-bar" }, play.buttons, h("span", { class: "rt-spring" }),
      hasModules && h("label", { class: "rt-check" }, group, "group by module"),
      search, found, small("−", "Smaller", zoomed(1 / 1.25)), small("+", "Larger", zoomed(1.25)),
      small("fit", "Fit the width", zoomed(0)), exportButton),
    play.slider,
    play.now,
    h("div", { class: "rt-cols" }, box, detail),
    legend([...STATES.map(([k, text]) => [`rt-n-${k}`, text]), ["rt-round", "AccumulateGrad: writes .grad"]]),
    h("p", { class: "rt-hint" }, KEY_HINT, " In the graph, arrow keys move along the edges, Enter opens a module, + and − zoom."),
  ); // prettier-ignore
  el.append(root);

  // ---- the graph as it is grouped now
  function redraw() {
    graph = groupedGraph(data, model.get("grouped"), model.get("opened"));
    const safe = withoutCircles(graph.boxes.length, graph.edges);
    layout = layeredLayout(graph.boxes.map(boxWords), safe.edges);
    const marker = uniqueId("arrow");
    edgeEls = graph.edges.map((_, e) => {
      const points = safe.turned.has(e) ? [...layout.paths[e]].reverse() : layout.paths[e];
      return s("path", { class: "rt-edge", d: edgeCurve(points), "marker-end": `url(#${marker})` });
    });
    boxEls = graph.boxes.map((one, i) => drawBox(one, layout.boxes[i]));
    boxEls.forEach((g, i) => {
      g.addEventListener("click", () => press(i));
      g.addEventListener("focus", () => look(i));
    });
    svg = s(
      "svg",
      {
        class: "rt-graph", viewBox: `0 0 ${layout.width} ${layout.height}`, role: "group",
        "aria-label": "Autograd graph. Arrow keys follow the edges.",
      },
      s("defs", {}, arrowMarker(marker)), s("g", {}, edgeEls), s("g", {}, boxEls),
    ); // prettier-ignore
    onKeys(svg, {
      ArrowDown: () => visitBox(graph.edges.find(([from]) => from === at())?.[1]),
      ArrowUp: () => visitBox(graph.edges.find(([, to]) => to === at())?.[0]),
      ArrowLeft: () => sideways(-1),
      ArrowRight: () => sideways(1),
      Enter: () => press(at()),
      "+": zoomed(1.25),
      "-": zoomed(1 / 1.25),
    });
    const held = box.contains(document.activeElement);
    box.replaceChildren(svg);
    group.checked = model.get("grouped");
    if (module && !looked()) module = "";
    resize();
    if (held) visitBox(at());
  }
  function resize() {
    const zoom = model.get("zoom");
    svg.style.width = zoom ? `${(layout.width * zoom) / 100}px` : "100%";
    svg.style.height = zoom ? `${(layout.height * zoom) / 100}px` : "auto";
    const one = looked();
    if (one) show(one);
  }

  // ---- moving through the graph
  const at = () => (looked() ? graph.boxes.indexOf(looked()) : 0);
  function look(i) {
    const one = graph.boxes[i];
    if (one === looked()) return;
    if (!one.module) return select(one.nodes[0].id);
    module = one.module;
    update();
  }
  function press(i) {
    const one = graph.boxes[i];
    if (!one.module) return visitBox(i);
    setOpen(one.module, true);
  }
  function setOpen(path, open) {
    const others = model.get("opened").filter((one) => one !== path && !one.startsWith(`${path}.`));
    module = open ? "" : path;
    if (open) model.set("selected", graph.boxes.find((one) => one.module === path).nodes[0].id);
    assign(model, "opened", open ? [...others, path] : others);
    visitBox(at());
  }
  function visitBox(i) {
    if (i === undefined) return;
    boxEls[i].focus({ preventScroll: true });
    look(i);
    show(graph.boxes[i]);
  }
  // A node that may be inside a module: its modules are opened.
  function visit(id) {
    if (id === undefined) return;
    openAround(nodes[id]);
    select(id);
    visitBox(graph.place.get(id));
  }
  function openAround(node) {
    const around = modulesAround(node, nodes.map((one) => one.module)); // prettier-ignore
    if (model.get("grouped")) assign(model, "opened", [...new Set([...model.get("opened"), ...around])]);
  }
  function show(one) {
    const place = layout.boxes[graph.boxes.indexOf(one)],
      f = svg.getBoundingClientRect().width / layout.width;
    const left = svg.getBoundingClientRect().left - box.getBoundingClientRect().left + box.scrollLeft;
    revealIn(
      box,
      left + (place.x - place.w / 2) * f,
      (place.y - place.h / 2) * f,
      left + (place.x + place.w / 2) * f,
      (place.y + place.h / 2) * f,
      24,
      90,
    );
  }
  function sideways(by) {
    const { layer } = layout.boxes[at()];
    const row = layout.boxes.map((_, i) => i).filter((i) => layout.boxes[i].layer === layer);
    row.sort((a, b) => layout.boxes[a].x - layout.boxes[b].x);
    visitBox(row[row.indexOf(at()) + by]);
  }
  const unlessTyping = (act) => (event) => (event.target === search ? false : act());
  const stepAndFollow = (move) => () => {
    const inGraph = svg.contains(document.activeElement);
    move();
    if (inGraph) visitBox(at());
  };
  onKeys(root, {
    ",": unlessTyping(stepAndFollow(play.keys[","])),
    ".": unlessTyping(stepAndFollow(play.keys["."])),
    p: unlessTyping(play.keys.p),
  });

  // ---- searching: what is typed is found in names, labels and modules; Enter goes to the next
  let hits = [];
  function find(by) {
    const words = search.value.trim().toLowerCase();
    const text = (n) => `${n.name} ${n.label ?? ""} ${n.module} ${n.made_by ?? ""}`.toLowerCase();
    hits = words ? nodes.filter((n) => text(n).includes(words)) : [];
    if (hits.length) {
      const here = hits.indexOf(selected());
      const next = hits[(by ? here + by + hits.length : Math.max(0, here)) % hits.length];
      openAround(next);
      select(next.id);
      show(boxOfNode(next.id));
      found.textContent = `${hits.indexOf(next) + 1} of ${hits.length}`;
    } else found.textContent = words ? "none" : "";
    update();
  }
  onKeys(search, {
    Enter: (event) => find(event.shiftKey ? -1 : 1),
    Escape: () => {
      search.value = "";
      find(0);
    },
  });

  // ---- drawing
  const modulesLinks = (n) => {
    const around = modulesAround(n, nodes.map((one) => one.module)); // prettier-ignore
    if (!around.length) return null;
    return model.get("grouped")
      ? around.flatMap((path, i) => [i ? " " : "", linkButton(path, () => setOpen(path, false))])
      : h("code", {}, n.module);
  };
  function detailOfModule({ module: path, nodes: own }) {
    const ran = own.filter((n) => n.order !== null && n.order < model.get("step"));
    const counts = new Map();
    for (const n of own) counts.set(n.name, (counts.get(n.name) ?? 0) + 1);
    return [
      h("p", { class: "rt-dtitle" }, path),
      linkButton("open it", () => setOpen(path, true)),
      factList([["nodes", String(own.length)], ["have run", `${ran.length} of ${own.length}`]]),
      h("ul", {}, [...counts].map(([name, count]) => h("li", {}, h("code", {}, name), count > 1 ? ` ×${count}` : ""))),
    ]; // prettier-ignore
  }
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
        [model.get("grouped") ? "close" : "module", modulesLinks(n)],
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
  function stateOfBox(engine, one) {
    const states = one.nodes.map((n) => stateOf(engine, n));
    if (states.includes("run")) return "run";
    if (states.every((state) => state === "done")) return "done";
    return states.includes("ready") ? "ready" : "wait";
  }
  function drawBoxState(engine, one, i) {
    const g = boxEls[i],
      state = stateOfBox(engine, one),
      chosen = one === looked();
    const [n] = one.nodes,
      done = one.nodes.filter((node) => engine.done.has(node.id)).length;
    const waits = state === "wait" && n.needs > 1 ? `waits for ${engine.missing.get(n.id)}` : "";
    const hit = one.nodes.some((node) => hits.includes(node)) ? " rt-hit" : "";
    const leaf = !one.module && n.is_leaf ? " rt-leaf" : "";
    g.setAttribute("class", `rt-node rt-n-${state}${leaf}${one.module ? " rt-module" : ""}${chosen ? " rt-sel" : ""}${hit}`);
    g.setAttribute("tabindex", i === at() ? 0 : -1);
    g.querySelector("desc").textContent = STATES.find(([k]) => k === state)[1];
    g.querySelector(".rt-ndep").textContent = one.module ? (done ? `${done} of ${one.nodes.length}` : "") : waits;
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
    graph.boxes.forEach((one, i) => drawBoxState(engine, one, i));
    edgeEls.forEach((path, e) => {
      const from = graph.boxes[graph.edges[e][0]],
        state = stateOfBox(engine, from);
      path.setAttribute("class", `rt-edge${state === "run" ? " rt-live" : state === "done" ? " rt-past" : ""}`);
    });
    play.show(...sentence(engine));
    if (engine.running && engine.running !== shown) show(boxOfNode(engine.running.id));
    shown = engine.running;
    const one = looked(),
      n = selected();
    const nothing = "Choose a node: click it, or tab into the graph and use the arrow keys.";
    detail.replaceChildren(
      ...(one?.module && (module || !n)
        ? detailOfModule(one)
        : n
          ? detailOf(n)
          : [h("p", { class: "rt-dim" }, nothing)]),
    );
  }
  const anew = () => {
    redraw();
    update();
  };
  redraw();
  const outermost = graph.boxes.filter((one) => one.module);
  if (outermost.length === 1) {
    model.set("opened", [outermost[0].module]); // one box would show nothing
    redraw();
  }
  const unbind = [
    bind(model, ["step", "selected"], update),
    bind(model, ["grouped", "opened"], anew),
    bind(model, ["zoom"], resize),
  ];
  requestAnimationFrame(() => show(boxOfNode(0))); // when the graph is wider than its box
  return () => {
    play.stop();
    unbind.forEach((end) => end());
  };
}

export default { render };
