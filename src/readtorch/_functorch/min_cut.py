"""The minimum cut of a graph whose edges have capacities: the cheapest set of edges without which nothing flows from source to sink.

PyTorch has no such file: it asks networkx (`minimum_cut`). A cut costs at least as much as can flow, and the largest flow fills some cut: so the flow
is made as large as possible, and what can still reach the sink then is on its side.
"""

import math
from collections import deque

SOURCE, SINK = "source", "sink"


class FlowGraph:
    """Edges with capacities. room[u][v]: how much more can flow from u to v, what flows from v to u included."""

    def __init__(self):
        self.room = {SOURCE: {}, SINK: {}}
        self.edges = {}  # (u, v) -> capacity

    def add_edge(self, u, v, capacity):
        """An edge that is there has another capacity from now on."""
        self.edges[u, v] = capacity
        self.room.setdefault(u, {})[v] = capacity
        self.room.setdefault(v, {}).setdefault(u, 0)

    def minimum_cut(self):
        """(Its cost, the edges that it cuts). Of several that cost the least it is the one nearest to the sink.

        Raises ValueError if the flow has no limit: its argument is a path without one.
        """
        value = sum(self.augment(levels) for levels in iter(self.levels, None))
        below = self.that_reach(SINK)
        return value, [(u, v) for u, v in self.edges if u not in below and v in below]

    def levels(self):
        """Node -> its distance from the source by edges with room. None if there is no way to the sink."""
        distance, queue = {SOURCE: 0}, deque([SOURCE])
        while queue:
            u = queue.popleft()
            for v, room in self.room[u].items():
                if room and v not in distance:
                    distance[v] = distance[u] + 1
                    queue.append(v)
        return distance if SINK in distance else None

    def augment(self, levels):
        """Fill all shortest paths (Dinic's algorithm). Returns by how much the flow has grown."""
        # What has led nowhere is taken out.
        onward = {u: [v for v in self.room[u] if levels.get(v) == levels[u] + 1] for u in levels}
        path, grown = [SOURCE], 0
        while path:
            u = path[-1]
            if u == SINK:
                grown += self.fill(path)
                path = [SOURCE]
                continue
            while onward[u] and not self.room[u][onward[u][-1]]:
                onward[u].pop()
            if onward[u]:
                path.append(onward[u][-1])
            else:
                path.pop()
                if path:
                    onward[path[-1]].pop()
        return grown

    def fill(self, path):
        steps = list(zip(path, path[1:]))
        flow = min(self.room[u][v] for u, v in steps)
        if flow == math.inf:
            raise ValueError(path)
        for u, v in steps:
            self.room[u][v] -= flow
            self.room[v][u] += flow
        return flow

    def that_reach(self, target):
        """All nodes from which there is a way to `target` by edges with room."""
        found, stack = {target}, [target]
        while stack:
            v = stack.pop()
            for u in self.room[v]:
                if u not in found and self.room[u][v]:
                    found.add(u)
                    stack.append(u)
        return found
