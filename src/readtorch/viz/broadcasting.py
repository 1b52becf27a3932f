"""What the figures that run small tensor programs share: PyTorch's errors, broadcasting, who waits for whom in a graph, and
how programs are drawn that can be run."""

import math

from .inputs import Refusal


class Error(Exception):
    """What Python or PyTorch raises: its kind and its words."""

    def __init__(self, words, kind="RuntimeError"):
        super().__init__(f"{kind}: {words}")


def count_of(shape):
    return math.prod(shape)


def places(shape, larger):
    """For each element of an array of the shape `larger`, the place of its partner in one of `shape`."""
    steps, step = [], 1
    for size in reversed(shape):
        steps.insert(0, 0 if size == 1 else step)
        step *= size
    steps = [0] * (len(larger) - len(shape)) + steps
    found = [0]
    for size, step in zip(larger, steps):
        found = [place + i * step for place in found for i in range(size)]
    return found


def broadcast(a, b):
    """The shape of a * b. Raises Error."""
    rank = max(len(a), len(b))
    a, b = [1] * (rank - len(a)) + a, [1] * (rank - len(b)) + b
    for dim in reversed(range(rank)):
        if a[dim] != b[dim] and 1 not in (a[dim], b[dim]):
            sizes = f"The size of tensor a ({a[dim]}) must match the size of tensor b ({b[dim]})"
            raise Error(f"{sizes} at non-singleton dimension {dim}")
    return [y if x == 1 else x for x, y in zip(a, b)]


def dependencies(root):
    """How many gradients each node that `root` leads to waits for, as compute_dependencies counts them."""
    needs, stack = {root: 0}, [root]
    while stack:
        for node in stack.pop().next:
            if node:
                if node not in needs:
                    stack.append(node)
                needs[node] = needs.get(node, 0) + 1
    return needs


def lines_that_run(random, drawn, run):
    """Of the lines drawn those that `run` takes; now and then one that raises PyTorch's error ends them."""
    for line in drawn:
        try:
            run(line)
        except Refusal:
            continue
        except Error:
            if random.random() < 0.1:
                yield line
                return
            continue
        yield line
