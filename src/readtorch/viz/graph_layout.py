"""Drawing a directed graph without cycles in layers, in plain Python.

Note [ Drawing a graph in layers ]
1. *Layers.* A node stands one layer below the deepest node that points to it, so that a leaf (an
   AccumulateGrad) stands right below its last user.
2. *Joints.* An edge that passes through layers gets a joint in each, so that every link joins neighbouring
   layers.
3. *Order.* Inside a layer nodes are sorted by the mean position of their neighbours, layer after layer,
   down and up; then neighbours are exchanged while that removes crossings. The order with the fewest
   crossings is kept.
4. *Place.* Each node would like to stand at the mean x of its neighbours. A weighted isotonic fit finds the
   places nearest to those wishes that keep the order and the gaps. Leaves weigh little, so that they give
   way and the spine of the graph stays straight.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

CHARACTER, PADDING = 7.4, 18  # px: the widest character of the 12 px monospace face; both sides of a box
ROW, GAP, MARGIN = 66, 22, 12  # px: from layer to layer; between boxes; around the drawing
ORDER_SWEEPS, PLACE_SWEEPS = 24, 120
LEAF_WEIGHT = 0.02


@dataclass
class Drawing:
    """A box ``(x, y, width, height, layer)`` a node (x, y: its centre), and a list of points an edge."""

    boxes: list
    paths: list
    width: int
    height: int
    crossings: int


@dataclass
class Rows:
    """The layers as lists of vertices, and the links between neighbouring layers, both ways."""

    rows: list
    links: list = field(default_factory=list)
    above: dict = field(default_factory=lambda: defaultdict(list))
    below: dict = field(default_factory=lambda: defaultdict(list))

    def link(self, upper, lower):
        self.links.append((upper, lower))
        self.below[upper].append(lower)
        self.above[lower].append(upper)

    def neighbours(self, vertex):
        return self.above[vertex] + self.below[vertex]

    def positions(self):
        return {v: i for row in self.rows for i, v in enumerate(row)}


def layered_layout(labels: list[tuple[str, ...]], edges: list[tuple[int, int]]) -> Drawing:
    """Place one box a node (``labels[i]``: its lines of text), route the edges. A cycle is a ValueError."""
    layer = assign_layers(len(labels), edges)
    graph, chains = insert_joints(layer, edges)
    width = defaultdict(lambda: 4.0)  # a joint is a thin thing
    width.update((v, max(map(len, lines)) * CHARACTER + PADDING) for v, lines in enumerate(labels))
    crossings = reduce_crossings(graph)
    x = place(graph, width)
    return draw(labels, layer, chains, x, width, crossings)


# ---- 1. layers


def assign_layers(count: int, edges: list[tuple[int, int]]) -> list[int]:
    targets, sources = defaultdict(list), defaultdict(list)
    for a, b in edges:
        targets[a].append(b)
        sources[b].append(a)
    missing = [len(sources[v]) for v in range(count)]
    layer = [0] * count
    ready = [v for v in range(count) if not missing[v]]
    done = 0
    while ready:
        v = ready.pop()
        done += 1
        for w in targets[v]:
            layer[w] = max(layer[w], layer[v] + 1)
            missing[w] -= 1
            if not missing[w]:
                ready.append(w)
    if done < count:
        raise ValueError("the graph has a cycle")
    return layer


# ---- 2. joints


def insert_joints(layer: list[int], edges: list[tuple[int, int]]) -> tuple[Rows, list[list[int]]]:
    """Rows with joints, and for each edge the chain of vertices that it runs through."""
    graph = Rows([[] for _ in range(max(layer) + 1)])
    for v, r in enumerate(layer):
        graph.rows[r].append(v)
    joint, chains = len(layer), []
    for a, b in edges:
        chain = [a]
        for r in range(layer[a] + 1, layer[b]):
            graph.rows[r].append(joint)
            chain.append(joint)
            joint += 1
        chain.append(b)
        chains.append(chain)
        for upper, lower in zip(chain, chain[1:]):
            graph.link(upper, lower)
    return graph, chains


# ---- 3. order


def count_crossings(graph: Rows) -> int:
    position, row_of = graph.positions(), {v: r for r, row in enumerate(graph.rows) for v in row}
    between = defaultdict(list)
    for a, b in graph.links:
        between[row_of[a]].append((position[a], position[b]))
    return sum(
        p[0] < q[0] and p[1] > q[1] or p[0] > q[0] and p[1] < q[1]
        for pairs in between.values()
        for i, p in enumerate(pairs)
        for q in pairs[:i]
    )


def reduce_crossings(graph: Rows) -> int:
    best, best_rows = count_crossings(graph), [row[:] for row in graph.rows]
    for sweep in range(ORDER_SWEEPS):
        if not best:
            break
        sort_by_neighbours(graph, downwards=sweep % 2 == 0)
        exchange_neighbours(graph)
        crossings = count_crossings(graph)
        if crossings < best:
            best, best_rows = crossings, [row[:] for row in graph.rows]
    graph.rows = best_rows
    return best


def sort_by_neighbours(graph: Rows, downwards: bool):
    side = graph.above if downwards else graph.below
    position = graph.positions()

    def mean_position(v):
        near = side[v]
        return sum(position[u] for u in near) / len(near) if near else position[v]

    for row in graph.rows if downwards else reversed(graph.rows):
        row.sort(key=mean_position)
        position.update((v, i) for i, v in enumerate(row))


def exchange_neighbours(graph: Rows):
    position = graph.positions()

    def crossings(left, right):
        return sum(
            position[p] > position[q] for side in (graph.above, graph.below) for p in side[left] for q in side[right]
        )

    better = True
    while better:
        better = False
        for row in graph.rows:
            for i in range(len(row) - 1):
                left, right = row[i], row[i + 1]
                if crossings(right, left) < crossings(left, right):
                    row[i], row[i + 1] = right, left
                    position[left], position[right] = i + 1, i
                    better = True


# ---- 4. place


def place(graph: Rows, width: dict) -> dict:
    """The x of every vertex's centre. Note [ Drawing a graph in layers ]"""
    weight = {v: 1.0 if len(graph.neighbours(v)) > 1 else LEAF_WEIGHT for row in graph.rows for v in row}
    x = {}
    for row in graph.rows:
        x.update(zip(row, offsets(row, width)))

    def wish(v):
        near = graph.neighbours(v)
        total = sum(weight[u] for u in near)
        return sum(weight[u] * x[u] for u in near) / total if near else x[v]

    for sweep in range(PLACE_SWEEPS):
        for row in graph.rows if sweep % 2 == 0 else reversed(graph.rows):
            least = offsets(row, width)
            shifts = isotonic_fit([wish(v) - o for v, o in zip(row, least)], [weight[v] for v in row])
            x.update((v, s + o) for v, s, o in zip(row, shifts, least))
    return x


def offsets(row: list, width: dict) -> list[float]:
    """Where the centres of a row would be if it were packed to the left."""
    out, at = [], 0.0
    for i, v in enumerate(row):
        if i:
            at += (width[row[i - 1]] + width[v]) / 2 + GAP
        out.append(at)
    return out


def isotonic_fit(values: list[float], weights: list[float]) -> list[float]:
    """The never-falling sequence nearest to ``values`` in weighted squares: pool while neighbours fall."""
    blocks = []  # [mean, weight, how many]
    for value, weight in zip(values, weights):
        blocks.append([value, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            m, w, n = blocks.pop()
            mean, heavy, count = blocks[-1]
            blocks[-1] = [(mean * heavy + m * w) / (heavy + w), heavy + w, count + n]
    return [mean for mean, _, count in blocks for _ in range(count)]


def draw(labels, layer, chains, x, width, crossings) -> Drawing:
    left = min(x[v] - width[v] / 2 for v in x) - MARGIN
    right = max(x[v] + width[v] / 2 for v in x) + MARGIN
    row_y = [MARGIN * 2 + r * ROW for r in range(max(layer) + 1)]
    height = {1: 26, 2: 36}  # by lines of text
    boxes = [
        (round(x[v] - left, 1), row_y[layer[v]], round(width[v], 1), height[len(lines)], layer[v])
        for v, lines in enumerate(labels)
    ]
    paths = []
    for chain in chains:
        first, last = boxes[chain[0]], boxes[chain[-1]]
        points = [[round(x[v] - left, 1), row_y[first[4] + i]] for i, v in enumerate(chain)]
        points[0][1] += first[3] / 2
        points[-1][1] -= last[3] / 2
        paths.append(points)
    return Drawing(boxes, paths, round(right - left), row_y[-1] + MARGIN * 2 + 6, crossings)
