"""Which buffers are computed by one kernel, and in which order kernels run.

A kernel has loops over a *domain*: sizes, of which some may be reduced. In it a node is one of

    full          a Pointwise over the whole domain        reduction     over the domain's reduced sizes
    kept          a Pointwise over the sizes that stay: one element a row

Two nodes go into one kernel if they fit into one domain, read or pass on something in common, every element that passes on is read at
the index at which it was written, and no other kernel has to run between them.

In PyTorch: `torch/_inductor/scheduler.py`.
"""

import math
from typing import NamedTuple

from .dependencies import MemoryDep, extract_reads
from .ir import ComputedBuffer, ExternKernel, MultiOutput, Reduction
from .sizevars import Symbol, expression, flatten, hint, unflatten

MOST_NODES = 64  # in one kernel


class Access(NamedTuple):
    """What a node does in a Domain. kind: "full", "reduction" or "kept"."""

    node: object
    kind: str
    index: list
    reads: list
    write: MemoryDep


class SchedulerNode:
    """A ComputedBuffer. users: names of nodes that read it."""

    is_extern = False

    def __init__(self, buffer, order):
        self.buffer, self.name, self.order = buffer, buffer.name, order
        sizes = [size for size, _ in self.dims]
        index = [expression(Symbol(f"d{k}", n)) for k, n in enumerate(sizes)]
        self.reads = {read.name for read in extract_reads(buffer.data.inner_fn, index)[0]}
        self.extra_deps = set()

    @property
    def dims(self):
        return self.buffer.data.dims()

    @property
    def is_reduction(self):
        return isinstance(self.buffer.data, Reduction)

    @property
    def numel(self):
        return math.prod(self.buffer.layout.size)


class ExternKernelSchedulerNode:
    """An ExternKernel, or one of several results of one."""

    is_extern = True

    def __init__(self, buffer, order):
        self.buffer, self.name, self.order = buffer, buffer.name, order
        self.reads = {buffer.source.name} if isinstance(buffer, MultiOutput) else set(buffer.reads)
        self.extra_deps = set()


# ----------------------------------------------------------------------------------------------------------- domain


def collapsed(dims):
    """Neighbors of one kind as one."""
    result = []
    for size, reduced in dims:
        if size == 1:
            continue
        if result and result[-1][1] == reduced:
            result[-1] = (result[-1][0] * size, reduced)
        else:
            result.append((size, reduced))
    return result


def refined(dims, sizes):
    """The reduction's dims cut as finely as `sizes`, where these end where those end. None if they do not."""
    result, rest = [], list(sizes)
    for size, reduced in collapsed(dims):
        step = 1
        while step != size and rest:
            result.append((rest[0], reduced))
            step = step * rest.pop(0)
        if step != size:
            return None
    return result + [(n, False) for n in rest] if all(n == 1 for n in rest) else None


class Domain:
    """The loops of a kernel. symbols: one for each of dims.

    Raises ValueError if the nodes do not fit, or an element would be read before it is written.
    """

    def __init__(self, nodes):
        self.nodes = sorted(nodes, key=lambda node: node.order)
        self.dims = [(size, reduced) for size, reduced in self.common_dims() if size != 1]
        self.symbols = [Symbol(f"i{k}", size) for k, (size, _) in enumerate(self.dims)]
        self.accesses = [self.access(node) for node in self.nodes]
        self.levels = self.find_levels()

    @property
    def kept(self):
        return [s for s, (_, reduced) in zip(self.symbols, self.dims) if not reduced]

    @property
    def reduced(self):
        return [s for s, (_, reduced) in zip(self.symbols, self.dims) if reduced]

    def common_dims(self):
        """The dims of the node that has most."""
        reductions = [node.dims for node in self.nodes if node.is_reduction]
        pointwise = [node.dims for node in self.nodes if not node.is_reduction]
        if not reductions:
            if len({node.numel for node in self.nodes}) > 1:
                raise ValueError("different numbers of elements")
            return max(pointwise, key=len)
        if any(collapsed(dims) != collapsed(reductions[0]) for dims in reductions):
            raise ValueError("different reductions")
        best = max(reductions, key=len)
        total = math.prod(size for size, _ in best)
        for dims in pointwise:
            sizes = [size for size, _ in dims]
            finer = refined(best, sizes) if len(sizes) > len(best) and math.prod(sizes) == total else None
            best = finer or best
        return best

    def access(self, node):
        """The node's reads and write, in this domain's symbols."""
        data, sizes = node.buffer.data, [size for size, _ in node.dims]
        everything = [expression(s) for s in self.symbols]
        if node.is_reduction:
            kind, index = "reduction", respelled(everything, self.symbols, sizes)
            kept = [i for i, (_, reduced) in zip(index, node.dims) if not reduced]
        elif node.numel == math.prod(s.size for s in self.symbols):
            kind, index = "full", respelled(everything, self.symbols, sizes)
            kept = index
        elif node.numel == math.prod(s.size for s in self.kept):
            kind, index = "kept", respelled([expression(s) for s in self.kept], self.kept, sizes)
            kept = index
        else:
            raise ValueError("another number of elements")
        reads, _ = extract_reads(data.inner_fn, index)
        return Access(node, kind, index, reads, MemoryDep(node.name, node.buffer.layout.indexer(kept)))

    def find_levels(self):
        """name -> how many passes over the rows must be complete before: what a row's total is used for needs another pass."""
        writes = {access.node.name: access for access in self.accesses}
        levels = {}
        for access in self.accesses:
            level = 0
            for read in access.reads:
                producer = writes.get(read.name)
                if producer is None:
                    continue
                if read != producer.write:
                    raise ValueError("read elsewhere than it was written")
                later = producer.kind != "full" and access.kind != "kept"
                if producer.kind == "full" and access.kind == "kept":
                    raise ValueError("an element of a row's sum is one of the row")
                level = max(level, levels[read.name] + later)
            levels[access.node.name] = level
        return levels


def respelled(index, symbols, sizes):
    """The index into `sizes` of the element that `index` is in the sizes of symbols."""
    own = [s.size for s in symbols]
    return index if own == list(sizes) else unflatten(flatten(index, own), sizes)


# --------------------------------------------------------------------------------------------------------- scheduler


class FusedSchedulerNode:
    """Nodes of one kernel. domain: None for an extern kernel."""

    def __init__(self, nodes):
        self.nodes = nodes
        self.names = {node.name for node in nodes}
        self.is_extern = nodes[0].is_extern
        self.domain = None if self.is_extern else Domain(nodes)
        self.order = min(node.order for node in nodes)
        self.reads = set().union(*[node.reads for node in nodes])
        self.deps = set().union(*[node.reads | node.extra_deps for node in nodes]) - self.names


class Scheduler:
    """groups: FusedSchedulerNodes in the order in which they run."""

    def __init__(self, graph):
        self.graph = graph
        self.outputs = {view.buffer.name for view in graph.outputs if hasattr(view, "buffer")}
        nodes = [
            (SchedulerNode if isinstance(b, ComputedBuffer) else ExternKernelSchedulerNode)(b, k)
            for k, b in enumerate(graph.buffers)
        ]
        self.order_mutations(nodes)
        nodes = self.without_dead(nodes)
        self.groups = [FusedSchedulerNode([node]) for node in nodes]
        self.size_of = {node.name: memory_of(node.buffer.layout) for node in nodes}
        while self.fuse_once():
            pass
        self.groups = self.topological()

    def order_mutations(self, nodes):
        """What reads a buffer runs before or after an operator that writes to it, as it did; random numbers are drawn in order."""
        last_random = None
        for k, node in enumerate(nodes):
            if not isinstance(node.buffer, ExternKernel):
                continue
            for name in node.buffer.mutates:
                node.extra_deps |= {other.name for other in nodes[:k] if name in other.reads}
                for other in nodes[k + 1 :]:
                    if name in other.reads:
                        other.extra_deps.add(node.name)
            if is_random(node.buffer.op):
                if last_random is not None:
                    node.extra_deps.add(last_random)
                last_random = node.name

    def without_dead(self, nodes):
        """Without what nobody reads."""
        alive, needed = [], set(self.outputs)
        for node in reversed(nodes):
            buffer = node.buffer
            effects = isinstance(buffer, ExternKernel) and (buffer.mutates or is_random(buffer.op))
            if node.name in needed or effects:
                alive.append(node)
                needed |= node.reads
        alive.reverse()
        names = {node.name for node in alive}
        for node in alive:
            node.extra_deps &= names
        return alive

    def users(self):
        users = {}
        for group in self.groups:
            for name in group.reads:
                users.setdefault(name, []).append(group)
        return users

    # -- fusion

    def fuse_once(self):
        """Fuse the pairs that share most, one after the other. Whether there were any."""
        fused = False
        for first, second in self.possible_fusions():
            if first in self.groups and second in self.groups:
                both = self.fused(first, second)
                if both is not None:
                    self.groups = [g for g in self.groups if g is not first and g is not second] + [both]
                    self.groups.sort(key=lambda group: group.order)
                    fused = True
        return fused

    def possible_fusions(self):
        """Pairs that share memory, those that share most of it first."""
        loops = [group for group in self.groups if not group.is_extern]
        scores = []
        for k, first in enumerate(loops):
            for second in loops[k + 1 :]:
                passed = first.names & second.reads | second.names & first.reads
                shared = passed | first.reads & second.reads
                if shared:
                    score = sum(self.size_of.get(name, 1) for name in shared)
                    scores.append((bool(passed), score, -k, first, second))
        scores.sort(key=lambda entry: entry[:3], reverse=True)
        return [entry[3:] for entry in scores]

    def fused(self, first, second):
        """Both as one, None if that cannot be."""
        if len(first.nodes) + len(second.nodes) > MOST_NODES or self.something_between(first, second):
            return None
        try:
            return FusedSchedulerNode(first.nodes + second.nodes)
        except ValueError:
            return None

    def something_between(self, first, second):
        """Whether a third group needs one of them and is needed by the other."""
        by_name = {name: group for group in self.groups for name in group.names}
        return leads_to(first, second, by_name) or leads_to(second, first, by_name)

    def topological(self):
        """Each group after what it needs, else in the order of the graph."""
        by_name = {name: group for group in self.groups for name in group.names}
        done, order = set(), []

        def visit(group):
            stack = [(group, iter(needed_by(group, by_name)))]
            done.add(id(group))
            while stack:
                current, rest = stack[-1]
                for other in rest:
                    if id(other) not in done:
                        done.add(id(other))
                        stack.append((other, iter(needed_by(other, by_name))))
                        break
                else:
                    order.append(current)
                    stack.pop()

        for group in self.groups:
            if id(group) not in done:
                visit(group)
        return order


def needed_by(group, by_name):
    groups = {id(by_name[name]): by_name[name] for name in group.deps if name in by_name}
    return sorted(groups.values(), key=lambda other: other.order)


def leads_to(target, start, by_name):
    """Whether `start` needs `target` by way of a third group."""
    seen, stack = set(), [g for g in needed_by(start, by_name) if g is not target]
    while stack:
        group = stack.pop()
        if group is target:
            return True
        if id(group) not in seen:
            seen.add(id(group))
            stack += needed_by(group, by_name)
    return False


def memory_of(layout):
    return 0 if layout is None else hint(math.prod(layout.size)) * layout.dtype.itemsize


def is_random(op):
    return any("nondeterministic_seeded" in str(tag) for tag in op.tags)
