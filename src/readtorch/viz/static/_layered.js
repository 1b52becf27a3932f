// Drawing a directed graph without cycles in layers, as graph_layout.py: a node stands one layer below the deepest that
// points to it, long edges get joints, neighbours change places while crossings go away, and each stands near the mean
// of its neighbours. `labels[i]`: the lines of a node's text; `edges`: pairs of numbers of nodes.

const LAYERED = { character: 7.4, padding: 18, row: 66, gap: 22, margin: 12, heights: [0, 26, 36] };
const ORDER_SWEEPS = 24;
const PLACE_SWEEPS = 120;
const LEAF_WEIGHT = 0.02;

const stableSort = (row, key) =>
  row.map((vertex) => [key(vertex), vertex]).sort(([a], [b]) => a - b).map(([, vertex]) => vertex); // prettier-ignore
const mean = (numbers) => numbers.reduce((sum, x) => sum + x, 0) / numbers.length;

function assignLayers(count, edges) {
  const targets = Array.from({ length: count }, () => []),
    missing = Array(count).fill(0),
    layer = Array(count).fill(0);
  for (const [a, b] of edges) {
    targets[a].push(b);
    missing[b] += 1;
  }
  const ready = layer.map((_, v) => v).filter((v) => !missing[v]);
  while (ready.length) {
    const v = ready.pop();
    for (const w of targets[v]) {
      layer[w] = Math.max(layer[w], layer[v] + 1);
      missing[w] -= 1;
      if (!missing[w]) ready.push(w);
    }
  }
  return layer;
}

// Rows of vertices, of which those from layer.length on are joints, and for each edge the chain that it runs through.
class LayeredRows {
  constructor(layer, edges) {
    this.rows = Array.from({ length: Math.max(...layer) + 1 }, () => []);
    layer.forEach((r, v) => this.rows[r].push(v));
    let joints = layer.length;
    this.chains = edges.map(([a, b]) => {
      const chain = [a];
      for (let r = layer[a] + 1; r < layer[b]; r++) {
        this.rows[r].push(joints);
        chain.push(joints++);
      }
      return [...chain, b];
    });
    this.count = joints;
    this.above = Array.from({ length: joints }, () => []);
    this.below = Array.from({ length: joints }, () => []);
    this.links = this.chains.flatMap((chain) => chain.slice(1).map((lower, i) => [chain[i], lower]));
    for (const [upper, lower] of this.links) {
      this.below[upper].push(lower);
      this.above[lower].push(upper);
    }
  }
  neighbours(v) {
    return [...this.above[v], ...this.below[v]];
  }
  positions() {
    const position = Array(this.count);
    for (const row of this.rows) row.forEach((v, i) => (position[v] = i));
    return position;
  }
  crossings() {
    const position = this.positions();
    const between = this.rows.map(() => []);
    const rowOf = Array(this.count);
    this.rows.forEach((row, r) => row.forEach((v) => (rowOf[v] = r)));
    for (const [a, b] of this.links) between[rowOf[a]].push([position[a], position[b]]);
    let count = 0;
    for (const pairs of between)
      for (let i = 0; i < pairs.length; i++)
        for (let j = 0; j < i; j++) {
          const [p, q] = [pairs[i], pairs[j]];
          if ((p[0] < q[0] && p[1] > q[1]) || (p[0] > q[0] && p[1] < q[1])) count++;
        }
    return count;
  }
  sortByNeighbours(downwards) {
    const side = downwards ? this.above : this.below,
      position = this.positions();
    const places = this.rows.map((_, r) => (downwards ? r : this.rows.length - 1 - r));
    for (const r of places) {
      this.rows[r] = stableSort(this.rows[r], (v) => (side[v].length ? mean(side[v].map((u) => position[u])) : position[v]));
      this.rows[r].forEach((v, i) => (position[v] = i));
    }
  }
  exchangeNeighbours() {
    const position = this.positions();
    const crossed = (left, right) => {
      let count = 0;
      for (const side of [this.above, this.below])
        for (const p of side[left]) for (const q of side[right]) if (position[p] > position[q]) count++;
      return count;
    };
    for (let better = true; better; ) {
      better = false;
      for (const row of this.rows)
        for (let i = 0; i + 1 < row.length; i++) {
          const [left, right] = [row[i], row[i + 1]];
          if (crossed(right, left) >= crossed(left, right)) continue;
          [row[i], row[i + 1]] = [right, left];
          position[left] = i + 1;
          position[right] = i;
          better = true;
        }
    }
  }
  reduceCrossings() {
    let best = this.crossings(),
      bestRows = this.rows.map((row) => [...row]);
    for (let sweep = 0; sweep < ORDER_SWEEPS && best; sweep++) {
      this.sortByNeighbours(sweep % 2 === 0);
      this.exchangeNeighbours();
      const crossings = this.crossings();
      if (crossings >= best) continue;
      best = crossings;
      bestRows = this.rows.map((row) => [...row]);
    }
    this.rows = bestRows;
  }
  // The x of every vertex's centre.
  place(width, gap) {
    const near = Array.from({ length: this.count }, (_, v) => this.neighbours(v));
    const weight = near.map((others) => (others.length > 1 ? 1 : LEAF_WEIGHT));
    const least = this.rows.map((row) => packedRow(row, width, gap));
    const x = Array(this.count);
    this.rows.forEach((row, r) => row.forEach((v, i) => (x[v] = least[r][i])));
    const wish = (v) => {
      if (!near[v].length) return x[v];
      let total = 0,
        sum = 0;
      for (const u of near[v]) {
        total += weight[u];
        sum += weight[u] * x[u];
      }
      return sum / total;
    };
    for (let sweep = 0; sweep < PLACE_SWEEPS; sweep++)
      for (let k = 0; k < this.rows.length; k++) {
        const r = sweep % 2 === 0 ? k : this.rows.length - 1 - k,
          row = this.rows[r];
        const shifts = isotonicFit(row.map((v, i) => wish(v) - least[r][i]), row.map((v) => weight[v])); // prettier-ignore
        row.forEach((v, i) => (x[v] = shifts[i] + least[r][i]));
      }
    return x;
  }
}

// Where the centres of a row would be if it were packed to the left.
function packedRow(row, width, gap) {
  let at = 0;
  return row.map((v, i) => (at += i ? (width(row[i - 1]) + width(v)) / 2 + gap : 0));
}

// The never-falling sequence nearest to `values` in weighted squares: pool while neighbours fall.
function isotonicFit(values, weights) {
  const blocks = [];
  values.forEach((value, i) => {
    blocks.push([value, weights[i], 1]);
    while (blocks.length > 1 && blocks.at(-2)[0] > blocks.at(-1)[0]) {
      const [m, w, n] = blocks.pop(),
        [mean, heavy, count] = blocks.at(-1);
      blocks[blocks.length - 1] = [(mean * heavy + m * w) / (heavy + w), heavy + w, count + n];
    }
  });
  return blocks.flatMap(([mean, , count]) => Array(count).fill(mean));
}

// { boxes: [{ x, y, w, h, layer }], paths: [[[x, y], …]], width, height }; x and y are of a box's centre.
function layeredLayout(labels, edges, sizes = {}) {
  const { character, padding, row, gap, margin, heights } = { ...LAYERED, ...sizes };
  if (!labels.length) return { boxes: [], paths: [], width: 2 * margin, height: 2 * margin };
  const layer = assignLayers(labels.length, edges);
  const graph = new LayeredRows(layer, edges);
  const own = labels.map((lines) => Math.max(...lines.map((line) => line.length)) * character + padding);
  const width = (v) => own[v] ?? 4; // a joint is a thin thing
  graph.reduceCrossings();
  const x = graph.place(width, gap);
  const left = Math.min(...x.map((at, v) => at - width(v) / 2)) - margin,
    right = Math.max(...x.map((at, v) => at + width(v) / 2)) + margin;
  const rowY = (r) => margin * 2 + r * row;
  const boxes = labels.map((lines, v) => ({
    x: x[v] - left, y: rowY(layer[v]), w: own[v], h: heights[lines.length], layer: layer[v],
  })); // prettier-ignore
  const paths = graph.chains.map((chain) => {
    const [first, last] = [boxes[chain[0]], boxes[chain.at(-1)]];
    const points = chain.map((v, i) => [x[v] - left, rowY(first.layer + i)]);
    points[0][1] += first.h / 2;
    points.at(-1)[1] -= last.h / 2;
    return points;
  });
  return { boxes, paths, width: right - left, height: rowY(Math.max(...layer)) + margin * 2 + 6 };
}

// A line through the points that leaves and reaches each of them upright.
function edgeCurve(points) {
  let d = `M${points[0].join()}`;
  for (let i = 1; i < points.length; i++) {
    const [[x0, y0], [x1, y1]] = [points[i - 1], points[i]],
      middle = (y0 + y1) / 2;
    d += `C${x0},${middle} ${x1},${middle} ${x1},${y1}`;
  }
  return d;
}

const arrowMarker = (id) =>
  s(
    "marker",
    { id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerUnits: "userSpaceOnUse", markerWidth: 8, markerHeight: 8, orient: "auto" },
    s("path", { class: "rt-arrow", d: "M0,0L8,4L0,8z" }),
  ); // prettier-ignore
