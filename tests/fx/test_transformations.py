"""What is done with graphs: Interpreter, Transformer, replace_pattern, split_module, ShapeProp, changes by hand. As PyTorch does."""

import importlib
import operator

import pytest
import torch
import torch.fx
import torch.fx.passes.shape_prop
import torch.fx.passes.split_module

import readtorch as rt
import readtorch.fx
import readtorch.fx.passes.shape_prop
import readtorch.fx.passes.split_module
from tests.reference import assert_close

from .test_symbolic_trace import assert_same_graphs, inputs, outcome, plain

SIDES = (torch, rt)


def on_both(function):
    return [function(T) for T in SIDES]


def module_of(T, name):
    return importlib.import_module(f"{T.__name__}.{name}")


class Net:
    """A small network with a submodule, a parameter, a buffer, and constants."""

    def __new__(cls, T):
        class Block(T.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = T.nn.Linear(3, 3)
                self.scale = T.nn.Parameter(T.ones(3))

            def forward(self, x):
                return T.relu(self.linear(x)) * self.scale

        class Net(T.nn.Module):
            def __init__(self):
                super().__init__()
                self.blocks = T.nn.Sequential(Block(), Block())
                self.register_buffer("offset", T.ones(3))
                self.constant = T.arange(3.0)

            def forward(self, x, y):
                x = self.blocks(x) + self.offset
                total = T.add(x, self.constant) + T.add(y, T.tensor(2.0))
                return total.neg(), {"y": T.sigmoid(y)}

        T.manual_seed(3)
        return Net()


def traced(T):
    return T.fx.symbolic_trace(Net(T))


def assert_same(theirs, ours):
    assert_same_graphs(theirs, ours)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert [name for name, _ in ours.named_modules()] == [name for name, _ in theirs.named_modules()]
    assert_close(ours(*inputs(rt)), theirs(*inputs(torch)))


def test_modules():
    theirs, ours = on_both(traced)
    assert_same(theirs, ours)
    for their_node, our_node in zip(theirs.graph.nodes, ours.graph.nodes, strict=True):
        assert plain(str(our_node.meta)) == str(their_node.meta)


class Recorded:
    """A run that notes each node and its value's type."""

    def __new__(cls, T, module, seen):
        class Recorder(T.fx.Interpreter):
            def run_node(self, n):
                result = super().run_node(n)
                seen.append((n.name, type(result).__name__, len(self.env)))
                return result

            def call_function(self, target, args, kwargs):
                if target is T.sigmoid:
                    return T.tanh(*args, **kwargs)
                return super().call_function(target, args, kwargs)

        return Recorder(module)


@pytest.mark.parametrize("given", [2, 1, 3])
def test_interpreter(given):
    seen = [], []
    extra = [3]
    results = [
        outcome(lambda T=T, s=s: Recorded(T, traced(T), s).run(*[*inputs(T), *extra][:given]))
        for T, s in zip(SIDES, seen)
    ]
    assert seen[0] == seen[1]
    if isinstance(results[0][0], str):
        assert results[0] == results[1]
    else:
        assert_close(results[1], results[0])


def test_errors_name_the_node():
    def program(T):
        gm = T.fx.symbolic_trace(lambda x: T.matmul(x, T.ones(5)).sin())
        return outcome(lambda: T.fx.Interpreter(gm).run(T.ones(2, 3)))

    theirs, ours = on_both(program)
    assert ours == theirs


def test_transformer():
    def program(T):
        class Swap(T.fx.Transformer):
            def call_function(self, target, args, kwargs):
                if target is operator.add:
                    return super().call_function(T.sub, args, kwargs)
                return super().call_function(target, args, kwargs)

            def call_method(self, target, args, kwargs):
                return super().call_method("abs" if target == "neg" else target, args, kwargs)

        return Swap(traced(T)).transform()

    assert_same(*on_both(program))


# pattern and replacement, both functions of T
PATTERNS = {
    "function": (lambda T: lambda x: T.sigmoid(x), lambda T: lambda x: T.tanh(x) + 1),
    "two nodes": (lambda T: lambda a, b: T.relu(a) * b, lambda T: lambda a, b: b * T.nn.functional.gelu(a)),
    "more results": (lambda T: lambda a: (a.neg(),), lambda T: lambda a: (a.sin(),)),
    "literal": (lambda T: lambda a: a + 5, lambda T: lambda a: a),
    "not there": (lambda T: lambda a: T.cos(a), lambda T: lambda a: a),
    "overlap": (lambda T: lambda a, b: a + b, lambda T: lambda a, b: a - b),
    "identity": (lambda T: lambda a: a.neg(), lambda T: lambda a: a),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_replace_pattern(name):
    def program(T):
        gm = traced(T)
        pattern, replacement = (make(T) for make in PATTERNS[name])
        matches = T.fx.replace_pattern(gm, pattern, replacement)
        return gm, [(m.anchor.name, [(a.name, str(b)) for a, b in m.nodes_map.items()]) for m in matches]

    (theirs, their_matches), (ours, our_matches) = on_both(program)
    assert our_matches == their_matches
    assert_same(theirs, ours)


def test_replace_pattern_with_filters():
    def program(T):
        rewriter = module_of(T, "fx.subgraph_rewriter")
        gm = T.fx.symbolic_trace(lambda x, y: (x + 1).relu() + (y + 2).relu())
        rewriter.replace_pattern_with_filters(
            gm,
            lambda a: (a + 7).relu(),
            lambda a: a.sin(),
            match_filters=[lambda match, graph, pattern: "y" in [str(n) for n in match.placeholder_nodes]],
            ignore_literals=True,
        )
        return gm

    assert_same(*on_both(program))


def test_replacement_with_a_module():
    def program(T):
        gm = T.fx.symbolic_trace(T.nn.Sequential(T.nn.Linear(3, 3), T.nn.ReLU(), T.nn.Sigmoid()))

        class Pattern(T.nn.Module):
            def forward(self, x):
                return T.sigmoid(x)

        class Replacement(T.nn.Module):
            def __init__(self):
                super().__init__()
                self.extra = T.nn.Tanh()

            def forward(self, x):
                return self.extra(x)

        last = list(gm.graph.nodes)[-2]
        with gm.graph.inserting_after(last):
            new = gm.graph.call_function(T.sigmoid, (last.args[0],))
        last.replace_all_uses_with(new)
        gm.graph.erase_node(last)
        gm.recompile()
        T.fx.replace_pattern(gm, T.fx.symbolic_trace(Pattern()), T.fx.symbolic_trace(Replacement()))
        return gm

    theirs, ours = on_both(program)
    assert_same_graphs(theirs, ours)


SPLITS = {
    "at a node": (lambda node: 0 if node < node.graph.find_nodes(op="call_method")[0] else 1, {}),
    "alternating": (lambda node: node.name.startswith("add"), {}),
    "three parts": (lambda node: {"call_module": 0, "call_function": 1, "call_method": 2}[node.op], {}),
    "in order": (lambda node: node.op == "call_method", {"keep_original_order": True}),
    "names": (lambda node: node.op == "call_method", {"keep_original_node_name": True, "partition_affix": "p"}),
    "inputs": (lambda node: node.op == "call_method", {"keep_original_input_name": False, "tuple_return": True}),
    "one": (lambda node: 0, {}),
}


@pytest.mark.parametrize("name", SPLITS)
def test_split_module(name):
    callback, options = SPLITS[name]

    def program(T):
        gm, names = traced(T), {}
        split = module_of(T, "fx.passes.split_module").split_module
        result = outcome(lambda: split(gm, Net(T), callback, qualname_map=names, **options))
        return result, names

    (theirs, their_names), (ours, our_names) = on_both(program)
    assert our_names == their_names
    if isinstance(theirs, tuple):
        assert ours == theirs
        return
    assert_same(theirs, ours)
    for name, child in theirs.named_children():
        if isinstance(child, torch.fx.GraphModule):
            assert_same_graphs(child, getattr(ours, name))


def test_shape_prop():
    def program(T):
        gm = traced(T)
        module_of(T, "fx.passes.shape_prop").ShapeProp(gm).propagate(*inputs(T))
        return gm

    theirs, ours = on_both(program)
    assert_same_graphs(theirs, ours)
    for their_node, our_node in zip(theirs.graph.nodes, ours.graph.nodes, strict=True):
        assert plain(str(our_node.meta.get("tensor_meta"))) == str(their_node.meta.get("tensor_meta"))
        assert our_node.meta["type"].__name__ == their_node.meta["type"].__name__
        assert our_node.format_node() == their_node.format_node()


def change_by_hand(T):
    """A graph made and changed node by node; texts on the way."""
    graph, said = T.fx.Graph(), []
    x = graph.placeholder("x")
    y = graph.placeholder("y", type_expr=int, default_value=2)
    total = graph.call_function(operator.add, (x, y))
    method = graph.call_method("view", (total, [1, -1], {"k": (x,)}))
    with graph.inserting_before(method):
        sine = graph.call_function(T.sin, (total,), name="total")
    method.replace_input_with(total, sine)
    out = graph.output((method, sine))
    said += [str(graph), [n.name for n in total.users], method.args, sine.next.name, sine.prev.name]
    method.args = (sine, -1)
    method.kwargs = {}
    with graph.inserting_after(sine):
        cosine = graph.create_node("call_function", T.cos, (sine,), {}, name="class")
    said += [cosine < method, method < cosine, cosine.name, [n.name for n in reversed(graph.nodes)], len(graph.nodes)]
    sine.replace_all_uses_with(cosine, delete_user_cb=lambda user: user is not cosine)
    said += [str(graph), outcome(lambda: graph.erase_node(total)), outcome(lambda: graph.erase_node(out))]
    graph.output((cosine, method))
    copied = T.fx.Graph()
    said.append(str(copied.graph_copy(graph, {})))
    copied.output(None)
    said += [
        str(copied),
        copied.eliminate_dead_code(),
        str(copied),
        str(graph.find_nodes(op="call_function", target=T.cos)),
    ]
    said.append(outcome(lambda: T.fx.Graph().call_function(T.sin, (x,)).graph.lint()))
    method.prepend(total)
    said.append(outcome(graph.lint))
    said.append(outcome(lambda: method.args[0].args.append(3) if isinstance(method.args, list) else None))
    said.append(outcome(lambda: graph.call_method("view", ([x],)).args[0].append(3)))
    said.append(outcome(lambda: graph.create_node("call_method", 3)))
    said.append(outcome(lambda: graph.create_node("call_function", "add")))
    said.append(outcome(lambda: graph.create_node("nothing", "add")))
    said.append(outcome(lambda: x.prepend(copied.placeholder("z"))))
    said.append(outcome(lambda: T.fx.GraphModule(T.nn.Module(), graph)))
    return [plain(str(s)) for s in said]


def test_changes_by_hand():
    theirs, ours = on_both(change_by_hand)
    assert ours == theirs


# ---------------------------------------------------------------------------------------------------------- passes


def common_subexpressions(T):
    cse = module_of(T, "fx.passes.dialect.common.cse_pass")

    def traced(x):
        a, b = x.sin() + x.sin(), T.relu(x + 1) * T.relu(x + 1)
        return a + b, x[0], x[0], x.add(1), x.add(1.0)

    result = cse.CSEPass(cse.get_CSE_banned_ops())(T.fx.symbolic_trace(traced))
    assert result.modified
    assert not cse.CSEPass()(T.fx.symbolic_trace(lambda x: x.sin() + x.cos())).modified
    return result.graph_module


def folded(T):
    fold = module_of(T, "fx.experimental.const_fold")

    class Constant(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = T.nn.Parameter(T.ones(3)), T.nn.Parameter(T.arange(3.0))

        def forward(self, x):
            return (x + T.sin(self.a * self.b)) * self.b.neg()

    gm = fold.split_const_subgraphs(Constant())
    gm(T.ones(3))
    assert gm.has_folding_been_run
    assert fold.get_unique_attr_name_in_module(gm, "1 a") == "_1_a"
    return gm


def passes_in_order(T):
    infra = module_of(T, "fx.passes.infra.pass_manager")
    PassBase = module_of(T, "fx.passes.infra.pass_base").PassBase
    PassResult = module_of(T, "fx.passes.infra.pass_base").PassResult

    class AddToSub(PassBase):
        def call(self, gm):
            nodes = gm.graph.find_nodes(op="call_function", target=operator.add)
            for node in nodes:
                node.target = operator.sub
            return PassResult(gm, bool(nodes))

    def add_relu(gm):
        output = gm.graph.output_node()
        with gm.graph.inserting_before(output):
            output.args = (gm.graph.call_function(T.relu, (output.args[0],)),)

    add_relu = infra.pass_result_wrapper(add_relu)
    first = AddToSub()
    manager = infra.PassManager([add_relu, first], [infra.this_before_that_pass_constraint(first, add_relu)])
    result = manager(T.fx.symbolic_trace(lambda x: x + 1))
    assert manager.passes == [first, add_relu]
    assert result.modified
    return result.graph_module


def rewritten(T):
    rewriter, annotate = module_of(T, "fx.experimental.rewriter"), module_of(T, "fx.annotate").annotate

    class Asserts(T.nn.Module):
        def forward(self, x):
            assert x.sum() > 0, "positive"
            y: int = x + 1
            return y

    globals().update(torch=T, annotate=annotate)  # names that the rewritten source knows
    try:
        return T.fx.GraphModule({}, rewriter.RewritingTracer().trace(Asserts()))
    finally:
        globals()["torch"] = SIDES[0]


@pytest.mark.parametrize("program", [common_subexpressions, folded, passes_in_order, rewritten])
def test_passes(program):
    theirs, ours = on_both(program)
    assert_same_graphs(theirs, ours)


def test_passes_that_fail():
    def program(T):
        infra = module_of(T, "fx.passes.infra.pass_manager")
        gm = T.fx.symbolic_trace(lambda x: x + 1)
        a, b = lambda gm: None, lambda gm: None
        circle = [infra.this_before_that_pass_constraint(a, b), infra.this_before_that_pass_constraint(b, a)]
        said = [outcome(lambda: infra.PassManager([a])(gm)), outcome(lambda: infra.PassManager([a, b], circle)(gm))]
        manager = infra.PassManager([b, a], circle[:1])
        return [*said, outcome(manager.validate_constraints), outcome(lambda: manager.add_checks(lambda: None))]

    theirs, ours = (program(T) for T in SIDES)
    assert [said[0] for said in ours] == [said[0] for said in theirs]
    assert [said[1].split("<")[0] for said in ours] == [said[1].split("<")[0] for said in theirs]
