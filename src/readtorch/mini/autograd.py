"""Written in the chapter "Autograd": its cells are this file, put together by `tools/mini.py`."""

import heapq
import itertools
import math
import weakref

import numpy as np

from .dispatcher import Guard, Operator, Tensor, add, add_, below, mul, mul_, numbers, put, thread
from .tensor_impl import AUTOGRAD, CPU, AutogradMeta

made = itertools.count()  # sequence numbers


class Node:
    """A step of backward; next_edges: where its results go."""

    tensor_hooks = ()

    def __init__(self, name, shape, next_edges, formulas=()):
        self.name, self.shape = name, shape
        self.next_edges, self.formulas = next_edges, formulas
        self.sequence, self.saved = next(made), {}

    def apply(self, grad):
        kept = {n: s.unpack() for n, s in self.saved.items()}
        return [f and f(grad, *[kept[n] for n in names_in(f)])
                for f in self.formulas]


def names_in(formula):
    """The parameters of a formula, after `grad`."""
    code = formula.__code__
    return code.co_varnames[1:code.co_argcount]


class AutogradMeta(AutogradMeta):
    accumulator = version = None
    tensor_hooks = ()


def no_grad():
    return Guard(exclude=AUTOGRAD)


class Tensor(Tensor):
    """A tensor with a place in the graph."""

    base = None
    grad = property(lambda self: self.meta and self.meta.grad)

    def autograd_meta(self):
        self.meta = self.meta or AutogradMeta()
        return self.meta

    def requires_grad_(self):
        self.autograd_meta().requires_grad = True
        return self

    @property
    def requires_grad(self):
        leaf = self.meta and self.meta.requires_grad
        return bool(leaf or self.grad_fn)

    @property
    def grad_fn(self):
        if self.base is not None and self.base.requires_grad:
            meta = self.autograd_meta()
            if meta.version != self.counter[0]:
                meta.version = self.counter[0]
                meta.grad_fn = as_strided_backward(self)
        return self.meta and self.meta.grad_fn

    def detach(self):
        with no_grad():
            return super().detach()

    def backward(self, grad=None, retain_graph=False):
        ones = Tensor.of(np.ones(self.shape, self.dtype))
        task, root = GraphTask(retain_graph), gradient_edge(self)
        compute_dependencies(task, root)
        task.push(root, grad or ones)
        with no_grad():
            thread_main(task)

    def register_hook(self, hook):
        owner = self.grad_fn or self.autograd_meta()
        owner.tensor_hooks += (hook,)

    def as_strided(self, *layout):
        view = super().as_strided(*layout)
        if not thread.excluded & AUTOGRAD:
            view.base = self if self.base is None else self.base
        return view


def gradient_edge(t):
    """The node that a tensor's gradient goes to, or None."""
    if not t.requires_grad or t.grad_fn:
        return t.grad_fn if t.requires_grad else None
    found = t.meta.accumulator and t.meta.accumulator()
    node = found or AccumulateGrad(t)
    t.meta.accumulator = weakref.ref(node)
    return node


class AccumulateGrad(Node):
    tensor_hooks = property(lambda self: self.meta.tensor_hooks)

    def __init__(self, leaf):
        super().__init__("AccumulateGrad", leaf.shape, ())
        self.leaf, self.meta = leaf, leaf.meta
        self.sequence = math.inf

    def apply(self, grad):
        old = self.meta.grad
        self.meta.grad = old + grad if old else grad.clone()
        return []


class SavedVariable:
    """A tensor for later, and the version that it has now."""

    def __init__(self, t):
        self.data, self.version = t, t.counter[0]

    def unpack(self):
        if self.data is None:
            raise RuntimeError("backward a second time: freed")
        now = self.data.counter[0]
        if now != self.version:
            raise RuntimeError(f"is at version {now}; expected "
                               f"version {self.version} instead")
        return self.data


def derivative(op, **formulas):
    """Records the calls of `op`: a formula for each operand."""
    in_place = op.name.endswith("_")

    @op.impl(AUTOGRAD)
    def record(keys, *args):
        edges = [gradient_edge(t) for t in args]
        # formulas whose gradient is wanted; their names are saved
        used = [e and f for e, f in zip(edges, formulas.values())]
        names = {n for f in used if f for n in names_in(f)}
        if in_place:
            check_inplace(args[0])
        with no_grad():
            saved = {n: SavedVariable(
                t.clone() if in_place and t is args[0] else t)
                for n, t in zip("ab", args) if n in names}
            result = op.redispatch(keys & below(AUTOGRAD), *args)
            result.__class__ = Tensor  # chapter 4 made it
            if "result" in names:
                saved["result"] = SavedVariable(result.detach())
        if any(edges):
            node = Node(op.name, result.shape, edges, used)
            node.saved = saved
            rebase_history(result, node)
        return result


def check_inplace(t):
    root = t if t.base is None else t.base
    if root.requires_grad and not root.grad_fn:
        raise RuntimeError("a leaf that requires grad is "
                           "being used in an in-place operation")


def rebase_history(t, node):
    if t.base is not None:
        t, node = t.base, CopySlices(t, node)
    t.autograd_meta().grad_fn = node


def operator(name, f):
    op = Operator(name)
    op.impl(CPU)(lambda keys, *args:
                 Tensor.of(f(*map(numbers, args))))
    return op


exp, log = operator("exp", np.exp), operator("log", np.log)
matmul = operator("matmul", np.matmul)
for op in add, add_:
    derivative(op, a=lambda grad: grad, b=lambda grad: grad)
for op in mul, mul_:
    derivative(op, a=lambda grad, b: grad * b,
               b=lambda grad, a: grad * a)
derivative(exp, a=lambda grad, result: grad * result)
derivative(log, a=lambda grad, result: grad * exp(result * -1))
derivative(matmul,
           a=lambda grad, b: matmul(grad, b.transpose(0, 1)),
           b=lambda grad, a: matmul(a.transpose(0, 1), grad))


class GraphTask:
    """One call of backward."""

    def __init__(self, keep_graph):
        self.keep_graph = keep_graph
        self.dependencies, self.not_ready = {}, {}
        self.ready = []  # a heap

    def push(self, node, grad):
        last_first = -node.sequence, next(made)
        heapq.heappush(self.ready, (*last_first, node, grad))


def compute_dependencies(task, root):
    stack = [root]
    while stack:
        for node in filter(None, stack.pop().next_edges):
            if node not in task.dependencies:
                task.dependencies[node] = 0
                stack.append(node)
            task.dependencies[node] += 1


def thread_main(task):
    while task.ready:
        *_, node, grad = heapq.heappop(task.ready)
        evaluate_function(task, node, grad)


def call_function(node, grad):
    for hook in node.tensor_hooks:
        grad = hook(grad) or grad
    return node.apply(grad)


def evaluate_function(task, node, grad):
    outputs = call_function(node, grad)
    if not task.keep_graph:
        for saved in node.saved.values():
            saved.data = None
    for after, output in zip(node.next_edges, outputs):
        if after is None:
            continue
        output = validate(after, output)
        task.dependencies[after] -= 1
        if after in task.not_ready:
            output = task.not_ready.pop(after) + output
        if task.dependencies[after] == 0:
            task.push(after, output)
        else:
            task.not_ready[after] = output


def validate(node, grad):
    """Broadcasting undone: summed to the shape of the input."""
    new = len(grad.shape) - len(node.shape)
    once = [new + i for i, n in enumerate(node.shape) if n == 1]
    summed = grad.read().sum((*range(new), *once))
    return Tensor.of(summed.reshape(node.shape))


def as_strided_backward(view):
    places, shape = view.places(), view.base.shape

    def spread(grad):
        whole = np.zeros(shape, grad.dtype)
        np.add.at(whole.reshape(-1), places, grad.read())
        return Tensor.of(whole)

    edges = [gradient_edge(view.base)]
    return Node("as_strided", view.shape, edges, [spread])


class CopySlices(Node):
    """Runs `node` on the part of a gradient a view looks at."""

    def __init__(self, view, node):
        edges = gradient_edge(view.base), *node.next_edges[1:]
        super().__init__("CopySlices", view.base.shape, edges)
        self.layout = view.shape, view.strides, view.offset
        self.node, self.saved = node, node.saved

    def apply(self, grad):
        whole = grad.clone()
        part = whole.as_strided(*self.layout)
        first, *others = self.node.apply(part.clone())
        put(part, first.read() if first else 0)
        return [whole, *others]
