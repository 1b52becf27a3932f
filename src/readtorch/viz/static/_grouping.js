// Which boxes stand for the nodes of a graph when modules are drawn in their place: see autograd.js.

// The path of a module, longer while all its nodes lie in one module below it.
function wholePath(path, modules) {
  const inside = modules.filter((one) => one === path || one.startsWith(`${path}.`));
  const next = new Set(inside.map((one) => one.slice(path.length + 1).split(".")[0]));
  const [only] = next;
  return next.size === 1 && only ? wholePath(`${path}.${only}`, modules) : path;
}

// The modules around a node, outermost first, without those that hold but one other.
function modulesAround(node, modules, known = new Map()) {
  if (known.has(node.module)) return known.get(node.module);
  const parts = node.module ? node.module.split(".") : [],
    around = [];
  for (let depth = 1; depth <= parts.length; depth++) {
    const path = wholePath(parts.slice(0, depth).join("."), modules);
    around.push(path);
    depth = path.split(".").length;
  }
  known.set(node.module, around);
  return around;
}

// { boxes: [{ key, nodes, module }], edges: [[box, box]] }: a box is a node, or a module that is not in `open`.
function groupedGraph({ nodes, edges }, grouped, open) {
  const modules = nodes.map((node) => node.module),
    known = new Map();
  const keyOf = (node) => {
    const closed = grouped && modulesAround(node, modules, known).find((path) => !open.includes(path));
    return closed || node.id;
  };
  const boxes = new Map();
  for (const node of nodes) {
    const key = keyOf(node);
    if (!boxes.has(key)) boxes.set(key, { key, nodes: [], module: typeof key === "string" ? key : "" });
    boxes.get(key).nodes.push(node);
  }
  for (const [key, box] of boxes)
    if (box.module && box.nodes.length === 1) {
      boxes.delete(key);
      boxes.set(box.nodes[0].id, { key: box.nodes[0].id, nodes: box.nodes, module: "" });
    }
  const list = [...boxes.values()],
    place = new Map(list.flatMap((box, i) => box.nodes.map((node) => [node.id, i])));
  const pairs = new Map();
  for (const [from, to] of edges) {
    const [a, b] = [place.get(from), place.get(to)];
    if (a !== b) pairs.set(`${a} ${b}`, [a, b]);
  }
  // of one node to another there may be two edges: y * y
  const ungrouped = list.every((box) => !box.module);
  const between = ungrouped ? edges.map(([from, to]) => [place.get(from), place.get(to)]) : [...pairs.values()];
  return { boxes: list, place, edges: between };
}

// The same edges with those turned round that close a circle: two modules may each use what the other made.
function withoutCircles(count, edges) {
  const next = Array.from({ length: count }, () => []);
  edges.forEach(([a, b], e) => next[a].push([b, e]));
  const state = Array(count).fill(0), turned = new Set(); // prettier-ignore
  for (let root = 0; root < count; root++) {
    if (state[root]) continue;
    const stack = [[root, 0]];
    state[root] = 1;
    while (stack.length) {
      const top = stack.at(-1);
      if (top[1] === next[top[0]].length) {
        state[top[0]] = 2;
        stack.pop();
        continue;
      }
      const [to, e] = next[top[0]][top[1]++];
      if (state[to] === 1) turned.add(e);
      else if (!state[to]) {
        state[to] = 1;
        stack.push([to, 0]);
      }
    }
  }
  return { turned, edges: edges.map(([a, b], e) => (turned.has(e) ? [b, a] : [a, b])) };
}

// A drawing of its own, with the colours that it has here.
function exportedSvg(svg) {
  const copy = svg.cloneNode(true);
  const kept = ["fill", "stroke", "stroke-width", "stroke-dasharray", "font", "text-anchor", "opacity"];
  const originals = [svg, ...svg.querySelectorAll("*")],
    copies = [copy, ...copy.querySelectorAll("*")];
  originals.forEach((one, i) => {
    const style = getComputedStyle(one);
    if (/^(path|rect|text)$/.test(one.tagName)) copies[i].setAttribute("style", kept.map((name) => `${name}:${style.getPropertyValue(name)}`).join(";"));
    for (const name of ["class", "tabindex", "role", "data-lm-suppress-shortcuts"]) copies[i].removeAttribute(name);
  });
  const { width, height } = svg.viewBox.baseVal;
  const ground = s("rect", { width, height, style: `fill:${getComputedStyle(svg.closest(".rt-w")).backgroundColor}` });
  copy.prepend(ground);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  return new XMLSerializer().serializeToString(copy);
}

function download(text, name, type) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
